"""A control plane in virtual time: one store, members with caches, clients that keep what they are sent."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from harness.apiserver.cache.cachedobject import encode_stored
from harness.apiserver.cache.cacher import Cacher
from harness.apiserver.cache.uncached import Uncached
from harness.apiserver.cache.watchers import Watcher, WatchOptions
from harness.apiserver.clock import Promise, VirtualClock
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import Host
from harness.apiserver.model.costs import Costs
from harness.apiserver.resources import RESOURCES, Resource
from harness.apiserver.store.client import LocalStore
from harness.apiserver.store.core import StoreCore, Txn, TxnResult
from harness.apiserver.store.etcd import EtcdModel, EtcdOptions
from harness.apiserver.store.replicated import ReplicatedStore
from harness.apiserver.store.storage import Storage

ROWS = {row.resource: row for row in RESOURCES if row.hub is None}


class Client:
    """A watch's sink that keeps events and, unless it is `slow`, takes every byte at once."""

    def __init__(self) -> None:
        self.data = b""
        self.heads = 0
        self.ready = 0
        self.finished = 0
        self.slow = False
        self.waiting = b""
        self.events_at: list[float] = []
        self.clock: VirtualClock | None = None
        self._drain: Callable[[], None] | None = None

    def opened(self) -> None:
        self.heads += 1

    def initialized(self) -> None:
        self.ready += 1

    def write(self, data: bytes) -> None:
        assert self.heads == 1, "a write before the head"
        assert not self.finished, "a write after the end"
        if self.slow:
            self.waiting += data
        else:
            self.data += data
        if self.clock is not None:
            self.events_at.append(self.clock.now())

    def finish(self) -> None:
        self.finished += 1

    @property
    def buffered(self) -> int:
        return len(self.waiting)

    def on_drain(self, callback: Callable[[], None]) -> None:
        self._drain = callback

    def drain(self) -> None:
        """Take what waits; the client stays as slow as it is."""
        self.data += self.waiting
        self.waiting = b""
        callback, self._drain = self._drain, None
        if callback is not None:
            callback()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(line) for line in self.data.splitlines()]

    @property
    def seen(self) -> list[tuple[str, str, str]]:
        """(type, name, resourceVersion) of each event; name "" for bookmarks and errors."""
        found = []
        for event in self.events:
            metadata = event["object"]["metadata"]
            found.append((event["type"], metadata.get("name", ""), metadata.get("resourceVersion", "")))
        return found


class Member:
    def __init__(self, world: World, name: str, cores: float | None) -> None:
        self.world = world
        self.metrics = Metrics()
        self.host = Host(world.clock, cores, Costs())
        self.store = LocalStore(world.replicated, name, world.clock)
        self.storage = Storage(self.store, world.clock, self.host, self.metrics)
        self.storage.start()

    def cacher(self, resource: str, seed: int = 1, *, snapshots: bool = True) -> Cacher:
        row, clock, rng = ROWS[resource], self.world.clock, Random(seed)
        cacher = Cacher(row, clock, self.host, self.storage, self.metrics, rng, snapshots=snapshots)
        cacher.start()
        return cacher

    def uncached(self, resource: str = "events") -> Uncached:
        return Uncached(ROWS[resource], self.world.clock, self.host, self.storage, self.metrics, Random(1))

    def value(self, family: str, *labels: str) -> float:
        cell = getattr(self.metrics, family).labels(*labels)
        return float(cell.value)


class World:
    """`clock`, the store and its members."""

    def __init__(self, members: int = 1, cores: float | None = None, **etcd: float) -> None:
        options = {"fsync_s": 0.0, "rtt_s": 0.0, "compaction_s": 0.0, **etcd}
        names = [f"m{number}" for number in range(members)]
        self.clock = VirtualClock()
        self.rng = Random(3)
        self.core = StoreCore()
        self.model = EtcdModel(names, Random(7), EtcdOptions.parse(options))
        self.replicated = ReplicatedStore(self.core, self.model, self.clock)
        self.members = [Member(self, name, cores) for name in names]

    @property
    def member(self) -> Member:
        return self.members[0]

    def settle(self, seconds: float = 0.0) -> None:
        self.clock.advance(seconds)

    def write(self, obj: dict[str, Any], member: int = 0, expected: int | None = None) -> Promise[TxnResult]:
        row = next(row for row in RESOURCES if row.kind == obj["kind"])
        metadata = obj["metadata"]
        key = row.key(metadata.get("namespace"), metadata["name"])
        return self.members[member].storage.txn(Txn(key, encode_stored(obj), expected))

    def put(self, obj: dict[str, Any]) -> int:
        """Write and wait; the revision."""
        promise = self.write(obj)
        self.settle()
        return promise.result().revision

    def delete(self, resource: str, namespace: str | None, name: str) -> int:
        promise = self.member.storage.txn(Txn(ROWS[resource].key(namespace, name), None))
        self.settle()
        return promise.result().revision

    def watch(
        self, cacher: Cacher | Uncached, *, slow: bool = False, **options: Any
    ) -> tuple[Client, Watcher]:
        client = Client()
        client.slow = slow
        client.clock = self.clock
        watcher = cacher.watch(WatchOptions(**options), client)
        self.settle()
        return client, watcher


def pod(name: str, node: str = "", namespace: str = "default", **labels: str) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"nodeName": node} if node else {},
    }


def secret(name: str, namespace: str = "default", value: str = "") -> dict[str, Any]:
    return {
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": {"v": value},
    }


def event(name: str, reason: str, namespace: str = "default") -> dict[str, Any]:
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace},
        "reason": reason,
        "source": {"component": "kubelet"},
    }


def row(resource: str) -> Resource:
    return ROWS[resource]
