"""The text of /metrics, read back by an independent parser."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client import Histogram as TheirHistogram
from prometheus_client.parser import text_string_to_metric_families

from harness.apiserver.clock import VirtualClock
from harness.apiserver.metrics.families import Load, Metrics
from harness.apiserver.metrics.text import Family, Gauge, Histogram
from harness.apiserver.model.capacity import ETCD, Host
from harness.apiserver.model.costs import Costs


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    found = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    return found


def test_a_histogram_is_rendered_anew_when_it_has_changed() -> None:
    metrics = Metrics()
    wait = metrics.apiserver_watch_cache_read_wait_seconds.labels("", "pods")
    labels = (("group", ""), ("resource", "pods"))
    for value, total in ((0.01, 0.01), (0.0, 0.01), (2.0, 2.01)):
        wait.observe(value)
        found = samples(metrics)
        assert found["apiserver_watch_cache_read_wait_seconds_count", labels] == wait.count
        assert found["apiserver_watch_cache_read_wait_seconds_sum", labels] == pytest.approx(total)
    assert metrics.render() == metrics.render()


def test_a_family_without_series_is_left_out() -> None:
    assert Metrics().render() == b""


def test_counters_gauges_and_histograms_read_back() -> None:
    metrics = Metrics()
    metrics.apiserver_watch_events_total.labels("", "v1", "pods").inc(3)
    metrics.apiserver_watch_cache_resource_version.labels("", "pods").set(1234567890123)
    wait = metrics.apiserver_watch_cache_read_wait_seconds.labels("", "pods")
    for value in (0.005, 0.0051, 7.0):
        wait.observe(value)
    found = samples(metrics)
    pods = (("group", ""), ("resource", "pods"))
    assert found["apiserver_watch_events_total", (*pods, ("version", "v1"))] == 3
    assert found["apiserver_watch_cache_resource_version", pods] == 1234567890123
    bucket = "apiserver_watch_cache_read_wait_seconds_bucket"
    assert found[bucket, (("group", ""), ("le", "0.005"), ("resource", "pods"))] == 1
    assert found[bucket, (("group", ""), ("le", "0.025"), ("resource", "pods"))] == 2
    assert found[bucket, (("group", ""), ("le", "+Inf"), ("resource", "pods"))] == 3
    assert found["apiserver_watch_cache_read_wait_seconds_count", pods] == 3
    assert found["apiserver_watch_cache_read_wait_seconds_sum", pods] == pytest.approx(7.0101)


def test_label_values_are_escaped() -> None:
    metrics = Metrics()
    awkward = 'a"b\\c\nd'
    metrics.apiserver_storage_objects.labels(awkward).set(1)
    assert samples(metrics)["apiserver_storage_objects", (("resource", awkward),)] == 1


def test_names_that_upstream_gave_no_total_have_none() -> None:
    metrics = Metrics()
    metrics.authentication_attempts.labels("success").inc()
    assert b"# TYPE authentication_attempts counter\nauthentication_attempts{" in metrics.render()


def test_histograms_agree_with_prometheus_client() -> None:
    bounds = (0.1, 1.0, 10.0)
    registry = CollectorRegistry()
    theirs = TheirHistogram("x", "help", ["a"], buckets=bounds, registry=registry).labels("v")
    family = Family(Histogram, "x", "help", ("a",), bounds)
    for value in (0.05, 0.1, 0.11, 1.0, 5.0, 10.0, 11.0):
        theirs.observe(value)
        family.labels("v").observe(value)
    out: list[str] = []
    family.render(out)
    expected = {
        (sample.name, sample.labels.get("le")): sample.value
        for read in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in read.samples
        if not sample.name.endswith("_created")
    }
    actual = {
        (
            sample.name,
            le if (le := sample.labels.get("le")) in (None, "+Inf") else str(float(le)),
        ): sample.value
        for read in text_string_to_metric_families("".join(out))
        for sample in read.samples
    }
    assert actual == expected


def test_labels_are_given_in_order_or_by_name_and_checked() -> None:
    family = Metrics().etcd_requests_total
    assert family.labels("get", "", "pods") is family.labels(resource="pods", operation="get", group="")
    with pytest.raises(ValueError, match="etcd_requests_total has the labels"):
        family.labels("get", "")
    with pytest.raises(ValueError, match="etcd_requests_total has the labels"):
        family.labels(operation="get", kind="pods", group="")


def test_a_removed_series_is_gone() -> None:
    metrics = Metrics()
    metrics.apiserver_storage_objects.labels("pods").set(1)
    metrics.apiserver_storage_objects.remove("pods")
    assert metrics.render() == b""


def test_attributes_are_named_as_their_metric() -> None:
    metrics = Metrics()
    assert all(getattr(metrics, name) is family for name, family in metrics.families.items())
    assert all(name == family.name for name, family in metrics.families.items())
    assert len(metrics.families) > 80


def test_two_members_share_no_series() -> None:
    one, other = Metrics(), Metrics()
    one.apiserver_tls_handshake_errors_total.labels().inc()
    assert other.render() == b""


def test_a_gauge_can_be_asked_for_when_scraped() -> None:
    gauge = Gauge()
    gauge.set_function(lambda: 42.0)
    assert gauge.value == 42.0


def test_the_process_is_that_of_a_real_server_by_model() -> None:
    clock = VirtualClock()
    host = Host(clock, 0.5, Costs())
    metrics = Metrics()
    metrics.model_process(host, lambda: Load(open_watches=1000, cached_bytes=10_000_000), clock.wall())
    host.charge(1_000_000)
    host.charge(500_000, ETCD)
    clock.advance(10)
    found = samples(metrics)
    assert found["process_resident_memory_bytes", ()] == 270e6 + 93e6 + 30e6
    assert found["go_goroutines", ()] == 1500 + 2050
    assert found["process_cpu_seconds_total", ()] == pytest.approx(1.0)
    assert found["swarmlet_modelled_cpu_seconds_total", (("class", "etcd"),)] == pytest.approx(0.5)
    assert found["swarmlet_modelled_cores", ()] == 0.5
    assert found["swarmlet_host_resident_memory_bytes", ()] > 1e6


def test_without_a_capacity_model_there_are_no_modelled_cores() -> None:
    clock = VirtualClock()
    metrics = Metrics()
    metrics.model_process(Host(clock, None, Costs()), Load, clock.wall())
    assert ("swarmlet_modelled_cores", ()) not in samples(metrics)
