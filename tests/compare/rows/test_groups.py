"""Each group's figures, from one planted record; what happens outside a row's window is planted too, and does not
count."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.compare.rows.every import every_row
from harness.compare.rows.row import GROUPS, Row
from harness.compare.run import Run
from tests.compare.planted import Planted

_REQUESTS = "apiserver_request_total"
_QUEUE = "apiserver_flowcontrol_current_inqueue_requests"
_SEATS = "apiserver_flowcontrol_current_executing_seats"
_REJECTED = "apiserver_flowcontrol_rejected_requests_total"
_WAIT = "apiserver_flowcontrol_request_wait_duration_seconds"
_ETCD = "etcd_request_duration_seconds"
_CPU = "swarmlet_process_cpu_seconds_total"


def _throughput(planted: Planted) -> None:
    planted.event("barrier", 29, step="Waiting for 'delete objects' to be completed", passed=True)
    planted.event("step-finished", 40, name="Waiting for 'delete objects' to be completed", seconds=7.0)
    planted.event("barrier", 45, step="Waiting for 'what never came' to be completed", passed=False)
    planted.event("step-finished", 45, name="Waiting for 'what never came' to be completed", seconds=99.0)
    planted.sample("kubelet", "pod_startup_ms", "mount=first", 2000, 50)
    planted.sample("kubelet", "pod_startup_ms", "mount=first", 2000, 10, t=30.9)  # reported late
    planted.sample("kubelet", "pod_startup_ms", "mount=first", 2000, 500, t=40)  # after the load phase
    planted.sample("scheduler", "schedule_ms", "", 100, 60)
    planted.sample("clusterloader", "pod_startup_ms", "identifier=x", 3000, 60)


def _load(planted: Planted) -> None:
    for member, watches, cpu in (("m0", 300.0, 15.0), ("m1", 100.0, 3.0)):
        at = 'apiserver_longrunning_requests{verb="WATCH",resource="pods"}'
        planted.series(member, at, {0: 10, 20: watches, 55: 10})
        planted.series(member, 'apiserver_longrunning_requests{verb="CONNECT",resource="pods"}', {0: 1e6})
        planted.series(member, "process_cpu_seconds_total", {-10: 5, 20: 5 + cpu, 40: 1000})
        planted.series(member, "go_goroutines", {10: 1000 + watches})
        planted.series(member, "process_resident_memory_bytes", {10: 1e6 * watches})
        planted.series(member, "process_open_fds", {10: 20})
        planted.series(member, "go_memstats_heap_inuse_bytes", {10: 1e5 * watches, 30: 1e5})
        planted.series(member, "go_threads", {10: 9, 20: 12})
        planted.series(member, "go_gc_duration_seconds_sum", {-10: 1, 20: 1 + cpu / 1000, 40: 9})


def _requests(planted: Planted) -> None:
    planted.series("m0", f'{_REQUESTS}{{verb="GET",resource="pods",code="200"}}', {-10: 900, 5: 1000})
    planted.series("m1", f'{_REQUESTS}{{verb="GET",resource="pods",code="200"}}', {5: 50, 55: 9000})
    planted.series("m1", f'{_REQUESTS}{{verb="POST",resource="pods",code="429"}}', {15: 30})
    level = 'priority_level="system",flow_schema="system-nodes"'
    planted.series("m0", 'apiserver_flowcontrol_nominal_limit_seats{priority_level="system"}', {-10: 30})
    planted.series("m0", f"{_QUEUE}{{{level}}}", {10: 7, 15: 0}).series("m1", f"{_QUEUE}{{{level}}}", {15: 4})
    planted.series("m0", f"{_SEATS}{{{level}}}", {10: 12, 15: 1})
    planted.series("m0", f'{_REJECTED}{{{level},reason="queue-full"}}', {10: 5})
    planted.histogram("m0", _WAIT, f'{level},execute="true"', {10: (10, 10, 10), 35: (10, 10, 99)})
    planted.histogram("m0", _WAIT, f'{level},execute="false"', {10: (0, 0, 50)})
    planted.histogram(
        "m0", "apiserver_request_duration_seconds", 'verb="GET",resource="pods"', {10: (0, 10, 10)}
    )
    planted.histogram(
        "m0", "apiserver_request_duration_seconds", 'verb="WATCH",resource="pods"', {10: (0, 0, 90)}
    )
    planted.request("kubelet", "get", "pods", 200, 10, 40.0)
    planted.request("kubelet", "watch", "pods", 200, 90, 9000.0)
    planted.request("kubelet", "get", "pods", 200, 90, 9000.0, t=45)


def _watches(planted: Planted) -> None:
    for member, factor in (("m0", 3.0), ("m1", 1.0)):
        planted.series(member, 'apiserver_watch_events_total{resource="pods"}', {20: 100 * factor})
        planted.series(member, 'apiserver_watch_events_sizes_sum{resource="pods"}', {20: 5000 * factor})
        planted.series(member, 'apiserver_init_events_total{resource="nodes"}', {5: 20 * factor})
        planted.series(member, 'apiserver_terminated_watchers_total{resource="pods"}', {20: factor - 1})
    planted.histogram("m0", "apiserver_watch_list_duration_seconds", 'resource="nodes"', {5: (0, 50, 50)})
    for member, ms in (("m0", 10), ("m1", 80)):
        planted.sample("kubelet", "watch_delivery_ms", f"member={member},resource=pods", ms, 20)


def _etcd(planted: Planted) -> None:
    get = 'operation="get",resource="pods"'
    planted.histogram("m0", _ETCD, get, {5: (100, 100, 100), 20: (100, 200, 200), 40: (100, 200, 9999)})
    planted.series("m0", f"etcd_requests_total{{{get}}}", {5: 100, 20: 200, 40: 9999})
    planted.series("m0", "apiserver_storage_size_bytes", {0: 1e6, 10: 3e6})


def _cache(planted: Planted) -> None:
    planted.request("kubelet", "watchlist", "secrets", 200, 90).request("kubelet", "list", "secrets", 200, 10)
    planted.request("kubelet", "watchlist", "configmaps", 200, 80)
    planted.request("kubelet", "watchlist", "secrets", 403, 4).request("kubelet", "create", "events", 403, 50)
    planted.request("scheduler", "list", "secrets", 403, 70)
    planted.sample("kubelet", "first_read_ms", "kind=secrets,member=m0,refused=yes", 700, 4)
    planted.sample("kubelet", "first_read_ms", "kind=secrets,member=m0,refused=no", 50, 90)
    planted.manifest.results["nodes_by_members"] = {"1": 8, "2": 3}
    planted.series("m0", "swarmlet_node_authorizer_staleness_revisions", {10: 40, 15: 0})
    planted.series("m0", 'apiserver_watch_cache_events_received_total{resource="pods"}', {0: 5})
    reads = "apiserver_watch_cache_consistent_read_total"
    planted.series("m0", f'{reads}{{resource="pods",success="true",fallback="false"}}', {10: 30})
    planted.series("m0", f'{reads}{{resource="pods",success="false",fallback="true"}}', {10: 2})
    planted.histogram("m0", "apiserver_watch_cache_read_wait_seconds", "", {10: (20, 20, 20)})
    planted.series("m0", "apiserver_watch_cache_read_wait_seconds_count", {10: 20})
    checks = "apiserver_storage_consistency_checks_total"
    planted.series("m0", f'{checks}{{resource="pods",status="success"}}', {10: 6})
    planted.series("m0", f'{checks}{{resource="pods",status="failure"}}', {-10: 0})


def _clients(planted: Planted) -> None:
    planted.sample("kubelet", "client_throttled_ms", "verb=get,name=pods", 2000, 5)
    planted.sample("kubelet", "client_queue_depth", "client=", 7).sample(
        "kubelet", "client_queue_depth", "client=", 20
    )
    planted.sample("controllers", "client_queue_depth", "client=job", 31)
    planted.sample("controllers", "workqueue_depth", "queue=job", 400, 2, t=17.0)
    planted.request("controllers", "create", "pods", 429, 3).request("controllers", "get", "pods", 503, 2)
    planted.request("kubelet", "get", "pods", 0, 1)
    planted.manifest.results["connections"] = {"m0": {"retried": 2, "lost": 1}, "m1": {"retried": 3}}
    for user in ("kubelet", "controllers"):
        planted.sample(user, "reflector_sync_ms", "resource=pods,how=watch-list", 100, 40)
        planted.sample(user, "reflector_sync_ms", "resource=pods,how=list", 100, 2)
    planted.sample("kubelet", "reflector_fallbacks", "resource=secrets,cause=403", 1, 4)
    planted.sample("controllers", "reflector_fallbacks", "resource=pods,cause=very short", 1, 1)
    planted.sample("kubelet", "reflector_expired", "resource=pods", 1, 6)
    planted.sample("clusterloader", "operation_late_ms", "tuning_set=pods", 500, 9)
    planted.series("locust", _CPU, {-5: 1, 0: 1, 5: 4.5, 10: 4.5, 50: 21, 55: 500})
    planted.series("locust-worker-1", _CPU, {-5: 1, 50: 6.5})
    planted.series("pool", _CPU, {-5: 1, 50: 900})
    planted.manifest.results["host"] = {"jobs": 1000.0, "late": 10.0, "beats": 200, "late_beats": 3}


@dataclass
class Figures:
    run: Run
    rows: dict[str, Row]


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    planted = Planted(tmp_path_factory.mktemp("groups") / "r").scenario()
    for fill in (_throughput, _load, _requests, _watches, _etcd, _cache, _clients):
        fill(planted)
    run = planted.run()
    return Figures(run, {row.key: row for row in every_row([run])})


@pytest.mark.parametrize(
    ("group", "key", "value"),
    [
        ("throughput", "barrier", 12.0),
        ("throughput", "barrier-2", 7.0),
        ("throughput", "barrier-3", None),
        ("throughput", "wall-clock", 55.0),
        ("throughput", "load-phase", 30.0),
        ("throughput", "pods-rate", 2.0),
        ("throughput", "schedule-p99", 0.1),
        ("throughput", "pod-startup-p50", 2.0),
        ("throughput", "pod-startup-seen-p99", 3.0),
        ("load", "watches-busiest", 300.0),
        ("load", "watches-sum", 400.0),
        ("load", "watches-imbalance", 1.5),
        ("load", "watches-of-m1", 100.0),
        ("load", "goroutines-sum", 2400.0),
        ("load", "memory-of-m0", 300e6),
        ("load", "fds-busiest", 20.0),
        ("load", "fds-imbalance", 1.0),
        ("load", "heap-busiest", 3e7),
        ("load", "heap-sum", 4e7),
        ("load", "heap-of-m1", 1e7),
        ("load", "threads-sum", 24.0),
        ("load", "gc-pauses-busiest", 0.015),
        ("load", "gc-pauses-sum", 0.018),
        ("load", "cpu-busiest", 0.5),
        ("load", "cpu-sum", 0.6),
        ("load", "cpu-imbalance", 15 / 9),
        ("load", "cpu-of-m1", 0.1),
        ("requests", "request-rate", 30.0),
        ("requests", "request-rate-busiest", 20.0),
        ("requests", "request-rate-get-pods-200", 30.0),
        ("requests", "request-rate-post-pods-429", 6.0),
        ("requests", "answers-429", 30.0),
        ("requests", "rejects", 5.0),
        ("requests", "rejects-system-queue-full", 5.0),
        ("requests", "queue-busiest", 7.0),
        ("requests", "queue-system", 7.0),
        ("requests", "seats-sum", 12.0),
        ("requests", "seats-system", 12.0),
        ("requests", "queue-time-p50", 5.0),
        ("requests", "queue-time-p99", 9.9),
        ("requests", "request-time-p50", 55.0),
        ("requests", "request-time-p99-get-pods", 99.1),
        ("requests", "client-time-p99", 40.0),
        ("watches", "watch-events-busiest", 300.0),
        ("watches", "watch-events-sum", 400.0),
        ("watches", "watch-events-pods", 400.0),
        ("watches", "watch-bytes-sum", 20000.0),
        ("watches", "init-events-nodes", 80.0),
        ("watches", "terminated-watchers", 2.0),
        ("watches", "terminated-watchers-pods", 2.0),
        ("watches", "watch-list-p50", 55.0),
        ("watches", "watch-list-p99-nodes", 99.1),
        ("watches", "delivery-p99-busiest", 80.0),
        ("watches", "delivery-p99-median", 10.0),
        ("etcd", "etcd-rate", 1959.8),
        ("etcd", "etcd-p99-get", 98.2),
        ("etcd", "etcd-p99-get-lowest", 9.9),
        ("etcd", "etcd-p99-get-highest", 99.1),
        ("etcd", "etcd-p99-get-pods", 98.2),
        ("etcd", "etcd-errors", 0.0),
        ("etcd", "etcd-size", 3e6),
        ("cache and authorizer", "denials", 4.0),
        ("cache and authorizer", "denials-secrets", 4.0),
        ("cache and authorizer", "until-allowed-secrets-p50", 700.0),
        ("cache and authorizer", "until-allowed-tokens-p50", None),
        ("cache and authorizer", "watchlists", 174.0),
        ("cache and authorizer", "lists", 10.0),
        ("cache and authorizer", "fallback-rate", 10 / 184),
        ("cache and authorizer", "fallback-rate-secrets", 10 / 104),
        ("cache and authorizer", "fallback-rate-configmaps", 0.0),
        ("cache and authorizer", "several-members", 3.0),
        ("cache and authorizer", "staleness-revisions", None),
        ("cache and authorizer", "graph-revisions", 40.0),
        ("cache and authorizer", "graph-seconds", None),
        ("cache and authorizer", "consistent-reads", 32.0),
        ("cache and authorizer", "consistent-reads-failed", 2.0),
        ("cache and authorizer", "consistent-reads-fallback", 2.0),
        ("cache and authorizer", "cache-waits", 20.0),
        ("cache and authorizer", "cache-wait-p50", 5.0),
        ("cache and authorizer", "consistency-checks-success", 6.0),
        ("cache and authorizer", "consistency-checks-failure", 0.0),
        ("clients", "throttled-p50", 2.0),
        ("clients", "throttled-long", 5.0),
        ("clients", "client-queue-depth-kubelet-none", 20.0),
        ("clients", "client-queue-depth-controllers-job", 31.0),
        ("clients", "workqueue-depth-controllers-job", 400.0),
        ("clients", "client-429s", 3.0),
        ("clients", "client-5xx", 2.0),
        ("clients", "client-unanswered", 1.0),
        ("clients", "connections-retried", 5.0),
        ("clients", "connections-lost", 1.0),
        ("clients", "relists", 4.0),
        ("clients", "reflector-expired", 6.0),
        ("clients", "reflector-fallbacks", 5.0),
        ("clients", "reflector-fallbacks-very-short", 1.0),
        ("clients", "reflector-unfinished", 0.0),
        ("clients", "reflector-sync-p99", 100.0),
        ("clients", "operations-late-p99", 0.5),
        ("clients", "locust-cpu", (20 + 5.5) / 55),
        ("clients", "locust-cpu-highest", 3.3),
        ("clients", "loop-late", 0.015),
        ("clients", "jobs-late", 0.01),
    ],
)
def test_a_groups_figures(figures: Figures, group: str, key: str, value: float | None) -> None:
    row = figures.rows[key]
    assert row.group == group
    assert row.value(figures.run) == (None if value is None else pytest.approx(value, rel=0.02))


def test_every_row_says_what_it_is(figures: Figures) -> None:
    for row in figures.rows.values():
        assert row.group in GROUPS
        assert row.title
        assert row.source
        assert row.window in ("whole run", "scenario", "load phase", "its step", "whole scenario")
        assert row.unit in ("", "s", "ms", "/s", "bytes", "share", "cores")


def test_rows_come_by_group_and_no_key_twice(figures: Figures) -> None:
    rows = every_row([figures.run])
    assert len({row.key for row in rows}) == len(rows)
    places = [GROUPS.index(row.group) for row in rows]
    assert places == sorted(places)


def test_charts_have_points_where_their_rows_have_figures(figures: Figures) -> None:
    for row in figures.rows.values():
        if row.series is not None and row.value(figures.run):
            assert not row.series(figures.run).dropna().empty, row.key


def test_an_empty_record_has_no_figures_but_counts_of_clients(tmp_path: Path) -> None:
    run = Planted(tmp_path / "r").run()
    told = {row.key: value for row in every_row([run]) if (value := row.value(run)) is not None}
    assert set(told.values()) == {0.0}
    assert {row.group for row in every_row([run]) if row.key in told} == {"cache and authorizer", "clients"}
