"""The events that a watch from a past revision begins with.

Mirrors k8s.io/apiserver pkg/storage/cacher/watch_cache_interval.go: events are taken out of the history a hundred at a
time, as the client takes them, and matched then; where the history has moved on meanwhile, the watch ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.cache.history import History
from harness.apiserver.cache.watchers import CHUNK, CacheEvent, Chunk, Outrun, Watcher

BUFFER = 100  # watch_cache_interval.go: bufferSize


class Replay:
    """Events of the history for one watch, in order. An event that it wants costs a delivery, the first apart, which
    opening the watch has paid for; one that it does not want costs a look."""

    __slots__ = ("_events", "_filter_us", "_history", "_watcher")

    def __init__(
        self, watcher: Watcher, events: Sequence[CacheEvent], history: History, filter_us: float
    ) -> None:
        self._watcher = watcher
        self._events = events
        self._history = history
        self._filter_us = filter_us

    def chunks(self) -> Iterator[Chunk]:
        """Raises Outrun where what comes next has left the history."""
        events, watcher = self._events, self._watcher
        free = watcher.event_us
        for start in range(0, len(events), BUFFER):
            if start and self._history.oldest >= events[start].revision:
                raise Outrun
            found: list[tuple[str, CachedObject]] = []
            cost_us = 0.0
            for event in events[start : start + BUFFER]:
                kind = watcher.match(event) if watcher.selection.in_scope(event.object) else None
                if kind is None:
                    cost_us += self._filter_us
                    continue
                found.append((kind, event.seen_as(kind)))
                cost_us += watcher.event_us - free
                free = 0.0
                if len(found) == CHUNK:
                    yield found, cost_us
                    found, cost_us = [], 0.0
            yield found, cost_us
