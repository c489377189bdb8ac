"""What a watcher waits for, by member: the busiest is the one with the highest quantile, the median the one in the
middle."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from harness.compare.comparison import compare
from harness.compare.rows.delivery import delivery_rows, read_rows
from harness.compare.run import Run
from harness.observe.histogram import bucket_of
from harness.observe.record import Manifest, RunRecord, Status
from tests.records import LOAD, START

Row = tuple[float, str, str, str, int, int]
ROUNDING = 1 / 32  # of a bucket


def sample(t: float, name: str, labels: str, ms: float, count: int = 1, user: str = "kubelet") -> Row:
    return (LOAD + t, user, name, labels, bucket_of(ms * 1e3), count)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    record = RunRecord(tmp_path / "r", Manifest(name="r", started=START))
    record.event("phase-started", {"step": 1}, t=LOAD)
    rows = []
    for member, ms in (("m0", 10.0), ("m1", 20.0), ("m2", 500.0)):
        labels = f"member={member},resource=pods"
        rows += [
            sample(1.0, "watch_delivery_ms", labels, ms, 99),
            sample(12.0, "watch_delivery_ms", labels, 2 * ms, 1),
        ]
        rows.append(sample(1.0, "watch_delivery_since_sent_ms", labels, 3 * ms))
        rows.append(sample(1.0, "watch_delivery_ms", labels, 9e6, 1000, user="scheduler"))
        read = f"kind=secrets,member={member},refused=no"
        rows.append(sample(1.0, "first_read_ms", read, 10 * ms))
    rows.append(sample(1.0, "first_read_403s", "kind=secrets,member=m0", 1.0, 7))
    rows.append(sample(1.0, "first_read_403s", "kind=tokens,member=m0", 1.0, 3))
    record.samples(rows)
    record.finish(Status.COMPLETED)
    return Run(tmp_path / "r")


def value(run: Run, key: str) -> float | None:
    return next(row for row in [*delivery_rows(), *read_rows()] if row.key == key).value(run)


@pytest.mark.parametrize(
    ("key", "ms"),
    [
        ("delivery-p50-busiest", 500.0),
        ("delivery-p50-median", 20.0),
        ("delivery-p99-busiest", 500.0),
        ("delivery-bound-p99-busiest", 1500.0),
        ("first-read-secrets-p99-busiest", 5000.0),
        ("first-read-secrets-p50-median", 200.0),
    ],
)
def test_quantiles_are_of_one_members_clients(run: Run, key: str, ms: float) -> None:
    assert value(run, key) == pytest.approx(ms, rel=ROUNDING)


def test_403s_are_counted_by_kind_and_none_is_zero_where_reads_were_measured(run: Run) -> None:
    assert value(run, "first-read-403s-secrets") == 7
    assert value(run, "first-read-403s-configmaps") is None  # nobody read any
    assert value(run, "first-read-403s-tokens") is None


def test_a_run_without_these_measures_has_no_such_rows(tmp_path: Path) -> None:
    record = RunRecord(tmp_path / "old", Manifest(name="old", started=START))
    record.finish(Status.COMPLETED)
    assert [
        row.key for row in [*delivery_rows(), *read_rows()] if row.value(Run(tmp_path / "old")) is not None
    ] == []


def test_the_chart_has_a_point_for_each_window_with_samples(run: Run) -> None:
    row = next(row for row in [*delivery_rows(), *read_rows()] if row.key == "delivery-p99-busiest")
    assert row.series is not None
    points = row.series(run)
    assert isinstance(points, pd.Series)
    assert list(points.index) == [5.0, 15.0]
    assert list(points) == pytest.approx([500.0, 1000.0], rel=ROUNDING)


def test_rows_are_part_of_a_comparison(run: Run) -> None:
    keys = [row.row.key for row in compare([run]).rows]
    assert "delivery-p99-busiest" in keys
    assert "binding-heard-p50-busiest" not in keys  # was not measured in any run
