"""Waiting until a watch cache has reached a revision.

Mirrors k8s.io/apiserver pkg/storage/cacher: waitUntilFreshLocked (watch_cache.go), and progress/watch_progress.go: the
resource's own events say how far the store has got, and while anyone waits, a progress notification is asked for at
once and then each 100 ms.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from harness.apiserver.clock import Clock, Promise, Timer, resolved
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.resources import Resource

FRESH_TIMEOUT_S = 3.0  # watch_cache.go: blockTimeout
PROGRESS_REQUEST_PERIOD_S = 0.1


class TooLarge(Exception):
    """The cache did not reach the revision in time: 504 `Too large resource version`."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(f"Too large resource version: {requested}, current: {current}")
        self.requested = requested
        self.current = current


class _Waiter:
    __slots__ = ("promise", "revision", "since", "timer")

    def __init__(self, revision: int, since: float) -> None:
        self.revision = revision
        self.since = since
        self.promise: Promise[None] = Promise()
        self.timer: Timer | None = None


class Freshness:
    """Who waits for which revision of one cache."""

    def __init__(
        self, clock: Clock, request_progress: Callable[[], None], metrics: Metrics, resource: Resource
    ) -> None:
        self._clock = clock
        self._request_progress = request_progress
        self._waits = metrics.apiserver_watch_cache_read_wait_seconds.labels(
            resource.group, resource.resource
        )
        self._current = 0
        self._heap: list[tuple[int, int, _Waiter]] = []
        self._order = 0
        self._waiting = 0
        self._next_request = 0.0
        self._requester: Timer | None = None

    def wait(self, revision: int, timeout_s: float = FRESH_TIMEOUT_S) -> Promise[None]:
        """Settles once `advance` has reached `revision`; fails with TooLarge after `timeout_s`. Counted, however short
        it was; a read that takes anything, revision 0, does not come here."""
        if revision <= self._current:
            self._waits.observe(0.0)
            return resolved(None)
        now = self._clock.now()
        waiter = _Waiter(revision, now)
        waiter.timer = self._clock.call_at(now + timeout_s, self._give_up, waiter)
        self._order += 1
        heapq.heappush(self._heap, (revision, self._order, waiter))
        self._waiting += 1
        if self._requester is None:
            self._requester = self._clock.call_at(max(now, self._next_request), self._ask)
        return waiter.promise

    def advance(self, revision: int) -> None:
        """The cache has got to `revision`."""
        self._current = revision
        while self._heap and self._heap[0][0] <= revision:
            waiter = heapq.heappop(self._heap)[2]
            if not waiter.promise.done:
                self._settle(waiter)
                waiter.promise.resolve(None)

    def restart(self, revision: int) -> None:
        """The cache was filled anew, at a revision that may be lower."""
        self._current = 0
        self.advance(revision)

    def stop(self) -> None:
        """Whoever waits still is told at once that it is in vain."""
        if self._requester is not None:
            self._requester.cancel()
        for _, _, waiter in self._heap:
            if not waiter.promise.done:
                self._give_up(waiter)
        self._heap.clear()

    def _give_up(self, waiter: _Waiter) -> None:
        self._settle(waiter)
        waiter.promise.fail(TooLarge(waiter.revision, self._current))

    def _settle(self, waiter: _Waiter) -> None:
        self._waiting -= 1
        if waiter.timer is not None:
            waiter.timer.cancel()
        self._waits.observe(self._clock.now() - waiter.since)

    def _ask(self) -> None:
        self._requester = None
        if self._waiting:
            now = self._clock.now()
            self._next_request = now + PROGRESS_REQUEST_PERIOD_S
            self._requester = self._clock.call_at(self._next_request, self._ask)
            self._request_progress()
