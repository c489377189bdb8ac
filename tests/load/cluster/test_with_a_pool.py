"""Against real members: the printed role is enough, what lacks is named, members are found, a killed run is removed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
import msgspec
import pytest
import yaml

from harness.client.requests import NAMESPACES, NODES, ResourceRef, create_, get_, update_
from harness.clusterloader import load_config
from harness.load.cluster.cleanup import find, remove
from harness.load.cluster.commands import cleanup, rbac, tokens
from harness.load.cluster.errands import Errands
from harness.load.cluster.foreignfaults import ForeignFaults
from harness.load.cluster.members import NAMESPACE, SLICES, discover
from harness.load.cluster.permissions import Rule, manifest, needed
from harness.load.cluster.preflight import check_rights
from harness.load.controllerarguments import NAMES
from harness.load.labels import RUN_LABEL
from harness.load.target import existing_target
from harness.observe.record import read_table
from harness.pool.emulated import EmulatedPool, PoolOptions
from harness.pool.faults import PATH
from harness.wire.errors import ConfigError
from harness.wire.request import Request, Response
from tests.conftest import HANG_S
from tests.load.plays import AT_MOST, DEPLOYED, TINY, WHOLE_RUNS, Play, assert_ended_well

pytestmark = WHOLE_RUNS

ROLES = ResourceRef("rbac.authorization.k8s.io", "v1", "clusterroles")
BINDINGS = ResourceRef("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
ACCOUNTS = ResourceRef("", "v1", "serviceaccounts")
CONFIGMAPS = ResourceRef("", "v1", "configmaps")


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("pool") / "kubeconfig"
    pool = EmulatedPool(PoolOptions(members=2, nodes=5, cores="host", kubeconfig=str(path)), lambda _: None)
    try:
        pool.start()
        yield path
    finally:
        pool.stop()


@pytest.fixture
def admin(kubeconfig: Path) -> Iterator[Errands]:
    with Errands(existing_target("", str(kubeconfig), ()).target, HANG_S) as errands:
        yield errands


def make(errands: Errands, ref: ResourceRef, body: dict[str, Any], namespace: str = "") -> None:
    answer = errands.ask(create_(ref, namespace or None, msgspec.json.encode(body)))
    assert isinstance(answer, Response), answer
    assert answer.status == 201, answer.body


def labelled(kind: str, name: str, run: str, **more: Any) -> dict[str, Any]:
    version = {"apiVersion": "v1", "kind": kind}
    return {**version, "metadata": {"name": name, "labels": {RUN_LABEL: run}}, **more}


@pytest.mark.parametrize("identity", ["impersonate", "token", "certificate"])
def test_the_printed_role_is_enough_and_what_lacks_is_named(admin: Errands, identity: str) -> None:
    """As somebody who has the role and nothing else, by impersonation."""
    user = f"runner-{identity}"
    rules = needed(identity, scheduler=True, controllers=NAMES)
    target = msgspec.structs.replace(
        admin.target,
        headers={"impersonate-user": (user,), "impersonate-group": ("system:authenticated",)},
    )
    with Errands(target, HANG_S) as runner:
        with pytest.raises(ConfigError, match="our credentials may not get /metrics, needed for any run"):
            check_rights(runner, rules)
        role, binding = yaml.safe_load_all(manifest(rules, user))
        for ref, document in ((ROLES, role), (BINDINGS, binding)):
            document["metadata"]["name"] = document["metadata"]["name"] + identity
            document.get("roleRef", {})["name"] = role["metadata"]["name"]
            make(admin, ref, document)
        wait_for_rights(runner, rules)


def wait_for_rights(errands: Errands, rules: list[Rule]) -> None:
    """The members' own informers see a role a little later."""
    deadline = time.monotonic() + HANG_S
    while True:
        try:
            check_rights(errands, rules)
            return
        except ConfigError:
            if time.monotonic() >= deadline:
                raise


def wait_for_refusal(errands: Errands, rules: list[Rule]) -> str:
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        try:
            check_rights(errands, rules)
        except ConfigError as error:
            return str(error)
    raise AssertionError("everything is granted still")


