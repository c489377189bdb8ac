"""Which nodes fail, when, and when they come back: ClusterLoader2's chaos monkey over virtual time."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from harness.clusterloader import Config
from harness.clusterloader.messages import FailNodes, RebootNodes
from harness.wire.request import Request, Response
from tests.clusterloader.conftest import Write, loader
from tests.clusterloader.fake import FakeCluster, Rule
from tests.clusterloader.test_measurements import HEAD, call, sleep
from tests.clusterloader.test_waits import node

LATENCY_S = 0.004
RUN = (("swarmlet.io/run", "r"),)
FAILURE = "failureRate: 0.1, interval: 10s, jitterFactor: 0.5, simulatedDowntime: 20s"


def fleet(count: int, *, rule: Rule | None = None, labels: dict[str, str] | None = None) -> FakeCluster:
    cluster = FakeCluster(latency_s=LATENCY_S, rule=rule)
    for index in range(count):
        cluster.put(
            "nodes", node(f"n{index:03}", labels=labels if labels is not None else dict(RUN)), "ADDED"
        )
    return cluster


def failing(write: Write, seconds: str = "5m", failure: str = FAILURE, excluded: str = "{}") -> Config:
    monkey = f"chaosMonkey: {{nodeFailure: {{{failure}}}, excludedNodes: {excluded}}}\n"
    return write(HEAD + sleep(seconds) + monkey)


def run(config: Config, cluster: FakeCluster) -> tuple[str, ...]:
    finished = cluster.run(loader(config, labels=RUN))  # type: ignore[arg-type]
    assert finished is not None
    assert cluster.idle
    return finished.failures


def orders(cluster: FakeCluster) -> list[tuple[float, bool, tuple[str, ...]]]:
    """When, whether it is to fail, and who."""
    return [
        (at, isinstance(message, FailNodes), message.names)
        for at, message in cluster.told
        if isinstance(message, FailNodes | RebootNodes)
    ]


def rounds(cluster: FakeCluster) -> list[tuple[float, float, tuple[str, ...]]]:
    """When nodes failed, when they came back, which these were. They come back before others fail."""
    found = orders(cluster)
    pairs = list(zip(found[::2], found[1::2], strict=True))
    for failed, rebooted in pairs:
        assert (failed[1], rebooted[1], failed[2]) == (True, False, rebooted[2])
    return [(failed[0], rebooted[0], failed[2]) for failed, rebooted in pairs]


def test_a_share_of_those_that_are_left_fails_again_and_again_and_nobody_twice(write: Write) -> None:
    cluster = fleet(30)
    assert run(failing(write), cluster) == ()
    met, left = rounds(cluster), 30
    assert len(met) > 5
    for _, _, names in met:
        assert len(names) == math.ceil(0.1 * left)
        left -= len(names)
    assert max(Counter(name for _, _, names in met for name in names).values()) == 1


def test_the_next_interval_begins_when_all_are_back(write: Write) -> None:
    cluster = fleet(30)
    run(failing(write), cluster)
    met = rounds(cluster)
    picked = 2 * LATENCY_S  # the nodes are listed, and pods of Prometheus
    assert 10.0 <= met[0][0] - picked <= 15.0
    for (_, back, _), (failed, _, _) in pairwise(met):
        assert 10.0 <= failed - picked - back <= 15.0
    assert all(back - failed == pytest.approx(20.0) for failed, back, _ in met[:-1])


def test_without_jitter_only_the_first_interval_is_drawn(write: Write) -> None:
    """wait.Jitter takes a factor of 0 for 1; wait.JitterUntil, which does the others, does not jitter then."""
    cluster = fleet(30)
    run(failing(write, failure="failureRate: 0.1, interval: 10s, simulatedDowntime: 20s"), cluster)
    met = rounds(cluster)
    assert 10.0 < met[0][0] < 20.0
    for (_, back, _), (failed, _, _) in pairwise(met):
        assert failed - back == pytest.approx(10.0 + 2 * LATENCY_S)


def test_the_end_of_the_steps_brings_back_who_is_down_before_anything_is_deleted(write: Write) -> None:
    cluster = fleet(10)
    assert run(failing(write, "30s", FAILURE.replace("20s", "1h")), cluster) == ()
    ((failed, back, _),) = rounds(cluster)
    (end,) = (note["at_s"] for note in cluster.of("step-finished"))
    assert failed < back == end
    deleted = cluster.made("namespaces", "delete")
    assert deleted
    assert min(deleted) >= back


def test_a_test_that_is_given_up_brings_them_back_too(write: Write) -> None:
    cluster, machine = fleet(10), loader(failing(write, "1h", FAILURE.replace("20s", "1h")), labels=RUN)  # type: ignore[arg-type]
    cluster.at(60.0, lambda: cluster.carry_out(machine.abort("the time is up", cluster.now)))
    cluster.run(machine)
    ((_, back, names),) = rounds(cluster)
    assert back == 60.0
    assert len(names) == 1
    assert cluster.idle


@pytest.mark.parametrize("excluded", ["[n000, n001]", "{n000: {}, n001: {}}"])
def test_some_never_fail(write: Write, excluded: str) -> None:
    """Those that are excluded, those with a pod of Prometheus, and what takes no pods anyway."""
    cluster = fleet(6)
    cluster.put("nodes", node("cordoned", labels=dict(RUN), unschedulable=True), "ADDED")
    cluster.put("nodes", node("unready", ready=False, labels=dict(RUN)), "ADDED")
    about = {"name": "p", "namespace": "monitoring", "labels": {"prometheus": "k8s"}}
    cluster.put("pods", {"metadata": about, "spec": {"nodeName": "n002"}}, "ADDED")
    other = {"name": "q", "namespace": "monitoring", "labels": {"prometheus": "mine"}}
    cluster.put("pods", {"metadata": other, "spec": {"nodeName": "n003"}}, "ADDED")
    run(failing(write, failure=FAILURE.replace("0.1", "1"), excluded=excluded), cluster)
    ((_, _, names),) = rounds(cluster)
    assert sorted(names) == ["n003", "n004", "n005"]


def test_nodes_that_are_not_the_runs_own_are_left_alone(write: Write) -> None:
    cluster = fleet(3)
    for index in range(20):
        cluster.put("nodes", node(f"real{index}", labels={"swarmlet.io/run": "another"}), "ADDED")
    run(failing(write, failure=FAILURE.replace("0.1", "1")), cluster)
    ((_, _, names),) = rounds(cluster)
    assert sorted(names) == ["n000", "n001", "n002"]


def test_where_no_node_is_the_runs_own_it_is_skipped_aloud_once(write: Write) -> None:
    cluster = fleet(3, labels={})
    assert run(failing(write), cluster) == ()
    assert orders(cluster) == []
    (skipped,) = cluster.of("skipped")
    assert skipped["what"] == "chaosMonkey.nodeFailure"
    assert skipped["reason"] == "no node of the cluster is simulated by this run"
    assert len(cluster.made("nodes", "list")) == 1


@pytest.mark.parametrize("resource", ["nodes", "pods"])
@pytest.mark.parametrize(
    "refusal", [Response(403, {}, b'{"kind":"Status","message":"no"}', "m"), Response(200, {}, b"[]", "m")]
)
def test_nobody_fails_when_nobody_knows_the_nodes(write: Write, resource: str, refusal: Response) -> None:
    def refuse(request: Request, info: Any, _: int) -> Response | None:
        return refusal if (request.verb, info.resource) == ("list", resource) else None

    cluster = fleet(5, rule=refuse)
    assert run(failing(write, "1m"), cluster) == ()
    assert orders(cluster) == []
    warnings = [note["message"] for note in cluster.of("warning")]
    assert len(warnings) >= 3, "it is tried again each interval"
    assert all(text.startswith("no node was chosen to fail: ") for text in warnings)


def test_each_failure_is_an_event_as_that_of_any_fault(write: Write) -> None:
    cluster = fleet(30)
    run(failing(write, "60s"), cluster)
    first, last = cluster.of("fault-started")[0], cluster.of("fault-ended")[0]
    names = list(rounds(cluster)[0][2])
    shared = {"member": "3 nodes", "fault": "node-failure", "fault_kind": "node-failure", "nodes": names}
    assert first.items() >= {**shared, "seconds": 20.0}.items()
    assert last.items() >= shared.items()
    assert last["seconds"] == pytest.approx(20.0)


def test_one_node_is_called_by_its_name(write: Write) -> None:
    cluster = fleet(1)
    run(failing(write, "60s"), cluster)
    assert [note["member"] for note in cluster.of("fault-started")] == ["n000"]


def test_a_rate_of_nothing_fails_nobody(write: Write) -> None:
    cluster = fleet(5)
    run(failing(write, failure=FAILURE.replace("0.1", "0")), cluster)
    assert orders(cluster) == []


def test_the_seed_says_who_and_when(write: Write) -> None:
    def played() -> list[tuple[float, bool, tuple[str, ...]]]:
        cluster = fleet(30)
        run(failing(write), cluster)
        return orders(cluster)

    assert played() == played()


# ---- the measurement -------------------------------------------------------------------------------------------------
START = call("ChaosMonkey", f"action: start, {FAILURE}", "begin")
STOP = call("ChaosMonkey", "action: stop", "end")


def test_a_measurement_does_the_same_between_two_steps(write: Write) -> None:
    cluster = fleet(30)
    config = write(HEAD + sleep("1m") + START + sleep("45s") + STOP + sleep("1h"))
    assert run(config, cluster) == ()
    at = {note["name"]: note["at_s"] for note in cluster.of("step-finished")}
    met = rounds(cluster)
    assert met
    for failed, back, _ in met:
        assert at["begin"] + 10.0 <= failed
        assert back <= at["end"]
    assert cluster.of("skipped-measurement") == cluster.of("measurement") == []


def test_who_failed_before_a_stop_does_not_fail_after_the_next_start(write: Write) -> None:
    cluster = fleet(4)
    every = START.replace("0.1", "0.5")
    config = write(HEAD + every + sleep("20s") + STOP + every + sleep("20s") + STOP)
    run(config, cluster)
    first, second = (set(names) for _, _, names in rounds(cluster))
    assert (len(first), len(second)) == (2, 1)
    assert not first & second


def test_one_that_nobody_stops_ends_with_the_test(write: Write) -> None:
    cluster = fleet(10)
    assert run(write(HEAD + START.replace("20s", "1h") + sleep("1m")), cluster) == ()
    ((_, back, _),) = rounds(cluster)
    assert back == cluster.of("step-finished")[-1]["at_s"]


def test_a_stop_without_a_start_is_a_failure(write: Write) -> None:
    (failure,) = run(write(HEAD + STOP), fleet(1))
    assert failure.endswith("stop comes before start")


def test_a_measurement_without_nodes_of_ours_is_skipped_aloud(write: Write) -> None:
    cluster = fleet(3, labels={})
    assert run(write(HEAD + START + sleep("1m") + STOP), cluster) == ()
    (skipped,) = cluster.of("skipped-measurement")
    assert (skipped["method"], skipped["identifier"]) == ("ChaosMonkey", "id")
    assert skipped["reason"] == "no node of the cluster is simulated by this run"
