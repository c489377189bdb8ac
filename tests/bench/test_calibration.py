"""What two benchmarks make of a machine, for plans."""

from __future__ import annotations

import dataclasses

import pytest

from harness.bench.calibration import NotCalibrated, calibration_of, options_of
from harness.bench.kubelets import Result
from harness.wire.errors import ConfigError
from tests.bench.test_kubelets import MB, a_result


def with_watches(watches: int) -> Result:
    result = a_result()
    result.options = dataclasses.replace(result.options, watches=watches)
    result.opening_cpu_s = 4.0
    return result


def test_a_point_of_each_fleet_and_the_price_of_an_event_of_the_larger() -> None:
    few, many = with_watches(7), with_watches(35)
    many.phases[1].used["load"] = dataclasses.replace(many.phases[1].used["load"], rss_bytes=70 * MB)
    found = calibration_of([few, many], "as it was run")
    assert [point.watches for point in found.points] == [7, 35]
    assert [point.kubelet_bytes for point in found.points] == [
        pytest.approx(10 * MB / 100, abs=1),
        pytest.approx(20 * MB / 100, abs=1),
    ]
    assert found.points[0].rest_cpu_ms == pytest.approx(0.2e3 / 60 / 100, abs=1e-4)
    assert found.points[0].opening_cpu_s == 0.04
    assert found.baseline_bytes == 50 * MB
    assert found.event_cpu_us == pytest.approx(100.0)
    assert found.origin == "as it was run"


def test_a_fleet_with_errors_measures_nothing() -> None:
    broken = with_watches(35)
    broken.answers = {"0 update leases": 2}
    with pytest.raises(NotCalibrated, match="35 watches: not without errors: 2 x 0 update leases"):
        calibration_of([with_watches(7), broken], "")


def test_who_was_turned_away_and_came_again_is_no_error() -> None:
    busy = with_watches(35)
    busy.answers = {"429 create csinodes": 2}
    assert len(calibration_of([with_watches(7), busy], "").points) == 2


def test_too_few_events_have_no_price() -> None:
    quiet = with_watches(35)
    quiet.phases[1].events["member-0"] = 150.0
    with pytest.raises(NotCalibrated, match="too few events"):
        calibration_of([with_watches(7), quiet], "")


def test_the_second_fleet_must_have_more_watches_than_the_first() -> None:
    assert [options.watches for options in options_of(10, 8, 10.0)] == [7, 8]
    with pytest.raises(ConfigError, match="--watches 7: more than 7"):
        options_of(10, 7, 10.0)
    with pytest.raises(ConfigError, match="--nodes must be at least 1"):
        options_of(0, 35, 10.0)
