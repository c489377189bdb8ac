"""Measurements that are left to the run's record: what their calls say, and what is refused before a run."""

from __future__ import annotations

from typing import Any

import pytest

from harness.clusterloader.measurements.recorded import NOTE
from harness.wire.errors import ConfigError
from tests.clusterloader.conftest import Write
from tests.clusterloader.fake import EPOCH_S, FakeCluster
from tests.clusterloader.test_measurements import HEAD, call, run, sleep


def windows(cluster: FakeCluster) -> list[dict[str, Any]]:
    return cluster.of(NOTE)


@pytest.mark.parametrize("method", ["EtcdMetrics", "ResourceUsageSummary"])
def test_a_window_is_from_start_to_gather(write: Write, method: str) -> None:
    cluster, failures = run(
        write, call(method, "action: start") + sleep("3s") + call(method, "action: gather")
    )
    assert failures == ()
    (note,) = windows(cluster)
    assert (note["method"], note["label"], note["identifier"], note["limits"]) == (method, method, "id", "")
    assert note["until_s"] - note["from_s"] == pytest.approx(3.0)
    assert note["from_s"] >= EPOCH_S


@pytest.mark.parametrize("method", ["EtcdMetrics", "ResourceUsageSummary"])
def test_gather_without_start_fails(write: Write, method: str) -> None:
    _, failures = run(write, call(method, "action: gather"))
    assert len(failures) == 1
    assert f"{method} has not been started" in failures[0]


@pytest.mark.parametrize("params", ["", "action: start", "action: gather"])
def test_metrics_for_e2e_gathers_at_each_call(write: Write, params: str) -> None:
    cluster, failures = run(write, sleep("1s") + call("MetricsForE2E", params))
    assert failures == ()
    (note,) = windows(cluster)
    assert note["until_s"] == note["from_s"]
    assert not cluster.of("skipped-measurement")


def test_kubelets_are_a_part_that_is_skipped(write: Write) -> None:
    cluster, _ = run(write, call("MetricsForE2E", "gatherKubeletsMetrics: true"))
    (skipped,) = cluster.of("skipped-measurement")
    assert (skipped["method"], skipped["part"]) == ("MetricsForE2E of kubelets", True)
    assert len(windows(cluster)) == 1


def test_a_namespace_that_only_kubelets_know_is_skipped(write: Write) -> None:
    usage = "ResourceUsageSummary"
    text = call(usage, "action: start, namespace: monitoring") + call(usage, "action: gather")
    cluster, failures = run(write, text)
    assert failures == ()
    (skipped,) = cluster.of("skipped-measurement")
    assert skipped["reason"].startswith("of monitoring, whose containers only kubelets know")
    assert windows(cluster) == []


def test_a_bundle_starts_and_gathers_its_parts(write: Write) -> None:
    text = call("TestMetrics", "action: start") + sleep("2s") + call("TestMetrics", "action: gather")
    cluster, failures = run(write, text)
    assert failures == ()
    assert [(note["label"], note["method"]) for note in windows(cluster)] == [
        ("TestMetrics EtcdMetrics", "EtcdMetrics"),
        ("TestMetrics MetricsForE2E", "MetricsForE2E"),
        ("TestMetrics ResourceUsageSummary", "ResourceUsageSummary"),
    ]


def test_a_part_of_a_bundle_that_cannot_be_done_is_skipped_and_the_others_are_not(write: Write) -> None:
    text = call("TestMetrics", "action: start, namespace: x") + call("TestMetrics", "action: gather")
    cluster, failures = run(write, text)
    assert failures == ()
    assert [note["method"] for note in windows(cluster)] == ["EtcdMetrics", "MetricsForE2E"]
    skipped = [note["method"] for note in cluster.of("skipped-measurement")]
    assert skipped.count("TestMetrics ResourceUsageSummary") == 1


def test_every_part_of_a_bundle_that_was_not_started_says_so(write: Write) -> None:
    _, failures = run(write, call("TestMetrics", "action: gather, systemPodMetricsEnabled: true"))
    assert len(failures) == 1
    for part in ("EtcdMetrics", "ResourceUsageSummary", "SystemPodMetrics"):
        assert f"action gather failed for {part} measurement" in failures[0]


LIMITS = {"limits.yaml": "etcd: {cpuConstraint: {{.Nodes}}}\n"}


@pytest.mark.parametrize("method", ["TestMetrics", "ResourceUsageSummary"])
def test_a_file_of_limits_goes_with_the_window(write: Write, method: str) -> None:
    text = call(method, "action: start, resourceConstraints: limits.yaml") + call(method, "action: gather")
    config = write(HEAD + text, files=LIMITS)
    assert config.templates.exists("limits.yaml")
    cluster, _ = run(lambda *_, **__: config, "")
    (limits,) = {note["limits"] for note in windows(cluster) if note["method"] == "ResourceUsageSummary"}
    assert limits == "limits.yaml"


@pytest.mark.parametrize(
    ("params", "told"),
    [
        (
            "action: start, resourceConstraints: none.yaml",
            "resourceConstraints: 'none.yaml': file must exist",
        ),
        ("action: start, resourceConstraints: [a]", "params.resourceConstraints: ['a'] is not allowed"),
        ("action: start, resourceConstraints: bad.yaml", "cpuConstraint: expected `float`"),
        ("action: stop", "params.action: 'stop' is not allowed"),
    ],
)
def test_a_mistake_is_told_before_the_run(write: Write, params: str, told: str) -> None:
    files = {"bad.yaml": "etcd: {cpuConstraint: lots}\n"}
    with pytest.raises(ConfigError) as caught:
        write(HEAD + call("ResourceUsageSummary", params), files=files)
    assert told in str(caught.value)


def test_an_empty_file_name_is_no_limit(write: Write) -> None:
    """Upstream's density has one unless it is overridden."""
    write(HEAD + call("TestMetrics", "action: start, resourceConstraints: "))
    write(HEAD + call("TestMetrics", "action: start, resourceConstraints: ''"))
