"""Figures taken from a record are those that were put into it."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Histogram

from harness.compare.run import CREATE_BARRIER, Run
from harness.compare.series import histogram_quantile
from harness.observe.record import Status
from tests.compare.planted import Planted
from tests.records import make_record


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(make_record(tmp_path / "run", members=3))


def test_times_count_from_the_first_object_created(run: Run) -> None:
    assert run.scrapes.index[0] == -20.0
    assert run.load_ended == 35.0


def test_steps_and_the_wall_clock_come_from_events(run: Run) -> None:
    assert run.step_s(CREATE_BARRIER) == 30.0
    assert run.step_s("no such step") is None
    assert run.wall_clock_s == 50.0


def test_a_frame_sums_the_series_of_a_member_that_match(run: Run) -> None:
    frame = run.frame("apiserver_longrunning_requests", {"verb": "WATCH"})
    assert list(frame.columns) == ["member-0", "member-1", "member-2"]
    assert frame.max().to_list() == [100.0, 200.0, 300.0]


def test_a_frame_can_be_split_by_a_label(run: Run) -> None:
    frame = run.frame("apiserver_longrunning_requests", {"verb": "WATCH"}, by="resource")
    assert frame["member-1", "secrets"].max() == 120.0


def test_values_are_carried_forward_between_changes_but_not_over_gaps(tmp_path: Path) -> None:
    from harness.observe.record import SERIES, Manifest, Parts, RunRecord

    record = RunRecord(tmp_path / "gap", Manifest(name="gap", started=0.0))
    parts = Parts(record.folder / "series", SERIES)
    for t, up, value in ((0.0, 1.0, 5.0), (5.0, 1.0, None), (10.0, 0.0, None), (15.0, 1.0, 6.0)):
        parts.add((t, "member-0", "up", up))
        if value is not None:
            parts.add((t, "member-0", "moving", value))
    parts.flush()
    record.finish(Status.COMPLETED)
    values = Run(record.folder).frame("moving")["member-0"].to_list()
    assert values[:2] == [5.0, 5.0]
    assert values[2] != values[2]  # NaN: the member did not answer
    assert values[3] == 6.0


def test_a_counters_increase_and_rate(run: Run) -> None:
    assert run.increase("apiserver_watch_events_total").to_list() == [1000.0, 2000.0, 3000.0]
    assert run.rate("apiserver_request_total").max().to_list() == [10.0, 20.0, 30.0]


def test_a_metric_that_no_member_exposes_is_empty(run: Run) -> None:
    assert run.frame("no_such_metric").empty
    assert run.increase("no_such_metric").empty
    assert not run.exposes("no_such_metric")


def test_what_only_etcd_exposes_is_no_metric_of_the_members(tmp_path: Path) -> None:
    planted = Planted(tmp_path / "run").scenario()
    planted.series("m0", "go_goroutines", {-10: 1.0}).series("etcd-0", "etcd_server_has_leader", {-10: 1.0})
    found = planted.run()
    assert found.exposes("go_goroutines")
    assert not found.exposes("etcd_server_has_leader")


def test_quantiles_add_the_members_buckets(run: Run) -> None:
    found = run.quantiles("etcd_request_duration_seconds", 0.99, ("operation",))
    assert found == {("get",): pytest.approx(0.1)}


def test_requests_are_counted_by_what_matches(run: Run) -> None:
    assert run.sent(user="kubelet", code=403) == 57
    assert run.sent(verb="list", names=("secrets", "configmaps")) == 119
    assert run.sample_quantile_ms("kubelet", "pod_startup_ms", 0.5) == pytest.approx(1000, rel=0.02)


def test_histogram_quantile_is_prometheus_own() -> None:
    histogram = Histogram("h", "", buckets=(1, 2, 5), registry=CollectorRegistry())
    for value in (0.5, 1.5, 1.5, 4.0):
        histogram.observe(value)
    (family,) = histogram.collect()
    bounds = {float(s.labels["le"]): s.value for s in family.samples if s.name == "h_bucket"}
    assert histogram_quantile(0.5, bounds) == pytest.approx(1.5)
    assert histogram_quantile(1.0, bounds) == pytest.approx(5.0)


def test_a_quantile_beyond_the_last_bound_is_that_bound() -> None:
    assert histogram_quantile(0.99, {1.0: 1, float("inf"): 100}) == 1.0
    assert histogram_quantile(0.5, {1.0: 0, float("inf"): 0}) is None
    assert histogram_quantile(0.5, {}) is None
