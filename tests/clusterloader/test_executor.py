"""A test from its first request to its last."""

from __future__ import annotations

import random

import pytest

from harness.client.machine import Note
from harness.client.rest import Rest
from harness.clusterloader import ClusterLoader, ClusterLoaderOptions, load_config
from harness.wire import status
from harness.wire.paths import RequestInfo
from harness.wire.request import Request, Response
from tests.clusterloader.conftest import Write, loader
from tests.clusterloader.fake import EPOCH_S, FakeCluster, refusal
from tests.conftest import DATA

SCHEDULER_THROUGHPUT = DATA / "clusterloader2" / "scheduler-throughput" / "config.yaml"

HEAD = """\
name: small
namespace: {number: 1, prefix: ns}
tuningSets: [{name: fast, qpsLoad: {qps: 100}}]
steps:
"""
SLEEP = "- {name: rest, measurements: [{method: Sleep, identifier: s, params: {duration: 2s}}]}\n"


def make(replicas: int, basename: str = "map") -> str:
    return f"""- name: make {replicas}
  phases:
  - namespaceRange: {{min: 1, max: 1}}
    replicasPerNamespace: {replicas}
    tuningSet: fast
    objectBundle: [{{basename: {basename}, objectTemplatePath: configmap.yaml}}]
"""


def test_upstreams_scheduler_throughput_runs_to_its_end() -> None:
    """As it is, with 500 pods, through one client's rate limit."""
    environ = {"CL2_SCHEDULER_THROUGHPUT_PODS": "500", "CL2_SCHEDULER_THROUGHPUT_THRESHOLD": "100"}
    machine = loader(load_config(SCHEDULER_THROUGHPUT, 100, [], environ))
    cluster = FakeCluster()
    finished = cluster.run(Rest(machine, machine.limiters()))
    assert finished is not None
    assert finished.failures == ()
    assert cluster.idle
    verbs = cluster.verbs()
    assert (verbs["create pods"], verbs["delete pods"], verbs["watch pods"]) == (500, 500, 3)
    assert cluster.objects == {}
    results = {note["name"]: note["values"] for note in cluster.of("measurement")}
    startup = results["PodStartupLatency_DirectSchedulerThroughputPodStartupLatency"]
    assert startup["pods"] == 500
    assert startup["pod_startup_perc99"] == pytest.approx(600)
    assert results["SchedulingThroughput"]["pods"] == 500
    assert results["SchedulingThroughput"]["max"] > 100
    assert [note["passed"] for note in cluster.of("barrier")] == [True]


def test_a_threshold_that_is_missed_is_told_apart_from_a_failure_and_keeps_its_results() -> None:
    """One client of 100 requests a second and a burst of 200 cannot reach upstream's default of 400 pods a second."""
    machine = loader(load_config(SCHEDULER_THROUGHPUT, 100, [], {"CL2_SCHEDULER_THROUGHPUT_PODS": "500"}))
    cluster = FakeCluster()
    finished = cluster.run(Rest(machine, machine.limiters()))
    assert finished is not None
    assert finished.failures == ()
    (violation,) = finished.violations
    assert violation.startswith("SchedulingThroughput - DirectSchedulingThroughput: ")
    assert "lower than threshold 400" in violation
    (missed,) = cluster.of("threshold-missed")
    assert missed["step"] == "Collecting scheduler throughput measurements"
    assert len(cluster.of("measurement")) == 5
    assert len(cluster.of("step-finished")) == 5


def test_more_clients_share_the_operations() -> None:
    environ = {"CL2_SCHEDULER_THROUGHPUT_PODS": "500"}
    machine = loader(load_config(SCHEDULER_THROUGHPUT, 100, [], environ), clients=5)
    cluster = FakeCluster()
    finished = cluster.run(Rest(machine, machine.limiters()))
    assert finished is not None
    assert (finished.failures, finished.violations) == ((), ())
    assert {request.client for _, request, _ in cluster.requests} == {
        "main",
        "main-2",
        "main-3",
        "main-4",
        "main-5",
    }


