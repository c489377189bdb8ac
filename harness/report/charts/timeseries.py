"""Rows over time: a chart for each title, a panel for each way in which members were taken."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from harness.compare.comparison import Arm, Compared, Comparison
from harness.report.charts.chart import Chart
from harness.report.charts.lines import draw, event_marks, spread, with_time

ALL_POINTS = 100_000
"""In all charts of a page together, which keeps it at a few megabytes."""
MOST, LEAST = 240, 40  # points of one line
_LEAST_SAID = 3  # points; a shorter line shows nothing that the table does not


def time_charts(comparison: Comparison) -> list[Chart]:
    """Of rows with a series that is not the same all along, in the rows' order."""
    families: dict[tuple[str, str], list[Compared]] = {}
    for compared in comparison.rows:
        if compared.row.series is not None and compared.row.shown:
            families.setdefault((compared.row.group, compared.row.title), []).append(compared)
    limit = points_of_a_line(comparison, len(families))
    found = [_chart(family, comparison.arms, limit) for family in families.values()]
    return [chart for chart in found if chart is not None]


def points_of_a_line(comparison: Comparison, charts: int) -> int:
    """So many that all lines of all charts together stay below `ALL_POINTS`."""
    lines = sum(len(arm.runs) + 1 for arm in comparison.arms)
    return max(LEAST, min(MOST, ALL_POINTS // max(1, lines * charts)))


def _chart(family: Sequence[Compared], arms: Sequence[Arm], limit: int) -> Chart | None:
    panels: list[pd.DataFrame] = []
    names: list[str] = []
    for compared in family:
        points = _points(compared, arms, limit)
        if says_something(points) and not any(_same(points, other) for other in panels):
            panels.append(points)
            names.append(compared.row.taken.value)
    if not panels:
        return None
    first = family[0].row
    title = first.title if len(panels) > 1 or first.taken.value == "run" else f"{first.title} ({names[0]})"
    return line_chart(
        first.key,
        title,
        first.group,
        dict(zip(names, panels, strict=True)),
        arms,
        axis_unit(family[0]),
        tuple(each.row.key for each in family),
    )


def line_chart(
    key: str,
    title: str,
    group: str,
    panels: dict[str, pd.DataFrame],
    arms: Sequence[Arm],
    unit: str,
    rows: tuple[str, ...],
) -> Chart:
    """Lines as `spread` gives them, by the name of their panel, with the events of the arms in each."""
    marks = event_marks(arms)
    data = pd.concat(
        [frame.assign(panel=name) for name, points in panels.items() for frame in (points, marks) if len(frame)],
        ignore_index=True,
    )
    data["value"] = data["value"].astype(float)
    data, time_unit = with_time(data)
    data, unit = in_unit(data, unit)
    if len(panels) == 1:
        data = data.drop(columns="panel")
    drawing = draw(data, [arm.name for arm in arms], list(panels), unit, time_unit, key)
    return Chart(key, title, group, drawing, data, rows)


def _points(compared: Compared, arms: Sequence[Arm], limit: int) -> pd.DataFrame:
    take = compared.row.series
    assert take is not None
    series = {arm.name: [take(run) for run in arm.runs] for arm in arms}
    return spread(series, sample_names(arms), limit)


def sample_names(arms: Sequence[Arm]) -> dict[str, list[str]]:
    """How the samples of each arm are called in a chart: by number, or by their folder where they have none."""
    return {
        arm.name: [f"sample {run.manifest.sample}" if run.manifest.sample else run.folder.name for run in arm.runs]
        for arm in arms
    }


def says_something(points: pd.DataFrame) -> bool:
    """Not of a line of one value, which the table says as well."""
    return len(points) >= _LEAST_SAID and points["value"].nunique() > 1


def _same(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    return len(one) == len(other) and bool((one["value"].to_numpy() == other["value"].to_numpy()).all())


def axis_unit(compared: Compared) -> str:
    """What a row's series is counted in: counters are drawn as their growth."""
    if compared.row.unit:
        return compared.row.unit
    growth = "increase of" in compared.row.source or compared.row.key == "denials"
    return "/s" if growth else "count"


def in_unit(data: pd.DataFrame, unit: str) -> tuple[pd.DataFrame, str]:
    """Values in the unit that an axis has, and its name in words."""
    highest = float(data["value"].abs().max())
    if unit == "bytes":
        power, name = max(
            (power, name)
            for power, name in ((0, "bytes"), (10, "KiB"), (20, "MiB"), (30, "GiB"))
            if power == 0 or highest >= 2 ** (power + 1)
        )
        return data.assign(value=data["value"] / 2**power), name
    if unit == "ms" and highest >= 5_000:
        return data.assign(value=data["value"] / 1e3), "seconds"
    if unit == "share":
        return data.assign(value=data["value"] * 100), "per cent"
    return data, {"/s": "per second", "s": "seconds", "ms": "milliseconds"}.get(unit, unit)
