"""Which rights follow from what a run has: nobody's are left out, and none is asked for that is not used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from harness.clusterloader import load_config
from harness.load.arguments import RunOptions, options_from
from harness.load.cluster.commands import rbac
from harness.load.cluster.permissions import Rule, needed, questions
from harness.load.cluster.prepare import rights
from harness.load.controllerarguments import ALONE, NAMES
from harness.load.informerarguments import informer_plan
from harness.load.plan import Target, TargetMember
from harness.wire.errors import ConfigError
from tests.load.plays import DEPLOYED
from tests.load.test_provisioners import parsed

BARE = Target((TargetMember("m", "127.0.0.1", 1),))


def texts(rules: Sequence[Rule]) -> set[str]:
    return {question.text for question in questions(rules)}


def options(*arguments: str) -> RunOptions:
    return options_from(parsed("--kubeconfig", "k", *arguments))


def of_run(*arguments: str, target: Target = BARE) -> set[str]:
    given = options(*arguments)
    return texts(rights(msgspec.structs.replace(given, provisioners=None), target, None))


def account(name: str) -> str:
    return f"impersonate serviceaccounts {name!r} in namespace kube-system"


# ---- who is impersonated ---------------------------------------------------------------------------------------------
def test_every_controller_that_a_run_may_bring_is_impersonated() -> None:
    asked = of_run("--identity", "impersonate")
    assert {account(name) for name in NAMES} <= asked
    assert len(NAMES) > 15
    assert "impersonate users" in asked


def test_controllers_that_the_run_does_not_bring_are_not() -> None:
    for arguments in (("--controllers", "none"), ("--controllers", "deployment-controller")):
        asked = of_run(*arguments)
        expected = {account(name) for name in arguments[1:] if name in NAMES}
        assert {text for text in asked if "serviceaccounts '" in text and "kube-system" in text} == expected
    there = Target(BARE.members, has_controllers=True, has_scheduler=True)
    assert not any("serviceaccounts" in text for text in of_run(target=there))


def test_informers_of_the_manager_are_a_user_of_their_own() -> None:
    manager = "impersonate users 'system:kube-controller-manager'"
    assert manager in texts(needed("certificate", controllers=NAMES))
    assert manager not in texts(needed("certificate", controllers=ALONE))
    assert "impersonate users 'system:kube-scheduler'" in texts(needed("certificate", scheduler=True))


@pytest.mark.parametrize("identity", ["token", "certificate"])
def test_a_kube_proxy_is_impersonated_whoever_nodes_are(identity: str) -> None:
    proxy = "impersonate users 'system:kube-proxy'"
    assert proxy in texts(needed(identity, kube_proxy=True))
    assert not any("impersonate" in text for text in texts(needed(identity)))
    assert proxy not in texts(needed(identity, kube_proxy=True, tokens={"system:kube-proxy": "t"}))


def test_with_an_authority_of_ours_nobody_is() -> None:
    plan = informer_plan([], "none", [])
    rules = needed(
        "certificate",
        own_authority=True,
        kube_proxy=True,
        scheduler=True,
        controllers=NAMES,
        provisioners=True,
        informers=plan,
    )
    assert not any("impersonate" in text for text in texts(rules))


def test_a_fleets_proxies_and_tokens_count(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    for user, asked in (("system:node:n1", True), ("system:kube-proxy", False)):
        file.write_text(f"t,{user},1\n")
        found = of_run("--identity", "token", "--tokens", str(file), "--fleet", "kube_proxy=true")
        assert ("impersonate users 'system:kube-proxy'" in found) == asked


# ---- provisioners and informers --------------------------------------------------------------------------------------
def test_provisioners_get_rights_only_from_whoever_has_them() -> None:
    asked = texts(needed("token", provisioners=True))
    group = "rbac.authorization.k8s.io"
    assert {
        account("csi-provisioner"),
        "create namespaces",
        f"create clusterroles.{group}",
        f"create clusterrolebindings.{group}",
        "* persistentvolumeclaims",
        "* storageclasses.storage.k8s.io",
        "* leases.coordination.k8s.io",
        "impersonate groups 'system:serviceaccounts:kube-system'",
    } <= asked


def test_informers_and_their_writer() -> None:
    plan = informer_plan(["resource=pods", "resource=deployments.v1.apps"], "none", ["resource=secrets"])
    asked = texts(needed("token", informers=plan))
    reads = {f"{verb} {what}" for verb in ("get", "list", "watch") for what in ("pods", "deployments.apps")}
    assert reads <= asked
    assert {"create secrets", "update secrets", "delete secrets", "create namespaces"} <= asked
    assert "impersonate serviceaccounts in namespace informers" in asked
    assert "impersonate groups 'system:serviceaccounts:informers'" in asked
    assert "get secrets" not in asked


def test_a_run_says_which_of_them_it_has() -> None:
    given = options()
    assert given.provisioners is not None
    with_all = texts(rights(given, BARE, None, informers=True))
    assert account("csi-provisioner") in with_all
    assert "watch configmaps" in with_all
    assert not {account("csi-provisioner"), "watch configmaps"} & of_run()


# ---- scenarios -------------------------------------------------------------------------------------------------------
def test_replicasets_that_are_looked_at_for_a_deployment() -> None:
    asked = texts(needed("token", config=load_config(DEPLOYED, 5, (), {})))
    assert {"list replicasets.apps", "watch replicasets.apps", "create deployments.apps"} <= asked
    assert "create replicasets.apps" not in asked


# ---- the command -----------------------------------------------------------------------------------------------------
def printed(capsys: pytest.CaptureFixture[str], **flags: Any) -> list[dict[str, Any]]:
    rbac(identity="token", scenario="none", **flags)
    role, _ = yaml.safe_load_all(capsys.readouterr().out)
    rules: list[dict[str, Any]] = role["rules"]
    return rules


def test_the_role_of_each_kind_of_run_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names = [rule.get("resourceNames") for rule in printed(capsys, controllers=True, kube_proxy=True)]
    assert list(NAMES) in names
    assert ["system:kube-proxy"] in names
    assert any(rule["verbs"] == ["*"] for rule in printed(capsys, provisioners=True))
    rules = printed(capsys, informers=["resource=pods"], writer=["resource=secrets"])
    assert any(rule.get("resources") == ["pods"] and "watch" in rule["verbs"] for rule in rules)
    assert any(rule.get("resources") == ["secrets"] for rule in rules)


def test_what_only_informers_have_needs_them() -> None:
    with pytest.raises(ConfigError, match="--lists and --writer are of a run with --informers"):
        rbac(scenario="none", writer=["rate=1"])
