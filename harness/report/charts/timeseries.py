"""Rows over time: a chart for each thing, a panel for each part, quantile or way in which members were taken."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

from harness.compare.comparison import Arm, Compared, Comparison
from harness.compare.rows import Taken
from harness.report.charts.chart import Chart
from harness.report.charts.lines import draw, event_marks, look_of, spread, with_time

ALL_POINTS = 100_000
"""In all charts of a page together, which keeps it at a few megabytes."""
MOST, LEAST = 240, 40  # points of one line
MOST_PANELS = 8  # of a chart
_QUANTILE = re.compile(r",? p\d+\b")
_BY_MEMBER = (Taken.MEMBER, Taken.RATIO)  # shown by `harness.report.charts.members`
_LEAST_SAID = 3  # points; a shorter line shows nothing that the table does not


def time_charts(comparison: Comparison) -> list[Chart]:
    """Of rows with a series that is not the same all along, in the rows' order."""
    families: dict[tuple[str, ...], list[tuple[str, Compared]]] = {}
    for compared in comparison.rows:
        row = compared.row
        if row.series is not None and row.shown and row.taken not in _BY_MEMBER:
            title, panel = _parts(row.title, row.taken)
            families.setdefault((row.group, title, row.unit), []).append((panel, compared))
    panels = sum(min(len(family), MOST_PANELS) for family in families.values())
    limit = points_of_a_line(comparison, panels)
    found = [_chart(key[1], family, comparison.arms, limit) for key, family in families.items()]
    return [chart for chart in found if chart is not None]


def _parts(title: str, taken: Taken) -> tuple[str, str]:
    """Title of the chart and name of the panel, which says the part, the quantile and how members were taken."""
    stem, _, part = title.partition(": ")
    quantile = _QUANTILE.search(stem)
    if quantile:
        stem = stem[: quantile.start()] + stem[quantile.end() :]
    panel = [part, quantile[0].strip(" ,") if quantile else "", "" if taken is Taken.RUN else taken.value]
    return stem if not part else f"{stem}, by kind", ", ".join(filter(None, panel))


def points_of_a_line(comparison: Comparison, panels: int) -> int:
    """So many that all lines of all panels together stay below `ALL_POINTS`."""
    lines = sum(len(arm.runs) + 1 for arm in comparison.arms)
    return max(LEAST, min(MOST, ALL_POINTS // max(1, lines * panels)))


def _chart(
    title: str, family: Sequence[tuple[str, Compared]], arms: Sequence[Arm], limit: int
) -> Chart | None:
    panels: dict[str, pd.DataFrame] = {}
    for panel, compared in family:
        if len(panels) < MOST_PANELS:
            points = _points(compared, arms, limit)
            if says_something(points) and not any(_same(points, other) for other in panels.values()):
                panels[panel] = points
    if not panels:
        return None
    first = family[0][1]
    (name, *others) = panels
    title = title if others or not name else f"{title} ({name})"
    rows = tuple(compared.row.key for _, compared in family)
    unit = axis_unit(first)
    return line_chart(first.row.key, title, first.row.group, panels, arms, unit, rows, one_scale=False)


def line_chart(
    key: str,
    title: str,
    group: str,
    panels: dict[str, pd.DataFrame],
    arms: Sequence[Arm],
    unit: str,
    rows: tuple[str, ...],
    *,
    one_scale: bool = True,
) -> Chart:
    """Lines as `spread` gives them, by the name of their panel, with the events of its arms in each."""
    marks = event_marks(arms)
    frames = []
    for name, points in panels.items():
        mine = marks[marks["arm"].isin(points["arm"])]
        frames += [frame.assign(panel=name) for frame in (points, mine) if len(frame)]
    data = pd.concat(frames, ignore_index=True)
    data["value"] = data["value"].astype(float)
    data, time_unit = with_time(data)
    data, unit = in_unit(data, unit)
    if len(panels) == 1:
        data = data.drop(columns="panel")
    look = look_of(data, [arm.name for arm in arms], list(panels), unit, time_unit, one_scale)
    return Chart(key, title, group, draw(look), data, rows)


def _points(compared: Compared, arms: Sequence[Arm], limit: int) -> pd.DataFrame:
    take = compared.row.series
    assert take is not None
    series = {arm.name: [take(run) for run in arm.runs] for arm in arms}
    return spread(series, sample_names(arms), limit)


def sample_names(arms: Sequence[Arm]) -> dict[str, list[str]]:
    """How the samples of each arm are called in a chart: by number, or by their folder where they have none."""
    return {
        arm.name: [
            f"sample {run.manifest.sample}" if run.manifest.sample else run.folder.name for run in arm.runs
        ]
        for arm in arms
    }


def says_something(points: pd.DataFrame) -> bool:
    """Not of a line of one value, which the table says as well."""
    return len(points) >= _LEAST_SAID and points["value"].nunique() > 1


def _same(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    return len(one) == len(other) and bool((one["value"].to_numpy() == other["value"].to_numpy()).all())


def axis_unit(compared: Compared) -> str:
    """What a row's series is counted in: counters are drawn as their growth."""
    if compared.row.series_unit is not None:
        return compared.row.series_unit
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
