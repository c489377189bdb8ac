"""Lists from the store, and watches of resources that no cache holds (events): each is a watch of the store of its own.

Mirrors k8s.io/apiserver pkg/storage/etcd3 (store.go GetList, watcher.go): no history window but the store's own, no
bookmarks but the one that ends the initial events, no budget for slow clients.
"""

from __future__ import annotations

from random import Random

from harness.apiserver.cache.bookmarks import bookmark
from harness.apiserver.cache.cachedobject import CachedObject, ObjectReader, Selection
from harness.apiserver.cache.counting import UNKNOWN, ObjectCounts
from harness.apiserver.cache.dispatch import Broadcaster
from harness.apiserver.cache.watchcache import Listing
from harness.apiserver.cache.watchers import (
    CacheEvent,
    InitialEvents,
    Offer,
    Watcher,
    WatchOptions,
    WatchSink,
    min_request_timeout_s,
)
from harness.apiserver.clock import Clock, Timer, spawn
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import WATCH, Host
from harness.apiserver.model.costs import initial_cost_us
from harness.apiserver.resources import Resource
from harness.apiserver.store.core import Compacted, FutureRevision, KeyValue, StoreError, StoreEvent
from harness.apiserver.store.storage import PrefixWatch, Storage
from harness.wire.selectors import FieldSelector, LabelSelector
from harness.wire.status import WATCH_COMPACTED, internal_error, too_large_resource_version
from harness.wire.watching import ADDED, BOOKMARK, DELETED, MODIFIED

PAGE_LIMIT = 10000  # store.go: maxLimit, up to which pages grow while a selector lets too little through
_UNBOUNDED = 1 << 40  # events that may wait for a client: it holds up nobody but itself


class StoreLister:
    """Reads one resource from the store: for uncached resources, and where a watch cache cannot serve a list."""

    def __init__(self, resource: Resource, storage: Storage, metrics: Metrics) -> None:
        self.resource = resource
        self.reader = ObjectReader(resource)
        self._storage = storage
        labels = (resource.group, resource.resource)
        self._lists = metrics.apiserver_storage_list_total.labels(*labels)
        self._fetched = metrics.apiserver_storage_list_fetched_objects_total.labels(*labels)
        self._evaluated = metrics.apiserver_storage_list_evaluated_objects_total.labels(*labels)
        self._returned = metrics.apiserver_storage_list_returned_objects_total.labels(*labels)

    async def get(self, key: str) -> tuple[CachedObject | None, int]:
        """The object now, and the revision at which it was read. Raises StoreError."""
        result = await self._storage.get(key)
        return (self._read(result.kv) if result.kv else None), result.revision

    async def list(
        self,
        namespace: str = "",
        label_selector: LabelSelector | None = None,
        field_selector: FieldSelector | None = None,
        limit: int = 0,
        start_key: str = "",
        revision: int = 0,
        minimum: int = 0,
    ) -> Listing:
        """What there is (revision 0: now, which must be no older than `minimum`) from `start_key` on. Raises
        StoreError, of these Compacted where the revision is no longer kept and FutureRevision where it is to come."""
        selection = Selection(namespace, "", label_selector, field_selector)
        tally = _Tally()
        try:
            if selection.name and (selection.namespace or not self.resource.namespaced):
                return await self._single(selection, revision, minimum, tally)
            return await self._range(selection, limit, start_key, revision, minimum, tally)
        finally:
            self._lists.inc()
            self._fetched.inc(tally.fetched)
            self._evaluated.inc(tally.evaluated)
            self._returned.inc(tally.returned)

    async def _single(self, selection: Selection, revision: int, minimum: int, tally: _Tally) -> Listing:
        """A list of one key, which is no range (etcd3/store.go: `Recursive` false)."""
        key = self.resource.key(selection.namespace, selection.name)
        page = await self._storage.range(self.resource, key, "", 1, revision)
        _check_minimum(minimum, page.revision)
        found = [self._read(kv) for kv in page.kvs if kv.key == key]
        items = [obj for obj in found if selection.matches(obj)]
        tally.fetched, tally.evaluated, tally.returned = len(found), len(found), len(items)
        return Listing(items, page.revision, fetched=len(found))

    async def _range(
        self,
        selection: Selection,
        limit: int,
        start_key: str,
        revision: int,
        minimum: int,
        tally: _Tally,
    ) -> Listing:
        prefix = self.resource.prefix
        if selection.namespace and self.resource.namespaced:
            prefix += selection.namespace + "/"
        items: list[CachedObject] = []
        page_limit = limit
        while True:
            page = await self._storage.range(self.resource, prefix, start_key, page_limit, revision)
            _check_minimum(minimum, page.revision)
            revision = page.revision
            tally.fetched += len(page.kvs)
            used = 0
            for kv in page.kvs:
                used += 1
                obj = self._read(kv)
                if selection.matches(obj):
                    items.append(obj)
                    if len(items) == limit:
                        break
            tally.evaluated += used
            tally.returned = len(items)
            remaining = page.count - used
            if not remaining or len(items) == limit:
                break
            start_key = page.kvs[-1].key + "\0"
            page_limit = min(page_limit * 2, PAGE_LIMIT)
        left = remaining if remaining and selection.unselected else None
        return Listing(items, revision, remaining > 0, left, tally.fetched)

    def _read(self, kv: KeyValue) -> CachedObject:
        return self.reader.read(kv.key, kv.value, kv.mod_revision)


