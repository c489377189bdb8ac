"""One watch of one client: what it selects, what waits for it, when it ends.

Mirrors k8s.io/apiserver pkg/storage/cacher/cache_watcher.go. There a watcher is a goroutine between two channels of the
same size; here it is a queue. An event joins the queue when it is dispatched and leaves it when the modelled host has
paid for the delivery and the client takes bytes; a queue as long as both channels together blocks the dispatcher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from random import Random
from typing import NamedTuple, Protocol

import msgspec

from harness.apiserver.cache.cachedobject import CachedObject, Selection
from harness.apiserver.clock import Promise, spawn
from harness.apiserver.model.capacity import Host
from harness.wire.selectors import FieldSelector, LabelSelector
from harness.wire.status import Status
from harness.wire.watching import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, encode_event, encode_events

Transform = Callable[[str, CachedObject], bytes | None]
"""(type, object) -> the event's line, or None to leave it out: for Table and PartialObjectMetadata watches."""

Callback = Callable[[str, CachedObject, CachedObject | None], object]
"""(type, object, the object before or None), for ADDED, MODIFIED and DELETED; of a deletion the last object under the
deletion's resourceVersion."""

MIN_REQUEST_TIMEOUT_S = 1800.0

CHUNK = 32
"""Watchers, or initial events of one watcher, for which the host is paid in one job."""

STALLED_BYTES = 65536
"""A client that leaves more than this in our buffers takes nothing further: upstream's handler would block in Write."""

CHECK_BYTES = 16384
"""After so many bytes it is looked whether the client leaves them there."""


def min_request_timeout_s(rng: Random) -> float:
    """How long a watch without timeoutSeconds lasts: --min-request-timeout once to twice (handlers/get.go)."""
    return MIN_REQUEST_TIMEOUT_S * (1 + rng.random())


class WatchSink(Protocol):
    """Where a watch's bytes go: an Exchange, and what its handler does at each step. Called by the cacher only."""

    def opened(self) -> None:
        """The watch is registered (or will say in an ERROR event why not): send the head. Once, before any write."""
        ...

    def initialized(self) -> None:
        """All initial events are queued: flow control may have its seats back. At most once, not after an error."""
        ...

    def write(self, data: bytes) -> None:
        """One or more encoded events, each a line; never blocks."""
        ...

    def finish(self) -> None:
        """The watch has ended: at its deadline, after an ERROR event, or because the client was too slow. Not called
        after `Watcher.stop()`."""
        ...

    @property
    def buffered(self) -> int:
        """Bytes written that the client has not taken."""
        ...

    def on_drain(self, callback: Callable[[], None]) -> None:
        """Call once when `buffered` is 0 again."""
        ...


class WatchOptions(msgspec.Struct, frozen=True):
    """A watch as validated.

    `namespace` and `name` are of the request's path ("" for all); names and namespaces that the field selector demands
    are found by the cacher. `resource_version` None means unset. `send_initial_events` None means unset: true where
    resource_version is unset or 0, as upstream's conversion has it (am/apis/meta/internalversion/defaults.go).
    `timeout_s` None draws 1800 to 3600 s (--min-request-timeout). `event_us` is what the host pays for an event, None
    for `Costs.watch_event_us`. `error` makes the event of a Status in JSON, None for one in JSON.
    """

    namespace: str = ""
    name: str = ""
    labels: LabelSelector | None = None
    fields: FieldSelector | None = None
    resource_version: int | None = None
    send_initial_events: bool | None = None
    allow_bookmarks: bool = False
    timeout_s: float | None = None
    transform: Transform | None = None
    event_us: float | None = None
    error: Callable[[bytes], bytes] | None = None


class CacheEvent:
    """One change as the watch cache saw it; its lines are made once, when first needed, and shared by all watchers.

    `object` is what is now, for DELETED the previous object under the deletion's resourceVersion. `previous` is what
    was before, None for a creation.
    """

    __slots__ = ("_added", "_deleted", "_modified", "kind", "object", "previous", "revision")

    def __init__(self, kind: str, obj: CachedObject, previous: CachedObject | None, revision: int) -> None:
        self.kind = kind
        self.object = obj
        self.previous = previous
        self.revision = revision
        self._added: bytes | None = None
        self._modified: bytes | None = None
        self._deleted: bytes | None = None

    def seen_as(self, kind: str) -> CachedObject:
        """The object that goes with an event of this type; for DELETED, the last one that the watcher knew."""
        if kind is not DELETED or self.kind is DELETED:
            return self.object
        assert self.previous is not None
        return self.previous.at_revision(self.revision)

    def drop_lines(self) -> None:
        """Everybody has theirs; the history keeps the event without them, as upstream does."""
        self._added = self._modified = self._deleted = None

    def line(self, kind: str) -> bytes:
        """The encoded event, with its line feed."""
        if kind is MODIFIED:
            if self._modified is None:
                self._modified = encode_event(kind, self.object.body)
            return self._modified
        if kind is ADDED:
            if self._added is None:
                self._added = encode_event(kind, self.object.body)
            return self._added
        if self._deleted is None:
            self._deleted = encode_event(kind, self.seen_as(kind).body)
        return self._deleted


