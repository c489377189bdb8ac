"""docs/validation.md says what the kept experiments say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks import validation
from benchmarks.validation import (
    BEGIN,
    DOCUMENT,
    END,
    Kept,
    Made,
    beside_published,
    by_arm,
    joined,
    keep,
    load,
    made,
    main,
    tables,
    written,
)
from harness.experiment.ledger import Ledger
from harness.observe.record import Manifest
from harness.wire.pace import Pace
from tests.experiment.fakerun import PLAN
from tests.records import make_record

LEDGER = Ledger(digest="", plan=PLAN, declared=())


def kept(one: float, three: float, row: str = "barrier run") -> Kept:
    return Kept("e", "t", {"1 master": {row: [one]}, "HA, 3 masters": {row: [three]}})


def cells(lines: list[str]) -> list[str]:
    return [cell.strip() for cell in lines[2].strip("|").split("|")]


def test_the_document_is_in_step_with_what_is_kept() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    assert written(document, load()) == document, "run: python -m benchmarks.validation"


def test_the_document_shows_every_kept_experiment() -> None:
    marks = set(re.findall(r"<!-- (\S+): python -m benchmarks.validation -->", DOCUMENT.read_text("utf-8")))
    assert marks == {each.name for each in tables(load())}


def test_a_figure_stands_beside_the_published_one_with_how_far_it_is_off() -> None:
    row = cells(list(beside_published(kept(600.0, 240.0))))
    assert row == ["Barrier of creation, min", "38.2", "15.3", "0.401", "10", "4", "0.4", "1"]


@pytest.mark.parametrize(
    ("one", "three", "off"),
    [(600.0, 90.0, "**2.67**"), (0.0, 5.0, "**no figure**"), (5.0, 0.0, "**none here**")],
)
def test_what_is_far_off_is_marked(one: float, three: float, off: str) -> None:
    assert cells(list(beside_published(kept(one, three))))[-1] == off


def test_an_arm_that_was_not_run_yet_has_no_figures() -> None:
    both = kept(600.0, 240.0)
    del both.arms["HA, 3 masters"]
    assert cells(list(beside_published(both)))[4:] == ["10", "–", "–", ""]


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


def manifest(arm: str, commit: str, pace: float = 1.0) -> Manifest:
    versions = {"commit": commit, "python": "3.12.1"}
    return Manifest(name=arm, started=0.0, arm=arm, versions=versions, pace=Pace(pace))


def test_what_made_an_arm_is_said_below_its_figures() -> None:
    by = made([manifest("a", "c1", 2.6), manifest("b", "c1"), manifest("b", "c2")])
    document = written(f"{BEGIN.format('e')}\n{END}", [Kept("e", "t", {"a": {}, "b": {}}, by)])
    assert document.splitlines()[-4:] == [
        "",
        "- *a*: 1 sample, pace 2.6, commit c1, Python 3.12.1.",
        "- *b*: 2 samples, real time, commit c1, c2, Python 3.12.1.",
        END,
    ]


def test_arms_that_were_run_apart_are_joined() -> None:
    old, new = Made("c1", "3.12", 1, 1), Made("c2", "3.12", 1, 1)
    before = Kept(
        "e", "t", {"b": {"x": [1.0]}, "gone": {}, "a": {"x": [2.0]}}, {"b": old, "gone": old, "a": old}
    )
    now = Kept("e", "t2", {"a": {"x": [3.0]}}, {"a": new})
    both = joined(before, now, ["a", "b"])
    assert both == Kept("e", "t2", {"a": {"x": [3.0]}, "b": {"x": [1.0]}}, {"a": new, "b": old})
    assert list(both.arms) == list(both.made) == ["a", "b"]


def test_an_experiment_is_kept_by_its_name_and_put_into_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(validation, "DOCUMENT", tmp_path / "validation.md")
    validation.DOCUMENT.write_text(f"{BEGIN.format(PLAN.name)}\n{END}\n")
    make_record(tmp_path / "of-today" / "samples" / "two-1", arm="two")
    LEDGER.save(tmp_path / "of-today")
    report = {
        "title": "t",
        "arms": [
            {
                "name": "two",
                "samples": [{"record": "two-1", "left_out": ""}, {"record": "gone", "left_out": "killed"}],
            }
        ],
        "rows": [{"key": "denials", "members": "sum", "arms": {"two": {"values": [4.0]}}}],
    }
    (tmp_path / "of-today" / "report.json").write_bytes(msgspec.json.encode(report))
    assert main([str(tmp_path / "of-today")]) == 0
    unknown = Made("unknown", "unknown", 1.0, 1)
    assert load() == [Kept(PLAN.name, "t", {"two": {"denials sum": [4.0]}}, {"two": unknown})]
    assert "| 403s by the node authorizer | 4 |" in validation.DOCUMENT.read_text().splitlines()


def test_what_was_disturbed_as_the_published_run_was_stands_beside_one_master() -> None:
    alone = Kept("ha-500", "", {"1 master": {"x": [1.0]}, "HA, 3 masters": {"x": [2.0]}})
    why = Kept("why-403s", "", {"undisturbed": {"x": [3.0]}, "both": {"x": [4.0]}})
    assert tables([alone]) == [alone]
    assert tables([alone, why])[2].arms == {"1 master": {"x": [1.0]}, "HA, 3 masters": {"x": [4.0]}}


def test_a_table_is_put_between_its_marks_and_nothing_else_is_touched() -> None:
    begin = BEGIN.format("e")
    document = written(f"before\n{begin}\nstale\n{END}\nafter\n", [kept(1.0, 2.0)])
    assert document.startswith(f"before\n{begin}\n| figure |")
    assert document.endswith(f"|\n{END}\nafter\n")
    assert "stale" not in document


def test_a_folder_without_an_experiment_or_its_report_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nosuch"]) == 2
    assert "nosuch holds no experiment" in capsys.readouterr().err
    LEDGER.save(tmp_path)
    assert main([str(tmp_path)]) == 2
    assert f"{tmp_path}/report.json: there is no such file" in capsys.readouterr().err
