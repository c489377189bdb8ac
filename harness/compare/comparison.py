"""Arms side by side: for each row the samples, their median and range, and the difference between two arms."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from harness.compare.guard import Finding, guard
from harness.compare.inference import Contrast, contrast_rows
from harness.compare.rows.every import every_row
from harness.compare.rows.row import Row
from harness.compare.run import Run


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
    """A row over all arms; `contrasts` has each arm but the first against the first, None where one of the two has no
    figure or the row is not shown."""

    row: Row
    figures: dict[str, Figure]
    contrasts: dict[str, Contrast | None]

    def ratio(self, arm: str) -> float | None:
        """This arm's median over the first's; None where there is no such number."""
        first, other = next(iter(self.figures.values())).median, self.figures[arm].median
        return None if not first or other is None else other / first


@dataclass(frozen=True)
class Arm:
    """One control plane: the samples that count, and those that do not with the reasons."""

    name: str
    runs: tuple[Run, ...]
    left_out: tuple[tuple[Run, str], ...] = ()


@dataclass(frozen=True)
class Comparison:
    """`rows` by group, in the order of a report; those that are not `shown` are for report.json, and have no contrasts:
    each row that is tested makes it harder for the others to show something. `not_exposed` are the rows that no run
    could fill. `findings` is what the guard saw, of all runs, those that do not count too."""

    arms: tuple[Arm, ...]
    rows: tuple[Compared, ...] = field(default=())
    not_exposed: tuple[Row, ...] = field(default=())
    findings: tuple[Finding, ...] = field(default=())


def compare(runs: Sequence[Run], declared: Collection[str] = ()) -> Comparison:
    """Group runs by their arm, in order of first appearance; runs marked invalid are left out of every figure.
    `declared` are the settings that are meant to differ (`harness.compare.guard`)."""
    names = list(dict.fromkeys(run.manifest.arm or run.manifest.name for run in runs))
    arms = []
    for name in names:
        mine = [run for run in runs if (run.manifest.arm or run.manifest.name) == name]
        good = tuple(run for run in mine if not run.manifest.invalid)
        bad = tuple((run, "; ".join(run.manifest.invalid)) for run in mine if run.manifest.invalid)
        arms.append(Arm(name, good, bad))
    counted = [run for arm in arms for run in arm.runs]
    rows = every_row(counted)
    figures = [
        {arm.name: Figure(tuple(_kept(row.value(run)) for run in arm.runs)) for arm in arms} for row in rows
    ]
    filled = [(row, by_arm) for row, by_arm in zip(rows, figures, strict=True) if _any_known(by_arm)]
    contrasts = _contrasts(filled, names)
    return Comparison(
        tuple(arms),
        tuple(Compared(*row, contrast) for row, contrast in zip(filled, contrasts, strict=True)),
        tuple(row for row, by_arm in zip(rows, figures, strict=True) if row.shown and not _any_known(by_arm)),
        tuple(guard({arm.name: [*arm.runs, *(run for run, _ in arm.left_out)] for arm in arms}, declared)),
    )


def _kept(value: float | None) -> float | None:
    """To nine digits: what differs by less does so by the rounding of floats, and is no difference."""
    return None if value is None else float(f"{value:.9g}")


def _any_known(figures: dict[str, Figure]) -> bool:
    return any(figure.known for figure in figures.values())


def _contrasts(
    rows: Sequence[tuple[Row, dict[str, Figure]]], arms: Sequence[str]
) -> list[dict[str, Contrast | None]]:
    """Of each row, each arm against the first; chances are corrected over the rows that are shown."""
    found: list[dict[str, Contrast | None]] = [dict.fromkeys(arms[1:]) for _ in rows]
    shown = [k for k, (row, _) in enumerate(rows) if row.shown]
    better = [rows[k][0].lower_is_better for k in shown]
    first = [rows[k][1][arms[0]].values for k in shown]
    for arm in arms[1:]:
        contrasts = contrast_rows(first, [rows[k][1][arm].values for k in shown], better)
        for k, contrast in zip(shown, contrasts, strict=True):
            found[k][arm] = contrast
    return found
