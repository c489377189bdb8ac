"""Deadlines of requests, on one timer."""

from __future__ import annotations

from harness.apiserver.clock import VirtualClock
from harness.apiserver.deadlines import Deadlines


class _Request:
    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.timed_out_at: float | None = None

    def time_out(self) -> None:
        self.timed_out_at = self._clock.now()


def test_each_request_times_out_at_its_own_time() -> None:
    clock = VirtualClock()
    deadlines = Deadlines(clock, 60.0)
    requests = []
    for _ in range(3):
        requests.append(_Request(clock))
        deadlines.add(requests[-1], clock.now())
        clock.advance(10.0)
    clock.advance(100.0)
    assert [request.timed_out_at for request in requests] == [60.0, 70.0, 80.0]


def test_what_was_answered_is_not_timed_out() -> None:
    clock = VirtualClock()
    deadlines = Deadlines(clock, 60.0)
    answered, late = _Request(clock), _Request(clock)
    deadlines.add(answered, 0.0)
    clock.advance(5.0)
    deadlines.add(late, 5.0)
    deadlines.remove(answered)
    clock.advance(100.0)
    assert (answered.timed_out_at, late.timed_out_at) == (None, 65.0)


def test_all_answered_then_the_next_is_still_timed() -> None:
    clock = VirtualClock()
    deadlines = Deadlines(clock, 60.0)
    first, second = _Request(clock), _Request(clock)
    deadlines.add(first, 0.0)
    deadlines.remove(first)
    clock.advance(100.0)  # the timer finds nobody
    assert clock.next_at() is None
    deadlines.add(second, clock.now())
    clock.advance(100.0)
    assert second.timed_out_at == 160.0


def test_a_request_may_be_removed_while_another_times_out() -> None:
    clock = VirtualClock()
    deadlines = Deadlines(clock, 60.0)
    other = _Request(clock)

    class _Taking(_Request):
        def time_out(self) -> None:
            super().time_out()
            deadlines.remove(self)
            deadlines.remove(other)

    taking = _Taking(clock)
    deadlines.add(taking, 0.0)
    deadlines.add(other, 0.0)
    clock.advance(100.0)
    assert (taking.timed_out_at, other.timed_out_at) == (60.0, None)
