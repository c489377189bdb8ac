"""What one run says on the screen at its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from harness.experiment.locustrun import refusal
from harness.observe.record import read_manifest


def print_results(folder: Path, code: int, console: Console) -> int:
    """Print the measurements, marks and verdict of a record. The exit code to end with: the run's own.
    Raises SwarmletError, with that exit code, for a run that did not begin."""
    error = refusal(folder, code)
    if error is not None:
        raise error
    manifest = read_manifest(folder)
    for measurement in manifest.results.get("measurements", []):
        console.print(f"\n[bold]{measurement['name']}[/]", highlight=False, soft_wrap=True)
        console.print(measurement_table(measurement))
    for mark in manifest.marks:
        console.print(f"[red]noticed:[/] {mark.text}", highlight=False)
    console.print(f"record: {folder}", highlight=False, soft_wrap=True)
    for text in manifest.results.get("violations", []):
        console.print(f"[red]threshold missed:[/] {text}", highlight=False, soft_wrap=True)
    for text in manifest.results.get("failures", []):
        console.print(f"[red]failed:[/] {text}", highlight=False, soft_wrap=True)
    console.print(f"[bold]{manifest.results.get('scenario', manifest.status)}[/]")
    return code


def measurement_table(measurement: dict[str, Any]) -> Table:
    """One measurement: a line for each of its values."""
    table = Table(box=None, show_header=False)
    table.add_column("value")
    table.add_column("figure", justify="right")
    for name, value in measurement["values"].items():
        table.add_row(name, _number(value))
    return table


def _number(value: object) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else "" if value is None else str(value)
