"""Measurements with upstream's own queries: what they ask, what they report, what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from harness.wire.errors import ConfigError
from tests.clusterloader.conftest import Write
from tests.clusterloader.fake import FakeCluster
from tests.clusterloader.promql import HEAD, FakePrometheus, between, measured


def summaries(cluster: FakeCluster) -> dict[str, Any]:
    return {note["name"]: note["summary"] for note in cluster.of("measurement")}


def reasons(cluster: FakeCluster) -> list[str]:
    return [note["reason"] for note in cluster.of("skipped-measurement")]


NOTHING_SCRAPED = [
    ("CiliumEndpointPropagationDelay", "", "no Cilium agent"),
    ("ContainerRestarts", "", "no kubelet's cAdvisor"),
    ("MetricsServerPrometheus", "", "no metrics-server"),
    ("NetworkProgrammingLatency", "threshold: 30s", "recording rule's samples of kube-proxies"),
    ("NodeLocalDNSLatencyPrometheus", "", "no CoreDNS"),
    ("PrometheusSchedulingMetrics", "", "no kube-scheduler"),
    ("SLOMeasurement", "", "SchedulingThroughputPrometheus: Prometheus has no two scrapes"),
    ("SchedulingThroughputPrometheus", "", "no two scrapes"),
    ("WindowsResourceUsagePrometheus", "", "no Windows node"),
]


@pytest.mark.parametrize(("method", "start", "why"), NOTHING_SCRAPED)
def test_what_prometheus_does_not_scrape_is_skipped_aloud(
    write: Write, method: str, start: str, why: str
) -> None:
    cluster, failures, violations = measured(write, between(method, start), FakePrometheus())
    assert (failures, violations) == ([], [])
    assert why in reasons(cluster)[-1]


@pytest.mark.parametrize(("method", "start"), [row[:2] for row in NOTHING_SCRAPED])
def test_none_of_them_asks_or_fails_in_a_run_without_prometheus(
    write: Write, method: str, start: str
) -> None:
    cluster, failures, violations = measured(write, between(method, start), None)
    assert (failures, violations) == ([], [])
    assert "--prometheus-url" in reasons(cluster)[-1]


# ---- ContainerRestarts -----------------------------------------------------------------------------------------------
RESTARTS = {
    "changes": [
        ({"container": "c", "pod": "kube-proxy-1", "namespace": "kube-system"}, 2.0),
        ({"container": "d", "pod": "etcd.1", "namespace": "kube-system"}, 1.0),
        ({"container": "e", "pod": "quiet", "namespace": "n"}, 0.0),
    ]
}


def restarts(write: Write, gather: str) -> tuple[FakeCluster, FakePrometheus, list[str]]:
    prometheus = FakePrometheus(RESTARTS)
    text = between("ContainerRestarts", "", f"enableViolations: true, {gather}")
    cluster, failures, violations = measured(write, text, prometheus)
    assert failures == []
    return cluster, prometheus, violations


def test_container_restarts_are_counted_by_container(write: Write) -> None:
    cluster, prometheus, violations = restarts(write, "defaultAllowedRestarts: 2")
    assert prometheus.queries == ["changes(container_start_time_seconds[90s])"]
    assert violations == []
    found = summaries(cluster)["ContainerRestarts"]
    assert found[0] == {
        "Container": "c", "Pod": "kube-proxy-1", "Namespace": "kube-system", "RestartCount": 2
    }  # fmt: skip
    assert len(found) == 3


def test_container_restarts_above_what_is_allowed(write: Write) -> None:
    _, _, violations = restarts(write, "defaultAllowedRestarts: 1")
    assert violations == [
        "ContainerRestarts - id: container restarts: kube-system/kube-proxy-1 c: 2 restarts, allowed are 1"
    ]


def test_container_restarts_may_be_allowed_by_pods_name(write: Write) -> None:
    custom = 'customAllowedRestarts: "[{pod: kube-proxy-*, allowedRestarts: 3}, {pod: etcdx1, allowedRestarts: 9}]"'
    _, _, violations = restarts(write, custom)
    assert violations == [
        "ContainerRestarts - id: container restarts: kube-system/etcd.1 d: 1 restarts, allowed are 0"
    ]


def test_container_restarts_fail_nothing_where_that_is_off(write: Write) -> None:
    assert restarts(write, "failureEnabled: false")[2] == []


def test_container_restarts_with_limits_that_are_none(write: Write) -> None:
    text = between("ContainerRestarts", "", 'customAllowedRestarts: "{"')
    _, failures, _ = measured(write, text, FakePrometheus(RESTARTS))
    assert "params.customAllowedRestarts: '{'" in failures[0]


# ---- latencies of one histogram --------------------------------------------------------------------------------------
def test_network_programming_takes_three_quantiles_of_the_recording_rule(write: Write) -> None:
    samples = [({"quantile": "0.50"}, 0.5), ({"quantile": "0.90"}, 2.0), ({"quantile": "0.99"}, 31.0)]
    prometheus = FakePrometheus({"kubeproxy": samples})
    text = between(
        "NetworkProgrammingLatency", "threshold: 30s, enableViolations: true", "enableViolations: true"
    )
    cluster, _, violations = measured(write, text, prometheus)
    assert prometheus.queries == [
        "quantile_over_time(0.99, kubeproxy:kubeproxy_network_programming_duration:histogram_quantile{}[90s])"
    ]
    assert violations == [
        (
            "NetworkProgrammingLatency - id: Network Programming Latency: too high latency 99th percentile: "
            "got 31.000s expected: 30s"
        )
    ]
    (item,) = summaries(cluster)["NetworkProgrammingLatency"]["dataItems"]
    assert item["data"] == {"Perc50": 500.0, "Perc90": 2000.0, "Perc99": 31000.0}
    assert item["labels"] == {"Metric": "NetworkProgrammingLatency"}


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ([({"quantile": "0.5"}, 1.0)], "got unexpected number of samples: 1"),
        ([({"quantile": "x"}, 1.0)] * 3, "label quantile is 'x'"),
    ],
)
def test_network_programming_refuses_another_rule(write: Write, samples: list[Any], said: str) -> None:
    text = between("NetworkProgrammingLatency", "threshold: 30s")
    _, failures, _ = measured(write, text, FakePrometheus({"kubeproxy": samples}))
    assert said in failures[0]


def test_a_threshold_that_is_missing_is_found_before_anything_runs(write: Write) -> None:
    with pytest.raises(ConfigError, match=r"params\.threshold"):
        write(HEAD + between("NetworkProgrammingLatency", ""))


def test_node_local_dns_by_its_histogram(write: Write) -> None:
    prometheus = FakePrometheus(
        {
            r"quantile\(0.5,": [({}, 0.1)],
            r"quantile\(0.9,": [({}, 0.2)],
            r"quantile\(0.99,": [({}, 6.0)],
        }
    )
    text = between("NodeLocalDNSLatencyPrometheus", "", "enableViolations: true")
    cluster, _, violations = measured(write, text, prometheus)
    assert prometheus.queries[0] == (
        "histogram_quantile(0.5, sum(rate(coredns_dns_request_duration_seconds_bucket[90s])) by (le))"
    )
    assert "99th percentile latency 6.000s, allowed are 5s" in violations[0]
    assert summaries(cluster)["NodeLocalDNSLatencyPrometheus"]["data"]["Perc90"] == 200.0


def test_the_metrics_server_in_gos_nanoseconds(write: Write) -> None:
    prometheus = FakePrometheus({"metrics.k8s.io": [({}, 0.25)]})
    cluster, failures, _ = measured(write, between("MetricsServerPrometheus", ""), prometheus)
    assert failures == []
    assert summaries(cluster)["MetricsServerPrometheus"] == dict.fromkeys(
        ("Perc50", "Perc90", "Perc99"), 250_000_000
    )


def test_two_samples_of_one_quantile_fail(write: Write) -> None:
    prometheus = FakePrometheus({"metrics.k8s.io": [({}, 0.25), ({"a": "b"}, 1.0)]})
    _, failures, _ = measured(write, between("MetricsServerPrometheus", ""), prometheus)
    assert "got unexpected number of samples: 2" in failures[0]


# ---- the scheduler ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("limit", "missed"), [("", 0), ("threshold: 120", 0), ("threshold: 121", 1)])
def test_scheduling_throughput_is_the_most_bindings_a_second(write: Write, limit: str, missed: int) -> None:
    prometheus = FakePrometheus({"binding": [({}, 120.0)]})
    text = between("SchedulingThroughputPrometheus", "", f"enableViolations: true, {limit}")
    cluster, failures, violations = measured(write, text, prometheus)
    assert failures == []
    assert prometheus.queries == [
        (
            'max_over_time(sum(irate(apiserver_request_total{verb="POST", resource="pods", subresource="binding",'
            'code="201"}[1m]))[90s:5s])'
        )
    ]
    assert summaries(cluster)["SchedulingThroughputPrometheus"] == {"max": 120.0}
    assert len(violations) == missed


def test_slo_measurement_is_its_parts(write: Write) -> None:
    prometheus = FakePrometheus({"binding": [({}, 10.0)]})
    overrides = "overrides: {SchedulingThroughputPrometheus: {threshold: 11}}"
    text = between("SLOMeasurement", "", f"enableViolations: true, {overrides}")
    cluster, _, violations = measured(write, text, prometheus)
    assert "actual throughput 10.000000 lower than threshold 11.000000" in violations[0]
    assert summaries(cluster)["SchedulingThroughputPrometheus"] == {"max": 10.0}
    (skipped,) = cluster.of("skipped-measurement")
    assert (skipped["method"], skipped["part"]) == ("SLOMeasurement DnsLookupLatency", True)


def test_scheduling_metrics_are_quantiles_of_its_buckets(write: Write) -> None:
    buckets = [({"le": "0.1"}, 50.9), ({"le": "0.2"}, 100.9), ({"le": "+Inf"}, 100.9)]
    prometheus = FakePrometheus(
        {"scheduler_pod_scheduling_sli": buckets, 'extension_point="Filter"': buckets[:1]}
    )
    cluster, failures, _ = measured(write, between("PrometheusSchedulingMetrics", ""), prometheus)
    assert failures == []
    found = summaries(cluster)["id_PrometheusSchedulingMetrics"]
    assert found["e2eSchedulingLatency"] == {
        "Perc50": 100_000_000, "Perc90": 180_000_000, "Perc99": 198_000_000
    }  # fmt: skip
    assert found["frameworkExtensionPointDuration"]["Filter"]["Perc99"] == 0
    assert len(found["frameworkExtensionPointDuration"]) == 11
    assert len(prometheus.asked) == 14
    assert prometheus.queries[0] == (
        "sum(increase(scheduler_pod_scheduling_sli_duration_seconds_bucket[90s])) by (le)"
    )


# ---- other systems ---------------------------------------------------------------------------------------------------
def test_windows_usage_in_its_units(write: Write) -> None:
    prometheus = FakePrometheus(
        {
            "working_set": [({"process": "kubelet"}, 3 * (1 << 20))],
            "logical_disk": [({"volume": "C:"}, 1.5 * (1 << 30))],
        }
    )
    cluster, failures, _ = measured(write, between("WindowsResourceUsagePrometheus", ""), prometheus)
    assert failures == []
    found = summaries(cluster)
    assert len(found) == 7
    (memory,) = found["WindowsMemoryUsagePrometheus"]["dataItems"]
    assert memory == {"data": {"Memory_Usage": 3.0}, "unit": "MB", "labels": {"Process": "kubelet"}}
    assert found["WindowsNodeStorage"]["dataItems"][0]["data"] == {"Storage_Used": 1.5}


def test_cilium_is_looked_at_every_ten_minutes(write: Write) -> None:
    prometheus = FakePrometheus({"cilium": [({"le": "600"}, 94.0), ({"le": "+Inf"}, 100.0)]})
    text = between("CiliumEndpointPropagationDelay", "", "enableViolations: true", seconds=1500)
    _, failures, violations = measured(write, text, prometheus)
    assert failures == []
    assert [query.partition("[")[2].partition("]")[0] for query in prometheus.queries] == [
        "600s",
        "600s",
        "300s",
    ]
    assert "94% of 100 updates within 600s, expected 95%" in violations[0]


def test_ciliums_limits_are_parameters(write: Write) -> None:
    prometheus = FakePrometheus({"cilium": [({"le": "60"}, 94.0), ({"le": "+Inf"}, 100.0)]})
    limits = "enableViolations: true, bucketSLO: 60, percentileSLO: 94"
    _, failures, violations = measured(
        write, between("CiliumEndpointPropagationDelay", "", limits), prometheus
    )
    assert (failures, violations) == ([], [])
