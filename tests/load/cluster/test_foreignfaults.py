"""Faults of members that somebody else started: what a run learns of them, and whom it does not ask again."""

from __future__ import annotations

from typing import Any

import gevent
import msgspec
import pytest

from harness.apiserver.clock import VirtualClock
from harness.apiserver.faults.active import Faults, serve
from harness.apiserver.faults.kinds import Compact, GoAway
from harness.apiserver.metrics.families import Metrics
from harness.load.cluster import foreignfaults
from harness.load.cluster.foreignfaults import ForeignFaults, MemberFaults
from harness.load.plan import Target, TargetMember
from harness.wire.request import Failure, Response, TransportError
from tests.apiserver.member.fakemember import FakeExchange
from tests.conftest import HANG_S
from tests.load.cluster.conftest import Api

AWAY = TransportError(Failure.REFUSED, "no")


class Member:
    """The list of a member's faults, asked as over HTTP."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.start()

    def start(self) -> None:
        self.faults = Faults(self.clock, "seed", Metrics())
        self.faults.provide(GoAway, lambda *_: None)
        self.faults.provide(Compact, lambda *_: None)

    @property
    def answer(self) -> Response:
        status, _, body = serve(self.faults, FakeExchange("GET", "/swarmlet/faults", {}, b""))
        return Response(status, {}, body)


def told(found: list[tuple[dict[str, Any], float]]) -> list[tuple[str, str, str, float]]:
    return [(event["kind"], event["member"], event["fault"], age_s) for event, age_s in found]


def test_each_start_and_end_is_told_once_with_its_age() -> None:
    member, seen = Member(), MemberFaults("member-1")
    assert seen.take(member.answer) == []
    member.faults.begin(GoAway(0.5), 20.0).hit(2)
    member.clock.advance(0.25)
    assert told(seen.take(member.answer)) == [("fault-started", "member-1", "goaway chance=0.5", 0.25)]
    assert seen.take(member.answer) == []
    member.clock.advance(20.0)
    ((event, age_s),) = seen.take(member.answer)
    about = {"id": 1, "fault": "goaway chance=0.5", "fault_kind": "goaway", "seconds": 20.0, "hits": 2}
    assert event == {"kind": "fault-ended", "member": "member-1", **about}
    assert age_s == 0.25


def test_what_happens_at_once_and_what_is_short_are_told_too() -> None:
    member, seen = Member(), MemberFaults("m")
    seen.take(member.answer)
    member.faults.begin(Compact())
    member.faults.begin(GoAway(), 0.5)
    member.clock.advance(1.0)
    assert [entry[:1] + entry[3:] for entry in told(seen.take(member.answer))] == [
        ("fault-started", 1.0),
        ("fault-started", 1.0),
        ("fault-ended", 0.5),
    ]


def test_of_what_was_before_the_run_only_what_is_active_still_is_told() -> None:
    member, seen = Member(), MemberFaults("m")
    member.faults.begin(GoAway(0.5), 1.0)
    member.faults.begin(GoAway(0.25))
    member.clock.advance(60.0)
    ((event, age_s),) = seen.take(member.answer)
    assert (event["kind"], event["fault"], age_s) == ("fault-started", "goaway chance=0.25", 0.0)
    member.faults.clear()
    assert told(seen.take(member.answer)) == [("fault-ended", "m", "goaway chance=0.25", 0.0)]


def test_a_member_that_was_started_again_counts_anew() -> None:
    member, seen = Member(), MemberFaults("m")
    member.faults.begin(Compact())
    member.faults.begin(Compact())
    member.clock.advance(5.0)
    seen.take(member.answer)
    assert seen.take(AWAY) == []
    member.start()
    member.faults.begin(GoAway())
    member.clock.advance(1.0)
    assert told(seen.take(member.answer)) == [("fault-started", "m", "goaway", 1.0)]


@pytest.mark.parametrize(
    ("first", "asked"),
    [
        (Response(404, {}, b""), False),
        (Response(403, {}, b""), False),
        (Response(200, {}, b"<html>"), False),
        (Response(200, {}, b'{"faults":[]}'), False),
        (Response(200, {}, b"\xff"), False),
        (Response(401, {}, b""), True),
        (Response(429, {}, b""), True),
        (Response(503, {}, b""), True),
        (AWAY, True),
    ],
)
def test_who_has_no_such_page_is_asked_once(first: Response | TransportError, asked: bool) -> None:
    seen = MemberFaults("m")
    assert seen.take(first) == []
    assert seen.asked is asked


def test_who_has_shown_it_is_asked_whatever_it_answers_later() -> None:
    member, seen = Member(), MemberFaults("m")
    seen.take(member.answer)
    seen.take(Response(404, {}, b""))
    assert seen.asked


def test_each_member_is_asked_each_second_with_the_credentials_of_now(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreignfaults, "ASK_EVERY_S", 0.001)
    member, heard = Member(), []
    api.answer = lambda *_: (200, msgspec.json.decode(member.answer.body))
    target = Target((TargetMember("member-7", "127.0.0.1", api.port),), tls=False, token="one")
    faults = ForeignFaults(target, lambda event, age_s: heard.append((event["kind"], event["member"])))
    try:
        with gevent.Timeout(HANG_S):
            while not api.asked:
                gevent.sleep(0.001)
            member.faults.begin(Compact())
            while not heard:
                gevent.sleep(0.001)
            faults.refresh(msgspec.structs.replace(target, token="two"))
            while "Bearer two" not in [headers["authorization"] for headers in api.headers]:
                gevent.sleep(0.001)
    finally:
        faults.stop()
    assert heard == [("fault-started", "member-7")]
    assert {path for _, path, _, _ in api.asked} == {"/swarmlet/faults"}


def test_a_real_apiserver_is_asked_once(api: Api) -> None:
    target = Target((TargetMember("apiserver", "127.0.0.1", api.port),), tls=False)
    faults = ForeignFaults(target, lambda *_: None)
    with gevent.Timeout(HANG_S):
        gevent.joinall(faults._greenlets)
    assert len(api.asked) == 1
