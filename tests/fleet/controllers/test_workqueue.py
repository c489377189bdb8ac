"""The queue in front of a controller's workers."""

from __future__ import annotations

import pytest

from harness.fleet.controllers.workqueue import WorkQueue


def taken(queue: WorkQueue) -> list[str]:
    return [queue.get() for _ in range(len(queue))]


def test_a_key_added_twice_is_worked_on_once() -> None:
    queue = WorkQueue()
    for key in ("a", "b", "a"):
        queue.add(key)
    assert taken(queue) == ["a", "b"]


def test_a_key_added_while_it_is_worked_on_comes_when_that_is_done() -> None:
    queue = WorkQueue()
    queue.add("a")
    queue.get()
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert taken(queue) == ["a"]


def test_failures_wait_five_milliseconds_then_twice_as_long_up_to_the_cap() -> None:
    queue = WorkQueue(0.005, 0.03)
    waits = []
    for _ in range(5):
        queue.add_rate_limited("a", 0.0)
        assert queue.next_at is not None
        waits.append(queue.next_at)
        queue.wake(queue.next_at)
        queue.done(queue.get())
    assert waits == [0.005, 0.01, 0.02, 0.03, 0.03]
    assert queue.requeues("a") == 5
    queue.forget("a")
    queue.add_rate_limited("a", 10.0)
    assert queue.next_at == pytest.approx(10.005)


def test_a_hundred_failures_at_once_are_free_then_ten_a_second() -> None:
    queue = WorkQueue()
    for index in range(110):
        queue.add_rate_limited(f"k{index}", 0.0)
    due = []
    while (at := queue.next_at) is not None:
        before = len(queue)
        queue.wake(at)
        due += [at] * (len(queue) - before)
    assert due[:100] == [0.005] * 100
    assert due[100:] == [pytest.approx(each / 10) for each in range(1, 11)]


def test_of_several_delays_the_earliest_counts() -> None:
    queue = WorkQueue()
    queue.add_at("a", 5.0, 0.0)
    queue.add_at("a", 2.0, 0.0)
    queue.add_at("a", 9.0, 0.0)
    assert queue.next_at == 2.0
    queue.wake(2.0)
    assert taken(queue) == ["a"]
    assert queue.next_at is None


def test_a_delay_that_is_over_is_no_delay() -> None:
    queue = WorkQueue()
    queue.add_at("a", 1.0, 1.0)
    assert taken(queue) == ["a"]
