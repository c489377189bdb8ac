"""The emulated apiserver's store and watch cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import msgspec

from benchmarks.child import in_child
from benchmarks.measure import Work, cpu_us, grown_kb
from benchmarks.objects import encode, request_headers, secret, stored_pod
from benchmarks.registry import FEW, Line, Plan, benchmark
from harness.apiserver.cache.cachedobject import encode_stored
from harness.apiserver.cache.cacher import Cacher
from harness.apiserver.cache.watchers import Watcher, WatchOptions
from harness.apiserver.clock import VirtualClock
from harness.apiserver.exchange import Exchange
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import Host
from harness.apiserver.model.costs import Costs
from harness.apiserver.resources import RESOURCES
from harness.apiserver.serving.common import Channel, Serving, ServingOptions
from harness.apiserver.serving.http2 import Http2Session
from harness.apiserver.store.client import LocalStore
from harness.apiserver.store.core import StoreCore, StoreEvent, Txn
from harness.apiserver.store.etcd import EtcdModel
from harness.apiserver.store.replicated import ReplicatedStore
from harness.apiserver.store.storage import Storage
from harness.wire.http2 import GO_CLIENT_SETTINGS, Connection, Role
from harness.wire.http2.limits import MAX_WINDOW
from harness.wire.selectors import parse_fields

_ROWS = {row.resource: row for row in RESOURCES}
_CORES = 8.0
_WIDE_OPEN = msgspec.structs.replace(GO_CLIENT_SETTINGS, initial_window_size=MAX_WINDOW)
NODES = 5000
SECRETS = 1000


class _Taker:
    """A client that takes everything at once and keeps nothing."""

    __slots__ = ("writes",)
    buffered = 0

    def __init__(self) -> None:
        self.writes = 0

    def opened(self) -> None: ...

    def initialized(self) -> None: ...

    def write(self, data: bytes) -> None:
        self.writes += 1

    def finish(self) -> None: ...

    def on_drain(self, callback: Callable[[], None]) -> None: ...


class _Streamed:
    """A client's stream, whose frames go nowhere."""

    __slots__ = ("_exchange",)

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def opened(self) -> None:
        self._exchange.start(200, {})

    def initialized(self) -> None: ...

    def write(self, data: bytes) -> None:
        self._exchange.write(data)

    def finish(self) -> None: ...

    def on_drain(self, callback: Callable[[], None]) -> None: ...

    @property
    def buffered(self) -> int:
        return self._exchange.buffered


class _Nowhere:
    """A transport that takes everything."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str) -> None: ...


class _World:
    """One member's storage and a cache of one resource, under a virtual clock, on a modelled host of 8 cores."""

    def __init__(self, resource: str, cores: float | None = _CORES) -> None:
        self.clock = VirtualClock()
        self.resource = _ROWS[resource]
        metrics = Metrics()
        host = Host(self.clock, cores, Costs())
        store = ReplicatedStore(StoreCore(), EtcdModel(["m"], Random(1)), self.clock)
        self.storage = Storage(LocalStore(store, "m", self.clock), self.clock, host, metrics)
        self.storage.start()
        self.cacher = Cacher(self.resource, self.clock, host, self.storage, metrics, Random(1))
        self.cacher.start()
        self.clock.advance(1.0)
        assert self.cacher.ready

    def fill(self, objects: list[dict[str, Any]]) -> None:
        for obj in objects:
            key = self.resource.key("default", obj["metadata"]["name"])
            self.storage.txn(Txn(key, encode_stored(obj)))
        self.clock.advance(10.0)


def _watch_list(name: str) -> WatchOptions:
    """As a kubelet watches a secret of a pod of its."""
    return WatchOptions(
        namespace="default",
        fields=parse_fields(f"metadata.name={name}"),
        send_initial_events=True,
        allow_bookmarks=True,
        timeout_s=1800.0,
    )


@benchmark("store/put")
def put(plan: Plan) -> Iterator[Line]:
    """A write of 2 KB to one of 500 keys, in the store's own process."""
    value = encode(stored_pod("p", "n"))

    def make(n: int) -> Work:
        core = StoreCore()
        transactions = [Txn(f"/registry/pods/default/p{number % 500}", value) for number in range(n)]

        def work() -> None:
            for transaction in transactions:
                core.txn(transaction)

        return work

    yield Line("store/put", "us", cpu_us(plan, 10_000, make))


