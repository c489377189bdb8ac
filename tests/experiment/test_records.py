"""Records that cannot be compared: each is named once, the others are read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from harness.experiment.records import load_runs, newest_manifest, records_in
from harness.experiment.sides import as_sides
from tests.records import make_record


def manifest(folder: Path, **fields: object) -> None:
    path = folder / "manifest.json"
    told = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode({**told, **fields}))


def part(folder: Path, table: str) -> Path:
    return next((folder / table).glob("part-*.parquet"))


def running(folder: Path) -> None:
    me = psutil.Process()
    manifest(folder, status="running", pid=os.getpid(), pid_started=me.create_time())


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda f: (f / "manifest.json").unlink(), r"r is no run record: it has no manifest.json"),
        (lambda f: (f / "manifest.json").write_text(""), r"r/manifest.json: no manifest of a run: "),
        (lambda f: (f / "manifest.json").write_text("[1]"), r"r/manifest.json: no manifest of a run: "),
        (lambda f: (f / "manifest.json").write_text('{"a": 1}'), r"r/manifest.json: no manifest of a run: "),
        (
            lambda f: (f / "manifest.json").write_text('{"schema_version": 1}'),
            r"r/manifest.json: not a manifest: .*`name`",
        ),
        (
            lambda f: manifest(f, schema_version=2, marks="new"),
            r"r/manifest.json: of a newer version of swarmlet \(record schema 2; this one reads 1\)",
        ),
        (running, r"r: its run has not ended \(process \d+\)"),
        (lambda f: manifest(f, status="fine"), r"r/manifest.json: status: 'fine' is none of a run"),
        (
            lambda f: manifest(f, target={"members": ["a"]}),
            r"r/manifest.json: target.members: not a list of members",
        ),
        (
            lambda f: (f / "events.jsonl").write_text('{"t":1,"kind":"a"}\n3\n'),
            r"r/events.jsonl: event 2 has no time",
        ),
        (lambda f: (f / "events.jsonl").write_text('{"kind":"a"}\n'), r"r/events.jsonl: event 1 has no time"),
        (lambda f: part(f, "series").write_bytes(b""), r"r/series/part-00000.parquet: broken or cut off: "),
        (
            lambda f: part(f, "requests").write_bytes(part(f, "requests").read_bytes()[:-9]),
            r"r/requests/part-00000.parquet: broken or cut off: ",
        ),
        (
            lambda f: part(f, "samples").write_bytes(part(f, "series").read_bytes()),
            r"r/samples/part-00000.parquet: no table of samples: it has no column user",
        ),
    ],
)
def test_a_record_that_cannot_be_read_is_named_and_the_others_are_read(
    tmp_path: Path, harm: Callable[[Path], object], said: str
) -> None:
    good, bad = make_record(tmp_path / "good"), make_record(tmp_path / "r")
    harm(bad)
    runs, problems = load_runs([bad, good])
    assert [run.folder for run in runs] == [good]
    (problem,) = problems
    assert re.search(said, problem)
    assert "\n" not in problem


def test_a_line_of_events_that_was_cut_off_is_no_harm(tmp_path: Path) -> None:
    record = make_record(tmp_path / "r")
    with (record / "events.jsonl").open("ab") as events:
        events.write(b'{"t": 1, "ki')
    assert load_runs([record])[1] == []


def test_a_killed_run_is_read_and_its_manifest_says_why_it_does_not_count(tmp_path: Path) -> None:
    record = make_record(tmp_path / "r")
    manifest(record, status="running", pid=0)
    (run,), problems = load_runs([record])
    assert problems == []
    assert run.manifest.invalid


def test_an_experiments_folder_stands_for_its_samples(tmp_path: Path) -> None:
    for name in ("b", "a"):
        make_record(tmp_path / "e" / "samples" / name)
    (tmp_path / "e" / "samples" / "a.log").write_text("")
    assert [path.name for path in records_in(tmp_path / "e")] == ["a", "b"]
    assert records_in(tmp_path / "e" / "samples" / "a") == [tmp_path / "e" / "samples" / "a"]


def test_the_newest_run_is_the_one_that_began_last(tmp_path: Path) -> None:
    assert newest_manifest(tmp_path) is None
    for name, started in (("a", 5.0), ("b", 9.0), ("c", 7.0)):
        manifest(make_record(tmp_path / name), started=started)
    (tmp_path / "b" / "manifest.json").write_text("{")
    newest = newest_manifest(tmp_path)
    assert newest is not None
    assert newest.name == "c"


@pytest.mark.parametrize(
    ("first", "other", "labels", "arms", "names"),
    [
        (["one"], ["two"], ("x", "y"), ["one", "two"], ("one", "two")),
        (["one"], ["one"], ("x", "y"), ["one (x)", "one (y)"], ("x", "y")),
        (["one"], ["one"], ("x", "x"), ["one (x 1)", "one (x 2)"], ("x 1", "x 2")),
        (["", ""], [""], ("x", "y"), ["x", "x", "y"], ("x", "y")),
        (["one", "ha"], ["ha"], ("x", "y"), ["one", "ha (x)", "ha (y)"], ("x", "y")),
        (["one", "ha"], ["three"], ("x", "y"), ["one", "ha", "three"], ("x", "three")),
    ],
)
def test_the_arms_of_two_sides_are_told_apart(
    tmp_path: Path,
    first: list[str],
    other: list[str],
    labels: tuple[str, str],
    arms: list[str],
    names: tuple[str, str],
) -> None:
    folders = [make_record(tmp_path / f"{k}", arm=arm) for k, arm in enumerate([*first, *other])]
    runs, _ = load_runs(folders)
    joined, named = as_sides((runs[: len(first)], labels[0]), (runs[len(first) :], labels[1]))
    assert [run.manifest.arm for run in joined] == arms
    assert named == names
