"""When operations are due, exactly."""

from __future__ import annotations

import itertools
import random

import pytest

from harness.clusterloader import schema
from harness.clusterloader.durations import Seconds
from harness.clusterloader.tuning import Schedule, schedule


def plan(load: schema.Load, count: int, seed: int = 1) -> Schedule:
    found = schedule(load, count, random.Random(seed))
    assert found is not None
    return found


def test_qps_load_is_a_grid_that_does_not_drift() -> None:
    due, length_s = plan(schema.QPSLoad(qps=3.0), 3_000_001)
    assert due[:4] == [0.0, 1 / 3, 2 / 3, 1.0]
    assert due[3_000_000] == 1_000_000.0
    assert length_s == 3_000_001 / 3


def test_time_limited_load_spreads_evenly() -> None:
    load = schema.TimeLimitedLoad(time_limit=Seconds(10))
    assert plan(load, 4) == ([0.0, 2.5, 5.0, 7.5], 10.0)
    assert plan(load, 1) == ([0.0], 10.0)
    assert plan(load, 0) == ([], 0.0)


def test_stepped_load_waits_after_each_whole_burst() -> None:
    load = schema.SteppedLoad(burst_size=2, step_delay=Seconds(5))
    assert plan(load, 5) == ([0.0, 0.0, 5.0, 5.0, 10.0], 10.0)
    assert plan(load, 4) == ([0.0, 0.0, 5.0, 5.0], 10.0)
    assert plan(load, 1) == ([0.0], 0.0)


def test_randomized_time_limited_load_draws_each_time_by_itself() -> None:
    due, length_s = plan(schema.RandomizedTimeLimitedLoad(time_limit=Seconds(10)), 1000)
    rng = random.Random(1)
    assert due == [rng.random() * 10 for _ in range(1000)]
    assert due != sorted(due)
    assert 0 <= min(due) < max(due) < 10
    assert length_s == 0.0


def test_randomized_load_has_gaps_up_to_twice_the_mean() -> None:
    due, length_s = plan(schema.RandomizedLoad(average_qps=10.0), 10_000)
    gaps = [later - earlier for earlier, later in itertools.pairwise(due)]
    assert due[0] == 0.0
    assert min(gaps) >= 0
    assert max(gaps) < 0.2 + 1e-9
    assert length_s == pytest.approx(1000, rel=0.02)


def test_poisson_load_has_exponential_gaps() -> None:
    due, length_s = plan(schema.PoissonLoad(expected_actions_per_second=10.0), 10_000)
    gaps = [later - earlier for earlier, later in itertools.pairwise(due)]
    assert due[0] == 0.0
    assert sum(gaps) / len(gaps) == pytest.approx(0.1, rel=0.05)
    assert sum(gap > 0.1 for gap in gaps) / len(gaps) == pytest.approx(0.368, abs=0.02)
    assert length_s == 0.0


def test_the_same_seed_gives_the_same_plan() -> None:
    load = schema.PoissonLoad(expected_actions_per_second=10.0)
    assert plan(load, 100, 1) == plan(load, 100, 1) != plan(load, 100, 2)


@pytest.mark.parametrize(
    "load", [schema.GlobalQPSLoad(qps=1.0, burst=1), schema.ParallelismLimitedLoad(parallelism_limit=1)]
)
def test_loads_that_depend_on_the_run_have_no_plan(load: schema.Load) -> None:
    assert schedule(load, 5, random.Random(1)) is None
