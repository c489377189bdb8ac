"""How figures are taken."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.registry import Plan

Work = Callable[[], object]
Make = Callable[[int], Work]
"""Prepares `n` operations, untimed; what it returns does them, timed."""

_WARM_UP_SHARE = 20
PAGE = os.sysconf("SC_PAGE_SIZE")


def calls(operation: Work) -> Make:
    """The same call, `n` times. The loop itself costs 0.02 us."""

    def make(n: int) -> Work:
        def work() -> None:
            for _ in range(n):
                operation()

        return work

    return make


def cpu_us(plan: Plan, operations: int, make: Make) -> list[float]:
    """CPU microseconds of this process for one operation, a value for each repeat."""
    return side_by_side(plan, operations, make)[0]


def side_by_side(plan: Plan, operations: int, *makes: Make) -> list[list[float]]:
    """`cpu_us` of several things that take turns, so that what slows the machine slows all of them."""
    n = plan.count(operations)
    for make in makes:
        make(max(1, n // _WARM_UP_SHARE))()
    values: list[list[float]] = [[] for _ in makes]
    for _ in range(plan.repeats):
        for make, found in zip(makes, values, strict=True):
            found.append(_timed(make(n)) / n * 1e6)
    return values


def ratio(values: list[float], to: list[float]) -> list[float]:
    """Repeat by repeat."""
    return [value / base for value, base in zip(values, to, strict=True)]


def _timed(work: Work) -> float:
    gc.collect()
    begun = time.process_time()
    work()
    return time.process_time() - begun


def grown_kb(make: Callable[[int], object], n: int) -> float:
    """KB of resident memory for each of the `n` things that ``make(n)`` returns.

    Some are made before, since the first fill what the process had free. For a child: its heap is its own.
    """
    kept = [make(max(1, n // 4))]
    before = resident_bytes()
    kept.append(make(n))
    return max(resident_bytes() - before, 1) / n / 1024


def resident_bytes() -> int:
    """This process's resident memory, after a collection."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