Chunk = tuple[Sequence[tuple[str, CachedObject]], float]
"""Some of the events that a watch begins with, as (type, object), and what they cost the host."""


class Outrun(Exception):
    """The history has moved on past what a watch still had to send of it: it is closed without a word
    (watch_cache_interval.go: "cache interval invalidated")."""


class Initial(Protocol):
    """What a watch begins with."""

    def chunks(self) -> Iterable[Chunk]:
        """Up to `CHUNK` events at a time. Raises Outrun."""
        ...


class InitialEvents(NamedTuple):
    """A state, and what all of it costs the host."""

    events: Sequence[tuple[str, CachedObject]]
    cost_us: float

    def chunks(self) -> Iterator[Chunk]:
        """Each with its share of the cost."""
        events = self.events
        for start in range(0, len(events), CHUNK):
            chunk = events[start : start + CHUNK]
            yield chunk, self.cost_us * len(chunk) / len(events)


class Dispatcher(Protocol):
    """What a watcher needs of the cacher that owns it."""

    host: Host

    def sent(self, events: int, size_bytes: int) -> None:
        """Events have gone to a client; for the metrics."""
        ...

    def freed(self, watcher: Watcher) -> None:
        """A watcher on which dispatching waits has room again."""
        ...

    def forget(self, watcher: Watcher) -> None: ...


class Offer(Enum):
    """What has become of an event that a watch was offered."""

    NOTHING = 0  # the watch began after it, or its transform leaves it out
    QUEUED = 1  # a delivery is to be paid for
    LOOKED = 2  # a look is to be paid for: it is left out when its turn comes
    BLOCKED = 3  # there is no room for it
    SENT = 4  # it has gone out, unpaid
    PASSED = 5  # it was looked at in vain, unpaid


class End(Enum):
    """How far a watch-list is with the bookmark that ends its initial events; others begin with SENT."""

    WAITING = 0
    RECEIVED = 1  # a bookmark waits in its channel while the initial events are still being sent
    SENT = 2


