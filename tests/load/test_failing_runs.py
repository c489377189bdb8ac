"""Whole runs in which nodes die and come back: each is told, and nothing that was acknowledged is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.observe.record import read_table
from tests.conftest import DATA
from tests.load.plays import (
    AT_MOST,
    WHOLE_RUNS,
    Outcome,
    Outcomes,
    Play,
    assert_ended_well,
    marks_but_for_the_host,
    put_on,
)

pytestmark = WHOLE_RUNS

FAILING = str(DATA / "scenarios" / "failing.yaml")
ARGUMENTS = ("--scenario", FAILING, "--cores", "host", *AT_MOST)
PODS = 10  # two for each of a play's kubelets


def between_two_steps(folder: Path) -> Outcome:
    """On two workers, with informers that are compared with the apiservers at the end."""
    crowd = ("--informers", "count=2,resource=pods", "--writer", "objects=20,rate=5")
    arguments = (*ARGUMENTS, *crowd, "--members", "2", "--processes", "2")
    return Play(folder, *arguments, locustfile="kubelets,informers").end()


def all_the_time(folder: Path) -> Outcome:
    """In one process, by the config's own section, and with kube-proxies."""
    overrides = folder.with_name("whole.yaml")
    overrides.write_text("WHOLE: true\n")
    return Play(folder, *ARGUMENTS, "--overrides", str(overrides), "--fleet", "kube_proxy=true").end()


PLAYS: list[Callable[[Path], Outcome]] = [between_two_steps, all_the_time]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Of every play; they are put on together, before the first test asks for one."""
    return put_on(PLAYS, tmp_path_factory.mktemp("failing"), len(PLAYS))


def answered(outcome: Outcome, user: str, verb: str, name: str, code: int) -> int:
    rows = read_table(outcome.record, "requests").to_pylist()
    keys = (user, verb, name, code)
    return sum(row["count"] for row in rows if (row["user"], row["verb"], row["name"], row["code"]) == keys)


def samples(outcome: Outcome, name: str) -> int:
    rows = read_table(outcome.record, "samples").to_pylist()
    return sum(row["count"] for row in rows if row["name"] == name)


@pytest.mark.parametrize("play", PLAYS)
def test_kubelets_die_and_come_back_and_the_scenario_does_not_fail(
    outcomes: Outcomes, play: Callable[[Path], Outcome]
) -> None:
    outcome = outcomes(play)
    assert_ended_well(outcome)
    assert marks_but_for_the_host(outcome) == []
    assert outcome.manifest.results["scenario"] == "Success"
    counts = outcome.manifest.results["node_failures"]
    assert counts["chosen"] == counts["failed"] == counts["rebooted"] >= 2, counts


@pytest.mark.parametrize("play", PLAYS)
def test_each_death_and_each_return_is_an_event(outcomes: Outcomes, play: Callable[[Path], Outcome]) -> None:
    outcome = outcomes(play)
    chosen = sorted(node for event in outcome.events("fault-started") for node in event["nodes"])
    assert len(set(chosen)) == len(chosen), "none twice"
    for kind in ("node-failed", "node-rebooted"):
        assert sorted(event["node"] for event in outcome.events(kind)) == chosen, kind
    died = {event["node"]: event["t"] for event in outcome.events("node-failed")}
    assert all(event["t"] > died[event["node"]] for event in outcome.events("node-rebooted"))
    assert {event["fault_kind"] for event in outcome.events("fault-ended")} == {"node-failure"}


@pytest.mark.parametrize("play", PLAYS)
def test_they_are_the_same_nodes_again_with_the_same_pods(
    outcomes: Outcomes, play: Callable[[Path], Outcome]
) -> None:
    """Pods of the namespace are gone at the end, which those who died and did not come back would have held up."""
    outcome = outcomes(play)
    back = outcome.manifest.results["node_failures"]["rebooted"]
    assert answered(outcome, "kubelet", "create", "nodes", 201) == 5
    assert answered(outcome, "kubelet", "create", "nodes", 409) == back
    assert samples(outcome, "node_ready_again_ms") == back
    assert answered(outcome, "controllers", "create", "pods", 201) == PODS, "none had to be made anew"
    assert outcome.events("namespaces-deleted")


def test_informers_were_told_everything(outcomes: Outcomes) -> None:
    checked = outcomes(between_two_steps).manifest.results["informers"]["checked"]
    assert checked.get("violations", 0) == checked["undecided"] == checked["unsynced"] == 0, checked
    assert checked["compared"] >= 2
