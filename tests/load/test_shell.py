"""The shell of one machine: actions go to transport and timers, what happens comes back as events, in order."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.client.machine import (
    Action,
    Answered,
    Arm,
    Cancel,
    CloseConnections,
    Closed,
    Disarm,
    Failed,
    Finished,
    Fired,
    Note,
    Opened,
    Received,
    Sample,
    Send,
    UseCertificate,
)
from harness.load.shell import Shell
from harness.load.statistics import Statistics
from harness.wire.request import Failure, Request, Response, TransportError
from tests.load.fakes import FakeMachine, FakeTimers, FakeTransport

GET = Request("get", "GET", "/api/v1/nodes/a", "nodes")
WATCH = Request("watch", "GET", "/api/v1/pods?watch=1", "pods")
RESET = TransportError(Failure.RESET, "by peer", "member-1")
KEY = ("main", 1)


class World:
    """A shell with everything around it; `made` collects what came out."""

    def __init__(self, *steps: list[Action], last: list[Action] | None = None) -> None:
        self.machine = FakeMachine(*steps, last=last or [])
        self.transport: Any = FakeTransport()
        self.timers: Any = FakeTimers()
        self.statistics = Statistics(lambda **_: None)
        self.notes: list[Any] = []
        self.finished: list[Finished] = []
        self.errors: list[Exception] = []
        self.shell = Shell(
            "kubelet",
            self.machine,
            self.transport,
            self.timers,
            self.statistics,
            self.notes.append,
            self.finished.append,
            self.errors.append,
        )
        self.shell.start()

    def counted(self) -> list[tuple[Any, ...]]:
        """(user, verb, name, code, member, count) of what statistics were given."""
        return [(*row[1:6], row[7]) for row in self.statistics.take()]


def test_a_unary_answer_comes_back_whole_and_is_counted() -> None:
    world = World([Send(KEY, GET)])
    world.timers.time = 0.25
    world.transport.answer(0, 200, b'{"a"', b":1}")
    response = Response(200, {"audit-id": "1"}, b'{"a":1}', "member-0")
    assert world.machine.events == [(0.25, Answered(KEY, response))]
    assert world.counted() == [("kubelet", "get", "nodes", 200, "member-0", 1)]


def test_a_failure_names_the_member_and_is_counted_as_no_answer() -> None:
    world = World([Send(KEY, GET)])
    world.transport.fail(0, RESET)
    assert world.machine.seen == [Failed(KEY, RESET)]
    assert world.counted() == [("kubelet", "get", "nodes", 0, "member-1", 1)]


def test_an_answer_that_breaks_off_is_a_failure() -> None:
    world = World([Send(KEY, GET)])
    sink = world.transport.sent[0][1]
    sink.on_head(200, {}, "member-0")
    sink.on_data(b"half")
    sink.on_end(RESET)
    assert world.machine.seen == [Failed(KEY, RESET)]
    assert world.counted() == [("kubelet", "get", "nodes", 0, "member-0", 1)]


def test_a_watch_opens_streams_and_closes_and_is_counted_when_it_opens() -> None:
    world = World([Send(KEY, WATCH)])
    sink = world.transport.sent[0][1]
    sink.on_head(200, {}, "member-2")
    sink.on_data(b"one")
    sink.on_data(b"two")
    sink.on_end(None)
    assert world.machine.seen == [
        Opened(KEY, "member-2"),
        Received(KEY, b"one"),
        Received(KEY, b"two"),
        Closed(KEY, None),
    ]
    assert world.counted() == [("kubelet", "watch", "pods", 200, "member-2", 1)]


def test_a_watch_that_breaks_says_how() -> None:
    world = World([Send(KEY, WATCH)])
    sink = world.transport.sent[0][1]
    sink.on_head(200, {}, "member-2")
    sink.on_end(RESET)
    assert world.machine.seen[-1] == Closed(KEY, RESET)


def test_a_watch_that_is_refused_is_a_unary_answer() -> None:
    world = World([Send(KEY, WATCH)])
    world.transport.answer(0, 403, b"no")
    assert world.machine.seen == [Answered(KEY, Response(403, {"audit-id": "1"}, b"no", "member-0"))]
    assert world.counted() == [("kubelet", "watch", "pods", 403, "member-0", 1)]


def test_a_timer_fires_at_its_time() -> None:
    world = World([Arm(KEY, 5.0)])
    world.timers.advance(4.9)
    assert world.machine.events == []
    world.timers.advance(5.0)
    assert world.machine.events == [(5.0, Fired(KEY))]


def test_a_timer_that_is_armed_again_replaces_the_first() -> None:
    world = World([Arm(KEY, 5.0), Arm(KEY, 7.0)])
    world.timers.advance(10)
    assert [now for now, _ in world.machine.events] == [7.0]


def test_a_disarmed_timer_never_fires_and_an_unknown_one_is_no_matter() -> None:
    world = World([Arm(KEY, 5.0), Disarm(KEY), Disarm(("other",))])
    world.timers.advance(10)
    assert world.machine.events == []


def test_a_cancelled_request_is_given_up_and_an_ended_one_is_not_touched() -> None:
    world = World([Send(KEY, GET), Send(("b",), GET), Cancel(KEY)], [Cancel(("b",))])
    world.transport.answer(1, 200)
    assert [handle.cancelled for _, _, handle in world.transport.sent] == [True, False]


def test_a_key_that_is_used_again_belongs_to_the_newer_request() -> None:
    world = World([Send(KEY, GET)], [Send(KEY, GET)], [Cancel(KEY)])
    world.transport.answer(0, 200)
    world.shell.feed(Fired(("x",)))
    assert [handle.cancelled for _, _, handle in world.transport.sent] == [False, True]


def test_an_event_that_comes_during_another_waits_its_turn() -> None:
    world = World([Arm(KEY, 1.0)], [Send(KEY, GET), Note("after", {})], [Note("answered", {})])
    world.transport.at_once = (200, b"")  # answers while it is being sent
    world.timers.advance(1.0)
    assert [note.kind for note in world.notes] == ["after", "answered"]
    assert [type(event) for event in world.machine.seen] == [Fired, Answered]


def test_a_request_that_is_answered_at_once_leaves_nothing_to_cancel() -> None:
    world = World([], [Send(KEY, GET)], [Cancel(KEY)])
    world.transport.at_once = (200, b"")
    world.shell.feed(Fired(KEY))
    assert not world.transport.sent[0][2].cancelled


def test_notes_samples_and_the_end_go_to_their_owner() -> None:
    note, sample, end = Note("phase-started", {"step": 1}), Sample("startup_ms", 5.0), Finished(("x",))
    world = World([note, sample, end])
    assert world.notes == [note, sample]
    assert world.finished == [end]


def test_stop_carries_out_the_last_actions_then_gives_everything_up() -> None:
    world = World([Send(KEY, GET), Arm(KEY, 5.0)], last=[Cancel(KEY), Note("bye", {})])
    world.shell.stop()
    assert world.transport.sent[0][2].cancelled
    assert [note.kind for note in world.notes] == ["bye"]
    assert world.transport.closed
    assert world.timers.pending == []
    world.shell.feed(Fired(KEY))
    world.shell.stop()
    assert world.machine.events == []
    assert len(world.notes) == 1


def test_a_kill_leaves_the_machine_no_last_action_and_its_peers_no_goodbye() -> None:
    world = World([Send(KEY, WATCH), Arm(("t",), 5.0)], last=[Note("stopped", {})])
    world.transport.sent[0][1].on_head(200, {}, "member-0")
    world.shell.kill()
    assert (world.transport.killed, world.transport.closed) == (True, False)
    assert world.timers.pending == []
    world.transport.sent[0][1].on_end(RESET)
    world.shell.stop()
    assert world.notes == []
    assert world.machine.seen == [Opened(KEY, "member-0", "")], "and it hears nothing more"


@pytest.mark.parametrize("when", ["start", "event"])
def test_a_machine_that_raises_is_stopped_and_its_owner_told(when: str) -> None:
    world = World([Arm(KEY, 5.0), Arm(("b",), 6.0)])
    error = RuntimeError("a bug")
    if when == "event":
        world.machine.raises = error
        world.timers.advance(5.0)
    else:
        world.machine.start = lambda now: (_ for _ in ()).throw(error)  # type: ignore[method-assign]
        world.shell.start()
    assert world.errors == [error]
    assert world.transport.closed
    assert world.timers.pending == []
    world.shell.feed(Fired(("b",)))
    assert len(world.machine.events) == (1 if when == "event" else 0)


def test_all_connections_are_closed_when_the_machine_says_so_and_that_is_counted() -> None:
    world = World([CloseConnections("new certificate")])
    assert world.transport.closings == 1
    assert world.notes == [Sample("connections_closed", 1.0, (("why", "new certificate"),))]


def test_a_certificate_goes_to_whoever_holds_the_key_and_is_dropped_where_nobody_does() -> None:
    certificates: list[bytes] = []
    world = World([UseCertificate(b"PEM")])
    assert world.notes == []
    shell = Shell(
        "kubelet",
        FakeMachine([UseCertificate(b"PEM")], last=[]),
        world.transport,
        world.timers,
        world.statistics,
        world.notes.append,
        world.finished.append,
        world.errors.append,
        certificates.append,
    )
    shell.start()
    assert certificates == [b"PEM"]


def test_a_machine_hears_in_which_encoding_a_watch_is_answered() -> None:
    world = World([Send(KEY, WATCH)])
    _, sink, _ = world.transport.sent[0]
    sink.on_head(200, {"content-type": "application/vnd.kubernetes.protobuf;stream=watch"}, "member-0")
    opened = [event for _, event in world.machine.events if isinstance(event, Opened)]
    assert [each.content_type for each in opened] == ["application/vnd.kubernetes.protobuf;stream=watch"]


def test_a_body_that_nobody_reads_is_counted_and_not_kept() -> None:
    world = World([Send(KEY, msgspec.structs.replace(GET, discards=True))])
    world.transport.answer(0, 200, b"abc", b"de")
    (event,) = world.machine.seen
    assert isinstance(event, Answered)
    assert (event.response.body, event.response.discarded_bytes) == (b"", 5)


def test_a_refusals_body_is_kept_whatever_was_asked_for() -> None:
    world = World([Send(KEY, msgspec.structs.replace(GET, discards=True))])
    world.transport.answer(0, 404, b"abc", b"de")
    (event,) = world.machine.seen
    assert isinstance(event, Answered)
    assert (event.response.body, event.response.discarded_bytes) == (b"abcde", 0)
