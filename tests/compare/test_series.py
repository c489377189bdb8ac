"""What members' series add up to: at each scrape, over a window, across restarts and gaps."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.compare.run import Window
from harness.compare.series import histogram_quantile
from tests.compare.planted import Planted

COUNTER = 'c{code="200"}'


def test_growth_of_a_window_is_from_the_last_scrape_before_it_to_the_last_one_in_it(tmp_path: Path) -> None:
    planted = Planted(tmp_path / "r").scenario()
    planted.series("m0", COUNTER, {-10: 5, 0: 7, 20: 17, 30: 20, 35: 1000})
    run = planted.run()
    assert run.increase("c", window=Window.LOAD).to_dict() == {"m0": 13.0}  # not what came at 35
    assert run.increase("c", window=Window.WHOLE).to_dict() == {"m0": 1000.0}
    assert run.scraped_s(Window.LOAD) == 30.0


def test_a_target_that_was_there_before_has_counted_before(tmp_path: Path) -> None:
    planted = Planted(tmp_path / "r", backend="existing").scenario()
    planted.series("m0", COUNTER, {-10: 500, 0: 507}).series("m1", COUNTER, {5: 3}).down("m0", -10.0)
    assert planted.run().increase("c").to_dict() == {"m0": 7.0, "m1": 3.0}


def test_a_counter_that_fell_began_anew(tmp_path: Path) -> None:
    planted = Planted(tmp_path / "r").scenario()
    planted.series("m0", COUNTER, {0: 100, 10: 4, 20: 9}).down("m0", 5.0)
    assert planted.run().increase("c").to_dict() == {"m0": 109.0}


def test_rates_are_of_all_members_and_of_the_scenario_alone(tmp_path: Path) -> None:
    planted = Planted(tmp_path / "r").scenario()
    planted.series("m0", COUNTER, {-5: 50, 5: 100, 55: 9000}).series("m1", COUNTER, {5: 10}).down("m1", 20.0)
    rates = planted.run().rates("c", ("code",))["200",]
    assert rates.index[0] == 0.0
    assert rates.index[-1] == 50.0
    assert rates[5.0] == pytest.approx(12.0)
    assert rates[20.0] != rates[20.0]  # a member did not answer: no sum of this moment
    assert rates[25.0] != rates[25.0]


def test_without_a_load_phase_nothing_is_of_it(tmp_path: Path) -> None:
    run = Planted(tmp_path / "r").series("m0", COUNTER, {0: 3}).run()
    assert run.bounds(Window.LOAD) is None
    assert run.increases("c", (), window=Window.LOAD) == {}
    assert run.quantiles("c", 0.5, (), window=Window.LOAD) == {}
    assert run.during(run.frame("c"), Window.LOAD).empty


def test_quantiles_are_of_what_the_window_added_in_all_members(tmp_path: Path) -> None:
    planted = Planted(tmp_path / "r").scenario()
    planted.histogram("m0", "h", 'op="get"', {-10: (100, 100, 100), 10: (100, 150, 150), 40: (100, 150, 900)})
    planted.histogram("m1", "h", 'op="get"', {10: (50, 50, 50)})
    run = planted.run()
    assert run.quantiles("h", 0.75, ("op",), window=Window.LOAD) == {("get",): pytest.approx(0.055)}
    assert run.quantiles("h", 0.99, ("op",)) == {("get",): 0.1}  # the last bucket: its lower bound


def test_quantiles_between_scrapes_are_where_something_was_observed(tmp_path: Path) -> None:
    planted = Planted(tmp_path / "r").scenario()
    planted.histogram("m0", "h", "", {5: (10, 10, 10), 20: (10, 20, 20), 40: (10, 20, 30)})
    points = planted.run().quantile_over_time("h", 0.5, window=Window.LOAD)
    assert points.to_dict() == {5.0: pytest.approx(0.005), 20.0: pytest.approx(0.055)}


def test_processes_that_are_no_members_stand_apart(tmp_path: Path) -> None:
    planted = Planted(tmp_path / "r").series("locust", "cpu", {0: 4}).series("m0", "cpu", {0: 9})
    run = planted.run()
    assert list(run.processes("cpu").columns) == ["locust"]
    assert list(run.frame("cpu").columns) == ["m0"]


@pytest.mark.parametrize(
    ("q", "bounds", "value"),
    [
        (0.5, {0.0: 60.0, 1.0: 100.0, float("inf"): 100.0}, 0.0),
        (0.8, {0.0: 60.0, 1.0: 100.0, float("inf"): 100.0}, 0.5),
        (0.5, {1.0: 0.0, float("inf"): 0.0}, None),
        (0.5, {}, None),
    ],
)
def test_histogram_quantile(q: float, bounds: dict[float, float], value: float | None) -> None:
    assert histogram_quantile(q, bounds) == value
