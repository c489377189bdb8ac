"""How latencies are spread: for each arm the share of requests that took at most so long, a panel for each kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from harness.compare.comparison import Arm, Comparison
from harness.compare.run import Run
from harness.observe.histogram import bucket_middle_us
from harness.report.charts.chart import MEDIAN, SAMPLE, Chart, colour, dash, in_panels, only
from harness.report.charts.timeseries import sample_names

MOST_PANELS = 8
LEVELS = (0.0, *(level / 20 for level in range(1, 19)), 0.925, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999, 1.0)
_LEAST = 20  # values of an arm, below which its curve is the table's figure again
_SPLIT_BY = ("kind", "start")  # labels of samples that say what was measured; others say where

_ROWS = {
    "pod_startup_ms": "pod-startup",
    "watch_delivery_ms": "delivery-p",
    "watch_delivery_since_sent_ms": "delivery-bound",
    "binding_heard_ms": "binding-heard",
    "first_read_ms": "first-read",
    "binding_to_read_ms": "bound-read",
    "claim_bound_ms": "claim",
    "client_throttled_ms": "throttled",
    "operation_late_ms": "lateness",
    "list_ms": "list-",
    "informer_sync_ms": "sync-",
}
"""Name of a sample -> what the keys of its rows begin with."""
_GROUPS = {
    "pod_startup_ms": "throughput",
    "schedule_ms": "throughput",
    "watch_delivery_ms": "watches",
    "watch_delivery_since_sent_ms": "watches",
}

Curves = dict[str, dict[str, list[pd.DataFrame]]]
"""Panel -> arm -> for each sample its buckets and counts."""


def distribution_charts(comparison: Comparison) -> list[Chart]:
    """Of the clients' requests by verb, and of everything that the machines measured in milliseconds."""
    arms = comparison.arms
    names = sorted({name for arm in arms for run in arm.runs for name in _latencies(run)})
    keys = [compared.row.key for compared in comparison.rows]
    groups = {compared.row.key: compared.row.group for compared in comparison.rows}
    found = [
        _chart("latency-requests", "Requests of clients, by verb", "requests", _requests(arms), arms, ())
    ]
    for name in names:
        prefix = _ROWS.get(name)
        rows = tuple(key for key in keys if prefix is not None and key.startswith(prefix))
        group = groups[rows[0]] if rows else _GROUPS.get(name, "clients")
        title = name.removesuffix("_ms").replace("_", " ").capitalize()
        found.append(
            _chart(f"latency-{name.removesuffix('_ms')}", title, group, _samples(arms, name), arms, rows)
        )
    return [chart for chart in found if chart is not None]


def _latencies(run: Run) -> list[str]:
    return [str(name) for name in run.samples["name"].unique() if str(name).endswith("_ms")]


def _requests(arms: Sequence[Arm]) -> Curves:
    def panels(run: Run) -> pd.Series:
        return run.requests["user"].astype(str) + ": " + run.requests["verb"].astype(str)

    return _curves(arms, lambda run: run.requests.assign(panel=panels(run)))


def _samples(arms: Sequence[Arm], name: str) -> Curves:
    def frame(run: Run) -> pd.DataFrame:
        rows = run.samples[run.samples["name"] == name]
        what = rows["labels"].astype(str).map(_what)
        return rows.assign(panel=rows["user"].astype(str) + what)

    return _curves(arms, frame)


def _what(labels: str) -> str:
    parts = dict(part.split("=", 1) for part in labels.split(",") if "=" in part)
    return "".join(f", {parts[label]}" for label in _SPLIT_BY if label in parts)


def _curves(arms: Sequence[Arm], frame: Callable[[Run], pd.DataFrame]) -> Curves:
    curves: Curves = {}
    for arm in arms:
        for place, run in enumerate(arm.runs):
            counts = frame(run).groupby(["panel", "bucket"], observed=True)["count"].sum().reset_index()
            for panel, rows in counts.groupby("panel"):
                empty = [pd.DataFrame(columns=["bucket", "count"]) for _ in arm.runs]
                curves.setdefault(str(panel), {}).setdefault(arm.name, empty)[place] = rows
    return curves