class Watcher:
    """One open watch. Made by `Cacher.watch`; its owner calls `stop()` when the client has gone."""

    __slots__ = (
        "_drain",
        "_draining",
        "_end",
        "_error",
        "_everything",
        "_initial",
        "_opened",
        "_owner",
        "_queue",
        "_ready",
        "_sink",
        "_stalled",
        "_transform",
        "_unchecked_bytes",
        "allow_bookmarks",
        "blocking",
        "capacity",
        "deadline",
        "event_us",
        "revision",
        "selection",
        "stopped",
        "trigger",
    )

    def __init__(
        self,
        owner: Dispatcher,
        selection: Selection,
        options: WatchOptions,
        sink: WatchSink,
        deadline: float,
    ) -> None:
        self.selection = selection
        self._everything = selection.everything
        self.deadline = deadline
        self.allow_bookmarks = options.allow_bookmarks
        self.event_us = owner.host.costs.watch_event_us if options.event_us is None else options.event_us
        self.trigger: str | None = None  # the value of the resource's indexed field that it demands
        self.revision = 0  # events up to and including this one are not for it
        self.capacity = 0  # of its two channels
        self.blocking = False
        self.stopped = False
        self._transform = options.transform
        self._error = options.error
        self._owner = owner
        self._sink = sink
        self._queue: list[bytes] = []
        self._ready = 0  # of the queue's events, how many the host has paid for
        self._initial = True
        self._opened = False
        self._stalled = False
        self._unchecked_bytes = 0
        self._draining = False  # too slow, and closed once its channel is empty
        self._end = End.SENT
        self._drain: Promise[None] | None = None

    def __lt__(self, other: Watcher) -> bool:
        """Whether it ends first."""
        return self.deadline < other.deadline

    # ---- what the owner of the client's stream calls
    def stop(self) -> None:
        """The client has gone; nothing more is written. No effect on a watch that has ended."""
        if not self.stopped:
            self.stopped = True
            self._queue.clear()
            self._owner.forget(self)
            if self._drain is not None:
                self._drain.resolve(None)

    # ---- what the cacher calls
    @property
    def full(self) -> bool:
        """Both channels hold what they can; while initial events use one of them, the other."""
        return len(self._queue) >= (self.capacity if self._initial else 2 * self.capacity)

    @property
    def awaits_end(self) -> bool:
        """Whether no bookmark has come yet since its initial events began."""
        return self._end is End.WAITING

    def match(self, event: CacheEvent) -> str | None:
        """The type under which this watch sees an event in the scope of its namespace and name, None if it does not:
        selector transitions become ADDED and DELETED (cache_watcher.go, convertToWatchEvent)."""
        selection = self.selection
        if selection.everything:  # the index has found it by namespace and name
            return event.kind
        new = event.kind is not DELETED and selection.matches(event.object)
        old = event.previous is not None and selection.matches(event.previous)
        if new:
            return MODIFIED if old else ADDED
        return DELETED if old else None

    def offer(self, event: CacheEvent, free: bool = False) -> Offer:
        """Send or queue an event; `step()` must be called for each one queued. `free`: nobody waits for what it costs,
        so that what need not wait for the client does not wait at all."""
        if event.revision <= self.revision:
            return Offer.NOTHING
        kind = event.kind if self._everything else self.match(event)
        queue = self._queue
        if free and not queue and not self._initial and not self._stalled:
            if kind is None:
                return Offer.PASSED
            line = self._line(event, kind)
            if line is None:
                return Offer.NOTHING
            self._write(line)
            return Offer.SENT
        if self.full:
            return Offer.BLOCKED
        if kind is None:
            queue.append(b"")
            return Offer.LOOKED
        line = self._line(event, kind)
        if line is None:
            return Offer.NOTHING
        queue.append(line)
        return Offer.QUEUED

    def _line(self, event: CacheEvent, kind: str) -> bytes | None:
        """None where the transform leaves the event out."""
        if self._transform is None:
            return event.line(kind)
        return self._transform(kind, event.seen_as(kind))

    def push_bookmark(self, obj: CachedObject, line: bytes) -> bool:
        """Queue a bookmark, if it says something new and the queue is not full: these never block."""
        if self._draining or self.full:
            return False
        if obj.revision > self.revision:
            transformed = line if self._transform is None else self._transform(BOOKMARK, obj)
            if transformed is None:
                return False
        elif self._end is End.SENT:
            return False
        else:
            transformed = b""  # the bookmark behind the initial events will say it
        if self._end is End.WAITING:
            self._end = End.RECEIVED
        self._queue.append(transformed)
        return True

    def step(self) -> None:
        """The host has paid for one delivery: the oldest event goes out, or becomes ready to."""
        if self.stopped:
            return
        if self._initial or self._stalled:
            self._ready += 1
        else:
            self._write(self._queue.pop(0))

    def expect_end(self) -> None:
        """Its initial events will end in a bookmark."""
        self._end = End.WAITING

    def open(self, initial: Initial) -> None:
        """The watch is registered: send the head, then the initial events, then what has been queued meanwhile."""
        self._opened = True
        self._sink.opened()
        spawn(self._begin(initial))

    def end(self) -> None:
        """Close the stream cleanly: the deadline, a client that is too slow, a cache that is filled anew."""
        if not self.stopped:
            self.stop()
            if not self._opened:
                self._sink.opened()
            self._sink.finish()

    def terminate(self) -> None:
        """Too slow: it gets no further event, and ends; at once, unless the bookmark that its client waits for is on
        its way, so that the next watch can begin there (cache_watcher.go:179-203)."""
        if self._end is End.RECEIVED and not self.stopped:
            self._draining = True
            self._owner.forget(self)
        else:
            self.end()

    def fail(self, status: Status) -> None:
        """One ERROR event, then the end, as for everything found wrong after validation (cacher.go, newErrWatcher)."""
        if not self.stopped:
            self.stop()
            if not self._opened:
                self._sink.opened()
            body = status.body()
            self._sink.write(encode_event(ERROR, body) if self._error is None else self._error(body))
            self._sink.finish()

    # ---- delivery
    async def _begin(self, initial: Initial) -> None:
        try:
            for chunk, cost_us in initial.chunks():
                await self._owner.host.work(cost_us)
                events, data = self._encoded(chunk)
                if events and not self.stopped:
                    self._write_initial(events, data)
                if self._drain is not None:
                    await self._drain
        except Outrun:
            self.end()
        if not self.stopped:
            self._begun()

    def _begun(self) -> None:
        self._initial = False
        self._end = End.SENT
        self._sink.initialized()
        self._flush()
        if self.blocking and not self.full:  # the second channel has become free
            self._owner.freed(self)

    def _encoded(self, chunk: Sequence[tuple[str, CachedObject]]) -> tuple[int, bytes]:
        """How many lines, and these."""
        transform = self._transform or _plain
        if transform is _plain and chunk:
            first = chunk[0][0]
            bodies = [obj.body for kind, obj in chunk if kind == first]
            if len(bodies) == len(chunk):  # as all but the last chunk are
                return len(chunk), encode_events(first, bodies)
        lines = [line for kind, obj in chunk if (line := transform(kind, obj)) is not None]
        return len(lines), b"".join(lines)

    def _write_initial(self, events: int, data: bytes) -> None:
        self._sink.write(data)
        self._owner.sent(events, len(data))
        if self._sink.buffered > STALLED_BYTES:
            self._drain = Promise()
            self._sink.on_drain(self._drained)

    def _write(self, line: bytes) -> None:
        if line:
            size = len(line)
            self._sink.write(line)
            self._owner.sent(1, size)
            self._unchecked_bytes += size
            if self._unchecked_bytes > CHECK_BYTES:
                self._check()
        if self.blocking:
            self._owner.freed(self)
        elif self._draining and not self._queue:
            self.end()

    def _check(self) -> None:
        self._unchecked_bytes = 0
        if self._sink.buffered > STALLED_BYTES:
            self._stalled = True
            self._sink.on_drain(self._drained)

    def _drained(self) -> None:
        if self._drain is not None:
            drain, self._drain = self._drain, None
            drain.resolve(None)
        if self._stalled:
            self._stalled = False
            self._flush()

    def _flush(self) -> None:
        while self._ready and not self._stalled and not self.stopped:
            self._ready -= 1
            self._write(self._queue.pop(0))
        if self._draining and not self._queue:
            self.end()


