"""Charts: one for each row that has a series, minutes since the load phase began, an arm a colour, a sample a line."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from harness.compare.comparison import Arm, Compared, Comparison

WIDTH, HEIGHT = 620, 200
COLOURS = ("#3b6ea8", "#d9772b", "#4b9560", "#8a5fa8", "#b0483f", "#7a7a7a")


def charts(comparison: Comparison) -> dict[str, Any]:
    """Row key -> altair chart; rows without a series, or whose series is empty, have none."""
    names = [arm.name for arm in comparison.arms]
    made: dict[str, Any] = {"barrier": _samples_chart(comparison, names)}
    for compared in comparison.rows:
        data = _points(compared, comparison.arms)
        if not data.empty:
            made[compared.row.key] = _lines(compared, data, names)
    return {key: chart for key, chart in made.items() if chart is not None}


def _points(compared: Compared, arms: tuple[Arm, ...]) -> pd.DataFrame:
    columns = ["minutes", "value", "arm", "sample"]
    if compared.row.series is None:
        return pd.DataFrame(columns=columns)
    frames = []
    for arm in arms:
        for run in arm.runs:
            series = compared.row.series(run).dropna()
            frames.append(
                pd.DataFrame(
                    {
                        "minutes": series.index.to_numpy(dtype=float) / 60,
                        "value": series.to_numpy(dtype=float),
                        "arm": arm.name,
                        "sample": f"{arm.name} {run.manifest.sample}",
                    }
                )
            )
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def _lines(compared: Compared, data: pd.DataFrame, names: list[str]) -> Any:
    unit = {"bytes": "MiB"}.get(compared.row.unit, compared.row.unit or "count")
    if compared.row.unit == "bytes":
        data = data.assign(value=data["value"] / 2**20)
    if compared.row.key in ("denials",) or "increase of" in compared.row.source:
        unit = "per second"
    return (
        alt.Chart(data)
        .mark_line(strokeWidth=1.4, opacity=0.85)
        .encode(
            x=alt.X("minutes:Q", title="minutes since the load phase began"),
            y=alt.Y("value:Q", title=unit),
            color=_colour(names),
            detail="sample:N",
            tooltip=[
                "sample:N",
                alt.Tooltip("minutes:Q", format=".2f"),
                alt.Tooltip("value:Q", format=",.2f"),
            ],
        )
        .properties(width=WIDTH, height=HEIGHT, title=f"{compared.row.title} ({compared.row.taken.value})")
    )


def _samples_chart(comparison: Comparison, names: list[str]) -> Any:
    """Every sample's barrier as a dot: what the median and range in the table are made of."""
    barrier = next((row for row in comparison.rows if row.row.key == "barrier"), None)
    if barrier is None:
        return None
    points = [
        {"arm": name, "seconds": value, "sample": number}
        for name, figure in barrier.figures.items()
        for number, value in enumerate(figure.values, 1)
        if value is not None
    ]
    return (
        alt.Chart(pd.DataFrame(points))
        .mark_point(filled=True, size=90, opacity=0.8)
        .encode(
            x=alt.X("seconds:Q", title="seconds", scale=alt.Scale(zero=True)),
            y=alt.Y("arm:N", title=None, sort=names),
            color=_colour(names),
            tooltip=["arm:N", "sample:Q", alt.Tooltip("seconds:Q", format=".1f")],
        )
        .properties(width=WIDTH, height=50 * max(1, len(names)), title="Barrier, each sample")
    )


def _colour(names: list[str]) -> alt.Color:
    return alt.Color("arm:N", title="arm", scale=alt.Scale(domain=names, range=list(COLOURS[: len(names)])))
