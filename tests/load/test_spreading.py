"""Users begin one after the other, and what they made is frozen while it is little."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from harness.load.heap import FREEZE_EVERY_S, GROWS_S, Heap
from harness.load.turns import SPACING_S, Turns
from tests.load.fakes import FakeTimers


def test_turns_are_spaced_and_the_first_is_at_once() -> None:
    slept: list[float] = []
    turns = Turns(lambda: 10.0, slept.append)
    for _ in range(4):
        turns.wait()
    assert slept == pytest.approx([SPACING_S, 2 * SPACING_S, 3 * SPACING_S])


def test_who_comes_late_does_not_wait() -> None:
    times, slept = iter([10.0, 10.0 + SPACING_S, 20.0]), list[float]()
    turns = Turns(lambda: next(times), slept.append)
    for _ in range(3):
        turns.wait()
    assert slept == []


@pytest.fixture
def collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("collector")
def test_what_is_made_while_users_are_spawned_is_frozen_until_the_fleet_is_there() -> None:
    timers: Any = FakeTimers()
    heap = Heap(timers)
    heap.begin()
    kept = [[number] for number in range(1000)]
    frozen = gc.get_freeze_count()
    timers.advance(FREEZE_EVERY_S)
    assert gc.get_freeze_count() >= frozen + len(kept)
    heap.spawned()
    timers.advance(GROWS_S + FREEZE_EVERY_S)
    assert not timers.pending


@pytest.mark.usefixtures("collector")
def test_a_run_that_ends_meanwhile_leaves_no_timer() -> None:
    timers: Any = FakeTimers()
    heap = Heap(timers)
    heap.begin()
    heap.stop()
    heap.stop()
    assert not timers.pending
