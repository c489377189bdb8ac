"""Whole runs through faults of processes and of the network: what the record tells, and that nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.compare.run import Run
from harness.observe.record import read_manifest
from tests.apiserver.store.test_store_contract import a_real_etcd
from tests.load.plays import (
    AT_MOST,
    TINY,
    WHOLE_RUNS,
    Outcome,
    Outcomes,
    Play,
    assert_ended_well,
    kill,
    put_on,
)
from tests.pool.balancer import standin

pytestmark = WHOLE_RUNS

STEP = "create objects"
INFORMERS = 4
QUIET = ("--cores", "host", "--writer", "objects=60,rate=20", "--informers", f"count={INFORMERS}")


def killed_while_informers_watch(folder: Path) -> Outcome:
    """One of two members is killed and comes back, while every connection to the other is slow; then the other is."""
    faults = (
        *("--fault", "kill member=member-1 for=1s at=1s"),
        *("--fault", "link between=clients,member-0 latency=5ms rate=50mbit drop=0.1% at=1s for=3s"),
        *("--fault", "kill member=member-0 for=500ms at=15s"),
    )
    play = Play(folder, *QUIET, "--members", "2", *faults, locustfile="informers")
    play.wait_for_event("informers-synced")
    wait_until_all_watch(play, since=play.wait_for_event("fault-ended", 3)[-1]["t"])
    return play.end_at_rest()


def killed_from_outside(folder: Path) -> Outcome:
    """One of three etcds and one of three members, by somebody whom no scenario knows."""
    etcd = ("--etcd-servers", "binary=3", "--etcd-binary", a_real_etcd())
    play = Play(folder, *QUIET, "--members", "3", *etcd, locustfile="informers")
    play.wait_for_event("informers-synced")
    kill(read_manifest(folder).target["processes"]["etcd-1"])
    kill(play.pid_of("member-1"))
    play.wait_for_event("process-exited", 2)
    wait_until_all_watch(play, since=play.wait_for_event("process-restarted")[-1]["t"])
    return play.end_at_rest()


def wait_until_all_watch(play: Play, since: float) -> None:
    """Until members have shown every informer's watch in a scrape after that time."""

    def all_watch() -> bool:
        run = Run(play.record)
        frame = run.frame("apiserver_longrunning_requests", {"resource": "configmaps", "verb": "WATCH"})
        return bool(frame.index[-1] + run.load_began > since and frame.iloc[-1].sum() >= INFORMERS)

    play.wait_for(all_watch)


def behind_a_balancer(folder: Path) -> Outcome:
    binary = standin.install(folder.with_name("bin"))
    balancer = ("--balancer", "haproxy", "--balancer-binary", binary)
    fault = ("--fault", f"pause member=balancer for=500ms step='{STEP}'")
    return Play(
        folder, "--cores", "host", "--scenario", TINY, *AT_MOST, "--members", "2", *balancer, *fault
    ).end()


def no_such_step(folder: Path) -> Outcome:
    return Play(folder, "--scenario", TINY, "--fault", "kill member=member-0 step=create").end()


PLAYS: list[Callable[[Path], Outcome]] = [
    killed_while_informers_watch,
    killed_from_outside,
    behind_a_balancer,
    no_such_step,
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Of every play; they are put on together, before the first test asks for one."""
    folder = tmp_path_factory.mktemp("faults")
    return put_on(PLAYS, folder, len(PLAYS))


def assert_nothing_lost(outcome: Outcome) -> None:
    """What an informer has not heard of by the end is a violation when it could have come in time; on a busy machine
    some of the last events may be too young for that, which is told."""
    checked = outcome.manifest.results["informers"]["checked"]
    assert checked.get("violations", 0) == checked["unsynced"] == 0, checked
    told = "what informers were told could not be compared at the end" in outcome.marks
    assert told == bool(checked["undecided"]), outcome.marks
    assert checked["compared"] >= INFORMERS


def test_a_member_that_is_killed_and_restarted_loses_informers_nothing(outcomes: Outcomes) -> None:
    outcome = outcomes(killed_while_informers_watch)
    assert_ended_well(outcome)
    assert_nothing_lost(outcome)
    assert not outcome.events("process-exited")


def test_its_record_tells_the_story_of_each_fault(outcomes: Outcomes) -> None:
    outcome = outcomes(killed_while_informers_watch)
    for kind in ("fault-started", "fault-ended"):
        told = {(event["member"], event["fault_kind"]) for event in outcome.events(kind)}
        assert told == {("member-1", "kill"), ("network", "link"), ("member-0", "kill")}, kind
    assert not outcome.events("fault-failed")
    ended = [(event["member"], event["code"]) for event in outcome.events("member-ended")]
    assert ended == [("member-1", -9), ("member-0", -9)]
    restarted = sorted(event["member"] for event in outcome.events("member-restarted"))
    assert restarted == ["member-0", "member-1"]


def test_an_etcd_and_a_member_that_are_killed_lose_nothing_and_are_told(outcomes: Outcomes) -> None:
    outcome = outcomes(killed_from_outside)
    assert (outcome.code, outcome.left, outcome.manifest.status) == (1, [], "completed"), outcome.output
    assert "etcd-1 ended unasked (exit code 137) (invalid: True)" in outcome.marks
    assert "member-1 ended unasked (signal 9) (invalid: True)" in outcome.marks
    assert {event["process"] for event in outcome.events("process-exited")} == {"etcd-1", "member-1"}
    assert [event["process"] for event in outcome.events("process-restarted")] == ["etcd-1"]
    assert_nothing_lost(outcome)
    assert "Traceback" not in outcome.output


def test_clients_behind_a_balancer_see_one_address_and_members_are_scraped(outcomes: Outcomes) -> None:
    outcome = outcomes(behind_a_balancer)
    assert_ended_well(outcome)
    results = outcome.manifest.results
    assert set(results["connections"]) == {"balancer"}
    assert results["connections"]["balancer"]["dialled"] >= 5
    target = outcome.manifest.target
    assert target["balancer"]["policy"] == "roundrobin"
    assert [front["name"] for front in target["front"]] == ["balancer"]
    (first, *_) = outcome.events("balancer-connections")
    assert set(first["members"]) == {"member-0", "member-1"}
    made = Run(outcome.record).frame("apiserver_request_total", {"resource": "nodes", "verb": "POST"})
    assert set(made.columns) == {"member-0", "member-1"}
    assert (made.max() > 0).all(), "each member served some"


def test_a_fault_waits_for_its_step(outcomes: Outcomes) -> None:
    outcome = outcomes(behind_a_balancer)
    (step,) = (event for event in outcome.events("step-started") if event["name"] == STEP)
    (fault,) = outcome.events("fault-started")
    assert (fault["member"], fault["fault"]) == ("balancer", "pause")
    assert fault["t"] >= step["t"]
    (ended,) = outcome.events("fault-ended")
    assert ended["t"] - fault["t"] >= 0.5


def test_a_step_that_is_not_there_is_one_line(outcomes: Outcomes) -> None:
    outcome = outcomes(no_such_step)
    assert (outcome.code, outcome.left) == (2, [])
    (line,) = (line for line in outcome.output.splitlines() if line.startswith("swarmlet: "))
    assert "there is no step 'create'" in line
