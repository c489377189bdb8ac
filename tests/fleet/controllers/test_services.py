"""Endpoints and EndpointSlices."""

from __future__ import annotations

import pytest

from harness.fleet.controllers.api import ApiError
from harness.fleet.controllers.serviceviews import ServicePods
from harness.wire.request import Response
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


# ---- many pods -------------------------------------------------------------------------------------------------------
def put_pods(cluster: Cluster, count: int) -> None:
    """Pods that run, without kubelets and controllers that would take their time."""
    for index in range(count):
        spec = {"nodeName": "gone", "containers": [{"name": "c", "image": "pause"}]}
        metadata = {"name": f"p{index}", "labels": {"app": "a"}}
        cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        tell(cluster, index, ready=True)


def tell(cluster: Cluster, index: int, ready: bool) -> None:
    status = {
        "phase": "Running",
        "podIP": f"10.1.{index // 200}.{index % 200}",
        "conditions": [{"type": "Ready", "status": f"{ready}"}],
    }
    path = f"{BASE}/pods/p{index}/status"
    cluster.admin("PATCH", path, {"status": status}, content_type="application/merge-patch+json")


def written(cluster: Cluster, since_s: float) -> list[tuple[str, int]]:
    """What the two controllers sent, with the answers' codes."""
    return [(row.what, row.code) for row in cluster.log if row.at >= since_s and "endpoint" in row.who]


def ready_in_slices(cluster: Cluster) -> int:
    return sum(each["conditions"]["ready"] for one in cluster.items(SLICES) for each in one["endpoints"])


@pytest.fixture(scope="module")
def crowd() -> Cluster:
    """A service over 105 pods: two slices."""
    made = Cluster(0, names=NAMES[:2], scheduler=False)
    made.run(12.0)
    made.namespace()
    made.apply(service("s", "a"))
    put_pods(made, 105)
    made.run(made.now + 20.0)
    return made


def test_one_pod_s_change_is_one_slice_and_the_endpoints(crowd: Cluster) -> None:
    assert sorted(len(each["endpoints"]) for each in crowd.items(SLICES)) == [5, 100]
    since = crowd.now
    tell(crowd, 7, ready=False)
    crowd.run(crowd.now + 1.0)
    assert sorted(written(crowd, since)) == [("update endpoints", 200), ("update endpointslices", 200)]
    assert ready_in_slices(crowd) == len(addresses(crowd)) == 104
    tell(crowd, 7, ready=True)
    crowd.run(crowd.now + 1.0)
    assert ready_in_slices(crowd) == len(addresses(crowd)) == 105


def test_a_slice_that_somebody_changes_is_put_right(crowd: Cluster) -> None:
    found = crowd.items(SLICES)[0]
    found["endpoints"] = found["endpoints"][1:]
    crowd.admin("PUT", f"{SLICES}/{found['metadata']['name']}", found)
    crowd.run(crowd.now + 2.0)
    assert ready_in_slices(crowd) == 105


def test_endpoints_that_somebody_changes_are_put_right_at_the_next_change(crowd: Cluster) -> None:
    """As upstream, which looks again when the service or one of its pods changes."""
    found = crowd.admin("GET", f"{BASE}/endpoints/s")
    found["subsets"] = []
    crowd.admin("PUT", f"{BASE}/endpoints/s", found)
    crowd.run(crowd.now + 1.0)
    tell(crowd, 9, ready=False)
    crowd.run(crowd.now + 1.0)
    assert len(addresses(crowd)) == 104
    tell(crowd, 9, ready=True)
    crowd.run(crowd.now + 1.0)


def test_another_label_of_the_service_goes_to_every_slice(crowd: Cluster) -> None:
    since = crowd.now
    labels = {"metadata": {"labels": {"team": "t"}}}
    crowd.admin("PATCH", f"{BASE}/services/s", labels, content_type="application/merge-patch+json")
    crowd.run(crowd.now + 1.0)
    assert sorted(written(crowd, since)) == [("update endpoints", 200)] + [("update endpointslices", 200)] * 2
    assert {each["metadata"]["labels"]["team"] for each in crowd.items(SLICES)} == {"t"}


def test_a_pod_that_is_relabelled_leaves(crowd: Cluster) -> None:
    body = {"metadata": {"labels": {"app": "other"}}}
    crowd.admin("PATCH", f"{BASE}/pods/p3", body, content_type="application/merge-patch+json")
    crowd.run(crowd.now + 1.0)
    assert ready_in_slices(crowd) == len(addresses(crowd)) == 104
    body = {"metadata": {"labels": {"app": "a"}}}
    crowd.admin("PATCH", f"{BASE}/pods/p3", body, content_type="application/merge-patch+json")
    crowd.run(crowd.now + 1.0)
    assert ready_in_slices(crowd) == len(addresses(crowd)) == 105


@pytest.mark.parametrize("name", NAMES[:2])
def test_after_a_sync_that_was_refused_the_next_one_looks_at_everything(crowd: Cluster, name: str) -> None:
    """Driven by hand: the same pod's change is sent again although nothing more is heard of it."""
    controller = crowd.manager.controller(name)
    assert isinstance(controller, ServicePods)
    service_now = controller.services.get("m/s")
    pod = controller.pods.get("m/p11")
    controller.changed_pods(service_now, ())
    steps = controller.sync("m/s")
    assert list(steps) == [], "nothing differs"
    pod.ready = False
    controller.look_at_all("m/s")
    for _ in range(2):
        steps = controller.sync("m/s")
        (request,) = next(steps)
        assert request.verb == "update"
        with pytest.raises(ApiError):
            steps.send([Response(409, {}, b"{}", "m")])
    pod.ready = True
    controller.look_at_all("m/s")
    assert list(controller.sync("m/s")) == []


def test_of_more_addresses_than_fit_a_change_beyond_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.fleet.controllers.endpoints._MOST", 3)
    cluster = Cluster(0, names=NAMES[:1], scheduler=False)
    cluster.run(12.0)
    cluster.namespace()
    cluster.apply(service("s", "a"))
    put_pods(cluster, 5)
    cluster.run(cluster.now + 5.0)
    assert addresses(cluster) == ["10.1.0.0", "10.1.0.1", "10.1.0.2"]
    since = cluster.now
    tell(cluster, 4, ready=False)
    cluster.run(cluster.now + 1.0)
    assert written(cluster, since) == []
    cluster.admin("DELETE", f"{BASE}/pods/p1?gracePeriodSeconds=0")
    cluster.run(cluster.now + 1.0)
    assert addresses(cluster) == ["10.1.0.0", "10.1.0.2", "10.1.0.3"]
