"""The watch cache of one resource in one member: reads from memory, and watches fanned out from one watch of the store.

Mirrors k8s.io/apiserver v1.36 pkg/storage/cacher (cacher.go, watch_cache.go, delegator.go). Which resourceVersion of a
read is served from where is decided by the handler; this does what it is told and says when it cannot. Resources that
are not cached have `uncached.Uncached` in its place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from math import ceil, exp
from random import Random

from harness.apiserver.cache.bookmarks import bookmark
from harness.apiserver.cache.cachedobject import CachedObject, Selection
from harness.apiserver.cache.counting import ObjectCounts
from harness.apiserver.cache.dispatch import Broadcaster
from harness.apiserver.cache.freshness import FRESH_TIMEOUT_S, Freshness, TooLarge
from harness.apiserver.cache.history import TooOld
from harness.apiserver.cache.replay import Replay
from harness.apiserver.cache.watchcache import Corruption, Listing, WatchCache
from harness.apiserver.cache.watchers import (
    Callback,
    Informer,
    Initial,
    InitialEvents,
    Watcher,
    WatchOptions,
    WatchSink,
    min_request_timeout_s,
)
from harness.apiserver.clock import Clock, Promise, Timer, sleep, spawn
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import Host
from harness.apiserver.model.costs import initial_cost_us
from harness.apiserver.resources import Resource
from harness.apiserver.store.core import KeyValue, StoreError, StoreEvent
from harness.apiserver.store.storage import PrefixWatch, Storage
from harness.wire.selectors import FieldSelector, LabelSelector
from harness.wire.status import internal_error, too_large_resource_version, too_old
from harness.wire.watching import ADDED, BOOKMARK

PAGE = 10000  # of the lists that fill the cache (cacher.go: storageWatchListPageSize)
TICK_S = 1.0  # bookmarks are looked for each 1 to 1.25 s
TICK_JITTER = 0.25
TICK_GRID_S = (
    0.25  # caches tick together where they can: what costs is waking up, and a member has sixty of them
)
MIN_REQUEST_TIMEOUT_S = (
    1800.0  # --min-request-timeout; a watch without timeoutSeconds gets once to twice that
)
PROGRESS_PERIOD_S = 5.0  # etcd's --watch-progress-notify-interval as kubeadm and the scalability tests set it
RESTART_DELAY_S = 1.0  # between attempts to fill the cache (cacher.go: wait.Until)
_GAUGED = 10**15  # the gauge of the revision has its last 15 digits (metrics.go, RecordResourceVersion)


class CacheNotReady(Exception):
    """The cache is being filled: 429 `storage is (re)initializing` with this Retry-After."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__("storage is (re)initializing")
        self.retry_after_s = retry_after_s