class Informer(Watcher):
    """The member's own view of a resource, for its authorizer and controllers: a watch whose events go to a function,
    paid for and in turn like everybody's."""

    __slots__ = ("_callback", "_ended", "_events", "_synced")

    def __init__(
        self,
        owner: Dispatcher,
        callback: Callback,
        on_synced: Callable[[], object] | None,
        on_ended: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(owner, Selection(), WatchOptions(), _NO_SINK, float("inf"))
        self._callback = callback
        self._synced = on_synced
        self._ended = on_ended
        self._events: list[tuple[str, CacheEvent]] = []

    @property
    def untold(self) -> int | None:
        """The revision of the oldest event that waits to be told, 0 before the initial ones are; None for none."""
        if self._initial:
            return 0
        return self._events[0][1].revision if self._events else None

    def end(self) -> None:
        if not self.stopped:
            self.stop()
            if self._ended is not None:
                self._ended()

    def offer(self, event: CacheEvent, free: bool = False) -> Offer:
        """It reads as fast as it is served, and is never blocked."""
        if event.revision <= self.revision:
            return Offer.NOTHING
        if free and not self._events and not self._initial:
            self._callback(event.kind, event.object, event.previous)
            return Offer.SENT
        self._events.append((event.kind, event))
        return Offer.QUEUED

    def step(self) -> None:
        if self.stopped:
            return
        if self._initial:
            self._ready += 1
            return
        kind, event = self._events.pop(0)
        self._callback(kind, event.object, event.previous)

    async def _begin(self, initial: Initial) -> None:
        for chunk, cost_us in initial.chunks():
            await self._owner.host.work(cost_us)
            for kind, obj in chunk:
                if not self.stopped:
                    self._callback(kind, obj, None)
        self._initial = False
        ready, self._ready = self._ready, 0
        for _ in range(ready):
            self.step()
        if self._synced is not None and not self.stopped:
            self._synced()


class _NoSink:
    """An informer writes to nobody."""

    buffered = 0

    def opened(self) -> None: ...
    def initialized(self) -> None: ...
    def write(self, data: bytes) -> None: ...
    def finish(self) -> None: ...
    def on_drain(self, callback: Callable[[], None]) -> None: ...


_NO_SINK = _NoSink()


def _plain(kind: str, obj: CachedObject) -> bytes:
    return encode_event(kind, obj.body)
