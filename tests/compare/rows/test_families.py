"""Families of rows: the same for every arm, the largest shown, the others kept for report.json."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.compare.comparison import compare
from harness.compare.rows import families
from harness.compare.rows.row import Row, Taken
from harness.compare.run import Run, Window
from harness.compare.series import Key
from tests.compare.planted import Planted


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    one = Planted(tmp_path / "one").scenario()
    one.series("m0", 'c{resource="pods"}', {5: 50}).series("m0", 'c{resource="nodes"}', {5: 9})
    two = Planted(tmp_path / "two").scenario()
    two.series("m0", 'c{resource="pods"}', {5: 10}).series("m1", 'c{resource="secrets"}', {5: 70})
    two.series("m0", 'c{resource="leases"}', {5: 0})
    return [one.run(), two.run()]


def _rows(runs: list[Run], top: int) -> dict[str, Row]:
    return {row.key: row for row in families.counters(runs, "c", "C", "c", ("resource",), top=top)}


def test_the_largest_of_all_runs_are_shown(runs: list[Run]) -> None:
    rows = _rows(runs, 2)
    assert [(key, row.shown) for key, row in rows.items()] == [
        ("c-secrets", True),
        ("c-pods", True),
        ("c-nodes", False),
        ("c-leases", False),
    ]


def test_every_arm_has_the_same_rows(runs: list[Run]) -> None:
    rows = _rows(runs, 2)
    assert [rows["c-secrets"].value(run) for run in runs] == [0.0, 70.0]
    assert [rows["c-nodes"].value(run) for run in runs] == [9.0, 0.0]


def test_a_source_says_how_its_row_was_chosen(runs: list[Run]) -> None:
    rows = _rows(runs, 2)
    chosen = "; one of 4, the largest 2 by size over all arms are shown"
    assert rows["c-pods"].source == f'increase of c{{resource="pods"}}{chosen}'
    assert _rows(runs, 4)["c-pods"].source == 'increase of c{resource="pods"}'


def test_what_never_happened_is_not_shown(runs: list[Run]) -> None:
    assert not _rows(runs, 9)["c-leases"].shown


def test_a_target_without_the_metric_has_no_figure(runs: list[Run], tmp_path: Path) -> None:
    bare = Planted(tmp_path / "bare").scenario().run()
    assert _rows([*runs, bare], 2)["c-pods"].value(bare) is None


def test_of_those_that_are_not_shown_the_first_row_is_kept(runs: list[Run]) -> None:
    def make(key: str) -> list[Row]:
        return [
            Row(f"{key}-{part}", key, "", Taken.RUN, "whole run", "", lambda run: 1.0) for part in ("a", "b")
        ]

    rows = families.chosen(runs, lambda run: {"x": 2.0, "y": 1.0}, make, top=1)
    assert [row.key for row in rows] == ["x-a", "x-b", "y-a"]


def test_a_member_that_an_arm_lacks_has_no_figure(tmp_path: Path) -> None:
    alone = Planted(tmp_path / "one", members=("m0",)).series("m0", "g", {0: 3}).run()
    both = Planted(tmp_path / "two").series("m0", "g", {0: 1}).series("m1", "g", {0: 5}).run()
    rows = families.members([alone, both], "g", "G", "", "source", families.peaks("g", {}))
    figures = [(row.key, [row.value(run) for run in (alone, both)]) for row in rows]
    assert figures == [("g-of-m0", [3.0, 1.0]), ("g-of-m1", [None, 5.0])], "in the order of their names"
    assert all(row.shown and row.lower_is_better is None for row in rows)


def test_of_arms_with_one_member_each_the_member_is_not_told_twice(tmp_path: Path) -> None:
    alone = Planted(tmp_path / "one", members=("m0",)).series("m0", "g", {0: 3}).run()
    (row,) = families.members([alone], "g", "G", "", "source", families.peaks("g", {}))
    assert not row.shown


def test_a_histograms_rows_are_chosen_by_number(tmp_path: Path) -> None:
    planted = Planted(tmp_path / "r").scenario()
    planted.histogram("m0", "h", 'op="rare"', {5: (0, 1, 1)}).histogram(
        "m0", "h", 'op="often"', {5: (9, 9, 9)}
    )
    run = planted.run()

    def make(labels: Key, value: object) -> list[Row]:
        return [Row(labels[0], "", "ms", Taken.SUM, "", "", value)]  # type: ignore[arg-type]

    rows = families.quantiles([run], "h", ("op",), make, q=0.5, window=Window.LOAD, top=1)
    assert [(row.key, row.shown) for row in rows] == [("often", True), ("rare", False)]
    assert [row.value(run) for row in rows] == [pytest.approx(5.0), pytest.approx(55.0)]


def test_peak_rates_are_of_all_members_together(tmp_path: Path) -> None:
    planted = Planted(tmp_path / "r").scenario()
    planted.series("m0", 'c{verb="GET"}', {5: 50}).series("m1", 'c{verb="GET"}', {5: 10, 55: 9000})
    run = planted.run()
    (row,) = families.peak_rates([run], "rate", "Rate", "c", ("verb",))
    assert (row.key, row.value(run), row.window) == ("rate-get", 12.0, "scenario")
    assert row.series is not None
    assert row.series(run).max() == 12.0


def test_a_key_is_a_files_name() -> None:
    assert families.slug(("GET", "a/b c", "", "10.0.0.1:6443")) == "get-a-b-c-none-10.0.0.1-6443"


def test_rows_that_are_not_shown_take_no_part_in_tests(runs: list[Run]) -> None:
    for run in runs:
        run.manifest.results["connections"] = {}
    comparison = compare(runs)
    hidden = [row for row in comparison.rows if not row.row.shown]
    assert all(contrast is None for row in hidden for contrast in row.contrasts.values())
    assert all(list(row.contrasts) == ["two"] for row in comparison.rows)
    assert "etcd-size" in {row.key for row in comparison.not_exposed}
    assert not {row.row.key for row in comparison.rows} & {row.key for row in comparison.not_exposed}
