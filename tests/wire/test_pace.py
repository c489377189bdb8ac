"""A model's clock that goes slower than the real one."""

from __future__ import annotations

import math

import msgspec
import pytest

from harness.wire.errors import ConfigError
from harness.wire.pace import REAL, SLOWEST, Pace, parse_factor


def test_at_real_time_clocks_are_handed_back_as_they_are() -> None:
    def clock() -> float:
        return 5.0

    assert REAL.real
    assert REAL.seconds(clock) is clock
    assert REAL.stamps(clock) is clock
    assert (REAL.real_s(3.0), REAL.real_stamp(7.0)) == (3.0, 7.0)


def test_a_model_second_takes_as_many_real_ones() -> None:
    now = 100.0
    model = Pace(4.0, origin_s=1000.0).seconds(lambda: now)
    before = model()
    now += 8.0
    assert model() - before == 2.0
    assert Pace(4.0).real_s(2.0) == 8.0


def test_both_times_of_day_are_equal_at_the_origin_and_apart_from_then_on() -> None:
    now, pace = 1000.0, Pace(4.0, origin_s=1000.0)
    wall = pace.stamps(lambda: now)
    assert wall() == 1000.0
    now = 1400.0
    assert wall() == 1100.0
    assert pace.real_stamp(wall()) == now


def test_it_arrives_at_other_processes_as_it_was_sent() -> None:
    pace = Pace(2.5, 1_700_000_000.25)
    assert msgspec.json.decode(msgspec.json.encode(pace), type=Pace) == pace


@pytest.mark.parametrize("factor", [1.0, 1.5, SLOWEST])
def test_a_factor_within_the_bounds_is_taken(factor: float) -> None:
    assert parse_factor(factor, "--pace") == factor


@pytest.mark.parametrize("factor", [0.0, 0.999, -2.0, SLOWEST + 0.1, math.inf, math.nan])
def test_another_is_refused_with_what_is_allowed(factor: float) -> None:
    with pytest.raises(
        ConfigError, match=r"--pace .*: real seconds that a model second takes, within 1 to 100"
    ):
        parse_factor(factor, "--pace")
