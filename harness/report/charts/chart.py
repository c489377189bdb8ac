"""One chart: its points apart from its drawing, so that a page carries every number once and short."""

from __future__ import annotations

import re
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


@dataclass(frozen=True)
class Chart:
    """`data` has the columns that `drawing` names. `rows` are the keys of the rows that it shows; `group` is theirs."""

    key: str
    title: str
    group: str
    drawing: Any
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

    def specification(self) -> dict[str, Any]:
        """The drawing in Vega-Lite, without its data."""
        found: dict[str, Any] = self.drawing.to_dict()
        found.pop("config", None)
        return found

    def columns(self) -> dict[str, Any]:
        """The data, column by column: numbers as they are, texts as places in a list of the different ones."""
        return {name: _column(self.data[name]) for name in self.data.columns}

    def svg(self) -> str:
        """A picture for light ground, with its title."""
        spec = _without_hover(self.specification())
        values = self.data.astype(object).where(self.data.notna(), None).to_dict("records")
        spec["datasets"] = {POINTS: values}
        spec["title"] = self.title
        return vl_convert.vegalite_to_svg(
            msgspec.json.encode(spec).decode(), config=scheme(dark=False, background="white")
        )


def _without_hover(spec: dict[str, Any]) -> dict[str, Any]:
    """Without the unseen marks that only carry what a pointer shows: half of a picture's bytes."""
    drawn = spec.get("spec", spec)
    drawn["layer"] = [layer for layer in drawn["layer"] if layer["mark"].get("opacity") != 0]
    return spec


def _column(values: pd.Series) -> Any:
    if pd.api.types.is_numeric_dtype(values):
        return [None if pd.isna(value) else float(f"{value:.{_DIGITS}g}") for value in values]
    codes, texts = pd.factorize(values)
    return {"texts": list(map(str, texts)), "codes": codes.tolist()}


def colour(arms: list[str]) -> alt.Color:
    """An arm's colour comes from the scheme, by its place."""
    return alt.Color("arm:N", title=None, scale=alt.Scale(domain=arms))


def dash(arms: list[str]) -> alt.StrokeDash:
    dashes = [DASHES[place % len(DASHES)] for place in range(len(arms))]
    return alt.StrokeDash("arm:N", title=None, scale=alt.Scale(domain=arms, range=dashes))


def only(what: str) -> str:
    return f"datum.what === '{what}'"


def zoom(key: str) -> Any:
    """Dragging moves along x, the wheel with Shift zooms (without it the page scrolls), a double click resets."""
    return alt.selection_interval(
        name=f"zoom_{''.join(c if c.isalnum() else '_' for c in key)}",
        bind="scales",
        encodings=["x"],
        zoom="wheel![event.shiftKey]",
    )


def in_panels(layers: list[Any], panels: list[str], key: str) -> Any:
    """The layers drawn once, or once for each panel, two abreast."""
    data = alt.NamedData(name=POINTS)
    if len(panels) < 2:
        return (
            alt.layer(*layers, data=data)
            .add_params(zoom(key))
            .properties(width=WHOLE_WIDTH, height=PANEL_HEIGHT + 40)
        )
    layered = (
        alt.layer(*layers, data=data).add_params(zoom(key)).properties(width=PANEL_WIDTH, height=PANEL_HEIGHT)
    )
    header = alt.Header(labelAnchor="start", labelLimit=PANEL_WIDTH)
    return layered.facet(facet=alt.Facet("panel:N", title=None, sort=panels, header=header), columns=COLUMNS)
