"""Families of rows: one for each member, resource or priority level that runs contain.

Which of them a table shows is decided by size over all runs of all arms, so that every arm has the same rows; the
others stand in report.json. A row says in its source how it was chosen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

import pandas as pd

from harness.compare.rows.builders import text
from harness.compare.rows.row import NO_SUCH_MEMBER, Row, Taken, peak
from harness.compare.run import Run, Window
from harness.compare.series import Key, Where

TOP = 6
K = TypeVar("K", Key, str)


def chosen(
    runs: Iterable[Run],
    sizes: Callable[[Run], Mapping[K, float]],
    make: Callable[[K], Sequence[Row]],
    top: int = TOP,
    by: str = "size",
) -> list[Row]:
    """The rows that `make` gives for each key that a run has, largest first; shown are those of the `top` largest. Of
    the others, for report.json, only the first row of each."""
    largest: dict[K, float] = {}
    for run in runs:
        for key, size in sizes(run).items():
            largest[key] = max(largest.get(key, 0.0), size)
    ordered = sorted(largest, key=lambda key: (-largest[key], key))
    rows = []
    for place, key in enumerate(ordered):
        shown = place < top and largest[key] > 0
        how = (
            f"; one of {len(ordered)}, the largest {top} by {by} over all arms are shown"
            if len(ordered) > top
            else ""
        )
        made = make(key)
        rows += [replace(row, source=row.source + how, shown=shown) for row in (made if shown else made[:1])]
    return rows


def members(
    runs: Sequence[Run],
    key: str,
    title: str,
    unit: str,
    source: str,
    figures: Callable[[Run], Mapping[str, float]],
    window: Window = Window.WHOLE,
) -> list[Row]:
    """A figure of each member, in the order of their names; None where an arm has no such member. Shown where some run
    has several."""
    figures = cache(figures)
    several = any(len(figures(run)) > 1 for run in runs)
    rows = chosen(
        runs,
        figures,
        lambda member: [
            Row(
                f"{key}-of-{slug((member,))}",
                f"{title}: {member}",
                unit,
                Taken.MEMBER,
                window.value,
                source,
                lambda run: figures(run).get(member),
                lower_is_better=None,
                absent=NO_SUCH_MEMBER,
            )
        ],
        TOP if several else 0,
    )
    return sorted(rows, key=lambda row: row.title)


def peaks(metric: str, where: Where) -> Callable[[Run], dict[str, float]]:
    """For each member the highest value of all scrapes."""

    def found(run: Run) -> dict[str, float]:
        frame = run.frame(metric, where)
        highest = {str(member): peak(frame[member]) for member in frame.columns}
        return {member: value for member, value in highest.items() if value is not None}

    return found


def counters(
    runs: Sequence[Run],
    key: str,
    title: str,
    metric: str,
    by: Key,
    *,
    where: Where | None = None,
    requires: str = "",
    top: int = TOP,
    lower_is_better: bool | None = True,
) -> list[Row]:
    """How much a counter grew over the whole run, members added, for each combination of the labels `by`."""
    selected = where or {}

    @cache
    def found(run: Run) -> dict[Key, float]:
        return {key: sum(members.values()) for key, members in run.increases(metric, by, selected).items()}

    def make(labels: Key) -> list[Row]:
        at = {**selected, **dict(zip(by, labels, strict=True))}
        return [
            Row(
                f"{key}-{slug(labels)}",
                f"{title}: {words(labels)}",
                "",
                Taken.SUM,
                Window.WHOLE.value,
                f"increase of {text(metric, at)}",
                lambda run: found(run).get(labels, 0.0) if run.exposes(requires or metric) else None,
                lower_is_better,
            )
        ]

    return chosen(runs, found, make, top)


def quantiles(
    runs: Sequence[Run],
    metric: str,
    by: Key,
    make: Callable[[Key, Callable[[Run], float | None]], Sequence[Row]],
    *,
    q: float = 0.99,
    where: Where | None = None,
    window: Window = Window.WHOLE,
    top: int = TOP,
) -> list[Row]:
    """Rows of a histogram's quantile in ms for each combination of the labels `by`; size is how many were observed."""
    selected = where or {}

    @cache
    def counts(run: Run) -> dict[Key, float]:
        grown = run.increases(f"{metric}_bucket", by, {**selected, "le": "+Inf"}, window)
        return {key: sum(members.values()) for key, members in grown.items()}

    @cache
    def found(run: Run) -> dict[Key, float]:
        return run.quantiles(metric, q, by, selected, window)

    def of(labels: Key) -> Callable[[Run], float | None]:
        def value(run: Run) -> float | None:
            seconds = found(run).get(labels)
            return None if seconds is None else seconds * 1e3

        return value

    return chosen(runs, counts, lambda labels: make(labels, of(labels)), top, "number")


def peak_rates(
    runs: Sequence[Run], key: str, title: str, metric: str, by: Key, *, top: int = TOP
) -> list[Row]:
    """The fastest growth between two scrapes, members added, for each combination of the labels `by`."""

    @cache
    def rates(run: Run) -> dict[Key, pd.Series]:
        return run.rates(metric, by)

    @cache
    def found(run: Run) -> dict[Key, float]:
        return {labels: peak(series) or 0.0 for labels, series in rates(run).items()}

    def make(labels: Key) -> list[Row]:
        at = dict(zip(by, labels, strict=True))
        return [
            Row(
                f"{key}-{slug(labels)}",
                f"{title}: {words(labels)}",
                "/s",
                Taken.SUM,
                Window.SCENARIO.value,
                f"{text(metric, at)}, growth a second between two scrapes, highest",
                lambda run: found(run).get(labels, 0.0) if run.exposes(metric) else None,
                lower_is_better=None,
                series=lambda run: rates(run).get(labels, pd.Series(dtype=float)),
            )
        ]

    return chosen(runs, found, make, top)


def slug(labels: Key) -> str:
    """For a key, which is a file's name too: ``get-pods``."""
    return "-".join(re.sub(r"[^a-z0-9.]+", "-", (label or "none").lower()) for label in labels)


def words(labels: Key) -> str:
    """For a title: ``GET pods``."""
    return " ".join(label or "(none)" for label in labels)
