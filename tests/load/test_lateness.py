"""How late operations started, out of a record."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.load.lateness import lateness
from harness.observe.histogram import bucket_of
from harness.observe.record import SAMPLES, Parts


def recorded(record: Path, *rows: tuple[str, str, float, int]) -> Path:
    """Samples of one name, with labels and milliseconds, so many of each."""
    parts = Parts(record / "samples", SAMPLES)
    for name, labels, late_ms, count in rows:
        parts.add((0.0, "clusterloader", name, labels, bucket_of(late_ms * 1e3), count))
    parts.flush()
    return record


def test_it_is_told_by_tuning_set(tmp_path: Path) -> None:
    record = recorded(
        tmp_path,
        ("operation_late_ms", "tuning_set=fast", 1.0, 98),
        ("operation_late_ms", "tuning_set=fast", 50.0, 2),
        ("operation_late_ms", "tuning_set=slow", 2.0, 1),
        ("object_operation_ms", "kind=Pod,operation=create", 900.0, 7),
    )
    (found,) = lateness(record)
    assert (found["name"], found["method"]) == ("OperationLateness", "OperationLateness")
    assert found["values"] == {
        "fast: operations": 100,
        "fast: late perc50, ms": pytest.approx(1.0, rel=0.02),
        "fast: late perc99, ms": pytest.approx(50.0, rel=0.02),
        "fast: late max, ms": pytest.approx(50.0, rel=0.02),
        "slow: operations": 1,
        "slow: late perc50, ms": pytest.approx(2.0, rel=0.02),
        "slow: late perc99, ms": pytest.approx(2.0, rel=0.02),
        "slow: late max, ms": pytest.approx(2.0, rel=0.02),
    }


def test_each_executor_stands_for_itself(tmp_path: Path) -> None:
    rows = (("operation_late_ms", f"tuning_set=fast,executor={n}", 10.0**n, 5) for n in (1, 0))
    (found,) = lateness(recorded(tmp_path, *rows))
    assert [name for name in found["values"] if "perc99" in name] == [
        "fast, executor 0: late perc99, ms",
        "fast, executor 1: late perc99, ms",
    ]


@pytest.mark.parametrize("rows", [(), (("object_operation_ms", "kind=Pod", 5.0, 1),)])
def test_nothing_that_was_due_at_a_time_is_nothing(
    tmp_path: Path, rows: tuple[tuple[str, str, float, int], ...]
) -> None:
    assert lateness(recorded(tmp_path, *rows)) == []
