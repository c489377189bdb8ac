"""Folders that hold keys: who made them, and those whose maker is gone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness import doctor
from harness.pool.folders import is_ours, left_folders, make_folder


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def of_one_that_is_gone(place: Path) -> Path:
    """Made by a process that ends without removing it."""
    code = "from harness.pool.folders import make_folder; print(make_folder(), end='')"
    environment = {**os.environ, "TMPDIR": str(place)}
    made = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True
    )
    return Path(made.stdout)


def test_a_folder_is_its_makers_alone() -> None:
    folder = make_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert is_ours(folder)
    assert left_folders() == [], "whoever made it is at work"


def test_one_whose_maker_is_gone_is_left(place: Path) -> None:
    left = of_one_that_is_gone(place)
    make_folder()
    (place / "swarmlet-notes-x").mkdir()
    (place / f"{left.name}.txt").write_text("no folder")
    assert left_folders() == [left]


def test_the_doctor_names_three_and_counts_the_rest(place: Path) -> None:
    maker = of_one_that_is_gone(place).name.split("-")[1]
    for name in "abcd":
        (place / f"swarmlet-{maker}-{name}").mkdir()
    found = next(finding for finding in doctor.examine() if finding.what == "left folders")
    assert not found.ok
    assert not found.required
    assert found.here.count(str(place)) == 3
    assert found.here.endswith(" and 2 more")


def test_there_is_none(place: Path) -> None:
    found = next(finding for finding in doctor.examine() if finding.what == "left folders")
    assert (found.ok, found.here) == (True, "none")
