"""Pods that nobody would take away, budgets, which controllers run, and what a server's whims do to them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from harness.client.rest import Rest
from harness.fleet.controllers.manager import ControllerManager, ManagerOptions, manager_limiters
from harness.fleet.controllers.registry import CONTROLLERS
from harness.wire.errors import ConfigError
from tests.fleet.controllers.cluster import Cluster, workload
from tests.fleet.controllers.serverworld import Object

PODS = "/api/v1/namespaces/m/pods"
BUDGETS = "/apis/policy/v1/namespaces/m/poddisruptionbudgets"
MERGE: dict[str, Any] = {"content_type": "application/merge-patch+json"}


def pod(name: str, node: str = "", **metadata: Any) -> Object:
    spec: Object = {"containers": [{"name": "c", "image": "i"}]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def cluster_with(*names: str) -> Cluster:
    cluster = Cluster(0, names=names, scheduler=False)
    cluster.run(1.0)
    cluster.namespace()
    return cluster


# ---- pods ------------------------------------------------------------------------------------------------------------
def test_pods_of_a_node_that_is_gone_fail_and_go_after_a_while() -> None:
    cluster = cluster_with("pod-garbage-collector")
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    cluster.apply(node)
    cluster.apply(pod("p", "n"))
    cluster.admin("DELETE", "/api/v1/nodes/n")
    cluster.run(cluster.now + 30.0)
    cluster.admin("GET", f"{PODS}/p")
    cluster.run(cluster.now + 40.0)
    cluster.admin("GET", f"{PODS}/p", expect=404)
    assert cluster.kinds("pod-garbage-collector") == ["patch pods/status", "delete pods"]


# ---- budgets ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("spec", "ready", "expected"),
    [
        ({"minAvailable": 2}, 3, (1, 3, 2, 3)),
        ({"minAvailable": 2}, 1, (0, 1, 2, 3)),
        ({"minAvailable": "50%"}, 3, (1, 3, 2, 3)),
        ({"maxUnavailable": 1}, 3, (1, 3, 2, 3)),
        ({"maxUnavailable": "100%"}, 3, (3, 3, 0, 3)),
    ],
)
def test_a_budget_counts_the_pods_that_it_guards(
    spec: Object, ready: int, expected: tuple[int, int, int, int]
) -> None:
    cluster = cluster_with("replicaset-controller", "disruption-controller")
    cluster.apply(workload("ReplicaSet", "a", replicas=3))
    cluster.run(cluster.now + 2.0)
    for each in cluster.items(PODS)[:ready]:
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        body = {"status": {"phase": "Running", "conditions": [condition]}}
        cluster.admin("PATCH", f"{PODS}/{each['metadata']['name']}/status", body, **MERGE)
    budget = {"selector": {"matchLabels": {"app": "a"}}, **spec}
    cluster.apply(
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": budget}
    )
    cluster.run(cluster.now + 2.0)
    status = cluster.admin("GET", f"{BUDGETS}/b")["status"]
    fields = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    assert tuple(status[field] for field in fields) == expected


# ---- the manager -----------------------------------------------------------------------------------------------------
def test_a_name_that_no_controller_has_is_refused() -> None:
    with pytest.raises(ConfigError, match="no controller is called 'x'"):
        ControllerManager(ManagerOptions(controllers=("x",)), Random(1), 0.0)


def test_informers_are_shared_and_each_controller_has_a_client_of_its_own() -> None:
    cluster = Cluster(0, scheduler=False)
    cluster.run(2.0)
    watches = [
        each.uri.partition("?")[0] for each in cluster.log if each.who == "system:kube-controller-manager"
    ]
    assert len(watches) == len(set(watches))
    assert "/api/v1/pods" in watches
    limiters = manager_limiters(ManagerOptions())
    assert set(limiters) == {"shared-informers", *CONTROLLERS}
    assert (limiters["replicaset-controller"].qps, limiters["generic-garbage-collector"].qps) == (20.0, 40.0)  # type: ignore[union-attr]
    assert limiters["replicaset-controller"].burst == 30  # type: ignore[union-attr]


def test_twenty_requests_a_second_after_thirty_at_once_are_a_controllers_limit() -> None:
    cluster = cluster_with("replicaset-controller")
    cluster.apply(workload("ReplicaSet", "a", replicas=120))
    began = cluster.now
    cluster.run(cluster.now + 30.0)
    times = [each.at for each in cluster.writes("replicaset-controller") if each.code != 409]
    for index in range(30, len(times)):
        window = times[index] - times[index - 20]
        assert window > 0.999 - 1e-9 or times[index] - began < 1.6
    assert len(cluster.items(PODS)) == 120


RUBBISH = (b"", b"[]", b"<html>", b'{"metadata":null,"status":3}', b"{}")


@pytest.mark.parametrize("seed", range(2))
def test_whatever_the_server_answers_for_a_while_all_comes_right_afterwards(seed: int) -> None:
    rng = Random(seed)
    cluster = Cluster(2)
    cluster.run(12.0)
    cluster.namespace()
    until = cluster.now + 20.0
    real = cluster.deliver

    def mad(exchange: Any, event: Any, *, last: bool = False) -> None:
        response = getattr(event, "response", None)
        writes = exchange.call.request.verb not in ("get", "list", "watch")
        mad_now = exchange.call.client == cluster.manager_index and cluster.now < until and rng.random() < 0.3
        if response is not None and mad_now:
            status = rng.choice((409, 404, 429, 500, 503)) if writes else rng.choice((200, 500))
            made = type(response)(status, {}, rng.choice(RUBBISH), "member-0")
            event = type(event)(event.key, made)
        real(exchange, event, last=last)

    cluster.deliver = mad  # type: ignore[method-assign]
    cluster.apply(
        workload("Deployment", "d", replicas=5),
        workload("StatefulSet", "s", replicas=3, serviceName="s"),
        workload("DaemonSet", "e"),
    )
    cluster.run(until + 400.0)
    for path, field, count in (
        ("deployments/d", "readyReplicas", 5),
        ("statefulsets/s", "readyReplicas", 3),
        ("daemonsets/e", "numberReady", 2),
    ):
        assert cluster.admin("GET", f"/apis/apps/v1/namespaces/m/{path}")["status"][field] == count
    assert len(cluster.items(PODS)) == 10


def test_stopping_and_starting_leaves_nothing_under_way() -> None:
    cluster = Cluster(0, scheduler=False)
    cluster.run(2.0)
    cluster.stop(cluster.manager_index)
    assert cluster.under_way(cluster.manager_index) == []
    manager = ControllerManager(ManagerOptions(), Random(2), cluster.epoch_s)
    cluster.join(Rest(manager, manager_limiters(ManagerOptions())), accounts=True)
    cluster.namespace()
    cluster.apply(workload("Deployment", "d", replicas=2))
    cluster.run(cluster.now + 2.0)
    assert len(cluster.items(PODS)) == 2
