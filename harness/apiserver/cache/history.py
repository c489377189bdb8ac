"""The last events of a watch cache: a window of at least 75 seconds where its capacity allows.

Mirrors k8s.io/apiserver pkg/storage/cacher/watch_cache.go:48-65 and its resizing: the capacity doubles while the window
is full of events younger than 75 s, and halves when the newest quarter of it spans more than that.
"""

from __future__ import annotations

from bisect import bisect_right
from math import ceil

from harness.apiserver.cache.watchers import CacheEvent
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.resources import Resource

FRESH_S = 75.0  # a bookmark's minute and a quarter
LOWEST_CAPACITY = 100
HIGHEST_CAPACITY = 100 * 1024
_SHORTEST_CHANNEL = 10
_LONGEST_TRIGGERED = 10
_LONGEST_UNTRIGGERED = 1000
_LONGEST_UNINDEXED = 100


class TooOld(Exception):
    """A revision before the window; `oldest` is the least that can be served."""

    def __init__(self, requested: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {requested} ({oldest})")
        self.requested = requested
        self.oldest = oldest


class History:
    """Events in order of revision; `list_revision` is the state that the first of them came after."""

    def __init__(self, resource: Resource, metrics: Metrics) -> None:
        self.capacity = LOWEST_CAPACITY
        self.list_revision = 0
        self._events: list[CacheEvent] = []
        self._revisions: list[int] = []
        self._times: list[float] = []
        self._start = 0  # of the window within the lists, whose heads are cut off now and then
        self._removed = False  # whether anything has left the window since the last list
        labels = (resource.group, resource.resource)
        self._capacity_gauge = metrics.watch_cache_capacity.labels(*labels)
        self._increases = metrics.watch_cache_capacity_increase_total.labels(*labels)
        self._decreases = metrics.watch_cache_capacity_decrease_total.labels(*labels)
        self._capacity_gauge.set(self.capacity)

    def __len__(self) -> int:
        return len(self._events) - self._start

    @property
    def oldest(self) -> int:
        """The revision of the oldest state from which a watch can go on."""
        if not self._removed or not len(self):
            return self.list_revision
        return self._revisions[self._start] - 1

    @property
    def first(self) -> int:
        """The revision of the oldest event; there must be one."""
        return self._revisions[self._start]

    @property
    def full(self) -> bool:
        return len(self._events) - self._start == self.capacity

    def reset(self, list_revision: int) -> None:
        """Forget all events: the cache was filled anew at this revision."""
        self.list_revision = list_revision
        self._start = 0
        self._removed = False
        self._events.clear()
        self._revisions.clear()
        self._times.clear()

    def add(self, event: CacheEvent, now: float) -> None:
        self._resize(now)
        if len(self) == self.capacity:
            self._drop(1)
        self._events.append(event)
        self._revisions.append(event.revision)
        self._times.append(now)

    def since(self, revision: int) -> list[CacheEvent]:
        """Events with a greater revision. Raises TooOld."""
        if revision < self.oldest:
            raise TooOld(revision, self.oldest)
        return self._events[bisect_right(self._revisions, revision, self._start) :]

    def time_after(self, revision: int) -> float | None:
        """When the first event after a revision came, or the oldest of the window; None where none has come."""
        at = bisect_right(self._revisions, revision, self._start)
        return self._times[at] if at < len(self._times) else None

    def channel_size(self, indexed: bool, triggered: bool) -> int:
        """How many events a watcher's channel holds: about a second of history, within limits."""
        size = max(_SHORTEST_CHANNEL, ceil(self.capacity / FRESH_S))
        if not indexed:
            return min(size, _LONGEST_UNINDEXED)
        return min(size, _LONGEST_TRIGGERED if triggered else _LONGEST_UNTRIGGERED)

    def validate(self) -> None:
        """Assert what must hold between calls."""
        assert len(self) <= self.capacity, "more events than the window holds"
        assert len(self._events) == len(self._revisions) == len(self._times), "lists of different lengths"
        window = self._revisions[self._start :]
        assert window == sorted(set(window)), "events out of order"

    def _resize(self, now: float) -> None:
        if len(self) < self.capacity:
            return
        if now - self._times[self._start] < FRESH_S:
            capacity = min(self.capacity * 2, HIGHEST_CAPACITY)
        elif now - self._times[-(self.capacity // 4)] > FRESH_S:
            capacity = max(self.capacity // 2, LOWEST_CAPACITY)
        else:
            return
        if capacity > self.capacity:
            self._increases.inc()
        elif capacity < self.capacity:
            self._decreases.inc()
            self._drop(self.capacity - capacity)
        self.capacity = capacity
        self._capacity_gauge.set(capacity)

    def _drop(self, count: int) -> None:
        self._removed = True
        self._start += count
        if self._start > max(1024, len(self._events) // 2):
            del self._events[: self._start]
            del self._revisions[: self._start]
            del self._times[: self._start]
            self._start = 0
