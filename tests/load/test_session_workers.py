"""What becomes of a session whose workers come and go, and of what they counted."""

from __future__ import annotations

import pytest

from harness.load.workers.nodes import LostWorker
from harness.observe.record import read_events, read_table
from tests.load.fakes import client
from tests.load.sessions import ROW, Makes, ended, report


@pytest.mark.parametrize("how", ["missing", "gone"])
def test_a_lost_worker_ends_the_run(make: Makes, how: str) -> None:
    session = make()
    session.look()
    if how == "missing":
        make.runner.workers["w1"].state = "missing"
    else:
        del make.runner.workers["w1"]
    session.look()
    assert session.over
    assert ended(session) == ("failed", 1, [("worker 1 was lost, and its kubelets with it", True)])


@pytest.mark.parametrize("policy", [LostWorker.TAKE_OVER, LostWorker.LEAVE])
def test_a_run_may_go_on_without_a_worker_of_kubelets_alone(make: Makes, policy: LostWorker) -> None:
    session = make(lost_worker=policy)
    make.runs({"w0": {"Kubelets": 3, "ClusterLoader": 1}, "w1": {"Kubelets": 2}})
    session.take(report(1, nodes=3), 0)
    session.take(report(1, ROW, nodes=2), 1)
    session.look()
    del make.runner.workers["w1"]
    session.tell("nodes-wanted", {"index": 0, "count": 2})  # before the next look
    names = ["swarmlet-1-0", "swarmlet-1-1"] if policy is LostWorker.TAKE_OVER else []
    answer = {"names": names, "made": 0, "empty": 2 - len(names)}  # of a fleet of 5
    assert make.runner.sent == [("swarmlet-nodes", answer, "w0")]
    assert not session.over
    session.take(report(2, last=True), 0)
    session.tell("scenario-ended", {"failures": [], "violations": []})
    why = "worker 1 was lost: what it counted since its last report is missing"
    assert ended(session) == ("completed", 0, [(why, False)])
    events = read_events(session.options.record)
    (lost,) = [event for event in events if event["kind"] == "worker-lost"]
    assert (lost["index"], lost["nodes"], lost["then"]) == (1, 2, policy.value)


def test_what_a_lost_worker_says_late_is_counted_but_it_gets_no_nodes(make: Makes) -> None:
    session = make(lost_worker=LostWorker.TAKE_OVER)
    make.runs({"w0": {"Kubelets": 3, "ClusterLoader": 1}, "w1": {"Kubelets": 2}})
    session.take(report(1, nodes=3), 0)
    session.take(report(1, nodes=2), 1)
    session.look()
    del make.runner.workers["w1"]
    session.tell("nodes-wanted", {"index": 0, "count": 2})
    session.take(report(2, ROW, nodes=2, last=True), 1)
    session.tell("nodes-wanted", {"index": 1, "count": 1})
    assert [sent[2] for sent in make.runner.sent] == ["w0"]
    session.take(report(2, nodes=3, last=True), 0)
    session.tell("scenario-ended", {"failures": [], "violations": []})
    assert ended(session) == ("completed", 0, [])
    assert read_table(session.options.record, "requests").num_rows == 1


def test_nodes_that_nobody_takes_over_are_told(make: Makes) -> None:
    session = make(lost_worker=LostWorker.TAKE_OVER)
    make.runs({"w0": {"Kubelets": 3, "ClusterLoader": 1}, "w1": {"Kubelets": 2}})
    session.take(report(1, nodes=3), 0)
    session.take(report(1, nodes=2, last=True), 1)
    session.look()
    del make.runner.workers["w1"]
    session.look()
    session.take(report(2, nodes=3, last=True), 0)
    session.tell("scenario-ended", {"failures": [], "violations": []})
    assert ended(session)[2] == [("2 nodes of lost workers were taken over by none", False)]


def test_the_worker_of_the_scenario_is_nobody_elses_to_take_over(make: Makes) -> None:
    session = make(lost_worker=LostWorker.TAKE_OVER)
    make.runs({"w0": {"Kubelets": 3}, "w1": {"Kubelets": 2, "ClusterLoader": 1}})
    session.look()
    del make.runner.workers["w1"]
    session.look()
    assert ended(session)[:2] == ("failed", 1)


def test_reports_that_never_came_or_came_twice_are_told(make: Makes) -> None:
    session = make()
    session.take(report(1, ROW), 0)
    session.take(report(1, ROW), 0)
    session.take(report(4, ROW, last=True), 0)
    session.take(report(1, ROW), 1)
    session.tell("scenario-ended", {"failures": [], "violations": []})
    gaps = ["worker 0: 2 of 4 reports never came", "worker 1 ended without its last report"]
    assert ended(session) == ("completed", 0, [(text, False) for text in gaps])
    assert read_table(session.options.record, "requests").num_rows == 3
    counts = {"taken": 2, "missing": 2, "twice": 1, "last": True, "lost": False, "clock_ms": 0.0}
    assert session.record.manifest.results["reports"]["0"] == counts


def test_a_lost_worker_that_shared_the_operations_is_told_as_such(make: Makes) -> None:
    session = make()
    session.look()
    session.desk.crew = {"worker-0", "worker-1"}
    del make.runner.workers["w1"]
    session.look()
    text = "worker 1 was lost, and its kubelets and its share of the operations with it"
    assert ended(session) == ("failed", 1, [(text, True)])


def test_a_worker_that_comes_later_is_no_loss(make: Makes) -> None:
    session = make()
    session.look()
    make.runner.workers["w2"] = client("w2")
    session.look()
    assert not session.over


def test_after_the_end_nobody_is_missed(make: Makes) -> None:
    session = make()
    session.look()
    session.tell("scenario-ended", {"failures": [], "violations": []})
    make.runner.workers.clear()
    session.look()
    session._process_exited("member-0", -9)
    assert ended(session) == ("completed", 0, [])


def test_when_locust_ends_by_itself_it_is_for_the_last_workers_loss(make: Makes) -> None:
    session = make()
    session.look()
    make.runner.workers.clear()
    assert ended(session)[:2] == ("failed", 1)


def test_workers_that_a_signal_takes_along_are_not_lost(make: Makes) -> None:
    session = make()
    session.look()
    make.runner.workers.clear()
    session.interrupt("SIGINT")
    session.look()
    assert ended(session)[2] == [("interrupted by SIGINT", True)]
