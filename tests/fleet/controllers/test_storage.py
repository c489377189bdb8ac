"""Claims and volumes find each other, and go only when nothing uses them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fleet.controllers.cluster import Cluster
from tests.fleet.controllers.serverworld import Object

CLAIMS = "/api/v1/namespaces/m/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
BINDER = "persistent-volume-binder"
POD_SPEC: Object = {
    "containers": [{"name": "c", "image": "i"}],
    "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}],
}
NAMES = (BINDER, "pvc-protection-controller", "pv-protection-controller")


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(0, names=NAMES, scheduler=False)
    made.run(1.0)
    made.namespace()
    return made


def claim(name: str, size: str = "1Gi", **spec: Any) -> Object:
    base = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "storageClassName": "",
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {**base, **spec},
    }


def volume(name: str, size: str = "1Gi", **spec: Any) -> Object:
    base = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "hostPath": {"path": "/x"},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {**base, **spec},
    }


def storage_class(mode: str, provisioner: str = "csi.e.io") -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "c"},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


def phase(cluster: Cluster, path: str) -> str:
    found = cluster.admin("GET", path)
    return str((found.get("status") or {}).get("phase", ""))


def settle(cluster: Cluster, seconds: float = 2.0) -> None:
    cluster.run(cluster.now + seconds)


@pytest.mark.parametrize("volume_first", [True, False])
def test_a_claim_and_a_volume_are_bound_in_four_writes(cluster: Cluster, volume_first: bool) -> None:
    both = [volume("v"), claim("c")]
    for each in both if volume_first else reversed(both):
        cluster.apply(each)
        settle(cluster)
    assert phase(cluster, f"{CLAIMS}/c") == phase(cluster, f"{VOLUMES}/v") == "Bound"
    assert cluster.admin("GET", f"{CLAIMS}/c")["spec"]["volumeName"] == "v"
    assert cluster.kinds(BINDER)[-4:] == [
        "update persistentvolumes",
        "update persistentvolumes/status",
        "update persistentvolumeclaims",
        "update persistentvolumeclaims/status",
    ]


@pytest.mark.parametrize(
    ("volumes", "wanted", "chosen"),
    [
        ([volume("small", "1Gi"), volume("big", "9Gi")], claim("c", "2Gi"), "big"),
        ([volume("big", "9Gi"), volume("fits", "2Gi")], claim("c", "2Gi"), "fits"),
        ([volume("once")], claim("c", accessModes=["ReadWriteMany"]), None),
        ([volume("block", volumeMode="Block")], claim("c"), None),
        ([volume("classy", storageClassName="x")], claim("c"), None),
        ([volume("classy", storageClassName="x")], claim("c", storageClassName="x"), "classy"),
        ([volume("a"), volume("named")], claim("c", volumeName="named"), "named"),
        ([volume("a"), volume("mine", claimRef={"namespace": "m", "name": "c"})], claim("c"), "mine"),
        ([volume("theirs", claimRef={"namespace": "m", "name": "other"})], claim("c"), None),
        ([volume("a")], claim("c", selector={"matchLabels": {"k": "v"}}), None),
    ],
    ids=[
        "size",
        "smallest",
        "modes",
        "block",
        "class",
        "same class",
        "named",
        "reserved",
        "taken",
        "selector",
    ],
)
def test_which_volume_a_claim_gets(
    cluster: Cluster, volumes: list[Object], wanted: Object, chosen: str | None
) -> None:
    cluster.apply(*volumes, wanted)
    settle(cluster)
    found = cluster.admin("GET", f"{CLAIMS}/c")
    assert (found["metadata"].get("annotations") or {}).get("pv.kubernetes.io/bind-completed", "") == (
        "yes" if chosen else ""
    )
    if chosen:
        assert found["spec"]["volumeName"] == chosen


def test_a_claim_in_use_stays_until_the_last_pod_with_it_is_gone(cluster: Cluster) -> None:
    cluster.apply(volume("v"), claim("c"))
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    settle(cluster)
    cluster.admin("DELETE", f"{CLAIMS}/c")
    settle(cluster)
    assert "deletionTimestamp" in cluster.admin("GET", f"{CLAIMS}/c")["metadata"]
    cluster.admin("DELETE", "/api/v1/namespaces/m/pods/p")
    settle(cluster)
    cluster.admin("GET", f"{CLAIMS}/c", expect=404)
    assert [each.what for each in cluster.log if each.who == "pvc-protection-controller"] == [
        "list pods",
        "update persistentvolumeclaims",
    ]


def test_a_volume_is_released_kept_and_deleted_by_its_policy(cluster: Cluster) -> None:
    cluster.apply(volume("kept"), claim("c"))
    settle(cluster)
    cluster.admin("DELETE", f"{CLAIMS}/c")
    settle(cluster)
    assert phase(cluster, f"{VOLUMES}/kept") == "Released"
    cluster.admin("DELETE", f"{VOLUMES}/kept")
    settle(cluster)
    cluster.admin("GET", f"{VOLUMES}/kept", expect=404)


def test_a_class_with_a_provisioner_has_its_volumes_made_and_deleted(cluster: Cluster) -> None:
    cluster.apply(storage_class("Immediate"), claim("c", storageClassName="c"))
    settle(cluster)
    assert phase(cluster, f"{CLAIMS}/c") == "Bound"
    (made,) = cluster.items(VOLUMES)
    assert made["spec"]["csi"]["driver"] == "csi.e.io"
    cluster.admin("DELETE", f"{CLAIMS}/c")
    settle(cluster)
    assert cluster.items(VOLUMES) == []


def test_a_class_that_waits_for_a_consumer_waits_for_the_scheduler(cluster: Cluster) -> None:
    cluster.apply(storage_class("WaitForFirstConsumer"), claim("c", storageClassName="c"))
    settle(cluster, 20.0)
    assert phase(cluster, f"{CLAIMS}/c") == "Pending"
    events = cluster.items("/api/v1/namespaces/m/events")
    assert {each["reason"] for each in events} == {"WaitForFirstConsumer"}
    patch = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n"}}}
    cluster.admin("PATCH", f"{CLAIMS}/c", patch, content_type="application/merge-patch+json")
    settle(cluster)
    assert phase(cluster, f"{CLAIMS}/c") == "Bound"


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
def test_a_pod_gets_its_node_once_its_claim_has_its_volume(mode: str) -> None:
    cluster = Cluster(2, kubelet={"wait_for_attach": False})
    cluster.run(5.0)
    cluster.namespace()
    cluster.apply(storage_class(mode), claim("c", storageClassName="c"))
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {**POD_SPEC}})
    settle(cluster, 20.0)
    assert phase(cluster, "/api/v1/namespaces/m/pods/p") == "Running"
    made = cluster.admin("GET", f"{CLAIMS}/c")
    node = cluster.admin("GET", "/api/v1/namespaces/m/pods/p")["spec"]["nodeName"]
    told = made["metadata"]["annotations"].get("volume.kubernetes.io/selected-node", "")
    assert told == (node if mode == "WaitForFirstConsumer" else "")
    (binding,) = (index for index, each in enumerate(cluster.log) if each.what == "create pods/binding")
    written = [
        index
        for index, each in enumerate(cluster.log)
        if each.what == "update persistentvolumeclaims" and each.who == BINDER
    ]
    assert written[-1] < binding
    # The kubelet asks for a claim that is bound, so once, and not ten times a second until it is.
    asked = [each for each in cluster.log if each.what == "get persistentvolumeclaims"]
    assert len(asked) == 1


@pytest.mark.parametrize("labels", [(), (("swarmlet.io/run", "r1"),)], ids=["none", "a run's"])
def test_a_volume_that_is_made_has_the_runs_labels(labels: tuple[tuple[str, str], ...]) -> None:
    cluster = Cluster(0, names=NAMES, scheduler=False, labels=labels)
    cluster.run(1.0)
    cluster.namespace()
    cluster.apply(storage_class("Immediate"))
    cluster.apply(claim("c", storageClassName="c"))
    settle(cluster)
    name = cluster.admin("GET", f"{CLAIMS}/c")["spec"]["volumeName"]
    assert cluster.admin("GET", f"{VOLUMES}/{name}")["metadata"].get("labels", {}) == dict(labels)
