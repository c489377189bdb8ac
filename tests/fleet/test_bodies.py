"""The bodies of a kubelet's requests have the shape that its Go types write, and nothing that no field takes."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from harness.apiserver.schema import schema_for
from harness.apiserver.schema.decode import decode_value
from harness.client.machine import Note
from harness.fleet.kubelet import Kubelet
from harness.fleet.kubeproxy import KubeProxy
from harness.fleet.options import KubeletOptions
from tests.fleet.builders import OwnOne, pod, with_objects
from tests.fleet.fakeapi import EPOCH_S, Logged, World

SHAPES = {
    "create nodes": {"metadata": {"annotations", "labels", "name"}, "spec": set(), "status": None},
    "create csinodes": {"metadata": {"name", "ownerReferences"}, "spec": {"drivers"}},
    "create leases": {
        "metadata": {"name", "namespace", "ownerReferences"},
        "spec": {"holderIdentity", "leaseDurationSeconds", "renewTime"},
    },
    "update leases": {
        "metadata": {"name", "namespace", "ownerReferences", "resourceVersion", "uid"},
        "spec": {"holderIdentity", "leaseDurationSeconds", "renewTime"},
    },
    "create serviceaccounts/token": {
        "metadata": set(),
        "spec": {"audiences", "boundObjectRef", "expirationSeconds"},
    },
    "delete pods": {"gracePeriodSeconds": None, "preconditions": {"uid"}},
    "create certificatesigningrequests": {
        "metadata": {"generateName"},
        "spec": {"request", "signerName", "usages"},
    },
}
"""The fields of each body but kind and apiVersion, and theirs; None where they are looked at elsewhere."""


@pytest.fixture(scope="module")
def world() -> World:
    world = World()
    options = KubeletOptions(start_delay_s=(0.2, 0.2))
    world.add(Kubelet("n1", options, Random(1), EPOCH_S, certificate=OwnOne(50.0)))
    world.add(KubeProxy("n1", options, Random(2), EPOCH_S))
    with_objects(world, "t", "s0", "c0")
    world.run(12.0)
    world.create("pods", "t", pod("p", "n1", secrets=("s0", "absent")))
    body = pod("q", "n1", configmaps=("c0",))
    body["spec"]["initContainers"] = [{"name": "i", "image": "x", "command": ["sleep", "1"]}]
    world.create("pods", "t", body)
    world.run(30.0)
    world.delete("pods", "t", "q")
    world.run(60.0)
    assert {type(note) for note in world.notes} == {Note}
    return world


def bodies(world: World) -> list[tuple[Logged, dict[str, Any]]]:
    return [(each, msgspec.json.decode(each.request.body)) for each in world.log if each.request.body]


@pytest.mark.parametrize("line", list(SHAPES))
def test_a_body_has_exactly_these_fields(world: World, line: str) -> None:
    found = [body for logged, body in bodies(world) if logged.line == line]
    assert found
    for body in found:
        fields = {name: value for name, value in body.items() if name not in ("kind", "apiVersion")}
        assert set(fields) == set(SHAPES[line])
        for name, inner in SHAPES[line].items():
            if inner is not None:
                assert set(fields[name]) == inner, name


def test_no_body_of_a_create_or_update_has_a_field_that_its_kind_lacks(world: World) -> None:
    seen = set()
    for logged, body in bodies(world):
        if logged.info.verb not in ("create", "update"):
            continue
        schema = schema_for(body["apiVersion"], body["kind"])
        assert schema is not None, body["kind"]
        decoded = decode_value(body, schema)
        assert (decoded.strict, decoded.fatal) == ([], ""), logged.line
        seen.add((body["apiVersion"], body["kind"]))
    assert ("events.k8s.io/v1", "Event") in seen
    assert len(seen) == 7


@pytest.mark.parametrize("kind", ["Pod", "Node"])
def test_no_patch_of_a_status_has_a_field_that_its_kind_lacks(world: World, kind: str) -> None:
    schema = schema_for("v1", kind)
    assert schema is not None
    line = f"patch {kind.lower()}s/status"
    patches = [body for logged, body in bodies(world) if logged.line == line]
    assert patches
    for body in patches:
        assert set(body) <= {"metadata", "status"}
        status = {name: value for name, value in body["status"].items() if not name.startswith("$")}
        value = {"metadata": body.get("metadata", {}), "status": _plain(status)}
        decoded = decode_value(value, schema)
        assert (decoded.strict, decoded.fatal) == ([], "")


def _plain(value: Any) -> Any:
    """Without nulls, which a patch may have anywhere."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if each is not None}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def test_a_pods_patch_orders_its_conditions_and_names_its_uid(world: World) -> None:
    for logged, body in bodies(world):
        if logged.line == "patch pods/status":
            assert set(body["metadata"]) == {"uid"}
            order = [each["type"] for each in body["status"]["$setElementOrder/conditions"]]
            assert order == [each["type"] for each in body["status"]["conditions"]]


def test_each_client_speaks_for_itself(world: World) -> None:
    """Main, events and heartbeats have limits of their own; heartbeats also a timeout, which the server is told."""
    by_client: dict[str, set[str]] = {}
    for each in world.log:
        if each.who == 0 and not each.request.is_stream:
            by_client.setdefault(each.request.client, set()).add(each.line)
    assert by_client["events"] == {"create events", "patch events"} or by_client["events"] == {
        "create events"
    }
    assert by_client["heartbeat"] == {
        "create leases",
        "get leases",
        "get nodes",
        "patch nodes/status",
        "update leases",
    }
    assert by_client["certificate"] == {
        "create certificatesigningrequests",
        "list certificatesigningrequests",
    }
    timed = {each.request.client for each in world.log if each.request.timeout_s is not None}
    assert timed == {"heartbeat"}
    assert all("timeout=10s" in each.request.path for each in world.log if each.request.client == "heartbeat")


def test_patches_are_strategic_merges_and_all_other_bodies_json(world: World) -> None:
    kinds = {(logged.info.verb, logged.request.content_type) for logged, _ in bodies(world)}
    assert kinds - {("patch", "application/strategic-merge-patch+json")} == {
        ("create", "application/json"),
        ("update", "application/json"),
        ("delete", "application/json"),
    }