class _Tally:
    """What a list from the store took so far: counted even where it fails."""

    __slots__ = ("evaluated", "fetched", "returned")

    def __init__(self) -> None:
        self.fetched = self.evaluated = self.returned = 0


def _check_minimum(minimum: int, revision: int) -> None:
    if minimum > revision:
        raise FutureRevision(minimum, revision)


class Uncached(StoreLister):
    """Reads and watches of a resource without a watch cache."""

    def __init__(
        self, resource: Resource, clock: Clock, host: Host, storage: Storage, metrics: Metrics, rng: Random
    ) -> None:
        super().__init__(resource, storage, metrics)
        self.host = host
        self._clock = clock
        self._rng = rng
        self.broadcaster = Broadcaster(resource, clock, host, metrics, rng)
        self._last: CacheEvent | None = None
        self._counts = ObjectCounts(resource, clock, metrics, rng)
        self._count_timer: Timer | None = None
        self._stopped = False
        self.objects = 0  # as last counted
        self.informers_us = 0.0  # nobody inside the member follows it

    @property
    def watchers(self) -> int:
        """Open watches."""
        return len(self.broadcaster.index)

    def start(self) -> None:
        """Count the objects, now and each minute or two."""
        spawn(self._count())

    def stop(self) -> None:
        self._stopped = True
        if self._count_timer is not None:
            self._count_timer.cancel()
        self.broadcaster.close()

    async def _count(self) -> None:
        """etcd's count (etcd3/store.go, Stats); sizes are estimated of cached resources only."""
        try:
            page = await self._storage.range(self.resource, self.resource.prefix, "", 1)
        except StoreError:
            self._counts.unknown()
        else:
            self.objects = page.count
            self._counts.publish(page.count, UNKNOWN if page.count else 0)
        if not self._stopped:
            again_at = self._clock.now() + self._counts.next_in_s()
            self._count_timer = self._clock.call_at(again_at, lambda: spawn(self._count()))

    def watch(self, options: WatchOptions, sink: WatchSink) -> Watcher:
        """Open a watch; see `Cacher.watch`. Never raises."""
        timeout_s = options.timeout_s
        if timeout_s is None:
            timeout_s = min_request_timeout_s(self._rng)
        selection = Selection(options.namespace, options.name, options.labels, options.fields)
        deadline = self._clock.now() + timeout_s
        feed = _Feed(self)
        watcher = feed.watcher = Watcher(feed, selection, options, sink, deadline)
        initial = options.send_initial_events
        if initial is None:
            initial = not options.resource_version
        spawn(self._open(feed, watcher, options, initial))
        return watcher

    async def _open(self, feed: _Feed, watcher: Watcher, options: WatchOptions, initial: bool) -> None:
        events = InitialEvents((), 0.0)
        after = options.resource_version or 0
        try:
            if initial:
                events, current = await self._state(watcher)
                if after > current:
                    watcher.fail(too_large_resource_version(after, current, from_cache=False))
                    return
                after = current
            elif not after:
                after = await self._storage.current_revision(
                    self.resource, self.host.costs.watch_open_etcd_us
                )
        except StoreError as error:
            watcher.fail(internal_error(str(error)))
            return
        if watcher.stopped:
            return
        watcher.revision = after
        watcher.capacity = _UNBOUNDED
        self.broadcaster.add(watcher)
        watcher.open(events)
        feed.source = self._storage.watch(self.resource, self._prefix(watcher.selection), feed, after)

    async def _state(self, watcher: Watcher) -> tuple[InitialEvents, int]:
        selection = watcher.selection
        page = await self._storage.range(self.resource, self._prefix(selection))
        objects = [self._read(kv) for kv in page.kvs]
        events = [(ADDED, obj) for obj in objects if selection.matches(obj)]
        cost_us = initial_cost_us(self.host.costs, self.resource.resource, len(events))
        if watcher.allow_bookmarks:
            events.append((BOOKMARK, bookmark(self.resource, page.revision, initial_events_end=True)))
        return InitialEvents(events, cost_us), page.revision

    def _prefix(self, selection: Selection) -> str:
        """The least that the store must watch: a key, a namespace, or everything."""
        resource = self.resource
        if selection.name and (selection.namespace or not resource.namespaced):
            return resource.key(selection.namespace, selection.name)
        if selection.namespace and resource.namespaced:
            return f"{resource.prefix}{selection.namespace}/"
        return resource.prefix

    def change(self, event: StoreEvent) -> CacheEvent:
        """The event with its objects; read once for all watches that it reaches."""
        if self._last is None or self._last.revision != event.revision:
            revision = event.revision
            previous = self.reader.read(event.key, event.previous, revision) if event.previous else None
            if event.value is not None:
                obj = self.reader.read(event.key, event.value, revision)
                self._last = CacheEvent(MODIFIED if previous else ADDED, obj, previous, revision)
            else:
                assert previous is not None, "the store sends what was deleted of uncached resources"
                self._last = CacheEvent(DELETED, previous, previous, revision)
        return self._last

    def deliver(self, watcher: Watcher, event: StoreEvent) -> None:
        change = self.change(event)
        if not watcher.selection.in_scope(change.object):  # a name in any namespace
            return
        if watcher.match(change) is not None and watcher.offer(change) is Offer.QUEUED:
            self.host.run(watcher.event_us, watcher.step, WATCH)


class _Feed:
    """Brings the store's events to one watcher, and stops when the watcher has: its `watchers.Dispatcher`."""

    __slots__ = ("_owner", "host", "source", "watcher")

    def __init__(self, owner: Uncached) -> None:
        self._owner = owner
        self.host = owner.host
        self.source: PrefixWatch | None = None
        self.watcher: Watcher | None = None

    def on_event(self, event: StoreEvent) -> None:
        if self.watcher is not None:
            self._owner.deliver(self.watcher, event)

    def on_progress(self, revision: int) -> None:
        """Upstream sends none of these on to clients (watcher.go: only the cacher asks for them)."""

    def on_lost(self, error: StoreError) -> None:
        if self.watcher is not None:
            status = WATCH_COMPACTED if isinstance(error, Compacted) else internal_error(str(error))
            self.watcher.fail(status)

    def sent(self, events: int, size_bytes: int) -> None:
        self._owner.broadcaster.sent(events, size_bytes)

    def freed(self, watcher: Watcher) -> None:
        """Nothing waits for a slow client here."""

    def forget(self, watcher: Watcher) -> None:
        self._owner.broadcaster.forget(watcher)
        if self.source is not None:
            self.source.stop()
