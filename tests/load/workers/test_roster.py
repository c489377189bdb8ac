"""What the master knows of its workers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.load.workers.roster import Lost, Reports, Roster, only
from tests.load.fakes import FakeRunner


def test_without_workers_nobody_is_lost() -> None:
    roster = Roster(SimpleNamespace())
    assert not roster.distributed
    assert roster.look() == []
    assert roster.client_id(0) is None


def test_what_a_lost_one_ran_is_remembered_from_before() -> None:
    runner = FakeRunner("w0", "w1")
    runner.workers["w1"].user_classes_count = {"Kubelets": 3}
    roster = Roster(runner)
    assert roster.look() == []
    runner.workers["w1"].state = "missing"
    runner.workers["w1"].user_classes_count = {}  # as Locust does
    assert roster.look() == [Lost(1, {"Kubelets": 3})]
    assert roster.look() == []
    assert roster.client_id(0) == "w0"
    assert roster.client_id(5) is None


def test_reports_are_counted_once_and_gaps_are_known() -> None:
    roster = Roster(FakeRunner("w0"))
    took = [roster.take(0, number, last=number == 6) for number in (1, 2, 2, 5, 4, 6)]
    assert took == [True, True, False, True, False, True]
    assert roster.reports == {0: Reports(taken=4, missing=2, twice=2, last=True)}
    assert roster.gaps(True) == ["worker 0: 2 of 6 reports never came"]


def test_one_that_was_lost_or_ended_early_is_named_where_the_run_ended_in_order() -> None:
    runner = FakeRunner("w0", "w1", "w2")
    roster = Roster(runner)
    roster.look()
    for worker in range(3):
        roster.take(worker, 1, last=worker == 2)
    del runner.workers["w1"]
    roster.look()
    assert roster.gaps(True) == [
        "worker 0 ended without its last report",
        "worker 1 was lost: what it counted since its last report is missing",
    ]
    assert roster.gaps(False) == []


def test_the_fastest_report_tells_how_far_a_clock_is_off() -> None:
    roster = Roster(FakeRunner("w0"))
    for worker, sent, received in ((0, 10.0, 10.5), (0, 20.0, 20.004), (1, 10.0, 12.1), (2, 11.0, 10.0)):
        roster.take(worker, 1, last=True)
        roster.compare_clocks(worker, sent, received)
    assert roster.reports[0].clock_ms == pytest.approx(4.0)
    assert roster.clocks() == [
        "the clock of worker 1 is 2.1 s behind the master's: so are the times of what it counted",
        "the clock of worker 2 is 1.0 s ahead of the master's: so are the times of what it counted",
    ]


def test_users_of_other_classes_count_where_there_are_some() -> None:
    assert only({"Kubelets": 3, "ClusterLoader": 0}, {"Kubelets"})
    assert not only({"Kubelets": 3, "ClusterLoader": 1}, {"Kubelets"})
