"""What is owned goes with its owners, in the background, before them, or not at all."""

from __future__ import annotations

import pytest

from tests.fleet.controllers.cluster import Cluster, workload
from tests.fleet.controllers.serverworld import Object

APPS = "/apis/apps/v1/namespaces/m"
PODS = "/api/v1/namespaces/m/pods"
GC = "generic-garbage-collector"


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(0, names=("deployment-controller", "replicaset-controller", GC), scheduler=False)
    made.run(1.0)
    made.namespace()
    made.apply(workload("Deployment", "d", replicas=3))
    made.run(made.now + 2.0)
    assert len(made.items(PODS)) == 3
    return made


def test_in_the_background_each_dependent_is_read_and_deleted(cluster: Cluster) -> None:
    since = cluster.now
    cluster.admin("DELETE", f"{APPS}/deployments/d", {"propagationPolicy": "Background"})
    cluster.run(cluster.now + 3.0)
    assert cluster.items(PODS) == cluster.items(f"{APPS}/replicasets") == []
    assert cluster.kinds(GC, since) == [
        "get replicasets",
        "delete replicasets",
        *["get pods"] * 3,
        *["delete pods"] * 3,
    ]


def test_in_the_foreground_the_owner_goes_last(cluster: Cluster) -> None:
    cluster.admin("DELETE", f"{APPS}/deployments/d", {"propagationPolicy": "Foreground"})
    cluster.run(cluster.now + 4.0)
    assert cluster.items(PODS) == cluster.items(f"{APPS}/replicasets") == []
    cluster.admin("GET", f"{APPS}/deployments/d", expect=404)
    deletions = [
        each.what for each in cluster.writes(GC) if each.verb in ("delete", "patch") and each.code == 200
    ]
    assert deletions[0] == "delete replicasets"
    assert deletions.count("delete pods") == 3
    assert deletions[-2:] == ["patch replicasets", "patch deployments"]


def test_orphans_stay_without_their_owner(cluster: Cluster) -> None:
    cluster.admin("DELETE", f"{APPS}/deployments/d", {"propagationPolicy": "Orphan"})
    cluster.run(cluster.now + 3.0)
    cluster.admin("GET", f"{APPS}/deployments/d", expect=404)
    (left,) = cluster.items(f"{APPS}/replicasets")
    assert not left["metadata"].get("ownerReferences")
    assert len(cluster.items(PODS)) == 3


def reference(name: str, uid: str, kind: str = "ReplicaSet", version: str = "apps/v1") -> Object:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid}


def owned_pod(name: str, *owners: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "ownerReferences": list(owners)},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def test_an_owner_that_never_was_is_asked_for_and_its_dependents_go(cluster: Cluster) -> None:
    since = cluster.now
    cluster.apply(owned_pod("p", reference("ghost", "1-2-3")))
    cluster.run(cluster.now + 2.0)
    assert cluster.kinds(GC, since) == ["get replicasets", "get pods", "delete pods"]


def test_one_owner_that_is_left_is_enough(cluster: Cluster) -> None:
    (found,) = cluster.items(f"{APPS}/replicasets")
    solid = reference(found["metadata"]["name"], found["metadata"]["uid"])
    cluster.apply(owned_pod("p", solid, reference("ghost", "1-2-3")))
    cluster.run(cluster.now + 2.0)
    pod = cluster.admin("GET", f"{PODS}/p")
    assert [each["name"] for each in pod["metadata"]["ownerReferences"]] == [found["metadata"]["name"]]


def test_an_owner_of_a_kind_that_is_not_known_is_believed(cluster: Cluster) -> None:
    since = cluster.now
    cluster.apply(owned_pod("p", reference("w", "1-2-3", "Widget", "e.io/v1")))
    cluster.run(cluster.now + 2.0)
    assert cluster.kinds(GC, since) == []


def test_an_owner_with_the_name_of_one_that_is_gone_is_another(cluster: Cluster) -> None:
    (found,) = cluster.items(f"{APPS}/replicasets")
    cluster.apply(owned_pod("p", reference(found["metadata"]["name"], "1-2-3")))
    cluster.run(cluster.now + 2.0)
    cluster.admin("GET", f"{PODS}/p", expect=404)
