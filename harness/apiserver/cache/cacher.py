"""The watch cache of one resource in one member: reads from memory, and watches fanned out from one watch of the store.

Mirrors k8s.io/apiserver v1.36 pkg/storage/cacher (cacher.go, watch_cache.go, delegator.go). Which resourceVersion of a
read is served from where is decided by the handler; this does what it is told and says when it cannot. Resources that
are not cached have `uncached.Uncached` in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp
from random import Random

from harness.apiserver.cache.bookmarks import bookmark
from harness.apiserver.cache.cachedobject import CachedObject, Selection
from harness.apiserver.cache.dispatch import Broadcaster
from harness.apiserver.cache.freshness import FRESH_TIMEOUT_S, Freshness, TooLarge
from harness.apiserver.cache.history import TooOld
from harness.apiserver.cache.watchcache import Listing, WatchCache
from harness.apiserver.cache.watchers import (
    Callback,
    Informer,
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
MIN_REQUEST_TIMEOUT_S = (
    1800.0  # --min-request-timeout; a watch without timeoutSeconds gets once to twice that
)
PROGRESS_PERIOD_S = 5.0  # etcd's --watch-progress-notify-interval as kubeadm and the scalability tests set it
COUNT_PERIOD_S = 60.0
RESTART_DELAY_S = 1.0  # between attempts to fill the cache (cacher.go: wait.Until)


class CacheNotReady(Exception):
    """The cache is being filled: 429 `storage is (re)initializing` with this Retry-After."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__("storage is (re)initializing")
        self.retry_after_s = retry_after_s


