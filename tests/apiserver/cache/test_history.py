"""The window of events that a watch cache keeps."""

from __future__ import annotations

from typing import Any

import pytest

from harness.apiserver.cache.history import FRESH_S, HIGHEST_CAPACITY, History, TooOld
from harness.apiserver.cache.watchers import CacheEvent
from harness.apiserver.metrics.families import Metrics
from harness.wire.watching import ADDED
from tests.apiserver.cache.world import ROWS


def history() -> History:
    made = History(ROWS["secrets"], Metrics())
    made.reset(10)
    return made


def add(window: History, first: int, count: int, at: float = 0.0) -> None:
    nothing: Any = None
    for revision in range(first, first + count):
        window.add(CacheEvent(ADDED, nothing, None, revision), at)
    window.validate()


def revisions(window: History, since: int) -> list[int]:
    return [event.revision for event in window.since(since)]


def test_it_begins_at_the_list_that_filled_the_cache() -> None:
    window = history()
    assert (window.oldest, revisions(window, 10), revisions(window, 99)) == (10, [], [])
    with pytest.raises(TooOld, match=r"9 \(10\)"):
        window.since(9)


def test_events_after_a_revision() -> None:
    window = history()
    add(window, 20, 3)
    assert revisions(window, 10) == [20, 21, 22]
    assert revisions(window, 20) == [21, 22]
    assert revisions(window, 22) == []


@pytest.mark.parametrize(
    ("age_s", "capacity"), [(FRESH_S - 0.001, 200), (FRESH_S, 100), (FRESH_S + 0.001, 100)]
)
def test_a_full_window_doubles_while_its_oldest_event_is_fresh(age_s: float, capacity: int) -> None:
    window = history()
    add(window, 11, 100)
    assert window.capacity == 100
    add(window, 111, 1, age_s)
    assert window.capacity == capacity
    assert len(window) == min(capacity, 101)


def test_what_leaves_the_window_cannot_be_served() -> None:
    window = history()
    add(window, 11, 100, 0.0)
    add(window, 111, 1, 80.0)
    assert window.oldest == 11
    assert len(revisions(window, 11)) == 100
    with pytest.raises(TooOld, match=r"10 \(11\)"):
        window.since(10)


def test_it_halves_when_its_newest_quarter_is_old() -> None:
    window = history()
    add(window, 11, 101, 0.0)
    assert window.capacity == 200
    add(window, 112, 99, 1.0)
    add(window, 211, 1, 80.0)  # full, and the oldest of the newest quarter came 79 s ago
    assert window.capacity == 100
    assert window.oldest == 210 - 100 + 1
    add(window, 212, 1, 200.0)
    assert window.capacity == 100


def test_it_grows_to_the_highest_capacity_and_no_further() -> None:
    window = history()
    add(window, 11, HIGHEST_CAPACITY + 5000)
    assert window.capacity == len(window) == HIGHEST_CAPACITY
    assert window.oldest == 11 + 5000 - 1


def test_a_new_list_empties_it() -> None:
    window = history()
    add(window, 11, 500)
    window.reset(600)
    window.validate()
    assert (len(window), window.oldest) == (0, 600)
    add(window, 601, 1)
    assert revisions(window, 600) == [601]


@pytest.mark.parametrize(
    ("events", "indexed", "triggered", "size"),
    [
        (0, False, False, 10),
        (801, False, False, 22),  # capacity 1,600
        (102000, False, False, 100),
        (102000, True, True, 10),
        (102000, True, False, 1000),
    ],
)
def test_channels_hold_about_a_second_of_history_within_limits(
    events: int, indexed: bool, triggered: bool, size: int
) -> None:
    window = history()
    add(window, 11, events)
    assert window.channel_size(indexed, triggered) == size