def test_each_rule_that_is_taken_out_of_the_role_is_named_before_a_run(admin: Errands) -> None:
    """By members that decide by live roles; what is to be added is what was taken out."""
    user = "runner-of-tiny"
    rules = needed("impersonate", scheduler=True, controllers=NAMES, config=load_config(TINY, 5, (), {}))
    role, binding = yaml.safe_load_all(manifest(rules, user))
    role["metadata"]["name"] = binding["metadata"]["name"] = binding["roleRef"]["name"] = user
    make(admin, ROLES, role)
    make(admin, BINDINGS, binding)
    headers = {"impersonate-user": (user,), "impersonate-group": ("system:authenticated",)}
    # one member, whose roles are then the same for every question
    target = msgspec.structs.replace(admin.target, headers=headers, members=admin.target.members[:1])
    with Errands(target, HANG_S) as runner:
        wait_for_rights(runner, rules)
        for taken in role["rules"]:
            rest = {**role, "rules": [rule for rule in role["rules"] if rule != taken]}
            replace(admin, ROLES, user, rest)
            text = wait_for_refusal(runner, rules)
            added = yaml.safe_load(text[text.index("rules: ") + 7 : text.rindex(" (or all of")])
            assert granted(added) == granted([taken]), text
            replace(admin, ROLES, user, role)
            wait_for_rights(runner, rules)


def granted(rules: list[dict[str, list[str]]]) -> set[tuple[str, ...]]:
    """Each right by itself."""
    return {
        (verb, group, resource, name, path)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule.get("apiGroups", [""])
        for resource in rule.get("resources", [""])
        for name in rule.get("resourceNames", [""])
        for path in rule.get("nonResourceURLs", [""])
    }


def replace(errands: Errands, ref: ResourceRef, name: str, body: dict[str, Any]) -> None:
    answer = errands.ask(update_(ref, None, name, msgspec.json.encode(body)))
    assert isinstance(answer, Response), answer
    assert answer.status == 200, answer.body


def test_a_run_needs_no_more_than_the_printed_role(admin: Errands, kubeconfig: Path, tmp_path: Path) -> None:
    """A scenario with a Deployment, controllers of its own and certificates by the API, by a service account that has
    this role and nothing else."""
    make(admin, NAMESPACES, {"metadata": {"name": "lt"}})
    make(admin, ACCOUNTS, {"metadata": {"name": "runner"}}, "lt")
    config = load_config(DEPLOYED, 5, (), {})
    rules = needed("certificate", scheduler=True, controllers=NAMES, config=config)
    role, binding = yaml.safe_load_all(manifest(rules, "lt:runner"))
    make(admin, ROLES, role)
    make(admin, BINDINGS, binding)
    asked = create_(ACCOUNTS, "lt", b'{"spec":{}}', name="runner", subresource="token")
    answer = admin.ask(asked)
    assert isinstance(answer, Response)
    credentials = yaml.safe_load(kubeconfig.read_text())
    credentials["users"][0]["user"] = {"token": json.loads(answer.body)["status"]["token"]}
    own = tmp_path / "kubeconfig"
    own.write_text(yaml.safe_dump(credentials))
    arguments = ("--scenario", DEPLOYED, *AT_MOST, "--kubeconfig", str(own), "--identity", "certificate")
    outcome = Play(tmp_path / "run", *arguments).end()
    assert_ended_well(outcome)
    assert outcome.manifest.results["scenario"] == "Success"
    rows = read_table(outcome.record, "requests").to_pylist()
    answered = {(r["user"], r["verb"], r["name"], r["code"]) for r in rows}
    refused = {(user, verb, name) for user, verb, name, code in answered if code == 403 and user != "kubelet"}
    # Admission refuses creations in a namespace that ends, by the same code. A right that lacks is never granted.
    assert {user for user, *_ in refused} <= {"controllers", "scheduler"}
    assert all(verb == "create" and (user, verb, name, 201) in answered for user, verb, name in refused)
    remove(admin, find(admin).objects)


def test_members_behind_one_address_are_found_with_a_certificate_for_its_name(
    admin: Errands, kubeconfig: Path
) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    servers = [cluster["cluster"]["server"] for cluster in config["clusters"]]
    ports = sorted(int(server.rpartition(":")[2]) for server in servers)
    for port in ports:
        body = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": f"kubernetes-{port}",
                "labels": {"kubernetes.io/service-name": "kubernetes"},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}],
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        }
        make(admin, SLICES, body, NAMESPACE)
    found = discover(admin)
    assert [member.port for member in found.target.members] == ports
    assert found.text.startswith("2 members, all reachable: 127.0.0.1:")
    named = msgspec.structs.replace(admin.target, server_name="elsewhere.example")
    with Errands(msgspec.structs.replace(named, insecure=True, ca=""), HANG_S) as errands:
        assert len(discover(errands).target.members) == 2, "nobody checks"
    assert "members not known" in discover(_unusable(admin)).text


