"""Series of several samples as lines: each sample thin, the median over an arm's samples bold, on one time grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from harness.compare.comparison import Arm
from harness.compare.run import Run
from harness.report.charts.chart import (
    EVENT,
    MEDIAN,
    PANEL_WIDTH,
    SAMPLE,
    WHOLE_WIDTH,
    colour,
    dash,
    in_panels,
    only,
)

SECONDS_UP_TO_S = 300.0
"""Longer charts count minutes."""
_LABELS = 3  # heights at which labels of events stand in turn


def spread(series: dict[str, list[pd.Series]], names: dict[str, list[str]], limit: int) -> pd.DataFrame:
    """Points of one panel: `series` has for each arm those of its samples (index seconds), `names` how samples are
    called. No line has more than `limit` points; of more, each stands for the highest of its interval."""
    kept = {arm: [one.dropna() for one in found] for arm, found in series.items()}
    step = _step([one for found in kept.values() for one in found], limit)
    frames = []
    for arm, found in kept.items():
        thinned = [_thinned(one, step) if len(one) > limit else one for one in found]
        frames += [
            _frame(one, arm, name, SAMPLE)
            for one, name in zip(thinned, names[arm], strict=True)
            if len(found) > 1 and len(one)
        ]
        filled = [one for one in thinned if len(one)]
        if filled:
            name = "median of samples" if len(filled) > 1 else names[arm][0]
            frames.append(_frame(median_line(filled, step), arm, name, MEDIAN))
    columns = ["t", "value", "arm", "sample", "what"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def median_line(series: Sequence[pd.Series], step: float) -> pd.Series:
    """The median over samples at every step, each read off its line; only where at least half of them have one."""
    if len(series) == 1:
        return series[0]
    first = min(float(one.index[0]) for one in series)
    last = max(float(one.index[-1]) for one in series)
    grid = np.arange(np.floor(first / step), np.floor(last / step) + 1) * step
    read = np.array(
        [
            np.interp(grid, one.index.to_numpy(float), one.to_numpy(float), left=np.nan, right=np.nan)
            for one in series
        ]
    )
    enough = (~np.isnan(read)).sum(axis=0) * 2 >= len(series)
    return pd.Series(np.nanmedian(read[:, enough], axis=0), index=grid[enough])


def _step(series: Sequence[pd.Series], limit: int) -> float:
    """Seconds between two points of the grid: as scraped, or wider where a line would have too many points."""
    gaps = [float(np.median(np.diff(one.index.to_numpy(float)))) for one in series if len(one) > 1]
    lengths = [float(one.index[-1] - one.index[0]) for one in series if len(one)]
    return max([*gaps[:1], *(length / limit for length in lengths), 0.1])


def _thinned(series: pd.Series, step: float) -> pd.Series:
    bins = np.floor(series.index.to_numpy(float) / step)
    return series.loc[series.groupby(bins).idxmax()]


def _frame(series: pd.Series, arm: str, sample: str, what: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "t": series.index.to_numpy(float),
            "value": series.to_numpy(float),
            "arm": arm,
            "sample": sample,
            "what": what,
        }
    )


# ---- events --------------------------------------------------------------------------------------------------------
def event_marks(arms: Sequence[Arm]) -> pd.DataFrame:
    """What was done to a member while it ran, once an arm: at the median of the times at which its samples met it."""
    rows = []
    for arm in arms:
        met: dict[tuple[str, int], list[float]] = {}
        for run in arm.runs:
            seen: dict[str, int] = {}
            for t, label in _events(run):
                met.setdefault((label, seen.get(label, 0)), []).append(t)
                seen[label] = seen.get(label, 0) + 1
        rows += [
            {"t": float(np.median(times)), "value": None, "arm": arm.name, "sample": label, "what": EVENT}
            for (label, _), times in met.items()
        ]
    return pd.DataFrame(rows, columns=["t", "value", "arm", "sample", "what"]).sort_values("t")


def _events(run: Run) -> list[tuple[float, str]]:
    """(seconds since the load phase began, label) of faults, of processes that ended, and of those that are back."""
    found = []
    for event in run.events:
        if event["kind"] == "fault-started":
            seconds = event.get("seconds")
            length = "" if seconds is None else f", {seconds:g} s"
            found.append((event["t"] - run.load_began, f"{event['fault']} on {event['member']}{length}"))
        elif event["kind"] == "process-exited":
            found.append((event["t"] - run.load_began, f"{event['process']} ended"))
        elif event["kind"] == "process-restarted":
            found.append((event["t"] - run.load_began, f"{event['process']} is back"))
        elif event["kind"] == "member-restarted":
            found.append((event["t"] - run.load_began, f"{event['member']} is back"))
    return found


# ---- drawing -------------------------------------------------------------------------------------------------------
def with_time(data: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The data with its times in the unit of its length, and that unit."""
    known = data["t"].dropna()
    if len(known) and float(known.max() - known.min()) > SECONDS_UP_TO_S:
        return data.assign(t=data["t"] / 60), "minutes"
    return data, "seconds"


