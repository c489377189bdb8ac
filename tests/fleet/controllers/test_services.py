"""Endpoints and EndpointSlices."""

from __future__ import annotations

import pytest

from harness.fleet.controllers.endpointslices import MOST, _fill
from tests.fleet.controllers.cluster import Cluster, service, workload
from tests.fleet.controllers.serverworld import Object

BASE = "/api/v1/namespaces/m"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/m/endpointslices"
NAMES = ("endpoint-controller", "endpointslice-controller", "replicaset-controller")


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(2, names=NAMES)
    made.run(12.0)
    made.namespace()
    return made


def addresses(cluster: Cluster) -> list[str]:
    subsets = cluster.admin("GET", f"{BASE}/endpoints/s").get("subsets") or []
    return sorted(each["ip"] for subset in subsets for each in subset.get("addresses", ()))


def test_ready_pods_are_behind_their_service_and_ending_ones_are_not(cluster: Cluster) -> None:
    cluster.apply(service("s", "a"), workload("ReplicaSet", "a", replicas=3))
    cluster.run(cluster.now + 6.0)
    pods = cluster.items(f"{BASE}/pods")
    assert addresses(cluster) == sorted(each["status"]["podIP"] for each in pods)
    (found,) = cluster.items(SLICES)
    assert [each["conditions"]["ready"] for each in found["endpoints"]] == [True] * 3
    assert {each["targetRef"]["name"] for each in found["endpoints"]} == {
        each["metadata"]["name"] for each in pods
    }
    assert found["ports"][0]["port"] == 80
    cluster.scale("/apis/apps/v1/namespaces/m/replicasets/a/scale", 1)
    cluster.run(cluster.now + 0.1)
    (found,) = cluster.items(SLICES)
    ready = [each["conditions"] for each in found["endpoints"]]
    assert sorted((each["ready"], each["terminating"]) for each in ready) == [
        (False, True),
        (False, True),
        (True, False),
    ]
    assert len(addresses(cluster)) == 1
    cluster.run(cluster.now + 8.0)
    (found,) = cluster.items(SLICES)
    assert len(found["endpoints"]) == 1


def test_a_named_port_is_looked_up_in_each_pod(cluster: Cluster) -> None:
    made = workload("ReplicaSet", "a", replicas=1)
    made["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"name": "web", "containerPort": 8080}]
    cluster.apply(service("s", "a", ports=[{"name": "http", "port": 80, "targetPort": "web"}]), made)
    cluster.run(cluster.now + 6.0)
    (found,) = cluster.items(SLICES)
    assert [(each["name"], each["port"]) for each in found["ports"]] == [("http", 8080)]
    assert cluster.admin("GET", f"{BASE}/endpoints/s")["subsets"][0]["ports"][0]["port"] == 8080


@pytest.mark.parametrize("spec", [{"selector": None}, {"type": "ExternalName", "externalName": "e.io"}])
def test_a_service_that_selects_nothing_is_left_alone(cluster: Cluster, spec: Object) -> None:
    made = service("s", "a", **spec)
    made["spec"] = {key: value for key, value in made["spec"].items() if value is not None}
    cluster.apply(made)
    cluster.run(cluster.now + 2.0)
    assert cluster.kinds("endpoint-controller") == cluster.kinds("endpointslice-controller") == []


def test_what_is_deleted_is_made_again_and_goes_with_its_service(cluster: Cluster) -> None:
    cluster.apply(service("s", "a"))
    cluster.run(cluster.now + 2.0)
    (found,) = cluster.items(SLICES)
    cluster.admin("DELETE", f"{SLICES}/{found['metadata']['name']}")
    cluster.admin("DELETE", f"{BASE}/endpoints/s")
    cluster.run(cluster.now + 3.0)
    assert len(cluster.items(SLICES)) == 1
    cluster.admin("GET", f"{BASE}/endpoints/s")
    cluster.admin("DELETE", f"{BASE}/services/s")
    cluster.run(cluster.now + 2.0)
    cluster.admin("GET", f"{BASE}/endpoints/s", expect=404)


# ---- slices, by themselves -------------------------------------------------------------------------------------------
LABELS = {"l": "v"}


def endpoint(uid: str, ready: bool = True) -> Object:
    return {"addresses": [uid], "conditions": {"ready": ready}, "targetRef": {"uid": uid}}


def slice_of(name: str, first: int, count: int) -> Object:
    members = [endpoint(f"{index}") for index in range(first, first + count)]
    return {"metadata": {"name": name, "labels": LABELS}, "endpoints": members}


def wanted(first: int, count: int) -> dict[str, Object]:
    return {f"{index}": endpoint(f"{index}") for index in range(first, first + count)}


@pytest.mark.parametrize(
    ("slices", "want", "made", "changed", "emptied"),
    [
        ([], wanted(0, 1), [1], {}, []),
        ([], wanted(0, MOST), [MOST], {}, []),
        ([], wanted(0, MOST + 1), [MOST, 1], {}, []),
        ([slice_of("a", 0, 3)], wanted(0, 3), [], {}, []),
        ([slice_of("a", 0, 3)], wanted(0, 4), [], {"a": 4}, []),
        ([slice_of("a", 0, 3)], wanted(0, 2), [], {"a": 2}, []),
        ([slice_of("a", 0, MOST)], wanted(0, MOST + 1), [1], {}, []),
        ([slice_of("a", 0, 99), slice_of("b", 99, 50)], wanted(0, 151), [], {"b": 52}, []),
        ([slice_of("a", 0, 99), slice_of("b", 99, 50)], wanted(0, 150), [], {"a": 100}, []),
        ([slice_of("a", 0, 3), slice_of("b", 3, 3)], wanted(3, 3), [], {}, ["a"]),
        ([slice_of("a", 0, 3), slice_of("b", 3, 3)], wanted(1, 6), [], {"a": 3}, []),
    ],
    ids=[
        "first",
        "a whole one",
        "one more",
        "nothing to do",
        "one comes",
        "one goes",
        "full",
        "two into the one that has room for both",
        "one into the fullest",
        "emptied",
        "the changed one is filled",
    ],
)
def test_which_slices_are_written(
    slices: list[Object],
    want: dict[str, Object],
    made: list[int],
    changed: dict[str, int],
    emptied: list[str],
) -> None:
    new, updated, deleted = _fill(slices, dict(want), LABELS)
    assert [len(each) for each in new] == made
    assert {each["metadata"]["name"]: len(each["endpoints"]) for each in updated} == changed
    assert [each["metadata"]["name"] for each in deleted] == emptied
    held = {
        each["targetRef"]["uid"]
        for members in (*new, *(one["endpoints"] for one in slices if one not in deleted))
        for each in members
    }
    assert held == set(want)
