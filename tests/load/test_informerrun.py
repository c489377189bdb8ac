"""The master's side of informers: when all begin, when the run may end, what it then says."""

from __future__ import annotations

from typing import Any

import pytest

from harness.fleet.informers.auditor import CHECKED, LAST_WITHIN_S, VIOLATION
from harness.fleet.informers.options import Crowd
from harness.fleet.informers.writer import READY
from harness.load.informerhub import GO, HERE, LAST, SYNCED
from harness.load.informerplan import InformerPlan
from harness.load.informerrun import SYNC_WITHIN_S, InformerRun


class Play:
    def __init__(self, informers: int = 2, *, writes: bool = True, alone: bool = True) -> None:
        self.told: list[str] = []
        self.sent: list[dict[str, Any]] = []
        self.run = InformerRun(
            InformerPlan((Crowd(count=informers),)),
            lambda kind, fields: self.told.append(kind),
            lambda kind, data: self.sent.append(data),
            writes=writes,
            alone=alone,
        )

    def here(self, *processes: str) -> None:
        for process in processes:
            self.run.take(HERE, {"process": process})

    def going(self) -> Play:
        self.run.take(READY, {})
        self.here("a", "b")
        return self

    def synced(self, *processes: str) -> None:
        for process in processes:
            self.run.take(SYNCED, {"process": process, "seconds": 1.0, "objects": 1, "bytes": 10})

    def violation(self, key: str = "ns/x") -> None:
        fields = {
            "violation": "lost",
            "who": "i",
            "scope": "configmaps",
            "key": key,
            "revision": 7,
            "text": "t",
        }
        self.run.take(VIOLATION, fields)

    def checked(self, **counts: int) -> None:
        for count in ({"compared": 2, **counts}, {"compared": 1}):
            self.run.take(CHECKED, {"user": "informer", **count})


@pytest.mark.parametrize("last", ["writer", "informer"])
def test_all_begin_when_all_are_there_and_what_they_find_is(last: str) -> None:
    play = Play()
    if last == "informer":
        play.run.take(READY, {})
    play.here("a", "b")
    if last == "writer":
        assert not play.run.went
        play.run.take(READY, {})
    assert play.sent == [{"do": GO, "crowds": {"a": [0], "b": [0]}}]
    assert play.told == ["informers-started", "phase-started"]
    play.here("b")
    assert len(play.sent) == 1


def test_a_process_that_comes_late_begins_at_once() -> None:
    play = Play().going()
    play.here("c", "c")
    assert play.sent[1:] == [{"do": GO, "crowds": {"c": [0]}}]


def test_beside_a_scenario_the_load_phase_is_the_scenarios() -> None:
    assert Play(alone=False).going().told == ["informers-started"]


def test_without_a_writer_nothing_is_waited_for() -> None:
    play = Play(writes=False)
    play.here("a", "b")
    assert play.run.went


def test_the_last_sync_is_that_of_the_slowest_process() -> None:
    play = Play().going()
    play.run.take(SYNCED, {"process": "a", "seconds": 2.0, "objects": 10, "bytes": 100})
    assert "last_sync_s" not in play.run.results
    play.run.take(SYNCED, {"process": "b", "seconds": 3.0, "objects": 20, "bytes": 200})
    assert play.run.results == {"last_sync_s": 3.0, "objects_until_then": 30, "bytes_until_then": 300}


def test_the_end_waits_for_the_last_check_of_every_process() -> None:
    play = Play().going()
    play.run.look(10.0)
    play.run.close(10.0)
    play.run.close(11.0)
    assert play.sent[1:] == [{"do": LAST}]
    assert not play.run.ended
    play.checked()
    play.run.look(12.0)
    assert play.run.ended
    assert play.run.finish() == ([], [])
    assert play.run.results == {"informers": 2, "checked": {"compared": 3}}


def test_the_end_does_not_wait_for_ever() -> None:
    play = Play().going()
    play.run.close(10.0)
    play.run.look(10.0 + LAST_WITHIN_S)
    assert not play.run.ended
    play.run.look(30.0 + LAST_WITHIN_S)
    assert play.run.ended
    marks = play.run.finish()[1]
    assert marks == ["not checked at the end: what the informers of 2 process(es) were told"]


def test_a_patient_end_waits_until_all_have_synced() -> None:
    play = Play()
    play.run.close(10.0, patient=True)
    play.going()
    play.synced("a")
    play.run.look(11.0)
    assert len(play.sent) == 1, "the go alone"
    play.synced("b")
    play.run.look(12.0)
    assert play.sent[1:] == [{"do": LAST}]
    assert not play.run.ended


def test_a_patient_end_does_not_wait_where_all_have_synced() -> None:
    play = Play().going()
    play.synced("a", "b")
    play.run.close(10.0, patient=True)
    assert play.sent[1:] == [{"do": LAST}]


def test_a_patient_end_has_an_end() -> None:
    play = Play()
    play.run.close(10.0, patient=True)
    play.run.close(20.0, patient=True)
    play.run.look(9.0 + SYNC_WITHIN_S)
    assert not play.run.ended
    play.run.look(10.0 + SYNC_WITHIN_S)
    assert play.run.ended
    assert play.run.finish()[1][0].startswith("informers never began")


def test_an_end_without_patience_cuts_it_short() -> None:
    play = Play().going()
    play.run.close(10.0, patient=True)
    play.run.close(11.0)
    assert play.sent[1:] == [{"do": LAST}]


def test_what_never_began_ends_at_once() -> None:
    play = Play()
    play.run.close(10.0)
    assert play.run.ended
    assert play.sent == []
    assert play.run.finish()[1] == [
        "informers never began: not all users came, or what they are to find was not made"
    ]


def test_violations_are_failures_in_words_the_first_ones_each() -> None:
    play = Play().going()
    play.violation()
    play.violation("")
    play.checked(violations=2)
    failures, _ = play.run.finish()
    assert failures == [
        "informers were told wrong: lost: i: configmaps ns/x @7: t",
        "informers were told wrong: lost: i: configmaps @7: t",
    ]


def test_many_violations_are_counted() -> None:
    play = Play().going()
    for number in range(5):
        play.violation(f"ns/{number}")
    play.checked(violations=40)
    failures, _ = play.run.finish()
    assert len(failures) == 4
    assert failures[-1] == ("informers were told wrong in 40 ways; see informer-violation in events.jsonl")


def test_what_could_not_be_compared_is_marked() -> None:
    play = Play().going()
    play.checked(undecided=1, unsynced=2, failed=3)
    assert play.run.finish()[1] == [
        "what informers were told could not be compared at the end: 1 times",
        "2 informer(s) were never given a whole state",
        "3 audit(s) got no answer",
    ]
