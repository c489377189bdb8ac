"""How long a client was without watches that it had, told once it has all again."""

from __future__ import annotations

from typing import Any

from harness.client.machine import Arm, Cancel, Closed, Disarm, Sample, Send
from harness.wire.request import Failure, TransportError
from tests.load.test_shell import RESET, WATCH, World

A, B = (("secrets", "a"), "watch"), (("secrets", "b"), "watch")
LOST = (("why", "lost"),)


def opened(world: World, index: int) -> Any:
    sink = world.transport.sent[index][1]
    sink.on_head(200, {}, "member-0")
    return sink


def samples(world: World) -> list[Sample]:
    return [note for note in world.notes if isinstance(note, Sample)]


def two_lost_at(time: float, *then: list[Any]) -> World:
    """Both of a client's watches break; `then` is what its machine does at each Closed, and after."""
    world = World([Send(A, WATCH), Send(B, WATCH)], [], [], *then)
    sinks = opened(world, 0), opened(world, 1)
    world.timers.time = time
    for sink in sinks:
        sink.on_end(RESET)
    return world


def test_it_is_the_time_until_the_last_one_is_open_again() -> None:
    world = two_lost_at(10.0, [Send(A, WATCH)], [Send(B, WATCH)])
    world.timers.time = 12.0
    opened(world, 2)
    assert samples(world) == []
    world.timers.time = 17.5
    opened(world, 3)
    assert samples(world) == [Sample("watches_missing_ms", 7500.0, LOST)]


def test_tries_that_fail_are_part_of_it() -> None:
    world = World([Send(A, WATCH)], [], [Send(A, WATCH)], [Arm((A[0], "backoff"), 3.0)], [Send(A, WATCH)])
    opened(world, 0).on_end(RESET)
    world.transport.fail(1, TransportError(Failure.REFUSED, "connect", ""))
    world.timers.advance(3.0)
    opened(world, 2)
    assert samples(world) == [Sample("watches_missing_ms", 3000.0, LOST)]


def test_a_watch_whose_time_was_up_is_told_apart() -> None:
    world = World([Send(A, WATCH)], [], [Send(A, WATCH)])
    opened(world, 0).on_end(None)
    opened(world, 1)
    assert samples(world) == [Sample("watches_missing_ms", 0.0, (("why", "ended"),))]


def test_one_that_is_wanted_no_more_is_not_waited_for() -> None:
    for gives_up in (Cancel(A), Cancel((A[0], "list")), Disarm((A[0], "backoff"))):
        world = two_lost_at(10.0, [], [Send(B, WATCH)], [gives_up])
        world.timers.time = 11.0
        opened(world, 2)
        assert samples(world) == [Sample("watches_missing_ms", 1000.0, LOST)], gives_up


def test_giving_up_something_else_changes_nothing() -> None:
    world = two_lost_at(10.0, [Cancel(("lease", "put")), Disarm(("pods", "tick"))])
    assert samples(world) == []


def test_a_client_that_is_stopped_without_them_says_so() -> None:
    world = two_lost_at(10.0)
    world.shell.stop()
    assert samples(world) == [Sample("watches_left_missing", 1.0, LOST)]
    world.shell.stop()
    assert len(samples(world)) == 1


def test_a_client_that_ends_its_own_watches_misses_none() -> None:
    world = World([Send(A, WATCH)], [], last=[Cancel(A)])
    opened(world, 0)
    world.shell.stop()
    assert samples(world) == []
    assert Closed(A, None) not in world.machine.seen
