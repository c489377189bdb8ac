"""One chart: its points apart from its drawing, so that a page carries every number once and short."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import msgspec
import pandas as pd
import vl_convert

from harness.report.charts.palette import DASHES, scheme

POINTS = "points"
"""The name under which a drawing finds its data."""
PANEL_WIDTH, PANEL_HEIGHT, WHOLE_WIDTH = 300, 150, 680
COLUMNS = 2
SAMPLE, MEDIAN, EVENT = "sample", "median", "event"
"""What a row of the data is, in its column `what`."""
_DIGITS = 5
_LEGEND = alt.Legend(symbolType="stroke", symbolOpacity=1, symbolFillColor="transparent")


@dataclass(frozen=True)
class Chart:
    """`data` has the columns that `drawing` names, Vega-Lite without its data. `rows` are the keys of the rows that it
    shows; `group` is theirs."""

    key: str
    title: str
    group: str
    drawing: dict[str, Any]
    data: pd.DataFrame
    rows: tuple[str, ...] = ()

    @property
    def panels(self) -> int:
        return self.data["panel"].nunique() if "panel" in self.data else 1

    @property
    def anchor(self) -> str:
        """Its name on a page and in a folder."""
        return re.sub(r"[^A-Za-z0-9._-]+", "-", self.key)

    @property
    def picture(self) -> str:
        """Its SVG, from the folder of the report."""
        return f"charts/{self.anchor}.svg"

    def columns(self) -> dict[str, Any]:
        """The data, column by column: numbers as they are, texts as places in a list of the different ones."""
        return {name: _column(self.data[name]) for name in self.data.columns}

    def svg(self) -> str:
        """A picture for light ground, with its title."""
        spec = _without_hover(self.drawing)
        values = self.data.astype(object).where(self.data.notna(), None).to_dict("records")
        spec["datasets"] = {POINTS: values}
        spec["title"] = self.title
        return vl_convert.vegalite_to_svg(
            msgspec.json.encode(spec).decode(), config=scheme(dark=False, background="white")
        )


def _without_hover(spec: dict[str, Any]) -> dict[str, Any]:
    """A copy without the unseen marks that only carry what a pointer shows: half of a picture's bytes."""
    if "spec" in spec:
        return {**spec, "spec": _without_hover(spec["spec"])}
    return {**spec, "layer": [layer for layer in spec["layer"] if layer["mark"].get("opacity") != 0]}


def _column(values: pd.Series) -> Any:
    if pd.api.types.is_numeric_dtype(values):
        return [None if pd.isna(value) else float(f"{value:.{_DIGITS}g}") for value in values]
    codes, texts = pd.factorize(values)
    return {"texts": list(map(str, texts)), "codes": codes.tolist()}


def colour(arms: Sequence[str]) -> alt.Color:
    """An arm's colour comes from the scheme, by its place."""
    return alt.Color("arm:N", title=None, scale=alt.Scale(domain=list(arms)), legend=_LEGEND)


def dash(arms: Sequence[str]) -> alt.StrokeDash:
    dashes = [DASHES[place % len(DASHES)] for place in range(len(arms))]
    return alt.StrokeDash(
        "arm:N", title=None, scale=alt.Scale(domain=list(arms), range=dashes), legend=_LEGEND
    )


def only(what: str) -> str:
    return f"datum.what === '{what}'"


def in_panels(layers: list[Any], panels: Sequence[str], *, one_scale: bool = True) -> dict[str, Any]:
    """The layers drawn once, or once for each panel, two abreast; `one_scale` is whether panels share their values'
    axis. Dragging moves along x, the wheel with Shift zooms (without it the page scrolls), a double click resets."""
    zoom = alt.selection_interval(name="zoom", bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]")
    layered = alt.layer(*layers, data=alt.NamedData(name=POINTS)).add_params(zoom)
    if len(panels) < 2:
        return as_dict(layered.properties(width=WHOLE_WIDTH, height=PANEL_HEIGHT + 40))
    header = alt.Header(labelAnchor="start", labelLimit=PANEL_WIDTH)
    facet = alt.Facet("panel:N", title=None, sort=list(panels), header=header)
    faceted = layered.properties(width=PANEL_WIDTH, height=PANEL_HEIGHT).facet(facet=facet, columns=COLUMNS)
    return as_dict(faceted if one_scale else faceted.resolve_scale(y="independent"))


def as_dict(chart: Any) -> dict[str, Any]:
    """Vega-Lite; what is the scheme's is left to it. Its schema is not checked again: that takes longer than all else,
    and the tests draw each kind of chart."""
    found: dict[str, Any] = chart.to_dict(validate=False)
    found.pop("config", None)
    return found
