"""Whole runs of the locustfile: in one process, in several, and with one of their processes killed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from harness.observe.record import read_events, read_table
from tests.load.plays import (
    AT_MOST,
    REST,
    TINY,
    WHOLE_RUNS,
    Outcome,
    Outcomes,
    Play,
    assert_ended_well,
    kill,
    marks_but_for_the_host,
    put_on,
)

pytestmark = WHOLE_RUNS

AT_ONCE = 6


def single(folder: Path) -> Outcome:
    arguments = ("--scenario", TINY, "--cores", "host", *AT_MOST)
    return Play(folder, *arguments, "--json-file", str(folder)).end()


def processes(folder: Path) -> Outcome:
    arguments = ("--scenario", TINY, "--cores", "host", *AT_MOST)
    return Play(folder, *arguments, "--processes", "2", "--json-file", str(folder)).end()


def master_and_workers(folder: Path) -> Outcome:
    arguments = ("--scenario", TINY, "--cores", "host", *AT_MOST, "--json-file", str(folder))
    return Play(folder, *arguments, workers=2).end()


def worker_killed(folder: Path) -> Outcome:
    play = Play(folder, *REST, "--processes", "2")
    kill(play.wait_for_event("worker-started", 2)[0]["pid"])
    return play.end()


def worker_taken_over(folder: Path) -> Outcome:
    """Its kubelets, which are nodes already, go on elsewhere, with one that joined in the middle of the run too."""
    play = Play(folder, *REST, "--lost-worker", "take-over", workers=2)
    workers = play.wait_for_event("worker-started", 2)
    play.wait_for(lambda: len(created(folder)) == 5)
    play.join()
    play.wait_for_event("worker-started", 3)
    kill(workers[0]["pid"])
    lost = wait_taken_over(play)
    play.wait_for(lambda: len(created(folder)) >= 5 + lost)
    return play.end_at_rest()


def worker_silent(folder: Path) -> Outcome:
    """Long enough to be given up, and then it comes back."""
    play = Play(folder, *REST, "--lost-worker", "take-over", workers=2)
    workers = play.wait_for_event("worker-started", 2)
    play.wait_for(lambda: len(created(folder)) == 5)
    os.kill(workers[0]["pid"], signal.SIGSTOP)
    lost = wait_taken_over(play)
    os.kill(workers[0]["pid"], signal.SIGCONT)
    play.wait_for(lambda: any(worker.poll() is not None for worker in play.workers))
    play.wait_for(lambda: len(created(folder)) >= 5 + lost)
    return play.end_at_rest()


def workers_leave(folder: Path) -> Outcome:
    """Two of three in turn, in order, as pods that are evicted."""
    play = Play(folder, *REST, "--lost-worker", "take-over", workers=3)
    workers = play.wait_for_event("worker-started", 3)
    play.wait_for(lambda: len(created(folder)) == 5)
    for count, worker in enumerate(workers[:2], 1):
        os.kill(worker["pid"], signal.SIGTERM)
        wait_taken_over(play, count)
    return play.end_at_rest()


def wait_taken_over(play: Play, losses: int = 1) -> int:
    """Until every node of so many lost workers goes on elsewhere; how many these are."""

    def placed() -> int:
        lost = [event["nodes"] for event in read_events(play.record) if event["kind"] == "worker-lost"]
        taken = [event["taken_over"] for event in read_events(play.record) if event["kind"] == "nodes-placed"]
        return sum(lost) if len(lost) == losses and sum(taken) == sum(lost) else 0

    count: int = play.wait_for(placed)
    return count


def created(record: Path) -> list[int]:
    """The code of each answer to the creation of a node."""
    rows = read_table(record, "requests").to_pylist()
    return [
        row["code"]
        for row in rows
        if (row["verb"], row["name"]) == ("create", "nodes")
        for _ in range(row["count"])
    ]


def all_workers_killed(folder: Path) -> Outcome:
    play = Play(folder, *REST, workers=1)
    kill(play.wait_for_event("worker-started")[0]["pid"])
    return play.end()


def only_member_killed(folder: Path) -> Outcome:
    play = Play(folder, *REST)
    play.wait_for_event("target-ready")
    kill(play.pid_of("member-0"))
    return play.end()


def one_of_three_members_killed(folder: Path) -> Outcome:
    play = Play(folder, *REST, "--members", "3")
    play.wait_for_event("target-ready")
    kill(play.pid_of("member-1"))
    play.wait_for_event("process-exited")
    before = read_table(folder, "requests").num_rows
    play.wait_for(lambda: read_table(folder, "requests").num_rows > before)
    return play.end_at_rest()


def store_killed(folder: Path) -> Outcome:
    play = Play(folder, *REST)
    play.wait_for_event("target-ready")
    kill(play.pid_of("store"))
    return play.end()


def master_killed(folder: Path) -> Outcome:
    play = Play(folder, *REST, "--processes", "2")
    play.wait_for_event("worker-started", 2)
    kill(play.master.pid)
    return play.end()


def interrupted(folder: Path) -> Outcome:
    play = Play(folder, "--scenario", "density", "--processes", "2")
    play.wait_for_event("worker-started", 2)
    play.wait_for_event("scenario-started")
    os.killpg(play.master.pid, signal.SIGINT)  # as a terminal does: workers get it too
    return play.end()


def terminated(folder: Path) -> Outcome:
    play = Play(folder, "--scenario", "density", *AT_MOST)
    play.wait_for_event("scenario-started")
    play.master.terminate()
    return play.end()


def interrupted_while_waiting(folder: Path) -> Outcome:
    play = Play(folder, *REST, "--master", "--expect-workers", "1")
    play.wait_for_event("target-ready")
    play.master.send_signal(signal.SIGINT)
    return play.end()


def bad_input_with_processes(folder: Path) -> Outcome:
    return Play(folder, "--scenario", "nosuch", "--processes", "2").end()


PLAYS: list[Callable[[Path], Outcome]] = [
    single,
    processes,
    master_and_workers,
    worker_killed,
    worker_taken_over,
    worker_silent,
    workers_leave,
    all_workers_killed,
    only_member_killed,
    one_of_three_members_killed,
    store_killed,
    master_killed,
    interrupted,
    terminated,
    interrupted_while_waiting,
    bad_input_with_processes,
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Of every play; they are put on together, before the first test asks for one."""
    folder = tmp_path_factory.mktemp("runs")
    return put_on(PLAYS, folder, AT_ONCE)