class Cacher:
    """Reads and watches of one resource. Filled by `start()`; `ready` tells whether it may be read."""

    def __init__(
        self, resource: Resource, clock: Clock, host: Host, storage: Storage, metrics: Metrics, rng: Random
    ) -> None:
        self.resource = resource
        self.ready = False
        self.cache = WatchCache(resource, metrics)
        self.host = host
        self._clock = clock
        self._storage = storage
        self._rng = rng
        self._metrics = metrics
        self._watchers = Broadcaster(resource, clock, host, metrics, rng)
        self._freshness = Freshness(clock, self._request_progress, metrics, resource)
        self._number = 0
        self._generation = 0
        self._unready_since = clock.now()
        self._source: PrefixWatch | None = None
        self._early: list[Informer] = []  # that came before the cache was filled
        self._heard_at = clock.now()  # of the last event or progress notification
        self._tick: Timer | None = None
        self._publish_at = 0.0
        self._stopped = False
        labels = (resource.group, resource.resource)
        self._received = metrics.apiserver_watch_cache_events_received_total.labels(*labels)
        self._revision_gauge = metrics.apiserver_watch_cache_resource_version.labels(*labels)
        self._initializations = metrics.apiserver_watch_cache_initializations_total.labels(*labels)
        self._init_events = metrics.apiserver_init_events_total.labels(*labels)
        self._returned = metrics.apiserver_cache_list_returned_objects_total.labels(*labels)
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
            self._publish()

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
        self._received.inc()
        self._heard_at = self._clock.now()
        change = self.cache.apply(event, self._heard_at)
        if change is not None:
            self._watchers.dispatch(change)
        self._revision_gauge.set(event.revision)
        self._freshness.advance(event.revision)

    def on_progress(self, revision: int) -> None:
        self._heard_at = self._clock.now()
        if revision > self.cache.revision:
            self.cache.revision = revision
            self._watchers.progress(revision)
            self._revision_gauge.set(revision)
            self._freshness.advance(revision)

    def on_lost(self, error: StoreError) -> None:
        """Without its source the cache grows old: close all watches and begin anew."""
        self.ready = False
        self._unready_since = self._clock.now()
        self._source = None
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
        """What there was at `revision`; wait for it with `wait_until_fresh` first. Raises TooOld where history does
        not reach so far, and the store must be asked."""
        selection = Selection(namespace, "", label_selector, field_selector)
        return self._counted(self.cache.list_at(revision, selection, limit, start_key))

    def wait_until_fresh(self, revision: int, timeout_s: float = FRESH_TIMEOUT_S) -> Promise[None]:
        """Settles once the cache has reached `revision`; fails with TooLarge after `timeout_s`."""
        return self._freshness.wait(revision, timeout_s)

    async def consistent(self) -> int:
        """Wait until the cache has everything that was written before this call; the revision. Raises TooLarge after
        3 s, when upstream reads from etcd instead, and StoreError. Counted as a consistent read from cache."""
        revision = await self._storage.current_revision(self.resource)
        fallback = "true"
        try:
            await self.wait_until_fresh(revision)
            fallback = "false"
        finally:
            self._metrics.apiserver_watch_cache_consistent_read_total.labels(
                self.resource.group, self.resource.resource, "true", fallback
            ).inc()
        return revision

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
        self._number += 1
        watcher = Watcher(
            self._watchers, self._number, selection, options, sink, self._clock.now() + timeout_s
        )
        if self.resource.index:
            watcher.trigger = selection.required(self.resource.index)
        initial = options.send_initial_events
        if initial is None and not options.resource_version:
            initial = True
        spawn(self._open(watcher, options.resource_version, initial))
        return watcher

    def subscribe(self, callback: Callback, on_synced: Callable[[], object] | None = None) -> Informer:
        """The member's own informer: every object that there is as ADDED, then `on_synced()`, then every change.

        It competes with the clients' watches: paid for as one delivery each, in the same drawn order. May be called
        before the cache is filled, and then begins once it is; like every watch it ends when the store is lost.
        """
        self._number += 1
        informer = Informer(self._watchers, self._number, callback, on_synced)
        self.informers_us += informer.event_us
        if self.ready:
            self._begin_informer(informer)
        else:
            self._early.append(informer)
        return informer

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
            events = self._state(watcher) if initial else self._changes(watcher, required)
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
            events.append((BOOKMARK, bookmark(self.resource, self.cache.revision, initial_events_end=True)))
        return InitialEvents(events, cost_us)

    def _changes(self, watcher: Watcher, required: int) -> InitialEvents:
        """The events after `required`, 0 being now. Raises TooOld. A revision yet to come is simply waited for."""
        since = self.cache.history.since(required or self.cache.revision)
        self._init_events.inc(len(since))
        watcher.revision = since[-1].revision if since else required or self.cache.revision
        selection = watcher.selection
        events = [
            (kind, event.seen_as(kind))
            for event in since
            if selection.in_scope(event.object) and (kind := watcher.match(event)) is not None
        ]
        return InitialEvents(events, watcher.event_us * max(0, len(events) - 1))

    def _publish(self) -> None:
        """Object counts for the metrics, as often as upstream polls them (registry/store.go, startObservingCount)."""
        self._publish_at = self._clock.now() + COUNT_PERIOD_S
        resource, metrics = self.resource, self._metrics
        metrics.apiserver_storage_objects.labels(resource.group_resource).set(len(self.cache))
        metrics.apiserver_resource_objects.labels(resource.group, resource.resource).set(len(self.cache))
        metrics.apiserver_resource_size_estimate_bytes.labels(resource.group, resource.resource).set(
            self.cache.size_bytes
        )

    # ---- once a second
    def _arm_tick(self) -> None:
        delay_s = TICK_S * (1 + TICK_JITTER * self._rng.random())
        self._tick = self._clock.call_at(self._clock.now() + delay_s, self._ticked)

    def _ticked(self) -> None:
        self._arm_tick()
        if not self.ready:
            return
        self._watchers.bookmark(partial(bookmark, self.resource))
        if self._clock.now() >= self._publish_at:
            self._publish()
        if self._clock.now() - self._heard_at >= PROGRESS_PERIOD_S:
            self._heard_at = self._clock.now()  # asked for; not again at the next tick
            self._request_progress()
