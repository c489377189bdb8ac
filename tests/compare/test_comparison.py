"""Arms are compared over the samples that count."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.compare.comparison import Comparison, compare
from harness.compare.rows.builders import peak_rate
from harness.compare.rows.row import Taken
from harness.compare.run import Run
from tests.records import make_record


def _compare(tmp_path: Path) -> Comparison:
    runs = [
        Run(
            make_record(
                tmp_path / f"{arm}-{n}", arm=arm, sample=n, members=members, barrier_s=base + n, denials=n
            )
        )
        for n in (1, 2, 3)
        for arm, members, base in (("1 master", 1, 40.0), ("HA", 3, 18.0))
    ]
    return compare(runs)


def _row(comparison: Comparison, key: str) -> dict[str, tuple[float | None, ...]]:
    row = next(row for row in comparison.rows if row.row.key == key)
    return {name: figure.values for name, figure in row.figures.items()}


def test_arms_keep_their_order_and_samples(tmp_path: Path) -> None:
    comparison = _compare(tmp_path)
    assert [(arm.name, len(arm.runs)) for arm in comparison.arms] == [("1 master", 3), ("HA", 3)]
    assert _row(comparison, "barrier") == {"1 master": (41.0, 42.0, 43.0), "HA": (19.0, 20.0, 21.0)}


def test_median_range_difference_and_ratio(tmp_path: Path) -> None:
    barrier = next(row for row in _compare(tmp_path).rows if row.row.key == "barrier")
    assert barrier.figures["HA"].median == 20.0
    assert barrier.figures["HA"].range == (19.0, 21.0)
    assert barrier.contrasts["HA"] is not None
    assert barrier.contrasts["HA"].difference == -22.0
    assert barrier.ratio("HA") == pytest.approx(20 / 42)


def test_what_differs_by_the_rounding_of_floats_does_not_differ(tmp_path: Path) -> None:
    third = 0.1 + 0.2
    assert third != 0.3
    runs = [
        Run(make_record(tmp_path / arm, arm=arm, sample=1, barrier_s=barrier))
        for arm, barrier in (("a", third), ("b", 0.3))
    ]
    assert _row(compare(runs), "barrier") == {"a": (0.3,), "b": (0.3,)}


def test_every_row_of_the_first_report(tmp_path: Path) -> None:
    comparison = _compare(tmp_path)
    ha = {row.row.key: row.figures["HA"].median for row in comparison.rows}
    assert ha["watches-busiest"] == 300.0
    assert ha["watches-sum"] == 600.0
    assert ha["memory-busiest"] == 39e6  # of members alone, not of Locust's own process
    assert ha["watch-events-busiest"] == 3000.0
    assert ha["watch-events-sum"] == 6000.0
    assert ha["request-rate"] == 60.0
    assert ha["request-rate-get-pods-200"] == 48.0
    assert ha["request-rate-list-secrets-200"] == 12.0
    assert ha["etcd-p99-get"] == pytest.approx(100.0)
    assert ha["rejects"] == 0.0
    assert ha["queue-system"] == 9.0
    assert ha["terminated-watchers"] == 0.0
    assert ha["denials"] == 2.0
    assert ha["watchlists"] == 62.0
    assert ha["lists"] == 20.0
    assert ha["fallback-rate"] == pytest.approx(20 / 82)
    assert ha["several-members"] == 2.0
    assert ha["wall-clock"] == 50.0


def test_an_invalid_sample_is_named_and_left_out(tmp_path: Path) -> None:
    good = Run(make_record(tmp_path / "good"))
    bad = Run(make_record(tmp_path / "bad", marks=(("host could not keep up", True),), barrier_s=999.0))
    (arm,) = compare([good, bad]).arms
    assert arm.runs == (good,)
    assert arm.left_out == ((bad, "host could not keep up"),)


def test_a_row_that_no_sample_can_fill_is_left_out(tmp_path: Path) -> None:
    comparison = compare([Run(make_record(tmp_path / "run"))])
    assert all(any(figure.known for figure in row.figures.values()) for row in comparison.rows)


def test_one_arm_alone_has_no_difference(tmp_path: Path) -> None:
    comparison = compare([Run(make_record(tmp_path / "run"))])
    assert all(row.contrasts == {} for row in comparison.rows)


def test_what_a_target_counts_but_never_saw_is_zero_and_not_unknown(tmp_path: Path) -> None:
    run = Run(make_record(tmp_path / "run"))
    where = {"verb": "PATCH", "resource": "events"}
    assert peak_rate("rate", "Rate", "apiserver_request_total", Taken.SUM, where).value(run) == 0.0
