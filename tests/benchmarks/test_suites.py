"""Each benchmark runs once, with tiny loads; what it finds is a number."""

from __future__ import annotations

import math

import pytest

from benchmarks import suites
from benchmarks.registry import Benchmark, Plan, benchmarks

suites.register_all()
TINY = Plan(repeats=1, size=0.005)


@pytest.mark.parametrize("each", benchmarks(), ids=lambda each: each.name)
def test_benchmark_gives_finite_numbers(each: Benchmark) -> None:
    lines = list(each.run(TINY))
    assert len({line.name for line in lines}) == len(lines) > 0
    for line in lines:
        assert line.name.startswith(each.name.partition("/")[0])
        assert line.values
        assert all(math.isfinite(value) and value > 0 for value in line.values), line
