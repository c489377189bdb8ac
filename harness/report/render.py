"""Writes the files of a report."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec
import vl_convert

from harness.compare.comparison import Comparison, compare
from harness.compare.run import Run
from harness.report import numbers, view, words
from harness.report.charts import Chart, charts
from harness.report.charts.palette import DARK_COLOURS, LIGHT_COLOURS, scheme
from harness.report.data import Report, as_builtins, report_data
from harness.report.templating import fill_template, load_template, output_name, own_environment

FOLDED_FROM = 9
"""The finding of the guard from which on they are folded."""
FILES = ("report.html", "report.md", "report.json")


def render(
    runs: Sequence[Run],
    folder: Path,
    title: str,
    declared: Collection[str] = (),
    template: Path | None = None,
) -> list[Path]:
    """Compare `runs` and write `FILES` to `folder`, with the Markdown's charts in ``charts/``. The paths written.
    `declared` are the settings that are meant to differ between arms. A `template` of the user's writes one more file,
    of its name without .j2 (`harness.report.templating`); ConfigError where it cannot, before anything is written."""
    if template is not None:
        load_template(template)
    return write_report(compare(runs, declared), folder, title, template)


def write_report(
    comparison: Comparison, folder: Path, title: str, template: Path | None = None, *, strict: bool = False
) -> list[Path]:
    """As `render`, of a comparison that is there. With `strict` pages say on top that the report is refused, where the
    guard found something."""
    if template is not None:
        load_template(template)
    drawn = charts(comparison)
    data = report_data(comparison, title, drawn)
    plain = as_builtins(data)
    texts = {
        **_pages(comparison, title, data, drawn, strict=strict),
        "report.json": msgspec.json.format(msgspec.json.encode(plain)).decode() + "\n",
    }
    if template is not None:
        texts[output_name(template)] = fill_template(template, plain)
    (folder / "charts").mkdir(parents=True, exist_ok=True)
    for chart in drawn:
        (folder / chart.picture).write_text(chart.svg(), encoding="utf-8")
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def _pages(
    comparison: Comparison, title: str, data: Report, drawn: Sequence[Chart], *, strict: bool
) -> dict[str, str]:
    context = {
        "title": title,
        "refused": strict and bool(comparison.findings),
        "made": time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        "asked": data.asked,
        "noise": words.noise(comparison),
        "verdicts": data.verdicts,
        "comparison": comparison,
        "arms": comparison.arms,
        "main": words.main_rows(comparison),
        "groups": view.groups(comparison, drawn),
        "numbers": numbers,
        "folded_from": FOLDED_FROM,
        "conditions": view.conditions(comparison),
        "noticed": data.noticed,
        "charts": {chart.anchor: _embedded(chart) for chart in drawn},
        "schemes": {"light": scheme(dark=False), "dark": scheme(dark=True)},
        "colours": list(zip(LIGHT_COLOURS, DARK_COLOURS, strict=True)),
        "vega": vl_convert.javascript_bundle(),  # type: ignore[call-arg]  # the stub forgets the default
    }
    environment = own_environment()
    return {
        name: environment.get_template(f"{name}.j2").render(context) for name in ("report.html", "report.md")
    }


def _embedded(chart: Chart) -> dict[str, Any]:
    """What the page's script draws a chart from."""
    return {"spec": chart.drawing, "columns": chart.columns(), "panels": chart.panels}
