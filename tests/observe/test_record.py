"""A record is whole at any moment, and a killed run says so."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from harness.observe.record import Manifest, RunRecord, Status, read_events, read_manifest, read_table
from harness.wire.errors import ConfigError
from harness.wire.pace import REAL, Pace


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    return RunRecord(tmp_path / "run", Manifest(name="run", started=1.0))


def test_it_can_be_read_while_the_run_goes_on(record: RunRecord) -> None:
    record.event("step-started", {"name": "create"}, t=5.0)
    record.requests([(6.0, "kubelet", "get", "pods", 200, "member-0", 7, 3)])
    record.flush()
    assert read_manifest(record.folder).status == "running"
    assert read_events(record.folder) == [{"t": 5.0, "kind": "step-started", "name": "create"}]
    assert read_table(record.folder, "requests").to_pylist()[0]["count"] == 3
    record.finish(Status.COMPLETED)


def test_parts_of_a_table_are_joined_in_order(record: RunRecord) -> None:
    for t in (1.0, 2.0, 3.0):
        record.samples([(t, "kubelet", "pod_startup_ms", "", 1, 1)])
        record.flush()
    record.finish(Status.COMPLETED)
    assert read_table(record.folder, "samples")["t"].to_pylist() == [1.0, 2.0, 3.0]


def test_a_table_that_was_never_written_is_empty(record: RunRecord) -> None:
    record.finish(Status.COMPLETED)
    assert read_table(record.folder, "series").num_rows == 0


def test_a_run_whose_process_is_gone_was_killed(record: RunRecord) -> None:
    record.manifest.pid_started -= 100  # another process had this number
    record.save()
    manifest = read_manifest(record.folder)
    assert manifest.status == "killed"
    assert manifest.invalid == ["the run was killed before it could end its record"]
    record.finish(Status.COMPLETED)


def test_an_event_cut_off_by_a_kill_is_left_out(record: RunRecord) -> None:
    record.event("one", t=1.0)
    record.finish(Status.FAILED)
    with (record.folder / "events.jsonl").open("ab") as events:
        events.write(b'{"t": 3.0, "ki')
    assert [event["kind"] for event in read_events(record.folder)] == ["one", "run-ended"]


def test_marks_are_kept_once_and_invalid_ones_are_reasons(record: RunRecord) -> None:
    record.mark("odd")
    record.mark("broken", invalid=True)
    record.mark("broken", invalid=True)
    record.finish(Status.COMPLETED)
    manifest = read_manifest(record.folder)
    assert [mark.text for mark in manifest.marks] == ["odd", "broken"]
    assert manifest.invalid == ["broken"]


def test_a_folder_that_holds_a_run_is_not_written_again(record: RunRecord) -> None:
    record.finish(Status.COMPLETED)
    with pytest.raises(ConfigError, match="already holds a run"):
        RunRecord(record.folder, Manifest(name="run", started=2.0))


def test_a_folder_without_a_manifest_is_no_record(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run record"):
        read_manifest(tmp_path)


def test_a_manifest_that_is_not_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": 3}')
    with pytest.raises(ConfigError, match=r"manifest\.json: not a manifest"):
        read_manifest(tmp_path)


def test_the_manifest_is_plain_json(record: RunRecord) -> None:
    record.finish(Status.CAPPED)
    document = msgspec.json.decode((record.folder / "manifest.json").read_bytes())
    assert document["status"] == "capped"
    assert document["schema_version"] == 1


def test_at_a_pace_stamps_are_of_the_models_time_of_day(tmp_path: Path) -> None:
    pace = Pace(10.0, time.time() - 1000.0)
    record = RunRecord(tmp_path / "slow", Manifest(name="slow", started=pace.origin_s, pace=pace))
    record.event("something")
    record.finish(Status.COMPLETED)
    manifest = read_manifest(record.folder)
    assert manifest.pace == pace
    stamps = [event["t"] - pace.origin_s for event in read_events(record.folder)]
    assert all(100.0 <= stamp < 150.0 for stamp in [*stamps, manifest.ended - pace.origin_s])


def test_a_record_of_before_there_was_a_pace_is_of_real_time(record: RunRecord) -> None:
    record.finish(Status.COMPLETED)
    path = record.folder / "manifest.json"
    known = msgspec.json.decode(path.read_bytes())
    del known["pace"]
    path.write_bytes(msgspec.json.encode(known))
    assert read_manifest(record.folder).pace == REAL
