"""Rows about informers and lists, from records whose figures are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.compare.rows.informers import informer_rows
from harness.compare.run import Run
from harness.observe.histogram import bucket_of
from harness.observe.record import SAMPLES, SERIES, Parts, RunRecord
from tests.records import START, make_record


def run_of(folder: Path, *, informers: bool = True, snapshots: bool = True) -> Run:
    record = make_record(folder)
    if informers:
        manifest = Run(record).manifest
        manifest.results["informers"] = {
            "informers": 4,
            "last_sync_s": 8.0,
            "objects_until_then": 4000,
            "bytes": 5_000_000,
            "events": 600,
            "checked": {"violations": 0, "compared": 9},
        }
        RunRecord.save(_Saved(record, manifest))  # type: ignore[arg-type]
        _add_samples(record)
    _add_series(record, snapshots)
    return Run(record)


class _Saved:
    """What `RunRecord.save` needs of a record."""

    def __init__(self, folder: Path, manifest: object) -> None:
        self.folder = folder
        self.manifest = manifest


def _add_samples(record: Path) -> None:
    parts = Parts(record / "samples", SAMPLES)

    def add(user: str, name: str, labels: str, value: float, count: int = 1) -> None:
        parts.add((START + 30, user, name, labels, bucket_of(value * 1e3), count))

    add("informer", "informer_sync_ms", "mode=list,start=first", 2000, 99)
    add("informer", "informer_sync_ms", "mode=list,start=first", 8000, 2)
    add("informer", "informer_sync_ms", "mode=list,start=restart", 500)
    add("informer", "watch_delivery_ms", "member=m0,resource=configmaps", 10, 5)
    add("informer", "watch_delivery_ms", "member=m1,resource=configmaps", 30, 5)
    add("informer", "reflector_fallbacks", "resource=configmaps,cause=429", 1, 3)
    add("lister", "list_ms", "kind=paged", 40, 10)
    add("lister", "list_objects", "kind=paged", 1000, 10)
    add("lister", "list_bytes", "kind=paged", 400_000, 10)
    add("lister", "list_bytes", "kind=get", 500, 10)
    add("lister", "list_failed", "kind=paged,code=429", 1, 2)
    parts.flush()


def _add_series(record: Path, snapshots: bool) -> None:
    parts = Parts(record / "series", SERIES)

    def add(name: str, value: float) -> None:
        parts.add((START + 30, "member-0", name, value))

    if snapshots:
        add('swarmlet_watch_cache_snapshot_bytes{resource="configmaps"}', 7e6 / 101)
    add("process_cpu_seconds_total", 12.0)
    for name, value in (("fetched", 3000.0), ("returned", 1000.0)):
        add(f'apiserver_cache_list_{name}_objects_total{{resource="configmaps"}}', value)
    for name, value in (("evaluated", 500.0), ("returned", 500.0)):
        add(f'apiserver_storage_list_{name}_objects_total{{resource="configmaps"}}', value)
    add('apiserver_storage_list_total{resource="configmaps"}', 2.0)
    parts.flush()


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float | None]:
    run = run_of(tmp_path_factory.mktemp("rows") / "run")
    return {row.key: row.value(run) for row in informer_rows([run])}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("informer-sync-p50", 2.0),
        ("informer-sync-p99", 8.0),
        ("informer-sync-last", 8.0),
        ("informer-resync-p99", 0.5),
        ("informer-objects-rate", 500.0),
        ("informer-bytes", 5e6),
        ("informer-events", 600.0),
        ("informer-fallbacks", 3.0),
        ("informer-expired", 0.0),
        ("informer-violations", 0.0),
        ("informer-delivery-p99-busiest", 30.0),
        ("informer-delivery-p99-median", 10.0),
        ("list-paged-p99", 40.0),
        ("list-paged-objects", 1000.0),
        ("list-paged-bytes", 400_000.0),
        ("list-paged-failed", 2.0),
        ("informer-cpu-busiest", 12.0),
        ("informer-snapshot-memory", 7e6 / 101),
        ("informer-snapshot-share", 0.01),
        ("informer-evaluated", 3500 / 1500),
        ("informer-lists-etcd", 2.0),
    ],
)
def test_figures_come_out(figures: dict[str, float | None], key: str, value: float) -> None:
    assert figures[key] == pytest.approx(value, rel=0.02)


def test_a_run_without_informers_has_no_such_rows(tmp_path: Path) -> None:
    assert informer_rows([run_of(tmp_path / "run", informers=False)]) == []


def test_beside_a_run_with_informers_one_without_has_no_figures(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / "with"), run_of(tmp_path / "without", informers=False, snapshots=False)]
    found = {row.key: row.value(runs[1]) for row in informer_rows(runs)}
    for key in ("informer-sync-last", "informer-violations", "list-paged-p99", "list-paged-failed"):
        assert found[key] is None
    assert found["informer-snapshot-memory"] is None
