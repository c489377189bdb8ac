"""report.json: the figures for other programs. The structs are its schema; docs/report-json.md says what they mean.

A field may be added under the same `SCHEMA_VERSION`; one that goes, or means something else, makes a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from harness.compare.comparison import Compared, Comparison, Figure
from harness.report import words
from harness.report.charts import Chart
from harness.report.view import OTHER, Noticed, noticed

SCHEMA_VERSION = 3


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the arms had that no experiment declares; `within` is the arm whose own samples differ, "" between arms."""

    what: str
    values: dict[str, str]
    why: str
    within: str


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run. `left_out` says why it does not count, "" where it does."""

    record: str
    sample: int
    seed: int
    status: str
    left_out: str


class ArmData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    samples: list[Sample]


class FigureData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of an arm: a value for each sample that counts, in the order of the arm's samples; None where there is none
    (`RowData.absent`)."""

    n: int
    values: list[float | None]
    median: float | None
    range: tuple[float, float] | None


class ContrastData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An arm against the first (`harness.compare.inference.Contrast`)."""

    difference: float
    ratio: float | None
    interval: tuple[float, float] | None
    effect: float
    p: float | None
    p_holm: float | None
    p_adjusted: float | None
    verdict: str
    more: int | None


class RowData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`charts` are paths of pictures, from the folder of report.json."""

    key: str
    group: str
    title: str
    unit: str
    members: str
    window: str
    source: str
    lower_is_better: bool | None
    shown: bool
    absent: str
    charts: list[str]
    arms: dict[str, FigureData]
    against_first: dict[str, ContrastData | None]


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema_version: int
    title: str
    asked: str
    verdicts: list[str]
    findings: list[Finding]
    noticed: list[Noticed]
    arms: list[ArmData]
    rows: list[RowData]


def report_data(comparison: Comparison, title: str, charts: Sequence[Chart]) -> Report:
    """Arms in the order in which they were given, rows in that of the page."""
    return Report(
        SCHEMA_VERSION,
        title,
        words.asked(comparison),
        words.verdict_lines(comparison),
        [Finding(each.what, each.values, each.why, each.within) for each in comparison.findings],
        noticed(comparison),
        _arms(comparison),
        [_row(row, charts) for row in comparison.rows],
    )


def as_builtins(report: Report) -> dict[str, Any]:
    """Dicts, lists, texts and numbers; those of numpy, in which some rows count, become Python's."""
    found: dict[str, Any] = msgspec.to_builtins(report, enc_hook=lambda value: value.item())
    return found


def _arms(comparison: Comparison) -> list[ArmData]:
    found = []
    for arm in comparison.arms:
        runs = [(run, "") for run in arm.runs] + list(arm.left_out)
        samples = [
            Sample(run.folder.name, run.manifest.sample, run.manifest.seed, run.manifest.status, why)
            for run, why in runs
        ]
        found.append(ArmData(arm.name, samples))
    return found


def _row(compared: Compared, charts: Sequence[Chart]) -> RowData:
    row = compared.row
    return RowData(
        row.key,
        row.group or OTHER,
        row.title,
        row.unit,
        row.taken.value,
        row.window,
        row.source,
        row.lower_is_better,
        row.shown,
        row.absent,
        [chart.picture for chart in charts if row.key in chart.rows],
        {name: _figure(figure) for name, figure in compared.figures.items()},
        {name: _contrast(compared, name) for name in compared.contrasts},
    )


def _figure(figure: Figure) -> FigureData:
    return FigureData(len(figure.known), list(figure.values), figure.median, figure.range)


def _contrast(compared: Compared, arm: str) -> ContrastData | None:
    contrast = compared.contrasts[arm]
    if contrast is None:
        return None
    return ContrastData(
        contrast.difference,
        compared.ratio(arm),
        contrast.interval,
        contrast.effect,
        contrast.p,
        contrast.p_holm,
        contrast.p_adjusted,
        str(contrast.verdict.value),
        contrast.more,
    )
