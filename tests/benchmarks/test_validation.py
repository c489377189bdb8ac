"""docs/validation.md says what the kept experiments say."""

from __future__ import annotations

import re
from typing import Any

import pytest

from benchmarks.validation import (
    BEGIN,
    DOCUMENT,
    END,
    Kept,
    beside_published,
    by_arm,
    keep,
    load,
    main,
    written,
)


def kept(one: float, three: float, row: str = "barrier run") -> Kept:
    return Kept("e", "t", {"1 master": {row: [one]}, "HA, 3 masters": {row: [three]}})


def cells(lines: list[str]) -> list[str]:
    return [cell.strip() for cell in lines[2].strip("|").split("|")]


def test_the_document_is_in_step_with_what_is_kept() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    assert written(document, load()) == document, "run: python -m benchmarks.validation"


def test_the_document_shows_every_kept_experiment() -> None:
    marks = set(re.findall(r"<!-- (\S+): python -m benchmarks.validation -->", DOCUMENT.read_text("utf-8")))
    assert marks == {each.name for each in load()}


def test_a_figure_stands_beside_the_published_one_with_how_far_it_is_off() -> None:
    row = cells(list(beside_published(kept(600.0, 240.0))))
    assert row == ["Barrier of creation, min", "38.2", "15.3", "0.401", "10", "4", "0.4", "1"]


@pytest.mark.parametrize(
    ("one", "three", "off"),
    [(600.0, 90.0, "**2.67**"), (0.0, 5.0, "**no figure**"), (5.0, 0.0, "**none here**")],
)
def test_what_is_far_off_is_marked(one: float, three: float, off: str) -> None:
    assert cells(list(beside_published(kept(one, three))))[-1] == off


def test_what_one_master_cannot_have_has_no_ratio() -> None:
    row = cells(list(beside_published(kept(0.0, 7.0, "several-members run"))))
    assert row[1:] == ["0", "2,584", "–", "0", "7", "–", ""]


def test_arms_that_were_not_published_stand_side_by_side() -> None:
    several = Kept("e", "t", {"calm": {"denials sum": [4.0, 9.0, 5.0]}, "restart": {"denials sum": [1200.0]}})
    assert list(by_arm(several)) == [
        "| figure | calm | restart |",
        "| --- | ---: | ---: |",
        "| 403s by the node authorizer | 5 (4 to 9) | 1,200 |",
    ]


def test_of_a_report_the_rows_that_are_asked_for_are_kept() -> None:
    def row(key: str, values: list[float | None]) -> dict[str, Any]:
        return {"key": key, "members": "sum", "arms": {"a": {"values": values}}}

    report = {"title": "t", "arms": [{"name": "a"}], "rows": [row("x", [1.0, None, 2.0]), row("y", [3.0])]}
    found = keep(report, "e", [("x", "sum"), ("x", "run"), ("z", "sum")])
    assert found == Kept("e", "t", {"a": {"x sum": [1.0, 2.0]}})


def test_a_table_is_put_between_its_marks_and_nothing_else_is_touched() -> None:
    begin = BEGIN.format("e")
    document = written(f"before\n{begin}\nstale\n{END}\nafter\n", [kept(1.0, 2.0)])
    assert document.startswith(f"before\n{begin}\n| figure |")
    assert document.endswith(f"|\n{END}\nafter\n")
    assert "stale" not in document


def test_a_folder_without_a_report_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nosuch"]) == 2
    assert "nosuch/report.json: there is no such file" in capsys.readouterr().err
