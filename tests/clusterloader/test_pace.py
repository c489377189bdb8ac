"""When the operations of a phase are due and when they start: 1,000 of each tuning set on a virtual clock, exactly."""

from __future__ import annotations

import random

import pytest

from harness.clusterloader import Config, schema
from harness.clusterloader.durations import Seconds
from harness.clusterloader.shares import seed_of
from harness.clusterloader.tuning import schedule
from tests.clusterloader.conftest import Write, loader
from tests.clusterloader.fake import FakeCluster

COUNT = 1000
LOADS: dict[str, tuple[str, schema.Load]] = {
    "qps": ("qpsLoad: {qps: 30}", schema.QPSLoad(qps=30.0)),
    "randomized": ("randomizedLoad: {averageQps: 30}", schema.RandomizedLoad(average_qps=30.0)),
    "stepped": (
        "steppedLoad: {burstSize: 7, stepDelay: 300ms}",
        schema.SteppedLoad(burst_size=7, step_delay=Seconds(0.3)),
    ),
    "time limited": ("timeLimitedLoad: {timeLimit: 45s}", schema.TimeLimitedLoad(time_limit=Seconds(45))),
    "randomized time limited": (
        "randomizedTimeLimitedLoad: {timeLimit: 45s}",
        schema.RandomizedTimeLimitedLoad(time_limit=Seconds(45)),
    ),
    "poisson": (
        "poissonLoad: {expectedActionsPerSecond: 30}",
        schema.PoissonLoad(expected_actions_per_second=30.0),
    ),
}


SEED = seed_of(random.Random(1).getrandbits(63), 0, 0)
"""What draws the schedule of the first phase, where the test's own source is seeded with 1."""


def a_phase(write: Write, load: str, count: int = COUNT) -> Config:
    return write(
        f"name: pace\nnamespace: {{prefix: ns, deleteAutomanagedNamespaces: false}}\n"
        f"tuningSets: [{{name: pace, {load}}}]\n"
        "steps:\n- name: make\n  phases:\n"
        f"  - {{namespaceRange: {{min: 1, max: 1}}, replicasPerNamespace: {count}, tuningSet: pace,\n"
        "     objectBundle: [{basename: map, objectTemplatePath: configmap.yaml}]}\n"
    )


def starts(cluster: FakeCluster) -> tuple[float, list[float]]:
    """When the phase began, and each operation."""
    (phase,) = cluster.of("phase-started")
    return phase["at_s"], cluster.made("configmaps")


def lateness_ms(cluster: FakeCluster) -> list[float]:
    return [sample.value for sample in cluster.samples if sample.name == "operation_late_ms"]


@pytest.mark.parametrize("name", LOADS)
def test_operations_start_when_they_are_due(write: Write, name: str) -> None:
    text, load = LOADS[name]
    cluster = FakeCluster()
    assert cluster.run(loader(a_phase(write, text))) is not None
    began, actual = starts(cluster)
    intended = schedule(load, COUNT, random.Random(SEED))
    assert intended is not None
    assert actual == [began + due for due in sorted(intended.due_s)]
    assert lateness_ms(cluster) == [0.0] * COUNT


def test_one_bucket_of_global_qps_load_gives_a_burst_and_then_a_grid(write: Write) -> None:
    cluster = FakeCluster()
    cluster.run(loader(a_phase(write, "globalQPSLoad: {qps: 32, burst: 40}")))
    began, actual = starts(cluster)
    assert actual[:40] == [began] * 40
    assert actual[40:] == pytest.approx([began + (number + 1) / 32 for number in range(COUNT - 40)], abs=1e-9)
    assert max(lateness_ms(cluster)) < 1e-6


def test_parallelism_limited_load_starts_one_when_one_ends(write: Write) -> None:
    cluster = FakeCluster(latency_s=0.25)
    cluster.run(loader(a_phase(write, "parallelismLimitedLoad: {parallelismLimit: 8}")))
    began, actual = starts(cluster)
    assert actual == [began + index // 8 * 0.25 for index in range(COUNT)]
    assert lateness_ms(cluster) == []  # nothing is due at a time


@pytest.mark.parametrize("name", LOADS)
def test_a_host_that_stands_still_makes_operations_late_and_none_later_than_that(
    write: Write, name: str
) -> None:
    """What was due meanwhile starts at once, each with its own lateness; what comes after starts on time."""
    text, load = LOADS[name]
    cluster = FakeCluster()
    stop, length = 12.0, 5.0
    cluster.at(stop, lambda: setattr(cluster, "now", stop + length))
    cluster.run(loader(a_phase(write, text)))
    began, actual = starts(cluster)
    intended = schedule(load, COUNT, random.Random(SEED))
    assert intended is not None
    due = [began + at for at in sorted(intended.due_s)]
    assert actual == [stop + length if stop < at < stop + length else at for at in due]
    late = lateness_ms(cluster)
    assert late == [(at - of) * 1000 for at, of in zip(actual, due, strict=True)]
    assert max(late) <= length * 1000
    assert sum(value > 0 for value in late) == sum(stop < at < stop + length for at in due) > 10


def test_slow_answers_do_not_slow_an_open_loop(write: Write) -> None:
    slow = FakeCluster(latency_s=30.0)
    slow.run(loader(a_phase(write, "qpsLoad: {qps: 50}", 200)))
    began, actual = starts(slow)
    assert actual == [began + index / 50 for index in range(200)]