def locust_total(outcome: Outcome) -> int:
    """Requests by Locust's own statistics."""
    entries = json.loads(outcome.record.with_suffix(".json").read_text())
    return sum(entry["num_requests"] for entry in entries)


def assert_failed(outcome: Outcome, why: str) -> None:
    assert outcome.code == 1, outcome.output
    assert outcome.left == []
    assert f"{why} (invalid: True)" in outcome.marks
    assert sum(why in line for line in outcome.output.splitlines()) == 1, outcome.output
    assert "Traceback" not in outcome.output
    assert read_table(outcome.record, "series").num_rows > 0


def test_a_run_in_one_process_leaves_a_whole_record(outcomes: Outcomes) -> None:
    outcome = outcomes(single)
    assert_ended_well(outcome)
    results = outcome.manifest.results
    assert results["scenario"] == "Success"
    assert results["nodes_by_members"] == {"1": 5}
    assert results["host"]["beats"] > 0
    assert results["measurements"][0]["values"]
    assert outcome.requests == locust_total(outcome)
    assert read_table(outcome.record, "samples").num_rows > 0


@pytest.mark.parametrize("play", [processes, master_and_workers])
def test_what_every_worker_counted_reaches_the_record(
    outcomes: Outcomes, play: Callable[[Path], Outcome]
) -> None:
    outcome = outcomes(play)
    assert_ended_well(outcome)
    assert outcome.worker_codes == [0] * len(outcome.worker_codes)
    assert sorted(event["index"] for event in outcome.events("worker-started")) == [0, 1]
    assert outcome.requests == locust_total(outcome)
    assert outcome.manifest.results["nodes_by_members"] == {"1": 5}


@pytest.mark.parametrize("play", [single, processes, master_and_workers])
def test_each_kubelet_is_a_node_of_its_own(outcomes: Outcomes, play: Callable[[Path], Outcome]) -> None:
    assert created(outcomes(play).record) == [201] * 5, "a name was taken twice"


def test_nodes_of_a_lost_worker_are_taken_over_as_they_were(outcomes: Outcomes) -> None:
    outcome = outcomes(worker_taken_over)
    assert_ended_well(outcome)
    (lost,) = outcome.events("worker-lost")
    placed = outcome.events("nodes-placed")
    assert lost["nodes"] > 0
    assert sum(event["taken_over"] for event in placed) == lost["nodes"]
    assert sum(event["left"] for event in placed) == 0
    codes = created(outcome.record)
    assert (codes.count(201), codes.count(409)) == (5, lost["nodes"])  # each was there already
    reports = outcome.manifest.results["reports"]
    assert reports[str(lost["index"])]["lost"]
    assert sum(counts["missing"] + counts["twice"] for counts in reports.values()) == 0


