"""What requests waited before they were sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.compare.rows.throttle import throttle_rows
from harness.compare.run import Run
from harness.observe.histogram import bucket_of
from harness.observe.record import SAMPLES, Parts
from tests.records import make_record


def figures(folder: Path, waits_s: list[float]) -> dict[str, float | None]:
    run = make_record(folder)
    parts = Parts(run / "samples", SAMPLES)
    for wait_s in waits_s:
        parts.add((1.0, "kubelet", "client_throttled_ms", "verb=get,name=pods", bucket_of(wait_s * 1e6), 1))
    parts.add((1.0, "scheduler", "client_throttled_ms", "verb=get,name=pods", bucket_of(50e6), 1))
    parts.flush()
    return {row.key: row.value(Run(run)) for row in throttle_rows()}


def test_they_are_told_by_quantile_sum_and_how_many_were_long(tmp_path: Path) -> None:
    found = figures(tmp_path / "run", [0.1] * 97 + [1.5, 2.0, 4.0])
    assert found["throttled-p50"] == pytest.approx(0.1, rel=0.02)
    assert found["throttled-p99"] == pytest.approx(2.0, rel=0.02)
    assert found["throttled-sum"] == pytest.approx(9.7 + 7.5, rel=0.02)
    assert found["throttled-long"] == 3.0


def test_nothing_waited_where_no_request_had_to(tmp_path: Path) -> None:
    assert set(figures(tmp_path / "run", []).values()) == {0.0}