def _unusable(admin: Errands) -> Errands:
    class Nobody(Errands):
        def __init__(self) -> None:
            self.target = admin.target

        def ask(self, request: Any) -> Any:
            return Response(403, {}, b'{"message":"no"}')

    return Nobody()


def test_faults_of_its_members_are_heard_of_whoever_ordered_them(admin: Errands) -> None:
    heard: list[tuple[str, str, str]] = []
    order = b'{"fault":{"kind":"goaway","chance":0.0}}'
    begin = Request("faults", "POST", PATH, "faults", body=order, content_type="application/json")
    faults = ForeignFaults(
        admin.target, lambda event, _: heard.append((event["kind"], event["member"], event["fault"]))
    )
    try:
        with gevent.Timeout(HANG_S):
            for number, request in enumerate((begin, Request("faults", "DELETE", PATH, "faults")), 1):
                answer = admin.ask(request)
                assert isinstance(answer, Response)
                assert answer.status == 200, answer.body
                while len(heard) < number:
                    gevent.sleep(0.01)
    finally:
        faults.stop()
    name = admin.target.members[0].name
    assert heard == [(kind, name, "goaway chance=0") for kind in ("fault-started", "fault-ended")]


def test_exactly_what_a_run_made_is_removed(admin: Errands) -> None:
    make(admin, NODES, labelled("Node", "n-a", "a"))
    make(admin, NODES, labelled("Node", "n-b", "b"))
    make(admin, NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "somebodys"}})
    make(admin, NAMESPACES, labelled("Namespace", "ns-a", "a"))
    make(admin, CONFIGMAPS, labelled("ConfigMap", "inside", "a"), "ns-a")
    make(admin, CONFIGMAPS, labelled("ConfigMap", "outside", "a"), "default")
    found = find(admin, "a")
    assert found.passed_over == {}
    assert found.counts() == {("a", "configmaps"): 2, ("a", "namespaces"): 1, ("a", "nodes"): 1}
    assert remove(admin, found.objects) == 3
    assert find(admin, "b").counts() == {("b", "nodes"): 1}
    answer = admin.ask(get_(NODES, None, "somebodys"))
    assert isinstance(answer, Response)
    assert answer.status == 200


def test_the_command_lists_first_and_deletes_then(
    admin: Errands, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(admin, NODES, labelled("Node", "n-c", "c"))
    cleanup(run="c", every=False, kubeconfig=str(kubeconfig), context="", dry_run=True)
    assert len(find(admin, "c").objects) == 1
    cleanup(run="c", every=False, kubeconfig=str(kubeconfig), context="", dry_run=False)
    cleanup(run="c", every=False, kubeconfig=str(kubeconfig), context="", dry_run=False)
    said = capsys.readouterr().out
    assert "1 deleted" in said
    assert "nothing that a run made" in said
    for run, every in (("", False), ("c", True)):
        with pytest.raises(ConfigError, match="give either --run ID or --all"):
            cleanup(run=run, every=every, kubeconfig=str(kubeconfig))


def test_the_other_commands_print(capsys: pytest.CaptureFixture[str]) -> None:
    rbac(identity="token", own_ca=False, scenario="none", controllers=False, subject="jane")
    role, binding = yaml.safe_load_all(capsys.readouterr().out)
    assert (role["kind"], binding["subjects"][0]["name"]) == ("ClusterRole", "jane")
    rbac(identity="impersonate", own_ca=False, scenario="density", controllers=False, subject="")
    role, _ = yaml.safe_load_all(capsys.readouterr().out)
    pods = next(rule for rule in role["rules"] if "pods" in rule.get("resources", ()))
    assert {"create", "delete", "watch"} <= set(pods["verbs"])
    with pytest.raises(ConfigError, match="--identity x: allowed are"):
        rbac(identity="x")
    tokens(nodes=2, workers=1)
    assert len(capsys.readouterr().out.splitlines()) == 2
    with pytest.raises(ConfigError, match="at least 1 node and 1 worker"):
        tokens(nodes=0, workers=1)
