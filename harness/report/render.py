"""Writes the three files of a report."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import jinja2
import msgspec
import vl_convert

from harness.compare.comparison import Comparison, compare
from harness.compare.inference import Contrast
from harness.compare.rows import Taken
from harness.compare.run import Run
from harness.report import numbers
from harness.report.charts import charts

FILES = ("report.html", "report.md", "report.json")


def render(runs: Sequence[Run], folder: Path, title: str, declared: Collection[str] = ()) -> list[Path]:
    """Compare `runs` and write `FILES` to `folder`, with the Markdown's charts in ``charts/``. The paths written.
    `declared` are the settings that are meant to differ between arms."""
    comparison = compare(runs, declared)
    pictures = charts(comparison)
    (folder / "charts").mkdir(parents=True, exist_ok=True)
    for key, chart in pictures.items():
        svg = vl_convert.vegalite_to_svg(chart.to_json())
        (folder / "charts" / f"{key}.svg").write_text(svg, encoding="utf-8")
    context = {
        "title": title,
        "made": time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        "comparison": comparison,
        "arms": comparison.arms,
        "charts": list(pictures),
        "specs": {key: chart.to_dict() for key, chart in pictures.items()},
        "vega": vl_convert.javascript_bundle(),  # type: ignore[call-arg]  # the stub forgets the default
        "numbers": numbers,
        "Taken": Taken,
        "conditions": _conditions(comparison),
        "marks": _marks(runs),
    }
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("harness.report"),
        autoescape=jinja2.select_autoescape(["html.j2", "html"]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    written = []
    for name in ("report.html", "report.md"):
        path = folder / name
        path.write_text(environment.get_template(f"{name}.j2").render(context), encoding="utf-8")
        written.append(path)
    data = folder / "report.json"
    data.write_bytes(msgspec.json.format(msgspec.json.encode(as_json(comparison, title))))
    return [*written, data]


def as_json(comparison: Comparison, title: str) -> dict[str, Any]:
    """The figures for other programs: what was not equal, arms with their samples, rows with values, median, range, and
    the difference of each arm from the first with its verdict (`harness.compare.inference.Contrast`)."""
    return {
        "schema_version": 2,
        "title": title,
        "findings": [msgspec.to_builtins(finding) for finding in comparison.findings],
        "arms": [
            {
                "name": arm.name,
                "samples": [str(run.folder.name) for run in arm.runs],
                "left_out": [{"sample": run.folder.name, "why": why} for run, why in arm.left_out],
            }
            for arm in comparison.arms
        ],
        "rows": [
            {
                "key": compared.row.key,
                "title": compared.row.title,
                "unit": compared.row.unit,
                "members": compared.row.taken.value,
                "window": compared.row.window,
                "source": compared.row.source,
                "arms": {
                    name: {
                        "n": len(figure.known),
                        "values": figure.values,
                        "median": figure.median,
                        "range": figure.range,
                    }
                    for name, figure in compared.figures.items()
                },
                "against_first": {
                    name: None if contrast is None else _contrast(contrast, compared.ratio(name))
                    for name, contrast in compared.contrasts.items()
                },
            }
            for compared in comparison.rows
        ],
    }


def _contrast(contrast: Contrast, ratio: float | None) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(contrast)
    return {**told, "ratio": ratio}


def _conditions(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """What each arm ran under, one line a fact, a value an arm; taken from its samples' manifests."""
    facts = (
        ("members", lambda run: len(run.manifest.target.get("members", ()))),
        ("modelled cores of each member", lambda run: run.manifest.target.get("cores", "–")),
        ("backend", lambda run: run.manifest.target.get("backend", "–")),
        ("kubelets", lambda run: run.manifest.nodes),
        ("scenario", lambda run: Path(run.manifest.scenario.get("path", "none")).name),
        ("faults", lambda run: "; ".join(_faults(run)) or "none"),
        ("seed", lambda run: run.manifest.seed),
        (
            "swarmlet",
            lambda run: run.manifest.versions.get("commit") or run.manifest.versions.get("swarmlet", ""),
        ),
    )
    lines = []
    for name, take in facts:
        values = []
        for arm in comparison.arms:
            seen = list(dict.fromkeys(str(take(run)) for run in arm.runs))
            values.append(", ".join(seen) or "–")
        lines.append((name, values))
    return lines


def _faults(run: Run) -> list[str]:
    started = [event for event in run.events if event["kind"] == "fault-started"]
    return [f"{event['fault']} on {event['member']}{_length(event['seconds'])}" for event in started]


def _length(seconds: float | None) -> str:
    return "" if seconds is None else f" for {seconds:g} s"


def _marks(runs: Sequence[Run]) -> list[tuple[str, str, bool]]:
    """(sample, text, invalid) of every mark that any run carries."""
    return [(run.folder.name, mark.text, mark.invalid) for run in runs for mark in run.manifest.marks]
