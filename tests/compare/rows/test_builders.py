"""What the makers of rows take from a record, and what they say where there is nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.compare.rows import builders
from harness.compare.rows.row import Taken
from harness.compare.run import Run, Window
from tests.compare.planted import Planted


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    planted = Planted(tmp_path_factory.mktemp("builders") / "r").scenario()
    planted.series("m0", 'g{kind="a"}', {-10: 1, 5: 8, 10: 2, 40: 50})
    planted.series("m1", 'g{kind="a"}', {-10: 1, 5: 2, 10: 9, 40: 10})
    planted.series("m0", 'g{kind="b"}', {0: 100}).down("m1", 15.0)
    planted.series("m0", "c", {5: 10, 40: 30}).series("m1", "c", {5: 1})
    planted.histogram("m0", "h", "", {5: (10, 10, 10), 20: (10, 20, 20), 40: (10, 20, 99)})
    planted.sample("kubelet", "told_ms", "", 2000)
    return planted.run()


A = {"kind": "a"}


@pytest.mark.parametrize(
    ("taken", "window", "value"),
    [
        (Taken.BUSIEST, Window.WHOLE, 50.0),
        (Taken.BUSIEST, Window.LOAD, 9.0),
        (Taken.SUM, Window.WHOLE, 60.0),
        (Taken.SUM, Window.LOAD, 11.0),  # of one moment: not 8 and 9, which were at different ones
    ],
)
def test_a_gauge_is_highest_at_one_moment_of_its_window(
    run: Run, taken: Taken, window: Window, value: float
) -> None:
    row = builders.gauge("k", "t", "", "g", taken, where=A, window=window)
    assert (row.value(run), row.window, row.taken) == (value, window.value, taken)
    assert row.source == 'g{kind="a"}, highest of all scrapes'


def test_no_sum_is_taken_where_a_member_did_not_answer(run: Run) -> None:
    series = builders.gauge("k", "t", "", "g", Taken.SUM, where=A).series
    assert series is not None
    assert series(run).isna().loc[15.0]


def test_imbalance_is_of_the_moment_with_the_highest_sum(run: Run) -> None:
    row = builders.imbalance("k", "t", "g", where=A)
    assert row.value(run) == pytest.approx(50 / 30)
    assert row.key == "k-imbalance"


def test_a_counter_grows_in_its_window(run: Run) -> None:
    assert builders.counter("k", "t", "c", Taken.SUM).value(run) == 31.0
    assert builders.counter("k", "t", "c", Taken.BUSIEST).value(run) == 30.0
    assert builders.counter("k", "t", "c", Taken.SUM, window=Window.LOAD).value(run) == 11.0


def test_a_peak_rate_is_between_two_scrapes(run: Run) -> None:
    assert builders.peak_rate("k", "t", "c", Taken.SUM).value(run) == 4.0
    assert builders.peak_rate("k", "t", "c", Taken.BUSIEST).value(run) == 4.0


def test_a_quantile_is_in_ms_and_has_a_range_over_the_load_phase(run: Run) -> None:
    row = builders.quantile("k", "t", "h", 0.5, window=Window.LOAD)
    assert row.value(run) == pytest.approx(10.0)
    low, high = (builders.extreme(row, "h", 0.5, {}, highest=highest) for highest in (False, True))
    assert [low.key, high.key] == ["k-lowest", "k-highest"]
    assert low.value(run) == pytest.approx(5.0)
    assert high.value(run) == pytest.approx(55.0)  # not what was slow at 40
    assert row.source == "histogram_quantile(0.5, h_bucket), members' buckets added"


def test_a_clients_sample_is_in_seconds_or_ms(run: Run) -> None:
    for unit, value in (("s", 2.0), ("ms", 2000.0)):
        row = builders.sample_quantile("k", "t", "source", "kubelet", "told_ms", 0.5, unit=unit)
        assert row.value(run) == pytest.approx(value, rel=0.02)
    assert builders.sample_quantile("k", "t", "source", "nobody", "told_ms", 0.5).value(run) is None


def test_what_a_target_does_not_expose_is_unknown_and_never_zero(run: Run) -> None:
    for row in (
        builders.gauge("k", "t", "", "missing", Taken.SUM),
        builders.imbalance("k", "t", "missing"),
        builders.counter("k", "t", "missing", Taken.SUM),
        builders.counter("k", "t", "missing", Taken.SUM, requires="missing_too"),
        builders.peak_rate("k", "t", "missing", Taken.SUM),
        builders.quantile("k", "t", "missing", 0.5),
    ):
        assert row.value(run) is None


def test_labels_that_nothing_happened_to_are_zero_where_the_target_would_count_them(run: Run) -> None:
    assert builders.counter("k", "t", "missing", Taken.SUM, requires="c").value(run) == 0.0
    assert builders.counter("k", "t", "c", Taken.SUM, where={"no": "such"}).value(run) == 0.0
    assert builders.gauge("k", "t", "", "missing", Taken.SUM, requires="c").value(run) == 0.0
    assert builders.peak_rate("k", "t", "c", Taken.SUM, {"no": "such"}).value(run) == 0.0


def test_nothing_is_of_a_load_phase_that_was_not(tmp_path: Path) -> None:
    run = Planted(tmp_path / "r").series("m0", "c", {5: 10}).series("m0", "g", {5: 1}).run()
    assert builders.counter("k", "t", "c", Taken.SUM, window=Window.LOAD).value(run) is None
    assert builders.gauge("k", "t", "", "g", Taken.SUM, window=Window.LOAD).value(run) is None


def test_a_selector_is_written_as_prometheus_does() -> None:
    assert builders.text("m", {"a": "x", "b": ("y", "z")}) == 'm{a="x",b=~"y|z"}'