class Cacher:
    """Reads and watches of one resource. Filled by `start()`; `ready` tells whether it may be read. `snapshots`:
    whether past states may be listed (the gate ListFromCacheSnapshot)."""

    def __init__(
        self,
        resource: Resource,
        clock: Clock,
        host: Host,
        storage: Storage,
        metrics: Metrics,
        rng: Random,
        *,
        snapshots: bool = True,
    ) -> None:
        self.resource = resource
        self.ready = False
        self.cache = WatchCache(resource, metrics, snapshots)
        self.host = host
        self._clock = clock
        self._storage = storage
        self._rng = rng
        self._metrics = metrics
        self._watchers = Broadcaster(resource, clock, host, metrics, rng)
        self._watchers.on_room = self._go_on
        self._stuck: deque[StoreEvent | int] | None = None  # what comes while the dispatcher takes nothing
        self._freshness = Freshness(clock, self._request_progress, metrics, resource)
        self._generation = 0
        self._unready_since = clock.now()
        self._source: PrefixWatch | None = None
        self._early: list[Informer] = []  # that came before the cache was filled
        self._heard_at = clock.now()  # of the last event or progress notification
        self._tick: Timer | None = None
        self._counts = ObjectCounts(resource, clock, metrics, rng)
        self._stopped = False
        labels = (resource.group, resource.resource)
        self._received = metrics.apiserver_watch_cache_events_received_total.labels(*labels)
        self._revision_gauge = metrics.apiserver_watch_cache_resource_version.labels(*labels)
        self._initializations = metrics.apiserver_watch_cache_initializations_total.labels(*labels)
        self._init_events = metrics.apiserver_init_events_total.labels(*labels)
        self._returned = metrics.apiserver_cache_list_returned_objects_total.labels(*labels)
        if snapshots:
            metrics.swarmlet_watch_cache_snapshots.labels(*labels).set_function(
                lambda: len(self.cache.snapshots)
            )
            metrics.swarmlet_watch_cache_snapshot_bytes.labels(*labels).set_function(
                lambda: self.snapshot_bytes
            )
        self.informers_us = 0.0  # for each event; the measured cost of a write contains it

    def __len__(self) -> int:
        return len(self.cache)

    # ---- life
    def start(self) -> None:
        """Fill the cache from the store and follow it."""
        spawn(self._fill())
        self._arm_tick()

    def stop(self) -> None:
        self._stopped = True
        self.ready = False
        if self._source is not None:
            self._source.stop()
        if self._tick is not None:
            self._tick.cancel()
        self._watchers.close()
        self._freshness.stop()

    async def _fill(self) -> None:
        """List, then watch; from the start again, after a second, for as long as either fails."""
        while not self._stopped:
            try:
                kvs, revision = await self._list_store()
            except StoreError:
                await sleep(self._clock, RESTART_DELAY_S)
            else:
                self._filled(kvs, revision)
                return

    def _filled(self, kvs: list[KeyValue], revision: int) -> None:
        if not self._stopped:
            self.cache.replace(kvs, revision)
            self._watchers.processed = revision
            self._revision_gauge.set(revision)
            self._initializations.inc()
            self._generation += 1
            self.ready = True
            self._heard_at = self._clock.now()
            self._source = self._storage.watch(self.resource, self.resource.prefix, self, revision)
            self._freshness.restart(revision)
            early, self._early = self._early, []
            for informer in early:
                self._begin_informer(informer)

    async def _list_store(self) -> tuple[list[KeyValue], int]:
        prefix = self.resource.prefix
        page = await self._storage.range(self.resource, prefix, limit=PAGE)
        kvs = page.kvs
        while page.more:
            page = await self._storage.range(
                self.resource, prefix, page.kvs[-1].key + "\0", PAGE, page.revision
            )
            kvs += page.kvs
        return kvs, page.revision

    # ---- from the store
    def on_event(self, event: StoreEvent) -> None:
        if self._stuck is not None:
            self._stuck.append(event)
        elif not self._take(event):
            self._stuck = deque()

    def on_progress(self, revision: int) -> None:
        if self._stuck is not None:
            self._stuck.append(revision)
        elif not self._progress(revision):
            self._stuck = deque()

    def _take(self, event: StoreEvent) -> bool:
        """Apply and dispatch; whether the dispatcher takes more (cacher.go, processEvent: `c.incoming <- *event`)."""
        self._received.inc()
        self._heard_at = self._clock.now()
        change = self.cache.apply(event, self._heard_at)
        room = change is None or self._watchers.dispatch(change)
        self._revision_gauge.set(event.revision % _GAUGED)
        self._freshness.advance(event.revision)
        return room

    def _progress(self, revision: int) -> bool:
        self._heard_at = self._clock.now()
        if revision <= self.cache.revision:
            return True
        self.cache.revision = revision
        room = self._watchers.progress(revision)
        self._revision_gauge.set(revision % _GAUGED)
        self._freshness.advance(revision)
        return room

    def _go_on(self) -> None:
        """The dispatcher has room: what has come meanwhile is taken, until it has none again."""
        stuck = self._stuck
        while stuck:
            item = stuck.popleft()
            if not (self._progress(item) if isinstance(item, int) else self._take(item)):
                return
        self._stuck = None

    def on_lost(self, error: StoreError) -> None:
        """Without its source the cache grows old: close all watches and begin anew."""
        self._source = None
        self._begin_anew()

    def refill(self) -> None:
        """Forget everything, close all watches, and list the store again, as when the watch of the store had broken."""
        if self._source is not None:
            self._source.stop()
            self._source = None
            self._begin_anew()

    def _begin_anew(self) -> None:
        self.ready = False
        self._unready_since = self._clock.now()
        self._stuck = None
        self._watchers.drop_incoming()
        self._watchers.end_all()
        if not self._stopped:
            spawn(self._fill())

    def _request_progress(self) -> None:
        if self._source is not None:
            self._source.request_progress()

    # ---- reads
    @property
    def revision(self) -> int:
        """Up to where the cache has followed the store."""
        return self.cache.revision

    @property
    def size_bytes(self) -> int:
        """Bytes of all objects."""
        return self.cache.size_bytes

    @property
    def snapshot_bytes(self) -> int:
        """What a real server's snapshots of this cache would hold beside it (modelled)."""
        return self.cache.snapshots.size_bytes(len(self.cache))

    @property
    def watchers(self) -> int:
        """Open watches, informers of the member included."""
        return len(self._watchers.index)

    def check_ready(self) -> None:
        """Raise CacheNotReady while the cache is being filled."""
        if not self.ready:
            downtime_s = self._clock.now() - self._unready_since
            raise CacheNotReady(int(min(30.0, max(1.0, exp(min(0.06 * downtime_s, 10.0))))))

    def get(self, key: str) -> CachedObject | None:
        """The object as the cache has it now."""
        return self.cache.get(key)

    def list(
        self,
        namespace: str = "",
        label_selector: LabelSelector | None = None,
        field_selector: FieldSelector | None = None,
        limit: int = 0,
        start_key: str = "",
    ) -> Listing:
        """What the cache has now, in order of key, from `start_key` (a whole key of the store) on."""
        selection = Selection(namespace, "", label_selector, field_selector)
        return self._counted(self.cache.list(selection, limit, start_key))

    def list_at(
        self,
        revision: int,
        namespace: str = "",
        label_selector: LabelSelector | None = None,
        field_selector: FieldSelector | None = None,
        limit: int = 0,
        start_key: str = "",
    ) -> Listing:
        """What there was at `revision`; wait for it with `wait_until_fresh` first. Raises TooOld where no snapshot
        reaches so far, and the store must be asked."""
        selection = Selection(namespace, "", label_selector, field_selector)
        return self._counted(self.cache.list_at(revision, selection, limit, start_key))

    def wait_until_fresh(self, revision: int, timeout_s: float = FRESH_TIMEOUT_S) -> Promise[None]:
        """Settles once the cache has reached `revision`; fails with TooLarge after `timeout_s`."""
        return self._freshness.wait(revision, timeout_s)

    async def consistent(self) -> int:
        """Wait until the cache has everything that was written before this call; the revision. Raises TooLarge after
        3 s, and StoreError."""
        revision = await self._storage.current_revision(self.resource)
        await self.wait_until_fresh(revision)
        return revision

    def count_consistent_read(self, success: str, fallback: str) -> None:
        """A read of the latest state, "true" or "false" whether it was answered, and whether from the store instead."""
        labels = (self.resource.group, self.resource.resource, success, fallback)
        self._metrics.apiserver_watch_cache_consistent_read_total.labels(*labels).inc()

    def compact(self, revision: int) -> None:
        """The store has compacted `revision`."""
        self.cache.compact(revision)

    def mark_consistent(self, consistent: bool) -> None:
        """What a check against the store has found: while it was bad, no past state is listed from here."""
        self.cache.mark_consistent(consistent)

    def corrupt(self, how: Corruption, rng: Random) -> str:
        """Spoil one object, as a bug or a broken bit would, and tell nobody; its key, "" of an empty cache."""
        return self.cache.corrupt(how, rng)

    def _counted(self, listing: Listing) -> Listing:
        labels = (self.resource.group, self.resource.resource, listing.by_index)
        self._metrics.apiserver_cache_list_total.labels(*labels).inc()
        self._metrics.apiserver_cache_list_fetched_objects_total.labels(*labels).inc(listing.fetched)
        self._returned.inc(len(listing.items))
        return listing

    # ---- watches
    def watch(self, options: WatchOptions, sink: WatchSink) -> Watcher:
        """Open a watch. Raises CacheNotReady; whatever else is wrong is an ERROR event in the stream.

        The handler pays for `operation_cost(costs, "watch", resource, objects=1)` before; the initial events beyond
        the first, and scanning the store for them, are paid for here.
        """
        self.check_ready()
        timeout_s = options.timeout_s
        if timeout_s is None:
            timeout_s = min_request_timeout_s(self._rng)
        selection = Selection(options.namespace, options.name, options.labels, options.fields)
        watcher = Watcher(self._watchers, selection, options, sink, self._clock.now() + timeout_s)
        if self.resource.index:
            watcher.trigger = selection.required(self.resource.index)
        initial = options.send_initial_events
        if initial is None and not options.resource_version:
            initial = True
        spawn(self._open(watcher, options.resource_version, initial))
        return watcher

    def subscribe(
        self,
        callback: Callback,
        on_synced: Callable[[], object] | None = None,
        on_ended: Callable[[], object] | None = None,
    ) -> Informer:
        """The member's own informer: every object that there is as ADDED, then `on_synced()`, then every change.

        It competes with the clients' watches: paid for as one delivery each, in the same drawn order. May be called
        before the cache is filled, and then begins once it is; like every watch it ends when the store is lost, which
        `on_ended()` says.
        """
        informer = Informer(self._watchers, callback, on_synced, on_ended)
        self.informers_us += informer.event_us
        if self.ready:
            self._begin_informer(informer)
        else:
            self._early.append(informer)
        return informer

    def unsubscribe(self, informer: Informer) -> None:
        """Tell an informer nothing more; `on_ended` is not called."""
        if not informer.stopped:
            informer.stop()
        self.informers_us -= informer.event_us

    def told(self, informer: Informer) -> int:
        """The revision up to which an informer has been told everything, 0 while it is being told what there is."""
        untold = informer.untold
        if untold is not None:
            return max(0, untold - 1)
        processed = self._watchers.processed
        # Without anything held up it has been told all that the member's stream from the store has brought.
        return processed if self._watchers.held_up else max(processed, self._storage.delivered)

    def changed_after(self, revision: int) -> float | None:
        """When the cache got its first change after a revision (or the oldest that it remembers); None for none."""
        return self.cache.history.time_after(revision)

    def _begin_informer(self, informer: Informer) -> None:
        if informer.stopped:
            return
        informer.revision = self.cache.revision
        self._watchers.index.add(informer)
        objects = self.cache.list(Selection()).items
        events = [(ADDED, obj) for obj in objects]
        informer.open(InitialEvents(events, self.host.costs.watch_event_us * len(events)))

    async def _open(self, watcher: Watcher, resource_version: int | None, initial: bool | None) -> None:
        generation = self._generation
        try:
            required = resource_version
            if required is None:
                required = await self._storage.current_revision(
                    self.resource, self.host.costs.watch_open_etcd_us
                )
            if initial:
                await self.wait_until_fresh(required)
            if watcher.stopped:
                return
            if not self.ready or generation != self._generation:
                watcher.end()
                return
            events: Initial = self._state(watcher) if initial else self._changes(watcher, required)
        except TooLarge as error:
            watcher.fail(too_large_resource_version(error.requested, error.current))
        except TooOld as error:
            watcher.fail(too_old(error.requested, error.oldest + 1))
        except StoreError as error:
            watcher.fail(internal_error(str(error)))
        else:
            history = self.cache.history
            watcher.capacity = history.channel_size(bool(self.resource.index), watcher.trigger is not None)
            self._watchers.add(watcher)
            if watcher.allow_bookmarks:
                self._watchers.add_to_bookmarks(watcher)
            watcher.open(events)

    def _state(self, watcher: Watcher) -> InitialEvents:
        """All objects as ADDED, sorted by key; then the bookmark that says so, for clients that take bookmarks.

        Upstream walks its whole store unless one object is named, and counts what it walks.
        """
        selection = watcher.selection
        listing = self.cache.list(selection)
        single = bool(selection.name) and (bool(selection.namespace) or not self.resource.namespaced)
        walked = listing.fetched if single else len(self.cache)
        self._init_events.inc(walked)
        watcher.revision = self.cache.revision
        events: list[tuple[str, CachedObject]] = [(ADDED, obj) for obj in listing.items]
        cost_us = initial_cost_us(self.host.costs, self.resource.resource, len(events), walked - len(events))
        if watcher.allow_bookmarks:
            watcher.expect_end()
            events.append((BOOKMARK, bookmark(self.resource, self.cache.revision, initial_events_end=True)))
        return InitialEvents(events, cost_us)

    def _changes(self, watcher: Watcher, required: int) -> Replay:
        """The events after `required`, 0 being now. Raises TooOld. A revision yet to come is simply waited for."""
        history = self.cache.history
        since = history.since(required or self.cache.revision)
        self._init_events.inc(len(since))
        watcher.revision = since[-1].revision if since else required or self.cache.revision
        return Replay(watcher, since, history, self.host.costs.watch_filter_us)

    # ---- once a second
    def _arm_tick(self) -> None:
        at = self._clock.now() + TICK_S * (1 + TICK_JITTER * self._rng.random())
        self._tick = self._clock.call_at(ceil(at / TICK_GRID_S) * TICK_GRID_S, self._ticked)

    def _ticked(self) -> None:
        self._arm_tick()
        if not self.ready:
            return
        self._watchers.bookmark(partial(bookmark, self.resource))
        if self._counts.due:
            self._counts.publish(len(self.cache), self.cache.size_bytes)
        if self._clock.now() - self._heard_at >= PROGRESS_PERIOD_S:
            self._heard_at = self._clock.now()  # asked for; not again at the next tick
            self._request_progress()