def test_a_worker_that_was_given_up_does_not_come_back(outcomes: Outcomes) -> None:
    outcome = outcomes(worker_silent)
    assert outcome.code in (0, 4), outcome.output  # 4: the one that stood still was late
    assert outcome.left == []
    (lost,) = outcome.events("worker-lost")
    assert sum(event["taken_over"] for event in outcome.events("nodes-placed")) == lost["nodes"] > 0
    codes = created(outcome.record)
    assert (codes.count(201), codes.count(409)) == (5, lost["nodes"])
    silent = outcome.manifest.results["reports"][str(lost["index"])]
    assert (silent["lost"], silent["last"]) == (True, True), "it says what it did, and ends"


def test_each_worker_that_leaves_is_replaced(outcomes: Outcomes) -> None:
    outcome = outcomes(workers_leave)
    assert_ended_well(outcome)
    lost = outcome.events("worker-lost")
    assert len(lost) == 2
    placed = sum(event["taken_over"] for event in outcome.events("nodes-placed"))
    assert placed == sum(event["nodes"] for event in lost) > 0
    assert marks_but_for_the_host(outcome) == [], "each said all that it counted"


@pytest.mark.parametrize("play", [worker_killed, all_workers_killed])
def test_a_lost_worker_ends_the_run_and_marks_it(outcomes: Outcomes, play: Callable[[Path], Outcome]) -> None:
    outcome = outcomes(play)
    index = outcome.events("worker-started")[0]["index"]
    assert outcome.manifest.status == "failed"
    assert marks_but_for_the_host(outcome) == [f"worker {index} was lost, and its kubelets with it"]
    assert_failed(outcome, f"worker {index} was lost, and its kubelets with it")


@pytest.mark.parametrize(("play", "process"), [(only_member_killed, "member-0"), (store_killed, "store")])
def test_a_lost_process_that_nothing_replaces_ends_the_run(
    outcomes: Outcomes, play: Callable[[Path], Outcome], process: str
) -> None:
    outcome = outcomes(play)
    assert outcome.manifest.status == "failed"
    assert [event["process"] for event in outcome.events("process-exited")] == [process]
    assert_failed(outcome, f"{process} ended unasked (signal 9)")


def test_the_run_goes_on_without_one_of_three_members(outcomes: Outcomes) -> None:
    outcome = outcomes(one_of_three_members_killed)
    assert outcome.manifest.status == "completed"
    assert_failed(outcome, "member-1 ended unasked (signal 9)")


def test_nothing_outlives_a_killed_master_and_its_record_says_so(outcomes: Outcomes) -> None:
    outcome = outcomes(master_killed)
    assert outcome.left == []
    assert outcome.manifest.status == "killed"
    assert outcome.manifest.invalid == ["the run was killed before it could end its record"]
    assert read_table(outcome.record, "series").num_rows > 0


@pytest.mark.parametrize(
    ("play", "text"),
    [
        (interrupted, "interrupted by SIGINT"),
        (terminated, "interrupted by SIGTERM"),
        (interrupted_while_waiting, "interrupted by SIGINT before it began"),
    ],
)
def test_a_signal_ends_a_run_in_order(outcomes: Outcomes, play: Callable[[Path], Outcome], text: str) -> None:
    outcome = outcomes(play)
    assert (outcome.code, outcome.left, outcome.manifest.status) == (1, [], "interrupted"), outcome.output
    assert marks_but_for_the_host(outcome) == [text]
    assert "Traceback" not in outcome.output
    assert read_table(outcome.record, "series").num_rows > 0


def test_bad_input_is_one_line_and_leaves_no_worker(outcomes: Outcomes) -> None:
    outcome = outcomes(bad_input_with_processes)
    assert (outcome.code, outcome.left) == (2, [])
    lines = [line for line in outcome.output.splitlines() if line.startswith("swarmlet: ")]
    ours = "burst, claims, density, hold, list, load-5k, secrets-and-configmaps, watch-list"
    assert lines == [
        f"swarmlet: scenario 'nosuch': no such file, nor one of ours ({ours}); 'none' runs without"
    ]
    assert "Traceback" not in outcome.output
    assert not outcome.record.exists()


def test_the_pool_of_a_run_leaves_no_folder(outcomes: Outcomes) -> None:
    for play in (single, worker_killed, master_killed):
        target = outcomes(play).manifest.target
        assert not Path(target["kubeconfig"]).parent.exists()
        assert not psutil.pid_exists(target["store_pid"])
