"""A member's etcd: its connection to the store, with what etcd costs its host, its metrics, and watches by prefix.

Mirrors k8s.io/apiserver pkg/storage/etcd3 (store.go, watcher.go, metrics/metrics.go) and the etcd member that stands on
the same host as the apiserver. All of etcd's modelled CPU time is charged here and nowhere else: each write when the
member's own replica applies it, at what its operation costs etcd where the member made it, at `Costs.replica_etcd_us`
where another did; each read when it is answered. So is the apiserver's for applying a write of another member to its
caches (`Costs.cache_event_us`); the measured cost of an operation already contains that of the member that took it.

A request handler therefore charges the apiserver's part of `costs.operation_cost` and hands etcd's to `Storage.txn`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import NamedTuple, Protocol, TypeVar

from harness.apiserver.clock import Clock, Promise
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.metrics.text import Counter, Histogram
from harness.apiserver.model.capacity import ETCD, WATCH, Host
from harness.apiserver.model.inorder import InOrder
from harness.apiserver.resources import NODE_PORTS, RESOURCES, Resource
from harness.apiserver.store.client import Store, Subscription
from harness.apiserver.store.core import (
    ABSENT,
    Compacted,
    GetResult,
    HistoryResult,
    RangeResult,
    StoreError,
    StoreEvent,
    StoreUnavailable,
    Txn,
    TxnResult,
)

T = TypeVar("T")

_NO_KEYS = "/none/"  # a prefix that no key has
BACKLOG_PERIOD_S = 0.05  # how often a busy host tells the store how far its etcd member is behind


class PrefixSink(Protocol):
    """Who watches keys with a prefix."""

    def on_event(self, event: StoreEvent) -> None: ...

    def on_progress(self, revision: int) -> None:
        """No event up to and including `revision` is outstanding; the answer to `request_progress`."""
        ...

    def on_lost(self, error: StoreError) -> None:
        """The watch has ended."""
        ...


class PrefixWatch:
    """A watch of one prefix, from one revision on. Events that come while history is fetched wait for it."""

    __slots__ = ("_after", "_held", "_route", "_sink", "_storage", "prefix", "stopped")

    def __init__(self, storage: Storage, route: _Route, prefix: str, sink: PrefixSink, after: int) -> None:
        self.prefix = prefix
        self.stopped = False
        self._storage = storage
        self._route = route
        self._sink = sink
        self._after = after
        self._held: list[StoreEvent] | None = None

    def stop(self) -> None:
        if not self.stopped:
            self.stopped = True
            self._route.remove(self)

    def request_progress(self) -> None:
        """Ask for an `on_progress` behind all events that have arrived (etcd's RequestProgress)."""
        self._storage.request_progress(self)

    def hold(self) -> None:
        self._held = []

    def release(self, answer: Promise[HistoryResult]) -> None:
        """History has come: deliver it, then what was held."""
        try:
            result = answer.result()
        except StoreError as error:
            self.lose(error)
            return
        held, self._held = self._held or [], None
        for event in result.events:
            self.offer(event)
        self._after = max(self._after, result.revision)
        for event in held:
            self.offer(event)

    def offer(self, event: StoreEvent) -> None:
        """Several events may have one revision: what was one write of etcd's own, as when a lease ends."""
        if self._held is not None:
            self._held.append(event)
        elif event.revision > self._after and not self.stopped:
            self._sink.on_event(event)

    def progress(self, revision: int) -> None:
        if self._held is None and not self.stopped:
            self._sink.on_progress(revision)

    def lose(self, error: StoreError) -> None:
        if not self.stopped:
            self.stop()
            self._sink.on_lost(error)


class _Route:
    """Watches of one resource's keys, by prefix, and its metrics."""

    __slots__ = ("bookmarks", "received", "resource", "watches")

    def __init__(self, resource: Resource, metrics: Metrics) -> None:
        self.resource = resource
        self.watches: dict[str, list[PrefixWatch]] = {}
        labels = (resource.group, resource.resource)
        self.received: Counter = metrics.apiserver_storage_events_received_total.labels(*labels)
        self.bookmarks: Counter = metrics.etcd_bookmark_total.labels(*labels)

    def add(self, watch: PrefixWatch) -> None:
        self.watches.setdefault(watch.prefix, []).append(watch)

    def remove(self, watch: PrefixWatch) -> None:
        watches = self.watches[watch.prefix]
        watches.remove(watch)
        if not watches:
            del self.watches[watch.prefix]

    def offer(self, event: StoreEvent) -> None:
        """To the watches of the resource, of the namespace and of the key itself."""
        self.received.inc()
        prefixes = [self.resource.prefix, event.key]
        if self.resource.namespaced:
            prefixes.append(event.key[: event.key.rindex("/") + 1])
        for prefix in prefixes:
            for watch in tuple(self.watches.get(prefix, ())):
                watch.offer(event)


class _Answer(NamedTuple):
    promise: Promise[TxnResult]
    result: TxnResult


class Storage:
    """What handlers and caches of one member use of the store. Not ready until `start()`; `outage` is set while the
    store cannot be reached, `error` once it has gone for good: every call fails with it."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        host: Host,
        metrics: Metrics,
        resources: Sequence[Resource] = (*RESOURCES, NODE_PORTS),
    ) -> None:
        self.error: StoreError | None = None
        self.outage: StoreError | None = None
        self.revision = 0  # up to which the member's own replica has applied
        self.delivered = 0  # up to which the member's own watches have been handed what it has applied
        self._store = store
        self._modelled = store.modelled
        self._clock = clock
        self._host = host
        self._metrics = metrics
        resources = [resource for resource in resources if resource.stored and resource.hub is None]
        self._routes = {resource.prefix: _Route(resource, metrics) for resource in resources}
        self._previous_for = tuple(resource.prefix for resource in resources if not resource.cached)
        self._applies = InOrder(host, ETCD)
        self._deliveries = InOrder(host, WATCH)
        # This member's writes that have not come back as events: what each costs etcd, by revision.
        self._own: dict[int, float] = {}
        self._awaited: list[tuple[int, int, Promise[None]]] = []  # heap of (revision, order, promise)
        self._awaiting = 0
        self._unapplied: dict[int, _Answer] = {}  # answers that wait for the own replica, by revision
        self._cells: dict[tuple[str, str, str], tuple[Histogram, Counter, Counter]] = {}
        self._subscription: Subscription | None = None
        self._reporting = False

    def start(self) -> None:
        """Begin to follow the store, from now on."""
        self.revision = 0
        self._subscription = self._store.subscribe(self, 0, self._previous_for)

    def stop(self) -> None:
        if self._subscription is not None:
            self._subscription.stop()
            self._subscription = None
        self._store.close()

    # ---- requests
    def txn(self, txn: Txn, cost_us: float | None = None) -> Promise[TxnResult]:
        """One conditional write; settles when the member's own replica has applied it, which costs that `cost_us`
        (None: `Costs.replica_etcd_us`). See `Store.txn`."""
        self._report()
        operation = "delete" if txn.value is None else "create" if txn.expected == ABSENT else "update"
        promise: Promise[TxnResult] = self._measured(operation, self._route(txn.key).resource)
        self._store.txn(txn).then(partial(self._written, promise, cost_us))
        return promise

    def get(self, key: str) -> Promise[GetResult]:
        """Linearizable."""
        self._report()
        promise: Promise[GetResult] = self._measured("get", self._route(key).resource)
        self._read(self._store.get(key), self._host.costs.get_consistent_etcd_us, promise)
        return promise

    def range(
        self, resource: Resource, prefix: str, start_key: str = "", limit: int = 0, revision: int = 0
    ) -> Promise[RangeResult]:
        """Keys of `resource` in order; see `Store.range`."""
        self._report()
        promise: Promise[RangeResult] = self._measured("list", resource)
        costs = self._host.costs
        answer = self._store.range(prefix, start_key, limit, revision)
        self._read(
            answer,
            lambda result: costs.list_consistent_etcd_us + costs.list_per_pod_etcd_us * len(result.kvs),
            promise,
        )
        return promise

    def current_revision(self, resource: Resource, cost_us: float | None = None) -> Promise[int]:
        """The store's newest revision, linearizable; `resource` is who asks, for the metrics. `cost_us` None is what it
        costs a list."""
        self._report()
        promise: Promise[int] = self._measured("getCurrentResourceVersion", resource)
        cost_us = self._host.costs.list_consistent_etcd_us if cost_us is None else cost_us
        self._read(self._store.current_revision(), cost_us, promise)
        return promise

    def compact(self, revision: int = 0) -> Promise[int]:
        """Have the store forget; see `Store.compact`."""
        return self._store.compact(revision)

    def set_delay(self, write_s: float, read_s: float) -> Promise[None]:
        """Make the store slow, for all members; see `Store.set_delay`."""
        return self._store.set_delay(write_s, read_s)

    def compacted_after(self, revision: int) -> Promise[int]:
        """The compaction revision if it is beyond `revision`, else `revision` itself: a read of nothing at `revision`,
        which upstream spares itself by watching a key. Neither charged nor counted."""
        promise: Promise[int] = Promise()

        def answered(answer: Promise[RangeResult]) -> None:
            try:
                answer.result()
                promise.resolve(revision)
            except Compacted as error:
                promise.resolve(max(error.compacted, revision + 1))
            except StoreError as error:
                promise.fail(error)

        self._store.range(_NO_KEYS, "", 0, max(1, revision)).then(answered)
        return promise

    def serve_also(self, resource: Resource) -> None:
        """Keys of one more resource."""
        if resource.prefix not in self._routes:
            self._routes[resource.prefix] = _Route(resource, self._metrics)

    def watch(self, resource: Resource, prefix: str, sink: PrefixSink, after: int) -> PrefixWatch:
        """Every event with a revision greater than `after` whose key has `prefix`: the prefix of the resource, one of
        its namespaces, or a key. Ends with `on_lost`, at once if the store has gone or has compacted `after`."""
        assert self._subscription is not None, "Storage.start() comes first"
        route = self._routes[resource.prefix]
        watch = PrefixWatch(self, route, prefix, sink, after)
        route.add(watch)
        if self.error is not None:
            watch.lose(self.error)
        elif (
            after < self.revision or not self.revision
        ):  # or nothing heard yet: who knows what was written before
            watch.hold()
            self._store.history(prefix, after).then(watch.release)
        return watch

    def request_progress(self, watch: PrefixWatch) -> None:
        def applied() -> None:
            revision = self.revision
            self._deliveries.run(0.0, lambda: self._progress(watch, revision))

        self._applies.run(0.0, applied)

    def _progress(self, watch: PrefixWatch, revision: int) -> None:
        self._route(watch.prefix).bookmarks.inc()
        watch.progress(revision)

    # ---- answers
    def _written(
        self, promise: Promise[TxnResult], cost_us: float | None, answer: Promise[TxnResult]
    ) -> None:
        if not self._modelled:
            cost_us = 0.0
        elif cost_us is None:
            cost_us = self._host.costs.replica_etcd_us
        try:
            result = answer.result()
        except StoreError as error:
            promise.fail(error)
            return
        if not result.succeeded:  # a raft entry all the same
            self._host.run(cost_us, partial(promise.resolve, result), ETCD)
        elif result.revision > self.revision:
            self._own[result.revision] = cost_us
            self._unapplied[result.revision] = _Answer(promise, result)
        else:
            promise.resolve(result)

    def _read(self, answer: Promise[T], cost_us: float | Callable[[T], float], promise: Promise[T]) -> None:
        def answered(settled: Promise[T]) -> None:
            try:
                result = settled.result()
            except StoreError as error:
                promise.fail(error)
                return
            cost = cost_us(result) if callable(cost_us) else cost_us
            self._host.run(cost if self._modelled else 0.0, partial(promise.resolve, result), ETCD)

        answer.then(answered)

    # ---- events of the store
    def on_events(self, events: Sequence[StoreEvent]) -> None:
        self._report()
        others_us = self._host.costs.replica_etcd_us if self._modelled else 0.0
        cost_us = sum([self._own.get(event.revision, others_us) for event in events])
        self._applies.run(cost_us, partial(self._apply, events))

    def _apply(self, events: Sequence[StoreEvent]) -> None:
        """The own replica has them: its watchers hear of them, and whoever wrote them gets the answer."""
        self.revision = events[-1].revision
        foreign = 0
        answers = []
        for event in events:
            if event.revision in self._own:
                del self._own[event.revision]
                answers.append(self._unapplied.pop(event.revision))
            elif (route := self._route_of(event)) is not None and route.resource.cached:
                foreign += 1
        for answer in answers:  # first: a watch has one more hop to go than an answer
            answer.promise.resolve(answer.result)
        self._deliveries.run(self._host.costs.cache_event_us * foreign, partial(self._deliver, events))

    def _deliver(self, events: Sequence[StoreEvent]) -> None:
        for event in events:
            route = self._route_of(event)
            if route is not None:
                route.offer(event)
        self._delivered(events[-1].revision)

    def _delivered(self, revision: int) -> None:
        if revision > self.delivered:
            self.delivered = revision
        awaited = self._awaited
        while awaited and awaited[0][0] <= self.delivered:
            heappop(awaited)[2].resolve(None)

    def until_delivered(self, revision: int) -> Promise[None]:
        """Settles once everything up to a revision has been handed to the member's own watches."""
        promise: Promise[None] = Promise()
        if revision <= self.delivered:
            promise.resolve(None)
        else:
            self._awaiting += 1
            heappush(self._awaited, (revision, self._awaiting, promise))
        return promise

    def on_progress(self, revision: int) -> None:
        def applied() -> None:
            self.revision = max(self.revision, revision)
            passed = [own for own in self._unapplied if own <= revision]  # before the subscription had begun
            for own in passed:
                del self._own[own]
                answer = self._unapplied.pop(own)
                answer.promise.resolve(answer.result)
            self._deliveries.run(0.0, lambda: self._delivered(revision))

        self._applies.run(0.0, applied)

    def on_interrupted(self, error: StoreError) -> None:
        self.outage = error

    def on_resumed(self) -> None:
        self.outage = None

    def on_lost(self, error: StoreError) -> None:
        if not isinstance(error, Compacted):
            self.error = self.outage = error
        # Behind what has arrived: answers whose events came before the loss are still given.
        self._applies.run(0.0, lambda: self._deliveries.run(0.0, partial(self._lose, error)))

    def _lose(self, error: StoreError) -> None:
        unapplied, self._unapplied = self._unapplied, {}
        self._own.clear()
        for answer in unapplied.values():
            if self.error is None:  # the store is there, and has the write; only the event was missed
                answer.promise.resolve(answer.result)
            else:
                answer.promise.fail(error)
        if self.error is None:
            self.start()
        for route in self._routes.values():
            for watches in list(route.watches.values()):
                for watch in tuple(watches):
                    watch.lose(error)

    # ---- helpers
    def _route(self, key: str) -> _Route:
        """The resource that a key belongs to: /registry/<resource>/... or /registry/<group>/<resource>/..."""
        end = key.index("/", 10) + 1
        route = self._routes.get(key[:end])
        return route if route is not None else self._routes[key[: key.index("/", end) + 1]]

    def _route_of(self, event: StoreEvent) -> _Route | None:
        """None for a key that is no resource's of ours: an etcd may hold others."""
        try:
            return self._route(event.key)
        except (KeyError, ValueError):
            return None

    def _measured(self, operation: str, resource: Resource) -> Promise[T]:
        """A promise whose settling is counted as an etcd request."""
        key = (operation, resource.group, resource.resource)
        cells = self._cells.get(key)
        if cells is None:
            metrics = self._metrics
            cells = self._cells[key] = (
                metrics.etcd_request_duration_seconds.labels(*key),
                metrics.etcd_requests_total.labels(*key),
                metrics.etcd_request_errors_total.labels(*key),
            )
        promise: Promise[T] = Promise()
        promise.then(partial(_count, cells, self._clock, self._clock.now()))
        return promise

    def _report(self) -> None:
        """Tell the store how far behind the etcd member of this host is, now and while that lasts."""
        backlog_s = self._host.backlog_s(ETCD)
        self._store.report_backlog(backlog_s)
        if backlog_s > 0 and not self._reporting and self.error is None:
            self._reporting = True
            self._clock.call_at(self._clock.now() + BACKLOG_PERIOD_S, self._report_again)

    def _report_again(self) -> None:
        self._reporting = False
        self._report()


def _count(
    cells: tuple[Histogram, Counter, Counter], clock: Clock, started_s: float, promise: Promise[T]
) -> None:
    duration, requests, errors = cells
    duration.observe(clock.now() - started_s)
    requests.inc()
    try:
        promise.result()
    except StoreError:
        errors.inc()


def unavailable(detail: str) -> StoreUnavailable:
    """What etcd's client says when nothing listens."""
    return StoreUnavailable(f'rpc error: code = Unavailable desc = connection error: desc = "{detail}"')
