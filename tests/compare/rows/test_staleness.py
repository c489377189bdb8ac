"""How far a member's caches are behind the foremost one's."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.compare.rows.staleness import METRIC, seconds_behind, staleness_rows
from harness.compare.run import Run
from tests.compare.planted import Planted


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """m0 gains 20 a second; m1 stands still from 100 at 10 s on, is there again at 20 s."""
    planted = Planted(tmp_path / "r").scenario()
    pods = f'{METRIC}{{resource="pods"}}'
    planted.series("m0", pods, {0: 1, 5: 100, 10: 200, 15: 300, 20: 400})
    planted.series("m1", pods, {0: 1, 5: 80, 20: 400})
    planted.series("m1", f'{METRIC}{{resource="leases"}}', {10: 150})  # its newest
    return planted.run()


def test_of_all_caches_the_newest_counts(run: Run) -> None:
    figures = {row.key: row.value(run) for row in staleness_rows([run])}
    assert figures["staleness-revisions"] == 150.0  # at 15 s: 300 against 150
    assert figures["staleness-revisions-of-m1"] == 150.0
    assert figures["staleness-revisions-of-m0"] == 0.0
    assert figures["staleness-seconds"] == pytest.approx(7.5)  # at 15 s it was where m0 was at 7.5 s
    assert figures["staleness-seconds-of-m0"] == 0.0


def test_behind_by_less_than_a_scrape_is_told_in_proportion(run: Run) -> None:
    behind = seconds_behind(run)["m1"]
    assert behind.loc[5.0] == pytest.approx((100 - 80) / (100 - 1) * 5)
    assert behind.loc[20.0] == 0.0


def test_one_member_alone_is_behind_nobody(tmp_path: Path) -> None:
    run = Planted(tmp_path / "r", members=("m0",)).scenario().series("m0", METRIC, {0: 5}).run()
    assert [row.value(run) for row in staleness_rows([run])] == [None, None]


def test_before_the_scenario_nobody_is_behind(tmp_path: Path) -> None:
    planted = Planted(tmp_path / "r").scenario()
    planted.series("m0", METRIC, {-10: 900, 0: 1000}).series("m1", METRIC, {-10: 1, -5: 900, 0: 1000})
    run = planted.run()
    assert staleness_rows([run])[0].value(run) == 0.0
