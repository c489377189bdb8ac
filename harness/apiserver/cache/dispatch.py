"""Bringing one resource's events to its watchers: who, in what order, at whose cost, and what slow ones do to the rest.

Mirrors k8s.io/apiserver pkg/storage/cacher/cacher.go, dispatchEvent: one event after another; watchers whose channels
are full hold it up for as long as the time budget allows, then are closed. The work of each delivery is paid for on the
modelled host, for `CHUNK` watchers at a time, in an order drawn for each event: goroutines have none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.cache.watcherindex import BookmarkBuckets, Deadlines, TimeBudget, WatcherIndex
from harness.apiserver.cache.watchers import CHUNK, CacheEvent, Watcher
from harness.apiserver.clock import Clock, Timer
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import WATCH, Host
from harness.apiserver.resources import Resource
from harness.wire.watching import BOOKMARK, encode_event


class Broadcaster:
    """The watchers of one resource."""

    def __init__(self, resource: Resource, clock: Clock, host: Host, metrics: Metrics, rng: Random) -> None:
        self.host = host
        self.index = WatcherIndex(resource.index)
        self.processed = 0  # the revision up to which watchers have been told everything
        self._clock = clock
        self._random = rng.random
        self._bookmarks = BookmarkBuckets(clock.now())
        self._deadlines = Deadlines(clock, host.slack_s)
        self._budget = TimeBudget(clock.now())
        self._incoming: deque[CacheEvent] = deque()
        self._held_up: _Block | None = None
        labels = (resource.group, resource.resource)
        self._dispatched = metrics.apiserver_watch_cache_events_dispatched_total.labels(*labels)
        self._terminated = metrics.apiserver_terminated_watchers_total.labels(*labels)
        self._sent = metrics.apiserver_watch_events_total.labels(
            resource.group, resource.version, resource.resource
        )
        self._sizes = metrics.apiserver_watch_events_sizes.labels(
            resource.group, resource.version, resource.resource
        )

    # ---- watchers
    def add(self, watcher: Watcher) -> None:
        """Serve a watch until its deadline."""
        self.index.add(watcher)
        self._deadlines.add(watcher)

    def add_to_bookmarks(self, watcher: Watcher) -> None:
        """Send it a bookmark each minute, by `bookmark`."""
        self._bookmarks.add(watcher, self._clock.now())

    def end_all(self) -> None:
        """Close every watch, as when the cache must be filled anew."""
        for watcher in list(self.index):
            watcher.end()

    def close(self) -> None:
        self.end_all()
        self._deadlines.stop()
        self._incoming.clear()

    # ---- events
    def dispatch(self, event: CacheEvent) -> None:
        """Queue the event for the watchers that it concerns; behind what blocked watchers hold up."""
        if self._held_up is not None:
            self._incoming.append(event)
        else:
            self._dispatch(event)

    def progress(self, revision: int) -> None:
        """Nothing up to `revision` is outstanding: bookmarks may say so, unless events are still held up."""
        if self._held_up is None:
            self.processed = revision

    def bookmark(self, make: Callable[[int], CachedObject]) -> None:
        """Send those watchers a bookmark that are due one and have something to learn from it."""
        now = self._clock.now()
        due = self._bookmarks.pop_due(now)
        if not due:
            return
        obj = make(self.processed)
        line = encode_event(BOOKMARK, obj.body)
        queued = [w for w in due if self.processed > w.revision and w.push_bookmark(obj, line)]
        if queued:
            self._deliver(queued)
        for watcher in due:
            self._bookmarks.add(watcher, now)

    def sent(self, events: int, size_bytes: int) -> None:
        """Events have gone to a client (`size_bytes` in all): count them."""
        self._sent.inc(events)
        for _ in range(events):
            self._sizes.observe(size_bytes / events)

    def _dispatch(self, event: CacheEvent) -> None:
        self._dispatched.inc()
        self.processed = event.revision
        ready: list[Watcher] = []
        blocked: dict[Watcher, str] = {}
        for watcher in self.index.concerned(event):
            if event.revision > watcher.revision and (kind := watcher.match(event)) is not None:
                if watcher.full:
                    blocked[watcher] = kind
                elif watcher.push(event, kind):
                    ready.append(watcher)
        if ready:
            self._deliver(ready)
        if blocked:
            self._block(event, blocked)
        else:
            event.drop_lines()

    def _deliver(self, watchers: list[Watcher]) -> None:
        """Pay for one event to each of these and let it go out."""
        if len(watchers) == 1:
            self.host.run(watchers[0].event_us, watchers[0].step, WATCH)
            return
        random = self._random
        watchers.sort(key=lambda _: random())
        for start in range(0, len(watchers), CHUNK):
            chunk = watchers[start : start + CHUNK]
            self.host.run(sum([watcher.event_us for watcher in chunk]), partial(_step, chunk), WATCH)

    # ---- slow watchers
    def _block(self, event: CacheEvent, blocked: dict[Watcher, str]) -> None:
        now = self._clock.now()
        budget_s = self._budget.take(now)
        for watcher in blocked:
            watcher.blocking = True
        self._held_up = _Block(event, blocked, now + budget_s)
        self._held_up.timer = self._clock.call_at(now + budget_s, self._terminate)

    def _terminate(self) -> None:
        """The budget is used up: close whoever still blocks."""
        assert self._held_up is not None
        for watcher in tuple(self._held_up.watchers):
            self._terminated.inc()
            watcher.end()

    def freed(self, watcher: Watcher) -> None:
        """A blocking watcher has room: it gets the event that it held up."""
        block = self._held_up
        watcher.blocking = False
        assert block is not None
        if watcher.push(block.event, block.watchers.pop(watcher)):
            self._deliver([watcher])
        self._resume()

    def forget(self, watcher: Watcher) -> None:
        """A watch has ended, for whatever reason."""
        if self.index.remove(watcher):
            self._deadlines.forget()
        if watcher.blocking and self._held_up is not None:
            watcher.blocking = False
            del self._held_up.watchers[watcher]
            self._resume()

    def _resume(self) -> None:
        """Once nobody blocks any more, go on with the events that have come meanwhile."""
        block = self._held_up
        if block is None or block.watchers:
            return
        self._held_up = None
        if block.timer is not None:
            block.timer.cancel()
        self._budget.give_back(block.until - self._clock.now())
        block.event.drop_lines()
        while self._incoming and self._held_up is None:
            self._dispatch(self._incoming.popleft())


class _Block:
    """An event that watchers hold up, and under which type each of them sees it."""

    __slots__ = ("event", "timer", "until", "watchers")

    def __init__(self, event: CacheEvent, watchers: dict[Watcher, str], until: float) -> None:
        self.event = event
        self.watchers = watchers
        self.until = until
        self.timer: Timer | None = None


def _step(watchers: Sequence[Watcher]) -> None:
    for watcher in watchers:
        watcher.step()
