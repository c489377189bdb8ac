"""Bringing one resource's events to its watchers: who, in what order, at whose cost, and what slow ones do to the rest.

Mirrors k8s.io/apiserver pkg/storage/cacher/cacher.go, dispatchEvents: one event after another; watchers whose channels
are full hold it up for as long as the time budget allows, then are closed. Meanwhile a hundred events wait in the
cacher's incoming channel, and one more with whoever brings it, who then stops (processEvent). The work of each
delivery is paid for on the modelled host, for `CHUNK` watchers at a time, in an order drawn for each event: goroutines
have none. So is matching an event in vain against a selector that no index knows, for each watcher that has one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.cache.watcherindex import BookmarkBuckets, Deadlines, TimeBudget, WatcherIndex
from harness.apiserver.cache.watchers import CHUNK, CacheEvent, Offer, Watcher
from harness.apiserver.clock import Clock, Timer
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import WATCH, Host
from harness.apiserver.resources import Resource
from harness.wire.watching import BOOKMARK, encode_event

INCOMING = 100  # cacher.go: the incoming channel's size
SHUFFLED = 256  # watchers of one event up to which their order is wholly drawn
# Members of an Enum are slow to look up.
_SENT, _PASSED = Offer.SENT, Offer.PASSED
_QUEUED, _LOOKED, _BLOCKED = Offer.QUEUED, Offer.LOOKED, Offer.BLOCKED


class Broadcaster:
    """The watchers of one resource. `on_room` is called once whoever was told to stop may go on."""

    def __init__(self, resource: Resource, clock: Clock, host: Host, metrics: Metrics, rng: Random) -> None:
        self.host = host
        self.index = WatcherIndex(resource.index)
        self.processed = 0  # the revision up to which watchers have been told everything
        self.on_room: Callable[[], object] = _nobody
        self._clock = clock
        self._random = rng.random
        self._bookmarks = BookmarkBuckets(clock.now())
        self._deadlines = Deadlines(clock, host.slack_s)
        self._budget = TimeBudget(clock.now())
        self._incoming: deque[CacheEvent | int] = deque()  # events, and revisions of progress notifications
        self._overfull = False
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
        self._same_bytes = self._same = (
            0  # the size of the last events sent, and how many are not counted yet
        )
        metrics.on_render(self.count_sent)

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
        self.drop_incoming()
        if self._held_up is not None:
            self._held_up.timer.cancel()

    # ---- events
    def dispatch(self, event: CacheEvent) -> bool:
        """Queue the event for the watchers that it concerns, behind what blocked watchers hold up. False where nothing
        further may come before `on_room`."""
        if self._held_up is None:
            self._dispatch(event)
            return True
        return self._wait(event)

    @property
    def held_up(self) -> bool:
        """Whether events wait for slow watchers."""
        return self._held_up is not None

    def progress(self, revision: int) -> bool:
        """Nothing up to `revision` is outstanding, and bookmarks may say so. As `dispatch`."""
        if self._held_up is None:
            self._progress(revision)
            return True
        return self._wait(revision)

    def drop_incoming(self) -> None:
        """What waits will not be told: every watch ends."""
        self._incoming.clear()
        self._overfull = False

    def _wait(self, item: CacheEvent | int) -> bool:
        self._incoming.append(item)
        self._overfull = len(self._incoming) > INCOMING
        return not self._overfull

    def _progress(self, revision: int) -> None:
        self._dispatched.inc()
        self.processed = revision

    def bookmark(self, make: Callable[[int], CachedObject]) -> None:
        """Send those watchers a bookmark that are due one and have something to learn from it."""
        now = self._clock.now()
        due = self._bookmarks.pop_due(now)
        if not due:
            return
        obj = make(self.processed)
        line = encode_event(BOOKMARK, obj.body)
        queued = [watcher for watcher in due if watcher.push_bookmark(obj, line)]
        if queued:
            self._deliver(queued)
        for watcher in due:
            self._bookmarks.add(watcher, now)

    def sent(self, events: int, size_bytes: int) -> None:
        """Events have gone to a client (`size_bytes` in all): count them. One that goes to thousands has one size: what
        is equal is put into the histogram together."""
        if events == 1 and size_bytes == self._same_bytes:
            self._same += 1
            return
        self.count_sent()
        if events == 1:
            self._same_bytes, self._same = size_bytes, 1
            return
        self._sent.inc(events)
        self._sizes.observe(size_bytes / events, events)

    def count_sent(self) -> None:
        """Put what has been sent into the metrics."""
        if self._same:
            self._sent.inc(self._same)
            self._sizes.observe(self._same_bytes, self._same)
            self._same = 0

    def _dispatch(self, event: CacheEvent) -> None:
        self._dispatched.inc()
        self.processed = event.revision
        ready: list[Watcher] = []
        looked: list[Watcher] = []
        blocked: dict[Watcher, None] = {}
        concerned = self.index.concerned(event)
        free = self.host.cores is None
        if free and len(concerned) > 1:  # else it is drawn when they are paid for
            concerned = self._drawn(concerned)
        unpaid_us = 0.0
        for watcher in concerned:
            offer = watcher.offer(event, free)
            if offer is _SENT:
                unpaid_us += watcher.event_us
            elif offer is _QUEUED:
                ready.append(watcher)
            elif offer is _LOOKED:
                looked.append(watcher)
            elif offer is _PASSED:
                unpaid_us += self.host.costs.watch_filter_us
            elif offer is _BLOCKED:
                blocked[watcher] = None
        if unpaid_us:
            self.host.charge(unpaid_us, WATCH)
        if ready:
            self._deliver(ready)
        if looked:
            self._look(looked)
        if blocked:
            self._block(event, blocked)
        else:
            event.drop_lines()

    def _drawn(self, watchers: list[Watcher]) -> list[Watcher]:
        """In an order drawn for this event. Of many, only where it begins is drawn, as Go walks a map: neighbours share
        a connection, and a leap from one to another for each watcher would miss the processor's caches."""
        random = self._random
        if len(watchers) > SHUFFLED:
            first = int(random() * len(watchers))
            return watchers[first:] + watchers[:first]
        watchers.sort(key=lambda _: random())
        return watchers

    def _look(self, watchers: list[Watcher]) -> None:
        """Each of these has looked at an event in vain."""
        each_us = self.host.costs.watch_filter_us
        for start in range(0, len(watchers), CHUNK):
            chunk = watchers[start : start + CHUNK]
            self.host.run(each_us * len(chunk), partial(_step, chunk), WATCH)

    def _deliver(self, watchers: list[Watcher]) -> None:
        """Pay for one event to each of these and let it go out."""
        if len(watchers) == 1:
            self.host.run(watchers[0].event_us, watchers[0].step, WATCH)
            return
        watchers = self._drawn(watchers)
        for start in range(0, len(watchers), CHUNK):
            chunk = watchers[start : start + CHUNK]
            self.host.run(sum([watcher.event_us for watcher in chunk]), partial(_step, chunk), WATCH)

    # ---- slow watchers
    def _block(self, event: CacheEvent, blocked: dict[Watcher, None]) -> None:
        now = self._clock.now()
        until = now + self._budget.take(now)
        for watcher in blocked:
            watcher.blocking = True
        self._held_up = _Block(event, blocked, until, self._clock.call_at(until, self._terminate))

    def _terminate(self) -> None:
        """The budget is used up: close whoever still blocks. Clients that have gone meanwhile are counted too: their
        channels are still there (cacher.go, stopWatcherLocked)."""
        block = self._held_up
        assert block is not None
        for watcher in block.watchers:
            watcher.blocking = False
            self._terminated.inc()
            watcher.terminate()
        block.watchers.clear()
        self._resume(block)

    def freed(self, watcher: Watcher) -> None:
        """A blocking watcher has room: it gets the event that it held up."""
        block = self._held_up
        watcher.blocking = False
        assert block is not None
        del block.watchers[watcher]
        offer = watcher.offer(block.event)
        if offer is _QUEUED:
            self._deliver([watcher])
        elif offer is _LOOKED:
            self._look([watcher])
        self._resume(block)

    def forget(self, watcher: Watcher) -> None:
        """A watch has ended, for whatever reason."""
        if self.index.remove(watcher):
            self._deadlines.forget()

    def _resume(self, block: _Block) -> None:
        """Once nobody blocks any more, go on with the events that have come meanwhile."""
        if block.watchers:
            return
        self._held_up = None
        block.timer.cancel()
        self._budget.give_back(block.until - self._clock.now())
        block.event.drop_lines()
        while self._incoming and self._held_up is None:
            item = self._incoming.popleft()
            if isinstance(item, int):
                self._progress(item)
            else:
                self._dispatch(item)
        if self._overfull and len(self._incoming) <= INCOMING:
            self._overfull = False
            self.on_room()


class _Block:
    """An event that watchers hold up."""

    __slots__ = ("event", "timer", "until", "watchers")

    def __init__(self, event: CacheEvent, watchers: dict[Watcher, None], until: float, timer: Timer) -> None:
        self.event = event
        self.watchers = watchers
        self.until = until
        self.timer = timer


def _step(watchers: Sequence[Watcher]) -> None:
    for watcher in watchers:
        watcher.step()


def _nobody() -> None:
    """Nobody waits for room."""
