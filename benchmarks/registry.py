"""What a benchmark is, and the list of all of them."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

import msgspec


class Better(Enum):
    LOWER = "lower"
    HIGHER = "higher"


class Line(msgspec.Struct, frozen=True):
    """One row of the table: a value for each repeat, in `unit`.

    `real` is what the same operation costs a real server, in the same unit; None where there is no such figure.
    """

    name: str
    unit: str
    values: list[float]
    better: Better = Better.LOWER
    real: float | None = None

    @property
    def median(self) -> float:
        return median(self.values)


@dataclass(frozen=True)
class Plan:
    """How much to do. `size` scales every count of operations; 1 is what results are published for."""

    repeats: int = 5
    size: float = 1.0

    def count(self, operations: int, least: int = 4) -> int:
        return max(least, round(operations * self.size))

    @property
    def long_repeats(self) -> int:
        """Repeats of what takes seconds each: a process of its own, a whole report."""
        return min(3, self.repeats)


Run = Callable[[Plan], Iterator[Line]]


@dataclass(frozen=True)
class Benchmark:
    """`name` is ``suite/what``; its lines' names begin with it. `run` yields each line as soon as it is measured."""

    name: str
    run: Run


_all: dict[str, Benchmark] = {}


def benchmark(name: str) -> Callable[[Run], Run]:
    """Register a generator of lines under `name`."""

    def register(run: Run) -> Run:
        assert name not in _all, f"two benchmarks are called {name}"
        _all[name] = Benchmark(name, run)
        return run

    return register


def benchmarks(only: Sequence[str] = ()) -> list[Benchmark]:
    """Those registered, in order of registration; with `only`, those that a pattern fits (``codec`` is ``codec/*``)."""
    if not only:
        return list(_all.values())
    return [each for each in _all.values() if any(_fits(each.name, pattern) for pattern in only)]


def _fits(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, f"{pattern}/*")
