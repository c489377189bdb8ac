"""Whole runs of a kperf profile: in one process, and shared by a master's workers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.observe.record import read_table
from tests.load.plays import WHOLE_RUNS, Outcome, Outcomes, Play, assert_ended_well, put_on

pytestmark = WHOLE_RUNS

PROFILE = """\
version: 1
description: two specs
specs:
  - rate: 40
    total: 60
    conns: 3
    client: 6
    contentType: json
    requests:
      - {shares: 2, staleList: {version: v1, resource: namespaces}}
      - {shares: 2, quorumGet: {version: v1, resource: namespaces, name: default}}
      - {shares: 1, watchList: {version: v1, resource: configmaps}}
      - {shares: 1, getPodLog: {namespace: default, name: nosuch}}
      - {shares: 2, postDel: {version: v1, resource: pods, namespace: default, deleteRatio: 0.4, payloadSize: 9}}
  - rate: 50
    duration: 1
    conns: 2
    client: 2
    contentType: protobuf
    requests:
      - {shares: 1, quorumList: {version: v1, resource: namespaces, limit: 2}}
"""


def alone(folder: Path) -> Outcome:
    return Play(folder, *arguments(folder), "--members", "2", "--raw-data", locustfile="kperf").end()


def spread(folder: Path) -> Outcome:
    return Play(folder, *arguments(folder), workers=2, locustfile="kperf").end()


def capped(folder: Path) -> Outcome:
    text = PROFILE.replace("total: 60", "total: 6000")
    return Play(folder, *arguments(folder, text), "-t", "15s", locustfile="kperf").end()


def arguments(folder: Path, text: str = PROFILE) -> tuple[str, ...]:
    path = folder.with_suffix(".yaml")
    path.write_text(text)
    return ("--scenario", str(path), "--cores", "host")


PLAYS = [alone, spread, capped]
AT_ONCE = 2


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    folder = tmp_path_factory.mktemp("kperf")
    return put_on(PLAYS, folder, AT_ONCE)


def report(outcome: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((outcome.record / "artifacts" / "kperf.json").read_text())
    return found


@pytest.mark.parametrize("play", [alone, spread])
def test_every_request_of_the_profile_is_in_the_report(
    outcomes: Outcomes, play: Callable[[Path], Outcome]
) -> None:
    outcome = outcomes(play)
    assert_ended_well(outcome)
    found = report(outcome)
    assert [part["total"] for part in found["perSpecResults"]] == [60, 50]
    logs = next(name for name in found["aggregated"]["errorStatsByURL"] if name.startswith("POD_LOG"))
    assert found["aggregated"]["errorStatsByURL"] == {logs: {"http/404": found["aggregated"]["failed"]}}


def test_workers_share_the_requests_that_one_process_makes(outcomes: Outcomes) -> None:
    def by_url(play: Callable[[Path], Outcome]) -> set[str]:
        names = report(outcomes(play))["aggregated"]["percentileLatenciesByURL"]
        return {
            name for name in names if not name.startswith("DELETE")
        }  # what there is to delete is each one's own

    assert by_url(alone) == by_url(spread)
    started = outcomes(spread).events("scenario-started")
    assert len(started[0]["users"]) == 2


def test_the_report_says_which_member_answered(outcomes: Outcomes) -> None:
    whole = report(outcomes(alone))["aggregated"]
    assert sum(own["total"] for own in whole["members"].values()) == whole["total"] == 110
    assert set(whole["members"]) <= {"member-0", "member-1"}
    assert sum(map(len, whole["latenciesByURL"].values())) == 110
    assert len(whole["errors"]) == whole["failed"]


def test_a_kperf_run_leaves_a_record_like_any_other(outcomes: Outcomes) -> None:
    outcome = outcomes(alone)
    assert [event["number"] for event in outcome.events("step-finished")] == [1, 2]
    assert outcome.manifest.results["scenario"] == "Success"
    assert outcome.manifest.results["measurements"][0]["values"]["requests"] == 110
    assert outcome.requests >= 110
    samples = read_table(outcome.record, "samples").to_pylist()
    assert sum(row["count"] for row in samples if row["name"] == "operation_late_ms") == 110


def test_a_run_that_is_capped_reports_what_it_saw(outcomes: Outcomes) -> None:
    outcome = outcomes(capped)
    assert_ended_well(outcome, "capped")
    found = report(outcome)["aggregated"]
    assert 0 < found["total"] < 6000
    assert "before its scenario was complete" in outcome.marks