def _chart(
    key: str, title: str, group: str, curves: Curves, arms: Sequence[Arm], rows: tuple[str, ...]
) -> Chart | None:
    total = {panel: sum(_total(rows) for rows in by_arm.values()) for panel, by_arm in curves.items()}
    chosen = [panel for panel in sorted(total, key=lambda each: -total[each]) if _enough(curves[panel])]
    panels = sorted(chosen[:MOST_PANELS])
    frames = [_panel(curves[panel], arms).assign(panel=panel) for panel in panels]
    if not frames:
        return None
    data = pd.concat(frames, ignore_index=True)
    title = f"{title}: how long, by share"
    if len(panels) == 1:
        title, data = f"{title} ({panels[0]})", data.drop(columns="panel")
    return Chart(key, title, group, _draw([arm.name for arm in arms], panels), data, rows)


def _total(counts: Sequence[pd.DataFrame]) -> int:
    return sum(int(rows["count"].sum()) for rows in counts)


def _enough(by_arm: dict[str, list[pd.DataFrame]]) -> bool:
    return any(_total(counts) >= _LEAST for counts in by_arm.values())


def _panel(by_arm: dict[str, list[pd.DataFrame]], arms: Sequence[Arm]) -> pd.DataFrame:
    names = sample_names(arms)
    frames = []
    for arm, counts in by_arm.items():
        filled = [(rows, name) for rows, name in zip(counts, names[arm], strict=True) if len(rows)]
        if len(filled) > 1:
            frames += [_curve(rows, arm, name, SAMPLE) for rows, name in filled]
        whole = "all samples" if len(filled) > 1 else filled[0][1]
        frames.append(_curve(pd.concat([rows for rows, _ in filled]), arm, whole, MEDIAN))
    return pd.concat(frames, ignore_index=True)


def _curve(counts: pd.DataFrame, arm: str, sample: str, what: str) -> pd.DataFrame:
    ordered = counts.groupby("bucket")["count"].sum().sort_index()
    reached = ordered.cumsum().to_numpy(float) / float(ordered.sum())
    places = np.searchsorted(reached, np.array(LEVELS) - 1e-12)
    milliseconds = [
        bucket_middle_us(int(ordered.index[min(place, len(ordered) - 1)])) / 1e3 for place in places
    ]
    return pd.DataFrame({"ms": milliseconds, "share": LEVELS, "arm": arm, "sample": sample, "what": what})


def _draw(arms: list[str], panels: list[str]) -> dict[str, Any]:
    ticks = alt.Axis(format="~s", tickCount=6)
    base = alt.Chart().encode(
        x=alt.X(
            "ms:Q", title="milliseconds (logarithmic)", scale=alt.Scale(type="log", nice=False), axis=ticks
        ),
        y=alt.Y("share:Q", title="share at most so long", axis=alt.Axis(format=".0%", tickCount=5)),
        order="share:Q",
        color=colour(arms),
    )
    tooltip = [
        alt.Tooltip("arm:N", title="arm"),
        alt.Tooltip("sample:N", title="line"),
        alt.Tooltip("share:Q", format=".1%"),
        alt.Tooltip("ms:Q", title="at most, ms", format=",.4~r"),
    ]
    samples = base.transform_filter(only(SAMPLE)).mark_line(strokeWidth=1, opacity=0.4)
    whole = base.transform_filter(only(MEDIAN)).mark_line(strokeWidth=2.4)
    points = base.mark_point(size=50, filled=True, opacity=0)
    layers = [
        samples.encode(detail="sample:N"),
        whole.encode(strokeDash=dash(arms)),
        points.encode(tooltip=tooltip),
    ]
    return in_panels(layers, panels)
