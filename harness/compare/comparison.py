"""Arms side by side: for each row the samples, their median and range, and the difference between two arms."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.compare.deliveryrows import delivery_rows
from harness.compare.rows import ROWS, Row, split_rows
from harness.compare.run import Run
from harness.compare.throttlerows import throttle_rows


@dataclass(frozen=True)
class Figure:
    """One row of one arm: a value for each sample that counts, None where a sample has no such figure."""

    values: tuple[float | None, ...]

    @property
    def known(self) -> list[float]:
        return [value for value in self.values if value is not None]

    @property
    def median(self) -> float | None:
        return statistics.median(self.known) if self.known else None

    @property
    def range(self) -> tuple[float, float] | None:
        return (min(self.known), max(self.known)) if self.known else None


@dataclass(frozen=True)
class Compared:
    """A row over all arms; `difference` and `ratio` are of the second arm's median against the first's, None where
    there is no such number."""

    row: Row
    figures: dict[str, Figure]

    @property
    def difference(self) -> float | None:
        first, second = self._medians()
        return None if first is None or second is None else second - first

    @property
    def ratio(self) -> float | None:
        first, second = self._medians()
        return None if not first or second is None else second / first

    def _medians(self) -> tuple[float | None, float | None]:
        medians = [figure.median for figure in self.figures.values()]
        return (medians[0], medians[1]) if len(medians) > 1 else (None, None)


@dataclass(frozen=True)
class Arm:
    """One control plane: the samples that count, and those that do not with the reasons."""

    name: str
    runs: tuple[Run, ...]
    left_out: tuple[tuple[Run, str], ...] = ()


@dataclass(frozen=True)
class Comparison:
    arms: tuple[Arm, ...]
    rows: tuple[Compared, ...] = field(default=())


def compare(runs: Sequence[Run]) -> Comparison:
    """Group runs by their arm, in order of first appearance; runs marked invalid are left out of every figure."""
    names = list(dict.fromkeys(run.manifest.arm or run.manifest.name for run in runs))
    arms = []
    for name in names:
        mine = [run for run in runs if (run.manifest.arm or run.manifest.name) == name]
        good = tuple(run for run in mine if not run.manifest.invalid)
        bad = tuple((run, "; ".join(run.manifest.invalid)) for run in mine if run.manifest.invalid)
        arms.append(Arm(name, good, bad))
    counted = [run for arm in arms for run in arm.runs]
    rows = [*ROWS, *delivery_rows(), *throttle_rows(), *split_rows(counted)]
    compared = [
        Compared(row, {arm.name: Figure(tuple(map(row.value, arm.runs))) for arm in arms}) for row in rows
    ]
    return Comparison(
        tuple(arms), tuple(row for row in compared if any(f.known for f in row.figures.values()))
    )