def test_the_same_seed_gives_the_same_run() -> None:
    def run() -> list[Note]:
        cluster = FakeCluster()
        config = load_config(SCHEDULER_THROUGHPUT, 100, [], {"CL2_SCHEDULER_THROUGHPUT_PODS": "50"})
        cluster.run(loader(config))
        return cluster.notes

    assert run() == run()


def test_steps_are_serial_and_their_parts_parallel(write: Write) -> None:
    instances = "[{identifier: a}, {identifier: b, params: {duration: 3s}}]"
    two = f"- {{name: two, measurements: [{{method: Sleep, instances: {instances}, params: {{duration: 1s}}}}]}}\n"
    cluster = FakeCluster()
    cluster.run(loader(write(HEAD + SLEEP + two + SLEEP)))
    ended = [
        (note["number"], note["name"], round(note["seconds"], 6)) for note in cluster.of("step-finished")
    ]
    assert ended == [(1, "rest", 2), (2, "two", 3), (3, "rest", 2)]
    started = cluster.of("step-started")
    assert started[1]["at_s"] == cluster.of("step-finished")[0]["at_s"]


def test_notes_tell_the_story_in_order(write: Write) -> None:
    cluster = FakeCluster()
    cluster.run(loader(write(HEAD + make(2) + SLEEP)))
    kinds = [note.kind for note in cluster.notes]
    assert kinds == [
        "scenario-started",
        "step-started",
        "phase-started",
        "progress",
        "phase-finished",
        "step-finished",
        "step-started",
        "step-finished",
        "namespaces-deleted",
        "scenario-finished",
    ]
    started = cluster.notes[0].fields
    assert started["steps"] == ["make 2", "rest"]
    assert started["at"] == "2027-01-15T08:00:00.000000Z"


def test_namespaces_are_made_awaited_and_deleted(write: Write) -> None:
    cluster = FakeCluster()
    cluster.run(loader(write(HEAD.replace("number: 1", "number: 3") + SLEEP)))
    order = [f"{request.verb} {info.resource}" for _, request, info in cluster.requests]
    assert order[:4] == ["list namespaces", *["create namespaces"] * 3]
    assert set(order[4:-6]) == {"get serviceaccounts"}
    assert sorted(order[-6:]) == ["delete namespaces"] * 3 + ["get namespaces"] * 3
    assert not [place for place in cluster.objects if place[0] == "namespaces"]


def test_namespaces_stay_where_the_config_says_so(write: Write) -> None:
    cluster = FakeCluster()
    cluster.run(loader(write(HEAD.replace("number: 1", "deleteAutomanagedNamespaces: false") + SLEEP)))
    assert ("namespaces", "", "ns-1") in cluster.objects


def test_an_empty_prefix_is_drawn(write: Write) -> None:
    config = write("name: x\n" + HEAD.replace(", prefix: ns", "").partition("\n")[2] + SLEEP)
    cluster = FakeCluster()
    cluster.run(loader(config))
    prefix = cluster.of("scenario-started")[0]["prefix"]
    assert prefix.startswith("test-")
    assert len(prefix) == 11


def with_namespace(name: str) -> FakeCluster:
    cluster = FakeCluster()
    cluster.put("namespaces", {"metadata": {"name": name, "uid": name}}, "ADDED")
    cluster.put("serviceaccounts", {"metadata": {"name": "default", "namespace": name, "uid": "d"}}, "ADDED")
    return cluster


def test_a_namespace_that_is_there_already_stops_the_test(write: Write) -> None:
    cluster = with_namespace("ns-1")
    finished = cluster.run(loader(write(HEAD + SLEEP)))
    assert finished is not None
    assert finished.failures == ("pre-existing automanaged namespaces found: ns-1",)
    assert cluster.of("step-started") == []
    assert ("namespaces", "", "ns-1") in cluster.objects


def test_a_namespace_that_is_there_may_be_used(write: Write) -> None:
    cluster = with_namespace("ns-1")
    finished = cluster.run(loader(write(HEAD.replace("number: 1", "enableExistingNamespaces: true") + SLEEP)))
    assert finished is not None
    assert finished.failures == ()
    assert cluster.made("namespaces") == []


