"""The rows as docs/report.md lists them. ``python -m harness.compare.rows.table`` writes them into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.compare.rows.every import every_row
from harness.compare.rows.row import GROUPS, Row, Taken

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "report.md"
BEGIN, END = "<!-- rows of {}: python -m harness.compare.rows.table -->", "<!-- end -->"


def written(document: str) -> str:
    """The document with the table of every group between its marks; groups without marks are left out."""
    rows = every_row(())
    for group in GROUPS:
        begin = BEGIN.format(group)
        before, found, rest = document.partition(begin)
        if found:
            table = "\n".join(_table([row for row in rows if row.group == group]))
            document = f"{before}{begin}\n{table}\n{END}{rest.partition(END)[2]}"
    return document


def _table(rows: list[Row]) -> Iterator[str]:
    """One line for the rows that differ in the members alone."""
    yield "| row | unit | of | window | what it is |"
    yield "| --- | --- | --- | --- | --- |"
    seen: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        told = [] if row.taken is Taken.RUN else [row.taken.value]
        seen.setdefault((row.title, row.unit, row.window, row.source), []).extend(told)
    for (title, unit, window, source), taken in seen.items():
        cells = (title, unit, ", ".join(taken), window, source)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
