"""The harness's own punctuality, as a row of a comparison."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from harness.compare.rows.lateness import lateness_rows
from harness.observe.histogram import bucket_of

(ROW,) = lateness_rows()


def late(*rows: tuple[str, str, float, int]) -> float | None:
    """The row of a run with these samples: name, labels, milliseconds, count."""
    table = [(name, labels, bucket_of(ms * 1e3), count) for name, labels, ms, count in rows]
    return ROW.value(
        SimpleNamespace(samples=pd.DataFrame(table, columns=["name", "labels", "bucket", "count"]))
    )  # type: ignore[arg-type]


def test_the_latest_executor_counts() -> None:
    fast = [("operation_late_ms", f"tuning_set={name},executor=0", 1.0, 500) for name in "ab"]
    slow = ("operation_late_ms", "tuning_set=a,executor=1", 80.0, 10)
    assert late(*fast, slow) == pytest.approx(0.080, rel=0.02)
    assert late(*fast) == pytest.approx(0.001, rel=0.02)


def test_one_executor_has_no_label() -> None:
    assert late(("operation_late_ms", "tuning_set=a", 5.0, 1)) == pytest.approx(0.005, rel=0.02)


def test_a_run_without_due_times_has_no_figure() -> None:
    assert late(("object_operation_ms", "kind=Pod", 900.0, 1)) is None