def test_stale_namespaces_are_deleted_on_request(write: Write) -> None:
    cluster = with_namespace("test-abc123-1")
    cluster.put("namespaces", {"metadata": {"name": "kube-system", "uid": "k"}}, "ADDED")
    cluster.run(loader(write(HEAD.replace("number: 1", "deleteStaleNamespaces: true") + SLEEP)))
    assert [place[2] for place in cluster.objects if place[0] == "namespaces"] == ["kube-system"]
    assert [note["what"] for note in cluster.of("namespaces-deleted")] == ["stale", "automanaged"]


def test_a_namespace_that_does_not_go_is_a_warning_after_its_timeout(write: Write) -> None:
    def rule(request: Request, info: RequestInfo, number: int) -> Response | None:
        return (
            Response(200, {}, b"{}") if request.verb == "delete" and info.resource == "namespaces" else None
        )

    cluster = FakeCluster(rule=rule)
    finished = cluster.run(loader(write(HEAD.replace("number: 1", "deleteNamespaceTimeout: 30s") + SLEEP)))
    assert finished is not None
    assert finished.failures == ()
    assert "still there 30s after its deletion" in cluster.of("warning")[0]["message"]


def test_a_cluster_that_makes_no_service_accounts_is_warned_about(write: Write) -> None:
    def rule(request: Request, info: RequestInfo, number: int) -> Response | None:
        missing = refusal(status.not_found("", "serviceaccounts", "default"))
        return missing if info.resource == "serviceaccounts" else None

    cluster = FakeCluster(rule=rule)
    finished = cluster.run(loader(write(HEAD + SLEEP)))
    assert finished is not None
    assert finished.failures == ()
    assert "no service account `default` in ns-1" in cluster.of("warning")[0]["message"]


def test_a_server_that_lists_no_namespaces_ends_the_test(write: Write) -> None:
    def rule(request: Request, info: RequestInfo, number: int) -> Response | None:
        return refusal(status.forbidden("", "namespaces", "", "no")) if request.verb == "list" else None

    cluster = FakeCluster(rule=rule)
    finished = cluster.run(loader(write(HEAD + SLEEP)))
    assert finished is not None
    assert finished.failures[0].startswith("automanaged namespaces listing failed: HTTP 403 Forbidden")


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"items":null}', b'{"items":[{"metadata":[]}]}'])
def test_answers_that_make_no_sense_do_not_break_the_test(write: Write, body: bytes) -> None:
    def rule(request: Request, info: RequestInfo, number: int) -> Response | None:
        return (
            Response(200, {}, body)
            if request.verb in ("get", "list") and info.resource != "namespaces"
            else None
        )

    wait = "{method: WaitForControlledPodsRunning, identifier: w, params: {action: %s, apiVersion: v1, kind: Pod}}"
    steps = "".join(f"- {{name: w, measurements: [{wait % action}]}}\n" for action in ("start", "gather"))
    cluster = FakeCluster(rule=rule)
    assert cluster.run(loader(write(HEAD + make(2) + make(2).replace("make 2", "again") + steps))) is not None
    assert cluster.idle


def test_a_failed_step_does_not_stop_the_next(write: Write) -> None:
    bad = "- {name: bad, measurements: [{method: Timer, identifier: t, params: {action: stop, label: x}}]}\n"
    cluster = FakeCluster()
    finished = cluster.run(loader(write(HEAD + bad + make(1))))
    assert finished is not None
    assert finished.failures == ("[step: 01] bad: measurement call Timer - t error: uninitialized timer x",)
    assert cluster.of("step-finished")[0]["failures"] == [
        "measurement call Timer - t error: uninitialized timer x"
    ]
    assert cluster.made("configmaps")


def test_a_fatal_failure_ends_the_steps_but_not_the_cleanup(write: Write) -> None:
    wait = "params: {desiredPodCount: 1, timeout: 5s, isFatal: true}"
    fatal = f"- {{name: wait, measurements: [{{method: WaitForRunningPods, identifier: w, {wait}}}]}}\n"
    cluster = FakeCluster()
    finished = cluster.run(loader(write(HEAD + fatal + make(1))))
    assert finished is not None
    assert len(finished.failures) == 1
    assert cluster.made("configmaps") == []
    assert cluster.objects == {}
    assert cluster.idle


