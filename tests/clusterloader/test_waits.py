"""Measurements that need nothing but the API, against objects that appear and change at given times."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from harness.clusterloader.measurements import METHODS
from harness.clusterloader.measurements.base import Params
from harness.wire import rfc3339
from harness.wire.paths import RequestInfo
from harness.wire.request import Request, Response
from tests.clusterloader.conftest import Write
from tests.clusterloader.fake import EPOCH_S, Answer, FakeCluster
from tests.clusterloader.test_measurements import call, results, run, sleep, violations

Put = Callable[[float, str, dict[str, Any]], None]


def meta(name: str, namespace: str = "ns-1", **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", **fields}}


def at(cluster: FakeCluster, when: float, resource: str, obj: dict[str, Any], kind: str = "MODIFIED") -> None:
    """Store a copy of an object at a time, as a controller would."""
    copy = json.loads(json.dumps(obj))
    cluster.at(when, lambda: cluster.put(resource, copy, kind))


def barrier(cluster: FakeCluster) -> dict[str, Any]:
    return cluster.of("barrier")[-1]


def stamp(seconds: float) -> str:
    return rfc3339.seconds(EPOCH_S + seconds)


# ---- claims and volumes ----------------------------------------------------------------------------------------------
def claim(name: str, phase: str) -> dict[str, Any]:
    return {**meta(name), "status": {"phase": phase}}


def test_claims_are_awaited_until_they_are_bound(write: Write) -> None:
    cluster = FakeCluster()
    for index in range(3):
        at(cluster, 1.0, "persistentvolumeclaims", claim(f"c{index}", "Pending"), "ADDED")
        at(cluster, 5.0 + index, "persistentvolumeclaims", claim(f"c{index}", "Bound"))
    _, failures = run(write, call("WaitForBoundPVCs", "desiredPVCCount: 2"), cluster)
    assert failures == ()
    assert barrier(cluster)["objects"] == "3 created, 2 desired, 2 bound, 1 pending"
    assert cluster.of("step-finished")[0]["at_s"] == 6.0


def test_a_claim_that_is_lost_is_never_as_wanted(write: Write) -> None:
    cluster = FakeCluster()
    at(cluster, 1.0, "persistentvolumeclaims", claim("b", "Lost"), "ADDED")
    at(cluster, 1.0, "persistentvolumeclaims", claim("a", "Bound"), "ADDED")
    _, (failure,) = run(write, call("WaitForBoundPVCs", "desiredPVCCount: 1, timeout: 9s"), cluster)
    assert (
        "timed out after 9s while waiting for 1 persistentvolumeclaims to be bound in everything" in failure
    )
    assert failure.endswith("2 created, 1 desired, 1 bound, 1 lost")


def test_no_claims_at_all_is_what_a_test_that_deletes_them_waits_for(write: Write) -> None:
    cluster = FakeCluster()
    _, failures = run(write, call("WaitForBoundPVCs", "desiredPVCCount: 0"), cluster)
    assert failures == ()
    assert barrier(cluster)["seconds"] == pytest.approx(cluster.latency_s)


def test_volumes_of_one_provisioner_count_bound_or_available(write: Write) -> None:
    cluster = FakeCluster()
    ours = {"annotations": {"pv.kubernetes.io/provisioned-by": "csi.ours"}}
    for name, phase, fields in (("a", "Bound", ours), ("b", "Available", ours), ("c", "Failed", {})):
        at(
            cluster,
            2.0,
            "persistentvolumes",
            {**meta(name, "", **fields), "status": {"phase": phase}},
            "ADDED",
        )
    text = call("WaitForAvailablePVs", "desiredPVCount: 2, provisioner: csi.ours")
    assert run(write, text, cluster)[1] == ()


# ---- nodes -----------------------------------------------------------------------------------------------------------
def node(name: str, ready: bool = True, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {**meta(name, "", labels=labels or {}), "spec": spec, "status": {"conditions": conditions}}


NEW = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
"""What a node keeps for ever where nothing takes it away; it says nothing of one that is ready."""


def test_nodes_that_take_pods_are_awaited(write: Write) -> None:
    cluster = FakeCluster()
    bad = [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]
    at(cluster, 1.0, "nodes", node("a", taints=NEW), "ADDED")
    at(cluster, 1.0, "nodes", node("b", ready=False, taints=NEW), "ADDED")
    at(cluster, 1.0, "nodes", node("c", unschedulable=True), "ADDED")
    at(cluster, 1.0, "nodes", node("d", taints=bad), "ADDED")
    at(cluster, 1.0, "nodes", node("e", taints=[{"key": "ours", "effect": "NoSchedule"}]), "ADDED")
    at(cluster, 7.0, "nodes", node("d"))
    text = call("WaitForNodes", "minDesiredNodeCount: 3, maxDesiredNodeCount: 9")
    assert run(write, text, cluster)[1] == ()
    assert cluster.of("step-finished")[0]["at_s"] == 7.0


def test_too_many_nodes_are_not_what_was_asked_for(write: Write) -> None:
    cluster = FakeCluster()
    for name in "abc":
        at(cluster, 1.0, "nodes", node(name), "ADDED")
    text = sleep("2s") + call("WaitForNodes", "minDesiredNodeCount: 1, maxDesiredNodeCount: 2, timeout: 4s")
    (failure,) = run(write, text, cluster)[1]
    assert "waiting for [1-2] nodes of everything to be ready - there are 3" in failure


# ---- generic objects -------------------------------------------------------------------------------------------------
def widget(name: str, namespace: str, *conditions: str) -> dict[str, Any]:
    listed = [dict(zip(("type", "status"), text.split("="), strict=True)) for text in conditions]
    return {**meta(name, namespace), "status": {"conditions": listed}}


GENERIC = "objectGroup: example.com, objectVersion: v1, objectResource: widgets"


def test_objects_are_counted_by_condition_within_their_namespaces(write: Write) -> None:
    cluster = FakeCluster()
    at(cluster, 1.0, "widgets", widget("a", "ns-1", "Good=True"), "ADDED")
    at(cluster, 1.0, "widgets", widget("b", "elsewhere-1", "Good=True"), "ADDED")
    at(cluster, 1.0, "widgets", widget("c", "ns-2", "Good=False"), "ADDED")
    at(cluster, 3.0, "widgets", widget("c", "ns-2", "Other=True", "Bad=True"))
    wanted = (
        "successfulConditions: [Good=True], failedConditions: [Bad=True], minDesiredObjectCount: 2, "
        "maxFailedObjectCount: 1, namespaceRange: {min: 1, max: 2}"
    )
    assert run(write, call("WaitForGenericK8sObjects", f"{GENERIC}, {wanted}"), cluster)[1] == ()
    assert barrier(cluster)["objects"] == "widgets.example.com: successful=1 failed=1 count=2"
    assert cluster.of("step-finished")[0]["at_s"] == 3.0


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (
            "failedConditions: [Bad=True], minDesiredObjectCount: 1",
            "too many failed widgets.example.com, at most 0",
        ),
        (
            "minDesiredObjectCount: 3, timeout: 5s",
            "timed out after 5s while waiting for 3 widgets.example.com",
        ),
    ],
)
def test_a_wait_for_objects_may_fail(write: Write, wanted: str, message: str) -> None:
    cluster = FakeCluster()
    at(cluster, 1.0, "widgets", widget("a", "x", "Bad=True"), "ADDED")
    text = call("WaitForGenericK8sObjects", f"{GENERIC}, {wanted}, namespaceRange: {{allNamespaces: true}}")
    (failure,) = run(write, text, cluster)[1]
    assert message in failure


# ---- jobs ------------------------------------------------------------------------------------------------------------
def job(
    name: str, created: float, started: float = 0, ended: float = 0, condition: str = ""
) -> dict[str, Any]:
    status: dict[str, Any] = {}
    if started:
        status["startTime"] = stamp(started)
    if ended:
        status["completionTime"] = stamp(ended)
    if condition:
        status["conditions"] = [{"type": condition, "status": "True"}]
    return {**meta(name, creationTimestamp=stamp(created)), "status": status}


def test_jobs_are_awaited_until_each_is_complete_or_failed(write: Write) -> None:
    cluster = FakeCluster()
    at(cluster, 1.0, "jobs", job("a", 1), "ADDED")
    at(cluster, 1.0, "jobs", job("b", 1), "ADDED")
    at(cluster, 4.0, "jobs", job("a", 1, 2, 4, "Complete"))
    at(cluster, 9.0, "jobs", job("b", 1, 2, 0, "Failed"))
    text = (
        call("WaitForFinishedJobs", "action: start")
        + sleep("2s")
        + call("WaitForFinishedJobs", "action: gather")
    )
    assert run(write, text, cluster)[1] == ()
    assert barrier(cluster)["objects"] == "2 Jobs, 2 finished, 1 failed"
    assert cluster.of("step-finished")[-1]["at_s"] == 9.0


def test_a_job_that_does_not_finish_is_named(write: Write) -> None:
    cluster = FakeCluster()
    at(cluster, 1.0, "jobs", job("slow", 1), "ADDED")
    steps = ("action: start", "action: gather, timeout: 5s")
    text = call("WaitForFinishedJobs", steps[0]) + sleep("2s") + call("WaitForFinishedJobs", steps[1])
    (failure,) = run(write, text, cluster)[1]
    assert failure.endswith("1 Jobs timed out: ns-1/slow")


def test_a_jobs_life_is_measured_by_its_stamps(write: Write) -> None:
    cluster = FakeCluster()
    for name, created, started, ended in (("a", 1, 3, 10), ("b", 2, 3, 30)):
        at(cluster, created, "jobs", job(name, created), "ADDED")
        at(cluster, ended, "jobs", job(name, created, started, ended, "Complete"))
    method = "JobLifecycleLatency"
    text = call(method, "action: start") + sleep("5s") + call(method, "action: gather")
    assert run(write, text, cluster)[1] == ()
    found = results(cluster)["JobLifecycleLatency_id"]
    assert (found["values"]["jobs"], found["values"]["completed"]) == (2, 2)
    items = {item["labels"]["Metric"]: item["data"] for item in found["summary"]["dataItems"]}
    assert items["create_to_start"] == {"Perc50": 1000.0, "Perc90": 2000.0, "Perc99": 2000.0}
    assert items["start_to_complete"]["Perc99"] == 27_000.0
    assert found["summary"]["version"] == "1.0"


# ---- services --------------------------------------------------------------------------------------------------------
def service(name: str, kind: str, created: float, address: str = "") -> dict[str, Any]:
    balancer = {"ingress": [{"ip": address}]} if address else {}
    return {
        **meta(name, creationTimestamp=stamp(created)),
        "spec": {"type": kind},
        "status": {"loadBalancer": balancer},
    }


def test_services_are_measured_up_to_their_address(write: Write) -> None:
    cluster = FakeCluster()
    at(cluster, 2.0, "services", service("a", "ClusterIP", 2.0), "ADDED")
    at(cluster, 2.0, "services", service("b", "LoadBalancer", 2.0), "ADDED")
    at(cluster, 2.0, "services", service("c", "ExternalName", 2.0), "ADDED")
    at(cluster, 8.0, "services", service("b", "LoadBalancer", 2.0, "10.0.0.1"))
    at(cluster, 20.0, "services", service("a", "ClusterIP", 2.0), "DELETED")
    at(cluster, 21.0, "services", service("b", "LoadBalancer", 2.0, "10.0.0.1"), "DELETED")
    method = "ServiceCreationLatency"
    actions = ("waitForReady", "waitForDeletion", "gather")
    text = (
        call(method, "action: start")
        + sleep("3s")
        + "".join(call(method, f"action: {item}") for item in actions)
    )
    assert run(write, text, cluster)[1] == ()
    assert [note["at_s"] for note in cluster.of("step-finished")][2:4] == [8.0, 21.0]
    found = results(cluster)["ServiceCreationLatency_id"]
    assert found["values"]["services"] == 2
    assert found["values"]["create_to_assigned_loadbalancer_perc99"] == 6000.0
    (skipped,) = cluster.of("skipped-measurement")
    assert skipped["method"] == "ServiceCreationLatency reachability"


# ---- controllers -----------------------------------------------------------------------------------------------------
def daemon_set(generation: int = 1, observed: int = 1, updated: int = 0, **spec: Any) -> dict[str, Any]:
    return {
        **meta("ds", labels={"group": "d"}, generation=generation),
        "spec": {"template": {"spec": spec}},
        "status": {"observedGeneration": observed, "updatedNumberScheduled": updated},
    }


def owned(name: str, owner: str, at_node: str = "n") -> dict[str, Any]:
    references = [{"uid": f"uid-{owner}", "controller": True}]
    return {
        **meta(name, ownerReferences=references),
        "spec": {"nodeName": at_node},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


WAIT = "WaitForControlledPodsRunning"
DAEMONS = "action: start, apiVersion: apps/v1, kind: DaemonSet, labelSelector: group = d"


def test_a_daemon_set_wants_a_pod_on_each_node_that_its_template_matches(write: Write) -> None:
    cluster = FakeCluster()
    taint = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
    pressed = [{"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}]
    at(cluster, 0.5, "nodes", node("a", labels={"zone": "1"}, taints=NEW), "ADDED")
    at(cluster, 0.5, "nodes", node("b", labels={"zone": "1"}, taints=taint), "ADDED")
    at(cluster, 0.5, "nodes", node("c", labels={"zone": "2"}), "ADDED")
    at(cluster, 1.0, "daemonsets", daemon_set(nodeSelector={"zone": "1"}), "ADDED")
    at(cluster, 3.0, "pods", owned("p1", "ds", "a"), "ADDED")
    at(cluster, 3.5, "nodes", node("d", labels={"zone": "1"}, taints=pressed), "ADDED")
    at(cluster, 9.0, "pods", owned("p2", "ds", "d"), "ADDED")
    text = sleep("2s") + call(WAIT, DAEMONS) + sleep("2s") + call(WAIT, "action: gather")
    assert run(write, text, cluster)[1] == ()
    assert cluster.of("step-finished")[-1]["at_s"] == 9.0


def test_pods_of_a_changed_template_are_awaited_by_their_controllers_status(write: Write) -> None:
    cluster = FakeCluster()
    at(cluster, 0.5, "nodes", node("a"), "ADDED")
    at(cluster, 1.0, "daemonsets", daemon_set(), "ADDED")
    at(cluster, 1.0, "pods", owned("p", "ds", "a"), "ADDED")
    at(cluster, 3.0, "daemonsets", daemon_set(generation=2, observed=1, updated=1))
    at(cluster, 5.0, "daemonsets", daemon_set(generation=2, observed=2, updated=0))
    at(cluster, 8.0, "daemonsets", daemon_set(generation=2, observed=2, updated=1))
    text = sleep("2s") + call(WAIT, DAEMONS) + sleep("2s") + call(WAIT, "action: gather")
    assert run(write, text, cluster)[1] == ()
    assert cluster.of("step-finished")[-1]["at_s"] == 8.0


def test_pods_of_a_changed_template_may_be_let_be(write: Write) -> None:
    cluster = FakeCluster()
    at(cluster, 0.5, "nodes", node("a"), "ADDED")
    at(cluster, 1.0, "daemonsets", daemon_set(generation=2, observed=1), "ADDED")
    at(cluster, 1.0, "pods", owned("p", "ds", "a"), "ADDED")
    text = sleep("2s") + call(WAIT, f"{DAEMONS}, checkIfPodsAreUpdated: false") + call(WAIT, "action: gather")
    assert run(write, text, cluster)[1] == ()


def test_a_margin_forgives_pods_that_are_missing(write: Write) -> None:
    cluster = FakeCluster()
    body = {**meta("rc", labels={"group": "r"}), "spec": {"replicas": 5}}
    at(cluster, 1.0, "replicationcontrollers", body, "ADDED")
    for index in range(3):
        at(cluster, 2.0 + index, "pods", owned(f"p{index}", "rc"), "ADDED")
    start = "action: start, apiVersion: v1, kind: ReplicationController, countErrorMargin: 2"
    text = call(WAIT, start) + sleep("1500ms") + call(WAIT, "action: gather")
    assert run(write, text, cluster)[1] == ()
    assert cluster.of("step-finished")[-1]["at_s"] == 4.0


# ---- system pods and the bundle --------------------------------------------------------------------------------------
def system_pod(restarts: int) -> dict[str, Any]:
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}} if restarts else {}
    statuses = [{"name": "dns", "image": "dns:1", "restartCount": restarts, "lastState": ended}]
    return {**meta("dns-1", "kube-system"), "status": {"containerStatuses": statuses}}


ENABLED = "systemPodMetricsEnabled: true, enableRestartCountCheck: true"


def bundle(method: str, gather: str = "") -> str:
    return (
        call(method, f"action: start, {ENABLED}")
        + sleep("5s")
        + call(method, f"action: gather, {ENABLED}{gather}")
    )


def test_restarts_during_a_test_are_counted_and_those_before_it_not(write: Write) -> None:
    cluster = FakeCluster()
    cluster.put("pods", system_pod(2), "ADDED")
    at(cluster, 3.0, "pods", system_pod(3))
    missed = violations(write, bundle("TestMetrics"), cluster)
    assert missed == ("TestMetrics - id: restart counts violation: RestartCount(dns-1, dns)=1, want <= 0",)
    found = results(cluster)["SystemPodMetrics"]
    assert found["values"] == {"pods": 1, "restarts": 1}
    (pod,) = found["summary"]["pods"]
    assert pod["containers"] == [
        {"name": "dns", "image": "dns:1", "restartCount": 1, "lastRestartReason": "OOMKilled (exit code 137)"}
    ]
    assert [note["method"] for note in cluster.of("skipped-measurement")] == [
        "TestMetrics SchedulingMetrics",
        "TestMetrics CPUProfile",
        "TestMetrics MemoryProfile",
        "TestMetrics BlockProfile",
        "TestMetrics ClusterOOMsTracker",
    ]


@pytest.mark.parametrize("overrides", ["{dns: 1}", "{default: 1}"])
def test_a_threshold_of_restarts_may_be_raised(write: Write, overrides: str) -> None:
    cluster = FakeCluster()
    cluster.put("pods", system_pod(0), "ADDED")
    at(cluster, 3.0, "pods", system_pod(1))
    gather = f", restartCountThresholdOverrides: '{overrides}'"
    assert violations(write, bundle("SystemPodMetrics", gather), cluster) == ()


def test_restarts_while_it_is_paused_do_not_count(write: Write) -> None:
    cluster = FakeCluster()
    cluster.put("pods", system_pod(0), "ADDED")
    at(cluster, 3.0, "pods", system_pod(4))
    text = (
        call("TestMetrics", f"action: start, {ENABLED}")
        + call("TestMetrics", "action: pauseSystemPodMetrics")
        + sleep("5s")
        + call("TestMetrics", f"action: unpauseSystemPodMetrics, {ENABLED}")
        + call("TestMetrics", f"action: gather, {ENABLED}")
    )
    assert violations(write, text, cluster) == ()


# ---- availability ----------------------------------------------------------------------------------------------------
def test_probes_of_readyz_give_availability_and_the_longest_gap(write: Write) -> None:
    def rule(request: Request, _: RequestInfo, __: int) -> Answer | None:
        if request.name != "/readyz":
            return None
        down = 3.5 < cluster.now < 6.5
        return Response(500 if down else 200, {}, b"ok", "member-1")

    cluster = FakeCluster(rule=rule)
    text = (
        call("APIAvailability", "action: start, pollFrequency: 1s, threshold: 99.5")
        + sleep("10500ms")
        + call("APIAvailability", "action: gather")
    )
    (missed,) = violations(write, text, cluster)
    assert "API availability: SLO not fulfilled (expected >= 99.50, got: 70.00)" in missed
    found = results(cluster)["APIAvailability"]
    assert found["values"]["probes"] == 10
    assert found["values"]["longest_unavailable_s"] == 3.0
    assert found["values"]["answered by member-1"] == 7
    assert found["summary"] == {
        "clusterMetrics": {"availabilityPercentage": 70.0, "longestUnavailablePeriod": "3s"},
        "hostMetrics": None,
    }


def test_no_probe_is_sent_while_it_is_paused(write: Write) -> None:
    cluster = FakeCluster(rule=lambda request, *_: Response(200, {}) if request.name == "/readyz" else None)
    steps = ("start, pollFrequency: 1s", "pause", "unpause", "gather")
    text = "".join(call("APIAvailability", f"action: {step}") + sleep("2500ms") for step in steps)
    run(write, text, cluster)
    probes = [when for when, request, _ in cluster.requests if request.name == "/readyz"]
    assert [round(when) for when in probes] == [1, 2, 5, 6, 7][: len(probes)]


# ---- the SLO ---------------------------------------------------------------------------------------------------------
def test_the_slo_is_asked_for_a_window_with_its_limits(write: Write) -> None:
    method = "APIResponsivenessPrometheus"
    custom = "[{verb: PUT, resource: leases, scope: namespace, threshold: 500ms}]"
    limits = f"allowedSlowCalls: 2, singleResourceThreshold: 2s, customThresholds: '{custom}'"
    gather = f"action: gather, enableViolations: true, {limits}"
    cluster, failures = run(write, call(method, "action: start") + sleep("30s") + call(method, gather))
    assert failures == ()
    (window,) = cluster.of("slo-window")
    assert window["until_s"] - window["from_s"] == pytest.approx(30.0)
    assert window["limits"] == {
        "name": "APIResponsivenessPrometheus",
        "enforced": True,
        "simple": False,
        "allowed_slow_calls": 2,
        "single_resource_s": 2.0,
        "custom_s": {"leases||PUT|namespace": 0.5},
    }


# ---- what is looked at -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("method", "params", "reads"),
    [
        ("WaitForAvailablePVs", {}, ["persistentvolumes"]),
        ("WaitForBoundPVCs", {}, ["persistentvolumeclaims"]),
        ("WaitForNodes", {}, ["nodes"]),
        ("WaitForFinishedJobs", {"action": "start"}, ["jobs.batch"]),
        ("ServiceCreationLatency", {"action": "start"}, ["services"]),
        ("ServiceCreationLatency", {"checkIngress": True}, ["services", "ingresses.networking.k8s.io"]),
        ("WaitForControlledPodsRunning", {"action": "gather"}, []),
        (
            "WaitForControlledPodsRunning",
            {"apiVersion": "apps/v1", "kind": "Deployment"},
            ["deployments.apps", "pods", "replicasets.apps"],
        ),
        (
            "WaitForControlledPodsRunning",
            {"apiVersion": "apps/v1", "kind": "DaemonSet"},
            ["daemonsets.apps", "pods", "nodes"],
        ),
        (
            "WaitForGenericK8sObjects",
            {"objectGroup": "e.io", "objectVersion": "v1", "objectResource": "widgets"},
            ["widgets.e.io"],
        ),
        ("Sleep", {"duration": "1s"}, []),
    ],
)
def test_each_method_says_what_it_looks_at(method: str, params: dict[str, Any], reads: list[str]) -> None:
    assert [str(ref) for ref in METHODS[method].reads(Params(params))] == reads
