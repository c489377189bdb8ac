"""One heap of timers and the greenlet in which they run."""

from __future__ import annotations

from collections.abc import Callable

import gevent
import pytest
from gevent.event import Event

from harness.transport import dispatch
from harness.transport.dispatch import Dispatcher
from harness.transport.timers import COMPACT_ABOVE, FAR_S, GRAIN_S, Timers
from harness.wire.pace import Pace
from tests.conftest import HANG_S


def wait_for(event: Event) -> None:
    assert event.wait(HANG_S)


def test_timers_run_in_order_of_their_time_then_of_their_making(timers):
    order, done = [], Event()
    now = timers.now()
    timers.call_at(now + 0.02, done.set)
    timers.call_at(now + 0.01, lambda: order.append("third"))
    timers.call_at(now, lambda: order.append("first"))
    timers.call_at(now, lambda: order.append("second"))
    timers.call_at(now + 0.01, lambda: order.append("fourth"))
    wait_for(done)
    assert order == ["first", "second", "third", "fourth"]


def test_what_is_far_off_is_due_together_and_never_before_its_time(timers):
    far = timers.now() + FAR_S + 1
    far -= far % GRAIN_S  # three moments of one hundredth of a second
    armed = [timers.call_at(far + share * GRAIN_S, lambda: None) for share in (0.1, 0.5, 0.9)]
    together = {timer.when for timer in armed}
    assert len(together) == 1
    assert together.pop() >= far + 0.9 * GRAIN_S
    soon = timers.now() + FAR_S / 2
    armed.append(timers.call_at(soon, lambda: None))
    assert armed[-1].when == soon
    for timer in armed:
        timer.cancel()


def test_a_timer_is_given_its_arguments(timers):
    given, done = [], Event()
    timers.call_later(0.0, given.append, "argument")
    timers.call_later(0.01, done.set)
    wait_for(done)
    assert given == ["argument"]


def test_a_timer_never_runs_before_its_time(timers):
    late, done = [], Event()
    for step in range(20):
        when = timers.now() + step / 1000
        timers.call_at(when, lambda when=when: late.append(timers.now() - when))
    timers.call_later(0.03, done.set)
    wait_for(done)
    assert len(late) == 20
    assert min(late) >= 0


def test_a_cancelled_timer_does_not_run(timers):
    ran, done = [], Event()
    timer = timers.call_later(0, lambda: ran.append(1))
    timer.cancel()
    timer.cancel()
    timers.call_later(0.005, done.set)
    wait_for(done)
    assert (ran, timer.pending) == ([], False)


def test_a_timer_cancelled_by_one_that_is_due_with_it_does_not_run(timers):
    ran, done = [], Event()
    now = timers.now()
    timers.call_at(now, lambda: second.cancel())
    second = timers.call_at(now, lambda: ran.append(1))
    timers.call_at(now, done.set)
    wait_for(done)
    assert ran == []


def test_cancelled_timers_leave_the_heap(timers):
    kept = timers.call_later(60, lambda: None)
    for _ in range(10 * COMPACT_ABOVE):
        timers.call_later(30, lambda: None).cancel()
    assert timers.pending == 1
    assert len(timers._heap) <= 2 * COMPACT_ABOVE + 1
    kept.cancel()


def test_a_timer_may_set_another(timers):
    done = Event()
    timers.call_later(0, lambda: timers.call_later(0.001, done.set))
    wait_for(done)


def test_an_error_in_a_timer_is_logged_and_the_next_one_runs(timers, caplog):
    done = Event()

    def fail() -> None:
        raise ValueError("mine")

    timers.call_later(0, fail)
    timers.call_later(0, done.set)
    wait_for(done)
    assert [record.exc_info[0] for record in caplog.records] == [ValueError]


def test_close_drops_what_is_left():
    timers = Timers()
    ran = []
    timer = timers.call_later(0, lambda: ran.append(1))
    timers.close()
    timers.close()
    gevent.sleep(0.005)
    assert (ran, timer.pending, timers.pending) == ([], False, 0)


@pytest.fixture
def dispatcher():
    made = Dispatcher()
    yield made
    made.close()


def test_work_runs_in_order_in_one_greenlet_and_flushes_follow_each_item(dispatcher):
    seen, done = [], Event()

    def item(name):
        seen.append((name, gevent.getcurrent()))
        dispatcher.flush_later(lambda: seen.append((f"flush {name}", gevent.getcurrent())))

    dispatcher.push(lambda: item("a"))
    dispatcher.push(lambda: item("b"))
    dispatcher.push(done.set)
    wait_for(done)
    assert [name for name, _ in seen] == ["a", "flush a", "b", "flush b"]
    assert len({greenlet for _, greenlet in seen}) == 1
    assert gevent.getcurrent() not in {greenlet for _, greenlet in seen}


def test_a_flush_without_work_happens_too(dispatcher):
    done = Event()
    dispatcher.flush_later(done.set)
    wait_for(done)


def test_others_get_their_turn_when_one_has_lasted_long_enough(dispatcher, monkeypatch):
    monkeypatch.setattr(dispatch, "TURN_S", 0.0)
    count, seen_at, done = [], [], Event()
    for _ in range(30):
        dispatcher.push(lambda: count.append(1))
    dispatcher.push(done.set)
    greenlet = gevent.spawn(lambda: seen_at.append(len(count)))
    wait_for(done)
    greenlet.join()
    assert seen_at[0] < 30


def test_work_that_blocks_delays_what_is_behind_it_and_breaks_nothing(dispatcher):
    order, done = [], Event()

    def block():
        gevent.sleep(0.002)
        order.append("blocked")

    dispatcher.push(block)
    dispatcher.push(lambda: order.append("behind"))
    dispatcher.push(done.set)
    wait_for(done)
    assert order == ["blocked", "behind"]


def test_close_from_inside_ends_the_greenlet_too():
    made, done = Dispatcher(), Event()
    made.push(lambda: (made.close(), done.set()))
    wait_for(done)
    gevent.sleep(0)
    assert made._greenlet.dead


# ---- at a pace -----------------------------------------------------------------------------------------------------
class Watcher:
    """Of an event loop that runs nothing by itself."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s

    def start(self, fire: Callable[[], None], update: bool = False) -> None:
        self.fire = fire

    def stop(self) -> None:
        pass

    close = stop


class System:
    """A clock that is moved by hand, and the timers that the loop was asked for."""

    def __init__(self, timers: Timers) -> None:
        self.now = timers._origin * timers.pace.factor
        self.armed: list[Watcher] = []
        timers._clock = timers.pace.seconds(lambda: self.now)
        timers._loop = self

    def timer(self, delay_s: float) -> Watcher:
        self.armed.append(Watcher(delay_s))
        return self.armed[-1]


def test_at_a_pace_the_loop_waits_longer_and_everything_else_is_in_model_seconds() -> None:
    timers = Timers(Pace(4.0))
    system, ran = System(timers), []
    timers.call_later(0.5, ran.append, "first")
    timers.call_later(0.75, ran.append, "second")
    assert system.armed[-1].delay_s == pytest.approx(2.0, abs=1e-3)
    system.now += 2.0 + 1e-6
    assert timers.now() == pytest.approx(0.5, abs=1e-3)
    system.armed[-1].fire()
    assert system.armed[-1].delay_s == pytest.approx(1.0, abs=1e-3)
    gevent.sleep(0)
    assert ran == ["first"]
    timers.close()
