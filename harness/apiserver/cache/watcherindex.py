"""Which watchers an event may concern, when each is due a bookmark, when it ends, how long the slow ones may block.

Mirrors k8s.io/apiserver pkg/storage/cacher/cacher.go (indexedWatchers, watcherBookmarkTimeBuckets) and time_budget.go.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from itertools import chain

from harness.apiserver.cache.watchers import CacheEvent, Watcher
from harness.apiserver.clock import Clock, Timer

BOOKMARK_PERIOD_S = 60.0
BOOKMARK_BEFORE_DEADLINE_S = 2.0
BUDGET_PER_SECOND_S = 0.05
BUDGET_LIMIT_S = 0.1

_ALL = ("", "")


class WatcherIndex:
    """Watchers by the value of the resource's indexed field where they demand one, else by namespace and name.

    An event touches those that it can concern and no others, however many there are. Most places have one watcher, a
    kubelet's of one secret; a dict for each would weigh as much as the watcher.
    """

    def __init__(self, field: str) -> None:
        self._field = field
        self._scoped: dict[Hashable, Watcher | dict[Watcher, None]] = {}
        self._valued: dict[Hashable, Watcher | dict[Watcher, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Watcher]:
        for place in chain(self._scoped.values(), self._valued.values()):
            if isinstance(place, dict):
                yield from place
            else:
                yield place

    def add(self, watcher: Watcher) -> None:
        group, key = self._place(watcher)
        there = group.get(key)
        if there is None:
            group[key] = watcher
        elif isinstance(there, dict):
            there[watcher] = None
        else:
            group[key] = {there: None, watcher: None}
        self._count += 1

    def remove(self, watcher: Watcher) -> bool:
        """False if it is not here."""
        group, key = self._place(watcher)
        there = group.get(key)
        if there is watcher:
            del group[key]
        elif isinstance(there, dict) and watcher in there:
            del there[watcher]
            if not there:
                del group[key]
        else:
            return False
        self._count -= 1
        return True

    def concerned(self, event: CacheEvent) -> list[Watcher]:
        """Those that the event may concern."""
        obj = event.object
        scoped = self._scoped
        found: list[Watcher] = []
        keys: list[Hashable] = [("", obj.name), _ALL]
        if obj.namespace:
            keys = [(obj.namespace, obj.name), (obj.namespace, ""), *keys]
        for key in keys:
            if (there := scoped.get(key)) is not None:
                _join(found, there)
        if self._valued:
            value = obj.field(self._field)
            if (there := self._valued.get(value)) is not None:
                _join(found, there)
            previous = event.previous
            before = value if previous is None else previous.field(self._field)
            if before != value and (there := self._valued.get(before)) is not None:
                _join(found, there)
        return found

    def _place(self, watcher: Watcher) -> tuple[dict[Hashable, Watcher | dict[Watcher, None]], Hashable]:
        if watcher.trigger is not None:
            return self._valued, watcher.trigger
        return self._scoped, (watcher.selection.namespace, watcher.selection.name)


def _join(found: list[Watcher], there: Watcher | dict[Watcher, None]) -> None:
    if isinstance(there, dict):
        found += there
    else:
        found.append(there)


class BookmarkBuckets:
    """Watchers by the second in which their next bookmark is due: each minute, and 2 s before the deadline."""

    def __init__(self, now: float) -> None:
        self._created = now
        self._first = 0
        self._buckets: dict[int, list[Watcher]] = {}

    def add(self, watcher: Watcher, now: float) -> None:
        """No effect where the last bookmark before the deadline has been sent. A watcher that still waits for the one
        that ends its initial events is due at every look."""
        if watcher.awaits_end:
            self._buckets.setdefault(self._first, []).append(watcher)
            return
        due = min(now + BOOKMARK_PERIOD_S, watcher.deadline - BOOKMARK_BEFORE_DEADLINE_S)
        if due >= now:
            self._buckets.setdefault(max(self._first, int(due - self._created)), []).append(watcher)

    def pop_due(self, now: float) -> list[Watcher]:
        """Take out the watchers whose second has begun, those that have ended left aside."""
        current = int(now - self._created)
        due: list[Watcher] = []
        for second in range(self._first, current + 1):
            due += self._buckets.pop(second, ())
        self._first = current + 1
        return [watcher for watcher in due if not watcher.stopped]


class Deadlines:
    """Ends watchers at their deadlines, with one timer for all of them, which may fire `slack_s` early."""

    def __init__(self, clock: Clock, slack_s: float = 0.0) -> None:
        self._clock = clock
        self._slack_s = slack_s
        self._heap: list[Watcher] = []  # by deadline
        self._timer: Timer | None = None
        self._armed_for = 0.0
        self._gone = 0  # entries of watchers that ended before their time

    def add(self, watcher: Watcher) -> None:
        heapq.heappush(self._heap, watcher)
        if self._timer is None or self._heap[0].deadline < self._armed_for:
            self._arm()

    def forget(self) -> None:
        """A watcher has ended by itself. Its entry stays until most of the heap is such entries."""
        self._gone += 1
        if self._gone > 1000 and self._gone > len(self._heap) // 2:
            self._heap = [watcher for watcher in self._heap if not watcher.stopped]
            heapq.heapify(self._heap)
            self._gone = 0

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._heap.clear()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for = self._heap[0].deadline
        self._timer = self._clock.call_at(self._armed_for, self._fire)

    def _fire(self) -> None:
        self._timer = None
        until = self._clock.now() + self._slack_s
        while self._heap and self._heap[0].deadline <= until:
            heapq.heappop(self._heap).end()
        if self._heap and self._timer is None:
            self._arm()


class TimeBudget:
    """For how long blocked watchers may hold up the dispatch of events (time_budget.go): 50 ms more each second, 100 ms
    at most, which whoever asks gets whole."""

    def __init__(self, now: float) -> None:
        self._budget_s = 0.0
        self._last = now

    def take(self, now: float) -> float:
        """All seconds that there are."""
        budget_s = min(BUDGET_LIMIT_S, self._budget_s + (now - self._last) * BUDGET_PER_SECOND_S)
        self._last = now
        self._budget_s = 0.0
        return budget_s

    def give_back(self, unused_s: float) -> None:
        if unused_s > 0:
            self._budget_s = min(BUDGET_LIMIT_S, self._budget_s + unused_s)
