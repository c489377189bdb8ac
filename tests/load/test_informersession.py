"""A session whose run has informers: when it ends, and as what."""

from __future__ import annotations

import pytest

from harness.fleet.informers.auditor import CHECKED, LAST_WITHIN_S, VIOLATION
from harness.fleet.informers.options import Crowd
from harness.load.informerhub import HERE, SYNCED
from harness.load.informerplan import InformerPlan
from harness.load.informerrun import InformerRun
from harness.load.session import Session
from tests.load.sessions import Clock, Makes, ended


def with_informers(session: Session) -> Session:
    session.work.informers = InformerRun(
        InformerPlan((Crowd(count=1),)), session.tell, lambda kind, data: None, writes=False, alone=True
    )
    return session


def here(session: Session) -> None:
    session.tell(HERE, {"process": "a"})


def test_the_cap_counts_from_the_moment_at_which_informers_begin(make: Makes, clock: Clock) -> None:
    session = with_informers(make(scenario=""))
    clock.now += 50
    here(session)
    clock.now += 59
    session.look()
    assert session._ending_as is None
    clock.now += 1
    session.look()
    assert session._ending_as is not None
    assert not session.over


def test_the_run_ends_when_the_last_check_is_over(make: Makes, clock: Clock) -> None:
    session = with_informers(make(scenario=""))
    here(session)
    clock.now += 60
    session.look()
    session.look()
    assert not session.over
    session.tell(CHECKED, {"user": "informer", "compared": 3})
    session.look()
    assert session.over
    assert ended(session) == ("completed", 0, [])
    assert session.record.manifest.results["informers"]["checked"] == {"compared": 3}


def test_a_violation_fails_the_run_at_its_end(make: Makes, clock: Clock) -> None:
    session = with_informers(make(scenario=""))
    here(session)
    fields = {"violation": "lost", "who": "i", "scope": "s", "key": "k", "revision": 7, "text": "t"}
    session.tell(VIOLATION, fields)
    assert not session.over
    clock.now += 60
    session.look()
    session.tell(CHECKED, {"user": "informer", "violations": 1})
    session.look()
    text = "informers were told wrong: lost: i: s k @7: t"
    assert ended(session) == ("failed", 1, [(text, True)])


def test_a_check_that_never_ends_is_given_up_and_marked(make: Makes, clock: Clock) -> None:
    session = with_informers(make(scenario=""))
    here(session)
    clock.now += 60
    session.look()
    clock.now += LAST_WITHIN_S + 11
    session.look()
    assert session.over
    text = "not checked at the end: what the informers of 1 process(es) were told"
    assert ended(session) == ("completed", 0, [(text, False)])


SCENARIO_ENDED = ("scenario-ended", {"failures": [], "violations": []})


def test_a_scenario_that_is_over_waits_for_informers_to_sync(make: Makes, clock: Clock) -> None:
    session = with_informers(make())
    session.tell(*SCENARIO_ENDED)
    session.look()
    here(session)
    session.look()
    assert not session.over
    session.tell(SYNCED, {"process": "a", "seconds": 1.0, "objects": 3, "bytes": 30})
    session.look()
    session.tell(CHECKED, {"user": "informer", "compared": 3})
    session.look()
    assert session.over
    assert ended(session) == ("completed", 0, [])
    assert session.record.manifest.results["informers"]["last_sync_s"] == 1.0


@pytest.mark.parametrize("by", ["-t", "SIGTERM"])
def test_that_waiting_ends_with_the_run(make: Makes, clock: Clock, by: str) -> None:
    session = with_informers(make())
    session.tell(*SCENARIO_ENDED)
    clock.now += 59
    session.look()
    assert not session.over
    if by == "-t":
        clock.now += 1
    else:
        session.interrupt(by)
    session.look()
    assert session.over
    text = "informers never began: not all users came, or what they are to find was not made"
    assert ended(session) == ("completed", 0, [(text, False)])


def test_a_scenario_that_failed_waits_for_nothing(make: Makes) -> None:
    session = with_informers(make())
    here(session)
    session.tell("scenario-ended", {"failures": ["no"], "violations": []})
    assert session.over


@pytest.mark.parametrize("closing", [True, False])
def test_locusts_own_end_does_not_wait_for_a_check(make: Makes, closing: bool) -> None:
    session = with_informers(make(scenario="", run_time_s=None))
    here(session)
    if closing:
        session.interrupt("SIGINT")
        session.look()
        assert session._ending_as is not None
    status, code, _ = ended(session)
    assert (status, code) == ("completed", 0)