def test_a_method_that_is_not_simulated_is_named_once_and_skipped(write: Write) -> None:
    call = "- {{name: m, measurements: [{{method: NegLatency, identifier: e, params: {{action: {}}}}}]}}\n"
    cluster = FakeCluster()
    finished = cluster.run(loader(write(HEAD + call.format("start") + call.format("gather"))))
    assert finished is not None
    assert finished.failures == ()
    (skipped,) = cluster.of("skipped-measurement")
    assert (skipped["method"], skipped["identifier"]) == ("NegLatency", "e")
    assert skipped["reason"] == "needs a cloud's network endpoint groups"


def test_what_is_not_simulated_of_a_config_is_named(write: Write) -> None:
    cluster = FakeCluster()
    cluster.run(loader(write(HEAD + SLEEP + "dependencies: [{name: driver, method: DRATestDriver}]\n")))
    assert [note["what"] for note in cluster.of("skipped")] == ["dependency driver (DRATestDriver)"]


def test_aborting_leaves_steps_out_and_cleans_up(write: Write) -> None:
    machine = loader(write(HEAD + SLEEP.replace("2s", "1h") + make(1)))
    cluster = FakeCluster()
    cluster.at(10.0, lambda: cluster.carry_out(machine.abort("the time is up", cluster.now)))
    finished = cluster.run(machine)
    assert finished is not None
    assert finished.failures == ("the time is up",)
    assert cluster.now < 11
    assert cluster.made("configmaps") == []
    assert cluster.objects == {}
    assert cluster.idle
    assert machine.abort("again", cluster.now) == []


def test_stopping_gives_up_everything_at_once(write: Write) -> None:
    start = "params: {action: start, labelSelector: a = b}"
    watch = f"- {{name: w, measurements: [{{method: PodStartupLatency, identifier: p, {start}}}]}}\n"
    machine = loader(write(HEAD + watch + SLEEP.replace("2s", "1h")))
    cluster = FakeCluster()
    assert cluster.run(machine, until=5.0) is None
    assert not cluster.idle
    cluster.carry_out(machine.stop(cluster.now))
    assert cluster.idle
    assert ("namespaces", "", "ns-1") in cluster.objects


def node(index: int, ready: bool = True) -> dict[str, object]:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return {"metadata": {"name": f"n-{index}", "uid": f"{index}"}, "status": {"conditions": [condition]}}


def test_the_test_begins_when_enough_nodes_are_ready(write: Write) -> None:
    machine = loader(write(HEAD + SLEEP), await_nodes=3)
    cluster = FakeCluster()
    cluster.put("nodes", node(0), "ADDED")
    cluster.put("nodes", node(1, ready=False), "ADDED")
    cluster.at(5.0, lambda: cluster.put("nodes", node(2), "ADDED"))
    cluster.at(7.0, lambda: cluster.put("nodes", node(1)))
    assert cluster.run(machine) is not None
    (ready,) = cluster.of("nodes-ready")
    assert (ready["ready"], ready["wanted"], ready["seconds"]) == (3, 3, 7.0)
    assert cluster.of("step-started")[0]["at_s"] > 7


def test_too_few_nodes_end_the_test(write: Write) -> None:
    machine = loader(write(HEAD + SLEEP), await_nodes=3, await_nodes_timeout_s=60.0)
    finished = FakeCluster().run(machine)
    assert finished is not None
    assert finished.failures == ("only 0 of 3 nodes were Ready after 60s",)


def test_the_machine_shows_its_state(write: Write) -> None:
    machine = ClusterLoader(write(HEAD + SLEEP), ClusterLoaderOptions(), random.Random(1), EPOCH_S)
    assert repr(machine) == "ClusterLoader('small', 0 failures, finished=False)"
    FakeCluster().run(machine)
    assert repr(machine) == "ClusterLoader('small', 0 failures, finished=True)"