@benchmark("cacher/event")
def event(plan: Plan) -> Iterator[Line]:
    """A pod's change applied to the cache; of 5,000 watches by node it concerns one."""
    nodes = plan.count(NODES)
    world = _World("pods")
    taker = _Taker()
    for number in range(nodes):
        fields = parse_fields(f"spec.nodeName=n{number}")
        world.cacher.watch(WatchOptions(fields=fields, resource_version=1, timeout_s=1e6), taker)
    world.clock.advance(1.0)
    values = [encode_stored(stored_pod(f"p{number}", f"n{number}")) for number in range(nodes)]
    keys = [world.resource.key("default", f"p{number}") for number in range(nodes)]
    revision = 100

    def make(n: int) -> Work:
        nonlocal revision
        first, revision = revision + 1, revision + n
        events = [
            StoreEvent(first + at, keys[at % nodes], values[at % nodes], first + at, None) for at in range(n)
        ]

        def work() -> None:
            before = taker.writes
            for at, each in enumerate(events):
                world.cacher.on_event(each)
                if at % 20 == 19:
                    world.clock.advance(0.005)
            world.clock.advance(0.1)
            assert taker.writes - before == n, "each change reaches one watch"

        return work

    yield Line(f"cacher/event/to 1 of {NODES:,}", "us", cpu_us(plan, 4000, make))


@benchmark("cacher/fan-out")
def fan_out(plan: Plan) -> Iterator[Line]:
    """An event of one object to all its watchers, HTTP/2 frames included, 35 streams a connection; for each watcher."""
    for watchers, events in ((1, 2000), (100, 60), (NODES, 2)):
        yield Line(f"cacher/fan-out/to {watchers:,}", "us", _fan_out_us(plan, plan.count(watchers), events))


def _fan_out_us(plan: Plan, watchers: int, events: int) -> list[float]:
    world = _World("secrets", cores=None)
    turn: list[Callable[[], object]] = []
    opened: list[Exchange] = []
    serving = Serving(opened.append, world.clock, lambda call, *_: turn.append(call), ServingOptions())
    for first in range(0, watchers, 35):
        session = Http2Session(serving, Channel(_Nowhere(), "bench"))
        client = Connection(Role.CLIENT, _WIDE_OPEN, MAX_WINDOW - 65535)
        client.initiate()
        for _ in range(min(35, watchers - first)):
            client.request(request_headers("/api/v1/secrets?watch=true"))
        session.data_received(client.take_output())
    for exchange in opened:
        options = WatchOptions(name="a", namespace="default", resource_version=1, timeout_s=1e6)
        world.cacher.watch(options, _Streamed(exchange))
    key, value = world.resource.key("default", "a"), encode_stored(secret("a"))
    revision = 10

    def make(n: int) -> Work:
        def work() -> None:
            nonlocal revision
            for _ in range(max(1, n // watchers)):
                revision += 1
                world.cacher.on_event(StoreEvent(revision, key, value, revision, None))
                calls, turn[:] = turn[:], []
                for call in calls:
                    call()

        return work

    return cpu_us(plan, events * watchers, make)


@benchmark("cacher/watch-list")
def watch_list(plan: Plan) -> Iterator[Line]:
    """A watch-list of one secret, from asking to the bookmark that ends it."""
    secrets = plan.count(SECRETS)
    world = _World("secrets")
    world.fill([secret(f"s{number}") for number in range(secrets)])

    def make(n: int) -> Work:
        taker = _Taker()

        def work() -> None:
            opened = []
            for number in range(n):
                opened.append(world.cacher.watch(_watch_list(f"s{number % secrets}"), taker))
                if number % 20 == 19:
                    world.clock.advance(0.02)
            world.clock.advance(0.1)
            assert taker.writes >= n, "each watch had its secret"
            for each in opened:
                each.stop()

        return work

    yield Line("cacher/watch-list/one secret", "us", cpu_us(plan, 2000, make))


@benchmark("cacher/memory", FEW)
def memory(plan: Plan) -> Iterator[Line]:
    n = plan.count(20_000)
    found = [in_child(watcher_kb, watchers=n) for _ in range(plan.repeats)]
    yield Line("cacher/memory/watcher of one secret", "KB", found)


def watcher_kb(watchers: int) -> float:
    """KB of resident memory for each of so many idle watches. Runs in a child."""
    world = _World("secrets")
    world.fill([secret(f"s{number}") for number in range(SECRETS)])
    taker = _Taker()

    def make(n: int) -> list[Watcher]:
        opened = []
        for number in range(n):
            opened.append(world.cacher.watch(_watch_list(f"s{number % SECRETS}"), taker))
            if number % 50 == 49:
                world.clock.advance(0.02)
        world.clock.advance(1.0)
        return opened

    return grown_kb(make, watchers)
