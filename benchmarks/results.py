"""The table on the terminal and the files that results are kept in."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from rich.table import Table
from rich.text import Text

from benchmarks.registry import Better, Line

FOLDER = Path(__file__).parent / "results"
MACHINE = "machine/python"
"""The line that says how fast the machine itself was."""


class Results(msgspec.Struct):
    """A file. `machine` describes without naming it; `size` below 1 marks figures that are not for publishing."""

    date: str
    machine: dict[str, str | int]
    repeats: int
    size: float
    lines: list[Line]
    schema_version: int = 1

    def by_name(self) -> dict[str, Line]:
        return {line.name: line for line in self.lines}


def make_results(lines: Sequence[Line], repeats: int, size: float) -> Results:
    machine: dict[str, str | int] = {
        "cores": os.cpu_count() or 1,
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
    }
    return Results(time.strftime("%Y-%m-%d"), machine, repeats, size, list(lines))


def save(path: Path, results: Results) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rounded = [
        msgspec.structs.replace(line, values=[float(f"{value:.4g}") for value in line.values])
        for line in results.lines
    ]
    data = msgspec.json.encode(msgspec.structs.replace(results, lines=rounded))
    path.write_bytes(msgspec.json.format(data, indent=1) + b"\n")


def load(path: Path) -> Results:
    return msgspec.json.decode(path.read_bytes(), type=Results)


def latest() -> Path | None:
    """The newest committed result; names begin with their date."""
    return max(FOLDER.glob("*.json"), default=None)


def table(lines: Iterable[Line], before: Mapping[str, Line] | None = None) -> Table:
    """Median and range of each line, what a real server pays, and the ratio to `before` where that is given."""
    grid = Table(title_justify="left", header_style="bold", row_styles=("", "dim"))
    grid.add_column("benchmark")
    grid.add_column("unit")
    for heading in ("median", "range", "real server", "real ÷ ours"):
        grid.add_column(heading, justify="right")
    lines = list(lines)
    aims = any(line.aim is not None for line in lines)
    if aims:
        grid.add_column("aim", justify="right")
    if before is not None:
        grid.add_column("now ÷ then", justify="right")
    suite = None
    for line in lines:
        if suite is not None and line.name.partition("/")[0] != suite:
            grid.add_section()
        suite = line.name.partition("/")[0]
        aim = [_aim(line)] if aims else []
        then = [] if before is None else [_compared(line, before.get(line.name))]
        grid.add_row(*_cells(line), *aim, *then)
    return grid


def _cells(line: Line) -> list[str]:
    spread = f"{_number(min(line.values))} to {_number(max(line.values))}"
    real = ["", ""] if line.real is None else [_number(line.real), f"×{line.real / line.median:.2g}"]
    return [line.name, line.unit, _number(line.median), spread, *real]


def _aim(line: Line) -> Text:
    if line.aim is None:
        return Text("")
    met = line.median <= line.aim
    return Text(f"{_number(line.aim)} {'met' if met else 'missed'}", style="green" if met else "red")


def _compared(line: Line, before: Line | None) -> Text:
    """The ratio of the medians; in colour only where the ranges lie apart, for else it may be chance."""
    if before is None or before.unit != line.unit or not before.median:
        return Text("–")
    text = f"×{line.median / before.median:.2f}"
    if max(line.values) < min(before.values):
        style = "green" if line.better is Better.LOWER else "red"
    elif min(line.values) > max(before.values):
        style = "red" if line.better is Better.LOWER else "green"
    else:
        style = ""
    return Text(text, style=style)


def _number(value: float) -> str:
    """Three significant digits, without an exponent."""
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{value:,.{digits}f}"