@dataclass(frozen=True)
class Look:
    """What a drawing of lines depends on; charts that look alike share one. `unit` names the axis of values, `marks`
    are (time, whether its label stands to the left of it, share of the width that it has) of events."""

    arms: tuple[str, ...]
    panels: tuple[str, ...]
    unit: str
    time_unit: str
    large: bool
    marks: tuple[tuple[float, bool, float], ...]
    one_scale: bool


def look_of(
    data: pd.DataFrame, arms: Sequence[str], panels: Sequence[str], unit: str, time_unit: str, one_scale: bool
) -> Look:
    first, last = float(data["t"].min()), float(data["t"].max())
    times = sorted({float(t) for t in data.loc[data["what"] == EVENT, "t"]})
    places = [(t - first) / (last - first) if last > first else 0.0 for t in times]
    marks = tuple(
        (t, place > 0.5, round(max(place, 1 - place), 2)) for t, place in zip(times, places, strict=True)
    )
    large = bool(data["value"].abs().max() >= 10_000)
    return Look(tuple(arms), tuple(panels), unit, time_unit, large, marks, one_scale)


@lru_cache(maxsize=64)
def draw(look: Look) -> dict[str, Any]:
    """Lines over time with their events."""
    y = alt.Y("value:Q", title=look.unit, axis=alt.Axis(format="~s" if look.large else ",~r", tickCount=5))
    base = alt.Chart().encode(
        x=alt.X("t:Q", title=f"{look.time_unit} since the load phase began"), y=y, color=colour(look.arms)
    )
    samples = base.transform_filter(only(SAMPLE)).mark_line(strokeWidth=1, opacity=0.4)
    medians = base.transform_filter(only(MEDIAN)).mark_line(strokeWidth=2.4)
    points = base.transform_filter(f"datum.what !== '{EVENT}'").mark_point(size=50, filled=True, opacity=0)
    tooltip = [*_tooltip("line", look.time_unit), alt.Tooltip("value:Q", title=look.unit, format=",.4~r")]
    layers = [
        samples.encode(detail="sample:N"),
        medians.encode(strokeDash=dash(look.arms)),
        points.encode(tooltip=tooltip),
        *_event_layers(look),
    ]
    return in_panels(layers, look.panels, one_scale=look.one_scale)


def _event_layers(look: Look) -> list[Any]:
    """A line for each event, its label inside of the chart, labels of neighbours at different heights."""
    base = alt.Chart().transform_filter(only(EVENT)).encode(x="t:Q")
    rule = base.mark_rule(strokeWidth=1.5, strokeDash=[3, 3])
    layers = [rule.encode(color=colour(look.arms), tooltip=_tooltip("event", look.time_unit))]
    width = PANEL_WIDTH if len(look.panels) > 1 else WHOLE_WIDTH
    for place, (t, left, room) in enumerate(look.marks):
        text = base.transform_filter(f"abs(datum.t - {t!r}) < 1e-6").mark_text(
            align="right" if left else "left",
            dx=-5 if left else 5,
            limit=round(0.9 * room * width),
            baseline="top",
        )
        layers.append(text.encode(y=alt.value(2 + 14 * (place % _LABELS)), text="sample:N"))
    return layers if look.marks else []


def _tooltip(what: str, time_unit: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("arm:N", title="arm"),
        alt.Tooltip("sample:N", title=what),
        alt.Tooltip("t:Q", title=time_unit, format=".4~r"),
    ]
