"""From records to a report, and what the guard's findings mean for a command."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.compare.run import Run
from harness.report.render import render
from harness.wire.errors import RunInvalid


def write_report(
    runs: Sequence[Run], folder: Path, title: str, declared: Collection[str] = (), *, strict: bool = False
) -> list[Path]:
    """The report's files. With `strict` a report of which the guard found something says that it is refused, and once
    it is written, RunInvalid is raised."""
    files = render(runs, folder, title, declared, strict=strict)
    findings = read_report(folder)["findings"]
    if strict and findings:
        named = ", ".join(dict.fromkeys(finding["what"] for finding in findings))
        raise RunInvalid(
            f"refused: {len(findings)} difference{'s' if len(findings) > 1 else ''} between the arms that the "
            f"experiment does not declare ({named:.200}); {files[0]} has them on top"
        )
    return files


def read_report(folder: Path) -> dict[str, Any]:
    """report.json."""
    told: dict[str, Any] = msgspec.json.decode((folder / "report.json").read_bytes())
    return told


def called_different(folder: Path) -> tuple[int, int]:
    """How many rows of a report any arm but the first is called different in, and how many rows there are."""
    rows = read_report(folder)["rows"]
    different = ("better", "worse", "higher", "lower")
    count = sum(
        any(contrast and contrast["verdict"] in different for contrast in row["against_first"].values())
        for row in rows
    )
    return count, len(rows)
