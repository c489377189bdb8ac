"""Each measurement by what it reports."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.clusterloader.perfdata import encode, file_name
from harness.wire.errors import ConfigError
from tests.clusterloader.conftest import Write, loader
from tests.clusterloader.fake import EPOCH_S, FakeCluster

HEAD = """\
name: measured
namespace: {number: 1, prefix: ns}
tuningSets: [{name: ten, qpsLoad: {qps: 10}}]
steps:
"""


def pods(replicas: int, group: str = "g") -> str:
    return f"""- name: pods {replicas}
  phases:
  - namespaceRange: {{min: 1, max: 1}}
    replicasPerNamespace: {replicas}
    tuningSet: ten
    objectBundle: [{{basename: pod, objectTemplatePath: pod.yaml, templateFillMap: {{Group: {group}}}}}]
"""


def call(method: str, params: str, name: str = "m") -> str:
    return f"- {{name: {name}, measurements: [{{method: {method}, identifier: id, params: {{{params}}}}}]}}\n"


def sleep(duration: str) -> str:
    return call("Sleep", f"duration: {duration}")


def results(cluster: FakeCluster) -> dict[str, dict[str, Any]]:
    return {note["name"]: note for note in cluster.of("measurement")}


def run(write: Write, text: str, cluster: FakeCluster | None = None) -> tuple[FakeCluster, tuple[str, ...]]:
    cluster = cluster or FakeCluster()
    finished = cluster.run(loader(write(HEAD + text)))
    assert finished is not None
    assert cluster.idle
    return cluster, finished.failures


def violations(write: Write, text: str, cluster: FakeCluster | None = None) -> tuple[str, ...]:
    """Thresholds that a run missed; nothing of it may have failed."""
    cluster = cluster or FakeCluster()
    finished = cluster.run(loader(write(HEAD + text)))
    assert finished is not None
    assert finished.failures == ()
    return finished.violations


# ---- Timer -----------------------------------------------------------------------------------------------------------
def test_a_timer_gives_the_seconds_of_each_label(write: Write) -> None:
    steps = [
        call("Timer", "action: start, label: a"),
        sleep("2s"),
        call("Timer", "action: start, label: b"),
        sleep("500ms"),
        call("Timer", "action: stop, label: a"),
        call("Timer", "action: stop, label: b"),
        call("Timer", "action: gather"),
    ]
    cluster, failures = run(write, "".join(steps))
    assert failures == ()
    summary = results(cluster)["Timer"]["summary"]
    (item,) = summary["dataItems"]
    assert summary["version"] == "v1"
    assert item["data"] == pytest.approx({"a": 2.5, "b": 0.5})
    assert (item["unit"], item["labels"]) == ("s", {"test": "phases"})


# ---- PodStartupLatency -----------------------------------------------------------------------------------------------
START = "action: start, labelSelector: group = g"


def test_pod_startup_is_what_the_watch_saw_and_what_the_stamps_say(write: Write) -> None:
    text = (
        call("PodStartupLatency", START)
        + pods(10)
        + sleep("3s")
        + call("PodStartupLatency", "action: gather")
    )
    cluster, failures = run(write, text, FakeCluster(schedule_s=0.25, start_s=1.5))
    assert failures == ()
    found = results(cluster)
    values = found["PodStartupLatency_id"]["values"]
    assert values["pods"] == 10
    assert values["pods_never_running"] == 0
    assert values["create_to_schedule_perc50"] == pytest.approx(250)
    assert values["schedule_to_run_perc99"] == pytest.approx(1500)
    assert values["run_to_watch_perc99"] == 0
    assert values["pod_startup_perc99"] == pytest.approx(1750)
    stamped = found["StampedPodStartupLatency_id"]["values"]
    assert stamped["create_to_run_perc50"] in (1000, 2000)
    assert 0 <= stamped["run_to_watch_perc99"] < 1000
    samples = [sample for sample in cluster.samples if sample.name == "pod_startup_ms"]
    assert [sample.value for sample in samples] == pytest.approx([1750] * 10)
    assert samples[0].labels == (("identifier", "id"),)


def test_pod_startup_summaries_have_perf_dashs_form(write: Write) -> None:
    text = (
        call("PodStartupLatency", START) + pods(1) + sleep("1s") + call("PodStartupLatency", "action: gather")
    )
    cluster, _ = run(write, text)
    found = results(cluster)
    assert set(found) == {f"{kind}PodStartupLatency_id" for kind in ("", "Stateless", "Stateful", "Stamped")}
    summary = found["PodStartupLatency_id"]["summary"]
    assert summary["version"] == "1.0"
    items = {item["labels"]["Metric"]: item for item in summary["dataItems"]}
    assert set(items["pod_startup"]["data"]) == {"Perc50", "Perc90", "Perc99"}
    assert items["pod_startup"]["unit"] == "ms"
    assert len(items) == 6
    assert found["StatefulPodStartupLatency_id"]["values"]["pods"] == 0
    assert found["StatelessPodStartupLatency_id"]["values"]["pods"] == 1


@pytest.mark.parametrize(
    ("thresholds", "failure"),
    [
        ("threshold: 600ms", "too high latency 50th percentile: got 1.750s expected: 0.6s"),
        ("threshold: 2s, perc99Threshold: 1s", "too high latency 99th percentile: got 1.750s expected: 1s"),
        ("threshold: 1s, perc50Threshold: 2s", "too high latency 90th percentile: got 1.750s expected: 1s"),
        ("threshold: 1750ms", ""),
    ],
)
def test_a_percentile_above_its_threshold_is_a_violation(write: Write, thresholds: str, failure: str) -> None:
    text = call("PodStartupLatency", f"{START}, {thresholds}") + pods(3) + sleep("3s")
    cluster = FakeCluster(schedule_s=0.25, start_s=1.5, latency_s=0.0)
    missed = violations(write, text + call("PodStartupLatency", "action: gather"), cluster)
    assert len(missed) == bool(failure)
    assert all(text.endswith(f"pod startup: {failure}") for text in missed)


def test_pods_that_never_run_are_counted_and_not_in_the_quantiles(write: Write) -> None:
    text = call("PodStartupLatency", START) + pods(3) + call("PodStartupLatency", "action: gather")
    cluster, _ = run(write, text, FakeCluster(start_s=60))
    values = results(cluster)["PodStartupLatency_id"]["values"]
    assert (values["pods"], values["pods_never_running"], values["pod_startup_perc99"]) == (0, 3, 0)


def test_other_groups_are_not_measured(write: Write) -> None:
    text = call("PodStartupLatency", START) + pods(3, "other") + sleep("1s")
    cluster, _ = run(write, text + call("PodStartupLatency", "action: gather"))
    assert results(cluster)["PodStartupLatency_id"]["values"]["pods"] == 0


# ---- SchedulingThroughput --------------------------------------------------------------------------------------------
def test_scheduling_throughput_counts_each_interval(write: Write) -> None:
    start = call("SchedulingThroughput", f"{START}, measurmentInterval: 1s")
    text = start + pods(25) + sleep("2s") + call("SchedulingThroughput", "action: gather, threshold: 10")
    cluster, failures = run(write, text)
    assert failures == ()
    note = results(cluster)["SchedulingThroughput"]
    assert note["values"]["max"] == 10
    assert note["values"]["pods"] == 25
    assert note["values"]["average"] == pytest.approx(25 / 2.4)
    assert set(note["summary"]) == {"perc50", "perc90", "perc99", "max"}


@pytest.mark.parametrize(("enforced", "count"), [("true", 1), ("false", 0)])
def test_a_throughput_below_its_threshold_is_a_violation_where_it_is_enforced(
    write: Write, enforced: str, count: int
) -> None:
    gather = call("SchedulingThroughput", f"action: gather, threshold: 11, enableViolations: {enforced}")
    start = call("SchedulingThroughput", f"{START}, measurmentInterval: 1s")
    missed = violations(write, start + pods(25) + sleep("2s") + gather)
    assert len(missed) == count
    assert all("actual throughput 10.000000 lower than threshold 11.000000" in text for text in missed)


def test_no_interval_has_no_throughput(write: Write) -> None:
    text = call("SchedulingThroughput", START) + call("SchedulingThroughput", "action: gather")
    cluster, failures = run(write, text)
    assert failures == ()
    assert results(cluster)["SchedulingThroughput"]["summary"] == {
        "perc50": 0,
        "perc90": 0,
        "perc99": 0,
        "max": 0,
    }


# ---- WaitForRunningPods ----------------------------------------------------------------------------------------------
def test_the_wait_ends_with_the_last_pod(write: Write) -> None:
    wait = call("WaitForRunningPods", "desiredPodCount: 5, labelSelector: group = g, timeout: 60s")
    cluster, failures = run(write, pods(5) + wait, FakeCluster(start_s=7))
    assert failures == ()
    (barrier,) = cluster.of("barrier")
    assert barrier["passed"]
    created = cluster.made("pods")[-1]
    assert barrier["start_s"] + barrier["seconds"] == pytest.approx(created + cluster.latency_s + 0.1 + 7)


def test_pods_that_run_already_are_enough(write: Write) -> None:
    wait = call("WaitForRunningPods", "desiredPodCount: 5, labelSelector: group = g")
    cluster, failures = run(write, pods(5) + sleep("5s") + wait)
    assert failures == ()
    assert cluster.of("barrier")[0]["seconds"] == pytest.approx(cluster.latency_s)


@pytest.mark.parametrize("desired", [4, 6])
def test_neither_more_nor_fewer_pods_will_do(write: Write, desired: int) -> None:
    wait = call("WaitForRunningPods", f"desiredPodCount: {desired}, labelSelector: group = g, timeout: 10s")
    _, (failure,) = run(write, pods(5) + wait)
    assert (
        f"timed out after 10s while waiting for {desired} pods to be running in labelSelector(group = g)"
        in failure
    )
    assert f"Pods: 5 created, {desired} desired, 5 running, 0 pending scheduled" in failure


def test_waiting_for_no_pods_passes_at_once(write: Write) -> None:
    cluster, failures = run(write, call("WaitForRunningPods", "desiredPodCount: 0"))
    assert failures == ()
    assert cluster.of("barrier")[0]["seconds"] == pytest.approx(cluster.latency_s)


# ---- WaitForControlledPodsRunning of bare pods -----------------------------------------------------------------------
WAIT = "WaitForControlledPodsRunning"
PODS = "action: start, apiVersion: v1, kind: Pod, labelSelector: group = g, operationTimeout: 30s"


def test_bare_pods_are_waited_for_until_they_run_and_until_they_are_gone(write: Write) -> None:
    gather = call(WAIT, "action: gather")
    text = call(WAIT, PODS) + pods(5) + gather + pods(2) + gather + pods(0) + gather
    cluster, failures = run(write, text, FakeCluster(start_s=4, stop_s=3))
    assert failures == ()
    barriers = cluster.of("barrier")
    assert [barrier["controllers"] for barrier in barriers] == [5, 2, 0]
    assert barriers[0]["seconds"] == pytest.approx(4.1 - 0.1 + 0.004, abs=0.01)
    assert barriers[1]["seconds"] == pytest.approx(3 - 0.1 + 0.004, abs=0.01)
    assert all(barrier["passed"] for barrier in barriers)
    progress = [note for note in cluster.of("progress") if note["what"] == "id"]
    assert (progress[-1]["done"], progress[-1]["total"]) == (0, 0)


def test_pods_that_do_not_come_time_out_after_the_last_change(write: Write) -> None:
    text = call(WAIT, PODS) + pods(8) + call(WAIT, "action: gather")
    cluster, (failure,) = run(write, text, FakeCluster(start_s=1000))
    assert (
        "8 objects timed out: Pods: ns-1/pod-0: Pods: 1 created, 1 desired, 0 running, 1 pending scheduled"
        in failure
    )
    assert failure.endswith(" and 3 more")
    (barrier,) = cluster.of("barrier")
    last = cluster.made("pods")[-1] + cluster.latency_s
    assert barrier["start_s"] + barrier["seconds"] == pytest.approx(last + 30)
    assert not barrier["passed"]


def test_a_wait_that_was_not_started_is_a_failure(write: Write) -> None:
    _, (failure,) = run(write, call(WAIT, "action: gather"))
    assert failure.endswith("metric WaitForControlledPodsRunning has not been started")


def test_a_wait_may_be_stopped(write: Write) -> None:
    _, failures = run(write, call(WAIT, PODS) + call(WAIT, "action: stop") + sleep("1s"))
    assert failures == ()


# ---- parameters ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("Sleep", "", "params.duration: missing; it is required"),
        ("Sleep", "duration: 5", "params.duration: 5 is not allowed; expected text"),
        ("Sleep", "duration: 5x", "params.duration: invalid duration '5x'"),
        ("Timer", "action: go", "params.action: 'go' is not allowed; expected one of start, stop, gather"),
        ("PodStartupLatency", "action: go", "expected one of start, gather"),
        ("SchedulingThroughput", "action: go", "expected one of start, gather"),
        ("WaitForRunningPods", "", "params.desiredPodCount: missing"),
        ("WaitForRunningPods", "desiredPodCount: many", "'many' is not allowed; expected a whole number"),
        (
            "WaitForRunningPods",
            "desiredPodCount: 1, isFatal: 1",
            "params.isFatal: 1 is not allowed; expected true or false",
        ),
        ("WaitForControlledPodsRunning", "action: go", "expected one of start, gather, stop"),
        ("WaitForControlledPodsRunning", "action: start", "params.apiVersion: missing"),
        ("SchedulingThroughput", "action: gather, threshold: high", "expected a number"),
    ],
)
def test_a_bad_parameter_is_refused_before_anything_runs(
    write: Write, method: str, params: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        run(write, call(method, params))
    assert f"({method}): " in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("PodStartupLatency", "action: gather", "metric PodStartupLatency has not been started"),
        ("SchedulingThroughput", "action: gather", "measurement is not running"),
        ("SchedulingThroughput", "action: start, measurmentInterval: 0s", "expected more than 0"),
    ],
)
def test_a_call_that_cannot_be_done_fails_its_step(
    write: Write, method: str, params: str, message: str
) -> None:
    _, (failure,) = run(write, call(method, params))
    assert f"measurement call {method} - id error: " in failure
    assert message in failure


def test_summaries_have_upstreams_file_names_and_form() -> None:
    assert file_name("Timer", "load", EPOCH_S) == "Timer_load_2027-01-15T08:00:00Z.json"
    assert json.loads(encode({"version": "v1"})) == {"version": "v1"}
    assert encode({"a": 1}) == b'{\n  "a": 1\n}'
