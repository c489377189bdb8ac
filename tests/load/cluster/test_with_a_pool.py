"""Against real members: the printed role is enough, what lacks is named, members are found, a killed run is removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from harness.client.requests import NAMESPACES, NODES, ResourceRef, create_, get_
from harness.load.cluster.cleanup import find, remove
from harness.load.cluster.commands import cleanup, rbac, tokens
from harness.load.cluster.errands import Errands
from harness.load.cluster.members import NAMESPACE, SLICES, discover
from harness.load.cluster.permissions import manifest, needed
from harness.load.cluster.preflight import check_rights
from harness.load.labels import RUN_LABEL
from harness.load.target import existing_target
from harness.pool.emulated import EmulatedPool, PoolOptions
from harness.wire.errors import ConfigError
from harness.wire.request import Response

pytestmark = pytest.mark.slow

ROLES = ResourceRef("rbac.authorization.k8s.io", "v1", "clusterroles")
BINDINGS = ResourceRef("rbac.authorization.k8s.io", "v1", "clusterrolebindings")
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
    with Errands(existing_target("", str(kubeconfig), ()).target) as errands:
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
    rules = needed(identity, controllers=True)
    target = msgspec.structs.replace(
        admin.target,
        headers={"impersonate-user": (user,), "impersonate-group": ("system:authenticated",)},
    )
    with Errands(target) as runner:
        with pytest.raises(ConfigError, match="our credentials may not get /metrics, needed for any run"):
            check_rights(runner, rules)
        role, binding = yaml.safe_load_all(manifest(rules, user))
        for ref, document in ((ROLES, role), (BINDINGS, binding)):
            document["metadata"]["name"] = document["metadata"]["name"] + identity
            document.get("roleRef", {})["name"] = role["metadata"]["name"]
            make(admin, ref, document)
        for _ in range(100):  # the members' own informers see it a little later
            try:
                check_rights(runner, rules)
                break
            except ConfigError as error:
                last = error
        else:
            raise last


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
    with Errands(msgspec.structs.replace(named, insecure=True, ca="")) as errands:
        assert len(discover(errands).target.members) == 2, "nobody checks"
    assert "members not known" in discover(_unusable(admin)).text


def _unusable(admin: Errands) -> Errands:
    class Nobody(Errands):
        def __init__(self) -> None:
            self.target = admin.target

        def ask(self, request: Any) -> Any:
            return Response(403, {}, b'{"message":"no"}')

    return Nobody()


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
