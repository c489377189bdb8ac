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

    `real` is what the same operation costs a real server, in the same unit; `aim` is what the median is to be at most.
    None where there is no such figure.
    """

    name: str
    unit: str
    values: list[float]
    better: Better = Better.LOWER
    real: float | None = None
    aim: float | None = None

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


MANY, FEW = 1000, 3

Run = Callable[[Plan], Iterator[Line]]


@dataclass(frozen=True)
class Benchmark:
    """`name` is ``suite/what``; its lines' names begin with its suite. At most `most` repeats are asked of it."""

    name: str
    run: Run
    most: int


_all: dict[str, Benchmark] = {}


def benchmark(name: str, most: int = MANY) -> Callable[[Run], Run]:
    """Register a generator of lines under `name`; `most` is `FEW` for what takes seconds each time."""

    def register(run: Run) -> Run:
        assert name not in _all, f"two benchmarks are called {name}"
        _all[name] = Benchmark(name, run, most)
        return run

    return register


def benchmarks(only: Sequence[str] = ()) -> list[Benchmark]:
    """Those registered, in order of registration; with `only`, those that a pattern fits (``codec`` is ``codec/*``)."""
    if not only:
        return list(_all.values())
    return [each for each in _all.values() if any(_fits(each.name, pattern) for pattern in only)]


def measure(chosen: Sequence[Benchmark], plan: Plan, tell: Callable[[str], object]) -> list[Line]:
    """All lines, in order. Each round takes one value of each, so that the repeats of a line lie far apart in time:
    back to back they would share what else the machine was doing, and their range would promise too much."""
    found: dict[str, Line] = {}
    for number in range(plan.repeats):
        for each in chosen:
            if number >= each.most:
                continue
            tell(f"round {number + 1} of {plan.repeats}: {each.name}")
            for line in each.run(Plan(1, plan.size)):
                found.setdefault(line.name, msgspec.structs.replace(line, values=[])).values.extend(
                    line.values
                )
    return list(found.values())


def _fits(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, f"{pattern}/*")
