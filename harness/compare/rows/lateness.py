"""Rows about the harness's own punctuality: how late operations of the scenario started, against the times that its
tuning sets fixed for them. Where executors shared the work, the latest of them counts."""

from __future__ import annotations

from harness.compare.rows.row import Row, Taken
from harness.compare.run import Run
from harness.observe.histogram import Histogram

SAMPLE = "operation_late_ms"


def lateness_rows() -> list[Row]:
    source = (
        "scenario: seconds from when an operation was due to its start; of several executors the latest one's"
    )
    return [
        Row("operations-late-p99", "Operations started late, p99", "s", Taken.RUN, "whole run", source, _p99)
    ]


def _p99(run: Run) -> float | None:
    """None where nothing was due at a time."""
    rows = run.samples[run.samples["name"] == SAMPLE]
    found: dict[str, Histogram] = {}
    for labels, bucket, count in zip(rows["labels"], rows["bucket"], rows["count"], strict=True):
        executor = str(labels).partition("executor=")[2]
        found.setdefault(executor, Histogram()).merge([(bucket, count)])
    if not found:
        return None
    return max(histogram.quantile_us(0.99) or 0.0 for histogram in found.values()) / 1e6
