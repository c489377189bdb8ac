"""Every sample of a barrier as a mark: what the median and the range in the table are made of."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from harness.compare.comparison import Compared, Comparison
from harness.report.charts.chart import MEDIAN, POINTS, SAMPLE, WHOLE_WIDTH, Chart, as_dict, only
from harness.report.charts.palette import MARKS

ROWS = ("barrier", "wall-clock")
"""Keys, or what they begin with."""


def dot_charts(comparison: Comparison) -> list[Chart]:
    """One for each row of `ROWS` that has values."""
    arms = [arm.name for arm in comparison.arms]
    chosen = [row for row in comparison.rows if row.row.key.startswith(ROWS) and row.row.unit == "s"]
    return [
        Chart(
            compared.row.key,
            f"{compared.row.title}: each sample, the median as a stroke",
            compared.row.group,
            _draw(arms),
            _points(compared),
            (compared.row.key,),
        )
        for compared in chosen
        if compared.row.shown
    ]


def _points(compared: Compared) -> pd.DataFrame:
    rows = [
        {"seconds": value, "arm": arm, "sample": number, "what": SAMPLE}
        for arm, figure in compared.figures.items()
        for number, value in enumerate(figure.values, 1)
        if value is not None
    ]
    rows += [
        {"seconds": figure.median, "arm": arm, "sample": 0, "what": MEDIAN}
        for arm, figure in compared.figures.items()
        if len(figure.known) > 1
    ]
    return pd.DataFrame(rows)


def _draw(arms: list[str]) -> dict[str, Any]:
    marks = [MARKS[place % len(MARKS)] for place in range(len(arms))]
    base = alt.Chart().encode(
        x=alt.X("seconds:Q", title="seconds", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=8)),
        y=alt.Y("arm:N", title=None, sort=arms, axis=alt.Axis(labelLimit=140)),
        color=alt.Color("arm:N", legend=None, scale=alt.Scale(domain=arms)),
    )
    dots = base.transform_filter(only(SAMPLE)).mark_point(filled=True, size=90, opacity=0.75)
    strokes = base.transform_filter(only(MEDIAN)).mark_tick(thickness=2.5, size=26)
    shape = alt.Shape("arm:N", legend=None, scale=alt.Scale(domain=arms, range=marks))
    tooltip = [alt.Tooltip("arm:N"), alt.Tooltip("sample:Q"), alt.Tooltip("seconds:Q", format=",.4~r")]
    layered = alt.layer(
        strokes.encode(
            tooltip=[alt.Tooltip("arm:N"), alt.Tooltip("seconds:Q", title="median", format=",.4~r")]
        ),
        dots.encode(shape=shape, tooltip=tooltip),
        data=alt.NamedData(name=POINTS),
    )
    return as_dict(layered.properties(width=WHOLE_WIDTH - 120, height=36 * max(1, len(arms))))
