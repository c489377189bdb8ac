"""From records to a report, and what the guard's findings mean for a command."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.compare.comparison import Comparison, compare
from harness.compare.inference import Verdict
from harness.compare.run import Run
from harness.report import render
from harness.wire.errors import RunInvalid

DIFFERENT = frozenset({Verdict.BETTER, Verdict.WORSE, Verdict.HIGHER, Verdict.LOWER})


class Reported(NamedTuple):
    """What was compared, and the files that say so."""

    comparison: Comparison
    files: list[Path]


def write_report(
    runs: Sequence[Run],
    folder: Path,
    title: str,
    declared: Collection[str] = (),
    *,
    template: Path | None = None,
    strict: bool = False,
) -> Reported:
    """With `strict` a report of which the guard found something says that it is refused, and once it is written,
    RunInvalid is raised."""
    comparison = compare(runs, declared)
    files = render.write_report(comparison, folder, title, template, strict=strict)
    findings = comparison.findings
    if strict and findings:
        named = ", ".join(dict.fromkeys(finding.what for finding in findings))
        raise RunInvalid(
            f"refused: {len(findings)} difference{'s' if len(findings) > 1 else ''} between the arms that the "
            f"experiment does not declare ({named:.200}); {files[0]} has them on top"
        )
    return Reported(comparison, files)


def called_different(comparison: Comparison) -> list[str]:
    """The keys of the rows in which some arm is called different from the first."""
    return [
        compared.row.key
        for compared in comparison.rows
        if any(contrast and contrast.verdict in DIFFERENT for contrast in compared.contrasts.values())
    ]
