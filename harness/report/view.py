"""A comparison in the order of a page: groups of rows with their charts, the arms' conditions, what was noticed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.compare.comparison import Compared, Comparison
from harness.compare.rows import GROUPS
from harness.compare.run import Run
from harness.report.charts import Chart
from harness.report.words import faults_of

OTHER = "other"
"""Where rows stand that say no group."""


@dataclass(frozen=True)
class Line:
    """A row with the charts that show it."""

    compared: Compared
    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class Block:
    """Rows that stand together: `name` is "" for those that a page shows at once, else what the rows are parts of."""

    name: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Group:
    """`anchor` is the name of its place on a page."""

    name: str
    anchor: str
    lines: tuple[Line, ...]
    charts: tuple[Chart, ...]

    @property
    def blocks(self) -> list[Block]:
        """The lines in order; those titled "WHOLE: PART" below a WHOLE are a block of their own."""
        wholes = {line.compared.row.title for line in self.lines}
        found: list[Block] = []
        for line in self.lines:
            stem, _, part = line.compared.row.title.partition(": ")
            name = stem if part and stem in wholes else ""
            if not found or found[-1].name != name:
                found.append(Block(name, ()))
            found[-1] = Block(name, (*found[-1].lines, line))
        return found


@dataclass(frozen=True)
class Noticed:
    """A mark of a sample; with `left_out` the sample does not count."""

    sample: str
    text: str
    left_out: bool


def groups(comparison: Comparison, charts: Sequence[Chart]) -> list[Group]:
    """Those with a row or a chart, in the order of `GROUPS`; rows that are not shown are left out."""
    rows = [row for row in comparison.rows if row.row.shown]
    names = list(
        dict.fromkeys([*GROUPS, *(row.row.group or OTHER for row in rows), *(c.group for c in charts)])
    )
    found = []
    for name in names:
        lines = tuple(
            Line(row, tuple(chart for chart in charts if row.row.key in chart.rows))
            for row in rows
            if (row.row.group or OTHER) == name
        )
        mine = tuple(chart for chart in charts if (chart.group or OTHER) == name)
        if lines or mine:
            found.append(Group(name, f"group-{name.replace(' ', '-')}", lines, mine))
    return found


def noticed(comparison: Comparison) -> list[Noticed]:
    """The marks of all samples, and why some of them were left out."""
    return [
        Noticed(run.folder.name, mark.text, mark.invalid)
        for arm in comparison.arms
        for run in arm.runs
        for mark in run.manifest.marks
    ] + [
        Noticed(run.folder.name, text, left_out)
        for arm in comparison.arms
        for run, why in arm.left_out
        for text, left_out in _reasons(run, why)
    ]


def _reasons(run: Run, why: str) -> Iterator[tuple[str, bool]]:
    yield why, True
    yield from ((mark.text, False) for mark in run.manifest.marks if not mark.invalid)


def _server(run: Run) -> str:
    """The version of a real one that the run started, and the flags that it was given beside a pool's own."""
    program = run.manifest.target.get("binaries", {}).get("kube-apiserver")
    if program is None:
        return "–"
    options = run.manifest.target.get("options", {}).get("binaries", {})
    return " ".join([program["version"], *(f"--{flag}" for flag in options.get("apiserver_flags", ()))])


def _clocks(run: Run) -> str:
    """With the way of the fastest report; less than 0 is ahead."""
    reports = run.manifest.results.get("reports", {}).values()
    off = [counts["clock_ms"] for counts in reports if counts.get("clock_ms") is not None]
    return f"{min(off):.0f} to {max(off):.0f} ms" if off else "–"


def _pace(run: Run) -> str:
    """All times and rates of a record are the model's."""
    pace = run.manifest.pace
    return "real time" if pace.real else f"slowed down: 1 s takes {pace.factor:g} s of real time"


def conditions(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """What each arm ran under, one line a fact, a value an arm; taken from its samples' manifests."""
    facts = (
        ("members", lambda run: len(run.manifest.target.get("members", ()))),
        ("modelled cores of each member", lambda run: run.manifest.target.get("cores", "–")),
        ("clock of the model", _pace),
        ("backend", lambda run: run.manifest.target.get("backend", "–")),
        ("kube-apiserver", _server),
        ("kubelets", lambda run: run.manifest.nodes),
        ("scenario", lambda run: Path(run.manifest.scenario.get("path", "none")).name),
        ("faults", lambda run: "; ".join(faults_of(run)) or "none"),
        ("workers' clocks behind the master's", _clocks),
        ("seed", lambda run: run.manifest.seed),
        (
            "swarmlet",
            lambda run: run.manifest.versions.get("commit") or run.manifest.versions.get("swarmlet", ""),
        ),
    )
    lines = []
    for name, take in facts:
        values = []
        for arm in comparison.arms:
            seen = list(dict.fromkeys(str(take(run)) for run in arm.runs))
            values.append(", ".join(seen) or "–")
        lines.append((name, values))
    return lines
