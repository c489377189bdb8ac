"""A scenario's operations on two workers, beside the same in one process: whole runs of the locustfile."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.load.scenarioresults import FOLDER
from harness.observe.record import read_table
from tests.conftest import DATA
from tests.load.plays import AT_MOST, WHOLE_RUNS, Outcome, Play, assert_ended_well

pytestmark = WHOLE_RUNS

SPREAD = str(DATA / "scenarios" / "spread.yaml")
ARGUMENTS = ("--scenario", SPREAD, "--cores", "host", *AT_MOST)
OBJECTS = 40


def alone(folder: Path) -> Outcome:
    return Play(folder, *ARGUMENTS, "--allow-exec").end()


def spread(folder: Path) -> Outcome:
    return Play(folder, *ARGUMENTS, "--allow-exec", "--executors", "2", "--processes", "2").end()


def forbidden(folder: Path) -> Outcome:
    return Play(folder, *ARGUMENTS).end()


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Outcome]]:
    folder = tmp_path_factory.mktemp("spread")
    with ThreadPoolExecutor(3) as executor:
        plays = {
            play.__name__: executor.submit(play, folder / play.__name__)
            for play in (alone, spread, forbidden)
        }
        yield {name: future.result() for name, future in plays.items()}


def operations(outcome: Outcome) -> Counter[str]:
    """Operations that were due at a time, by executor ("" where there is one)."""
    found: Counter[str] = Counter()
    for row in read_table(outcome.record, "samples").to_pylist():
        if row["name"] == "operation_late_ms":
            found[row["labels"].partition("executor=")[2]] += row["count"]
    return found


def cases(outcome: Outcome) -> list[str]:
    root = ElementTree.parse(outcome.record / FOLDER / "junit.xml").getroot()
    return [case.get("name", "") for case in root.iter("testcase")]


def test_both_end_well(outcomes: dict[str, Outcome]) -> None:
    for name in ("alone", "spread"):
        outcome = outcomes[name]
        assert outcome.manifest.results["scenario"] == "Success", outcome.output
        assert_ended_well(outcome)


def test_both_executors_did_operations_and_together_all_of_them(outcomes: dict[str, Outcome]) -> None:
    (event,) = outcomes["spread"].events("executors")
    assert event["count"] == 2
    assert sorted(event["members"]) == ["worker-0", "worker-1"]
    done = operations(outcomes["spread"])
    assert set(done) == {"0", "1"}
    assert min(done.values()) > OBJECTS / 2
    assert done.total() == operations(outcomes["alone"]).total() == 3 * OBJECTS
    ended, single = (outcomes[name].events("scenario-finished")[0] for name in ("spread", "alone"))
    verbs = ("create", "patch", "delete")
    assert [ended["operations"][verb] for verb in verbs] == [single["operations"][verb] for verb in verbs]


def test_lateness_of_each_is_in_the_record(outcomes: dict[str, Outcome]) -> None:
    (found,) = (
        measurement
        for measurement in outcomes["spread"].manifest.results["measurements"]
        if measurement["name"] == "OperationLateness"
    )
    assert [name for name in found["values"] if name.endswith("perc99, ms")] == [
        "fast, executor 0: late perc99, ms",
        "fast, executor 1: late perc99, ms",
    ]


def test_the_artifacts_have_the_same_shape(outcomes: dict[str, Outcome]) -> None:
    assert cases(outcomes["alone"]) == cases(outcomes["spread"])
    summaries = {}
    for name in ("alone", "spread"):
        (path,) = (outcomes[name].record / FOLDER).glob("Timer_spread_*.json")
        data = json.loads(path.read_text())
        summaries[name] = [(sorted(item["data"]), item["unit"], item["labels"]) for item in data["dataItems"]]
    assert summaries["alone"] == summaries["spread"]
    generated = [
        (outcomes[name].record / FOLDER / "generatedConfig_spread.yaml").read_text() for name in summaries
    ]
    assert generated[0] == generated[1]


def test_a_command_ran_where_the_run_was_started(outcomes: dict[str, Outcome]) -> None:
    for name in ("alone", "spread"):
        outcome = outcomes[name]
        assert [event["line"] for event in outcome.events("exec-output")] == [
            f"seen by {outcome.record}",
            "twice",
        ]
        assert (outcome.record / "logs" / "exec-1.log").read_text().endswith("twice\n")


def test_a_command_that_is_not_allowed_is_one_line(outcomes: dict[str, Outcome]) -> None:
    outcome = outcomes["forbidden"]
    assert (outcome.code, outcome.left) == (2, []), outcome.output
    (line,) = (line for line in outcome.output.splitlines() if line.startswith("swarmlet: "))
    assert "spread.yaml:" in line
    assert line.endswith("Exec runs a command on this machine; --allow-exec allows it")
    assert "Traceback" not in outcome.output
    assert not outcome.record.exists()
