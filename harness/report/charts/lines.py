"""Series of several samples as lines: each sample thin, the median over an arm's samples bold, on one time grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from harness.compare.comparison import Arm
from harness.compare.run import Run
from harness.report.charts.chart import EVENT, MEDIAN, SAMPLE, colour, dash, in_panels, only

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
    read = np.array([
        np.interp(grid, one.index.to_numpy(float), one.to_numpy(float), left=np.nan, right=np.nan)
        for one in series
    ])
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
    return pd.DataFrame({
        "t": series.index.to_numpy(float),
        "value": series.to_numpy(float),
        "arm": arm,
        "sample": sample,
        "what": what,
    })


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
    """(seconds since the load phase began, label) of faults and of processes that ended."""
    found = []
    for event in run.events:
        if event["kind"] == "fault-started":
            seconds = event.get("seconds")
            length = "" if seconds is None else f", {seconds:g} s"
            found.append((event["t"] - run.load_began, f"{event['fault']} on {event['member']}{length}"))
        elif event["kind"] == "process-exited":
            found.append((event["t"] - run.load_began, f"{event['process']} ended"))
    return found


# ---- drawing -------------------------------------------------------------------------------------------------------
def with_time(data: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The data with its times in the unit of its length, and that unit."""
    known = data["t"].dropna()
    if len(known) and float(known.max() - known.min()) > SECONDS_UP_TO_S:
        return data.assign(t=data["t"] / 60), "minutes"
    return data, "seconds"


def draw(data: pd.DataFrame, arms: list[str], panels: list[str], unit: str, time_unit: str, key: str) -> Any:
    """Lines over time with their events; `unit` names the axis of values."""
    x = alt.X("t:Q", title=f"{time_unit} since the load phase began")
    y = alt.Y("value:Q", title=unit, axis=alt.Axis(format="~s" if _large(data) else ",~g", tickCount=5))
    shown = [
        alt.Tooltip("arm:N", title="arm"),
        alt.Tooltip("sample:N", title="line"),
        alt.Tooltip("t:Q", title=time_unit, format=".4~g"),
        alt.Tooltip("value:Q", title=unit, format=",.4~g"),
    ]
    base = alt.Chart().encode(x=x, y=y, color=colour(arms))
    samples = base.transform_filter(only(SAMPLE)).mark_line(strokeWidth=1, opacity=0.4)
    medians = base.transform_filter(only(MEDIAN)).mark_line(strokeWidth=2.4)
    points = base.transform_filter(f"datum.what !== '{EVENT}'").mark_point(size=50, filled=True, opacity=0)
    layers = [
        samples.encode(detail="sample:N"),
        medians.encode(strokeDash=dash(arms)),
        points.encode(tooltip=shown),
    ]
    return in_panels([*layers, *_event_layers(data, arms, time_unit)], panels, key)


def _event_layers(data: pd.DataFrame, arms: list[str], time_unit: str) -> list[Any]:
    """A line for each event, its label inside of the chart, labels of neighbours at different heights."""
    events = data[data["what"] == EVENT]
    if events.empty:
        return []
    base = alt.Chart().transform_filter(only(EVENT)).encode(x="t:Q")
    tooltip = [
        alt.Tooltip("arm:N", title="arm"),
        alt.Tooltip("sample:N", title="event"),
        alt.Tooltip("t:Q", title=time_unit, format=".4~g"),
    ]
    layers = [base.mark_rule(strokeWidth=1.5, strokeDash=[3, 3]).encode(color=colour(arms), tooltip=tooltip)]
    middle = (float(data["t"].min()) + float(data["t"].max())) / 2
    times = sorted(events["t"].unique())
    for place, t in enumerate(times):
        right = float(t) > middle
        text = base.transform_filter(f"abs(datum.t - {float(t)!r}) < 1e-6").mark_text(
            align="right" if right else "left", dx=-5 if right else 5, limit=220, baseline="top"
        )
        layers.append(text.encode(y=alt.value(2 + 14 * (place % _LABELS)), text="sample:N"))
    return layers


def _large(data: pd.DataFrame) -> bool:
    return bool(data["value"].abs().max() >= 10_000)
