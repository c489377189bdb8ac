"""What every `Store` must do, whatever stands behind it: in process, the store process over its socket, with a data
folder, or a real etcd."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import msgspec
import pytest

from harness.apiserver.clock import Promise
from harness.apiserver.process.config import StoreConfig
from harness.apiserver.process.loopclock import LoopClock
from harness.apiserver.store.client import LocalStore, Store
from harness.apiserver.store.core import (
    ABSENT,
    Compacted,
    FutureRevision,
    KeyValue,
    StoreCore,
    StoreError,
    StoreEvent,
    Txn,
)
from harness.apiserver.store.etcd import EtcdModel
from harness.apiserver.store.etcd3.endpoints import EtcdServers
from harness.apiserver.store.etcd3.store import EtcdStore
from harness.apiserver.store.etcd3.store import connect as connect_etcd
from harness.apiserver.store.replicated import ReplicatedStore
from harness.apiserver.store.socketclient import connect
from harness.pool.etcd import EtcdCluster, find_etcd
from harness.wire.errors import ConfigError
from tests.conftest import HANG_S

T = TypeVar("T")

Member = Callable[[str], Awaitable[Store]]
"""Connects a member by its name."""

MEMBERS = ("m0", "m1", "m2")


class Sink:
    def __init__(self) -> None:
        self.events: list[StoreEvent] = []
        self.lost: list[StoreError] = []
        self.interrupted: list[StoreError] = []
        self.resumed = 0
        self.progress = 0

    def on_events(self, events: Sequence[StoreEvent]) -> None:
        self.events += events

    def on_progress(self, revision: int) -> None:
        self.progress = revision

    def on_interrupted(self, error: StoreError) -> None:
        self.interrupted.append(error)

    def on_resumed(self) -> None:
        self.resumed += 1

    def on_lost(self, error: StoreError) -> None:
        self.lost.append(error)

    @property
    def revisions(self) -> list[int]:
        return [event.revision for event in self.events]


async def settled(promise: Promise[T]) -> T:
    """A promise's result on asyncio."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    promise.then(lambda _: None if future.done() else future.set_result(None))
    await asyncio.wait_for(future, HANG_S)
    return promise.result()


async def begun(sink: Sink) -> None:
    """Wait until a subscription from now on says where that was."""
    await until(lambda: sink.progress > 0)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_S):
        while not condition():
            await asyncio.sleep(0.002)


@contextlib.asynccontextmanager
async def local(folder: Path) -> AsyncIterator[Member]:
    clock = LoopClock(asyncio.get_running_loop())
    replicated = ReplicatedStore(StoreCore(), EtcdModel(MEMBERS, Random(1)), clock, 0.0005)

    async def member(name: str) -> Store:
        return LocalStore(replicated, name, clock)

    try:
        yield member
    finally:
        replicated.close()


def launch(
    folder: Path, members: tuple[str, ...] = MEMBERS, data_dir: str = "", **etcd: float
) -> subprocess.Popen[bytes]:
    config = StoreConfig(socket=str(folder / "store.sock"), members=members, etcd=etcd, data_dir=data_dir)
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.apiserver.process.store"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(config) + b"\n")
    process.stdin.flush()
    return process


def finish(process: subprocess.Popen[bytes]) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    try:
        return process.wait(HANG_S)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def first_line(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    decoded: dict[str, Any] = msgspec.json.decode(process.stdout.readline())
    return decoded


def over_the_socket(folder: Path) -> contextlib.AbstractAsyncContextManager[Member]:
    return store_process(folder, "")


def with_a_data_folder(folder: Path) -> contextlib.AbstractAsyncContextManager[Member]:
    return store_process(folder, str(folder / "data"))


@contextlib.asynccontextmanager
async def store_process(folder: Path, data_dir: str) -> AsyncIterator[Member]:
    process = launch(folder, data_dir=data_dir)
    stores: list[Store] = []

    async def member(name: str) -> Store:
        stores.append(await connect(str(folder / "store.sock"), name))
        return stores[-1]

    try:
        assert first_line(process)["ready"]
        yield member
        for store in stores:
            store.close()
        await asyncio.sleep(0)
    finally:
        assert finish(process) == 0


@contextlib.asynccontextmanager
async def real_etcd(folder: Path) -> AsyncIterator[Member]:
    cluster = EtcdCluster(a_real_etcd(), 1, folder / "etcd", folder, durable=False)
    cluster.start()
    stores: list[EtcdStore] = []

    async def member(name: str) -> Store:
        stores.append(await connect_etcd(EtcdServers(cluster.urls, compaction_s=0), MEMBERS.index(name)))
        return stores[-1]

    try:
        yield member
    finally:
        for store in stores:
            store.close()
        await asyncio.sleep(0)
        cluster.stop()


def a_real_etcd() -> str:
    """Its binary; skips the test where there is none."""
    try:
        return find_etcd()
    except ConfigError as error:
        pytest.skip(str(error))


Backend = Callable[[Path], contextlib.AbstractAsyncContextManager[Member]]


@pytest.fixture(
    params=[local, over_the_socket, with_a_data_folder, real_etcd],
    ids=["local", "socket", "data folder", "real etcd"],
)
def backend(request: pytest.FixtureRequest) -> Backend:
    made: Backend = request.param
    return made


def run(backend: Backend, folder: Path, test: Callable[[Member], Awaitable[None]]) -> None:
    async def main() -> None:
        async with backend(folder) as member:
            await test(member)

    asyncio.run(main())


def test_conditional_writes_and_reads(backend: Backend, tmp_path: Path) -> None:
    async def test(member: Member) -> None:
        store = await member("m0")
        created = await settled(store.txn(Txn("/r/a", b"1", ABSENT)))
        assert (created.succeeded, created.revision) == (True, 2)
        again = await settled(store.txn(Txn("/r/a", b"2", ABSENT)))
        assert (again.succeeded, again.current) == (False, KeyValue("/r/a", b"1", 2, 2))
        updated = await settled(store.txn(Txn("/r/a", b"2", 2)))
        assert (updated.succeeded, updated.revision) == (True, 3)
        stale = await settled(store.txn(Txn("/r/a", None, 2)))
        assert (stale.succeeded, stale.current) == (False, KeyValue("/r/a", b"2", 2, 3))
        found = await settled(store.get("/r/a"))
        assert (found.kv, found.revision) == (KeyValue("/r/a", b"2", 2, 3), 3)
        deleted = await settled(store.txn(Txn("/r/a", None, 3)))
        assert (deleted.succeeded, deleted.revision) == (True, 4)
        assert (await settled(store.get("/r/a"))).kv is None
        missing = await settled(store.txn(Txn("/r/a", None)))
        assert (missing.succeeded, missing.current) == (False, None)

    run(backend, tmp_path, test)


def test_ranges_in_pages_and_at_revisions(backend: Backend, tmp_path: Path) -> None:
    async def test(member: Member) -> None:
        store = await member("m0")
        for name in "abcd":
            await settled(store.txn(Txn(f"/r/{name}", name.encode())))
        await settled(store.txn(Txn("/s/x", b"")))
        first = await settled(store.range("/r/", limit=2))
        assert ([kv.key for kv in first.kvs], first.count, first.more) == (["/r/a", "/r/b"], 4, True)
        await settled(store.txn(Txn("/r/c", None)))
        rest = await settled(store.range("/r/", "/r/b\0", 0, first.revision))
        assert ([kv.key for kv in rest.kvs], rest.revision) == (["/r/c", "/r/d"], first.revision)
        now = await settled(store.range("/r/"))
        assert [kv.key for kv in now.kvs] == ["/r/a", "/r/b", "/r/d"]
        with pytest.raises(FutureRevision, match="future revision"):
            await settled(store.range("/r/", revision=99))

    run(backend, tmp_path, test)


def test_every_member_hears_every_event_in_order(backend: Backend, tmp_path: Path) -> None:
    async def test(member: Member) -> None:
        stores = [await member(name) for name in MEMBERS]
        sinks = [Sink() for _ in stores]
        for store, sink in zip(stores, sinks, strict=True):
            store.subscribe(sink)
            await begun(sink)
        promises = [stores[number % 3].txn(Txn(f"/r/{number % 5}", b"%d" % number)) for number in range(90)]
        revisions = sorted([(await settled(promise)).revision for promise in promises])
        assert revisions == list(range(2, 92))
        for sink in sinks:
            await until(lambda sink=sink: len(sink.events) >= 90)  # type: ignore[misc]
            assert sink.revisions == revisions
        assert sinks[0].events == sinks[1].events == sinks[2].events
        assert [event.created for event in sinks[0].events].count(True) == 5

    run(backend, tmp_path, test)


def test_a_subscription_may_begin_in_the_past(backend: Backend, tmp_path: Path) -> None:
    async def test(member: Member) -> None:
        store = await member("m0")
        for number in range(5):
            await settled(store.txn(Txn("/r/a", b"%d" % number)))
        sink = Sink()
        subscription = store.subscribe(sink, 4, ["/r/"])
        await settled(store.txn(Txn("/r/a", None)))
        await until(lambda: len(sink.events) == 4)
        assert sink.revisions == [4, 5, 6, 7]
        assert [event.previous for event in sink.events] == [b"1", b"2", b"3", b"4"]
        assert sink.events[-1].value is None
        subscription.stop()
        await settled(store.txn(Txn("/r/a", b"")))
        assert len(sink.events) == 4

    run(backend, tmp_path, test)


def test_history_of_a_prefix(backend: Backend, tmp_path: Path) -> None:
    async def test(member: Member) -> None:
        store = await member("m0")
        sink = Sink()
        store.subscribe(sink, 0, ["/s/"])
        await begun(sink)
        for key in ("/r/a", "/s/a", "/r/b", "/s/a"):
            await settled(store.txn(Txn(key, b"1")))
        await until(lambda: len(sink.events) == 4)  # a real etcd may answer a write before it tells of it
        found = await settled(store.history("/s/", 2))
        assert [(event.revision, event.previous) for event in found.events] == [(3, None), (5, b"1")]
        assert found.revision == 5
        with pytest.raises(Compacted):
            await settled(store.history("/s/", -1))

    run(backend, tmp_path, test)


def test_large_values_and_many_keys_come_whole(backend: Backend, tmp_path: Path) -> None:
    async def test(member: Member) -> None:
        store = await member("m0")
        value = b"x" * 300_000
        await asyncio.gather(*(settled(store.txn(Txn(f"/r/{number:03}", value))) for number in range(20)))
        found = await settled(store.range("/r/"))
        assert [kv.key for kv in found.kvs] == [f"/r/{number:03}" for number in range(20)]
        assert all(kv.value == value for kv in found.kvs)

    run(backend, tmp_path, test)


def test_what_is_compacted_can_no_longer_be_read(backend: Backend, tmp_path: Path) -> None:
    async def test(member: Member) -> None:
        store, other = await member("m0"), await member("m1")
        for number in range(5):
            await settled(store.txn(Txn("/r/a", b"%d" % number)))
        assert await settled(store.compact(4)) == 4
        with pytest.raises(Compacted, match="required revision has been compacted"):
            await settled(other.range("/r/", revision=3))
        assert [kv.value for kv in (await settled(other.range("/r/", revision=4))).kvs] == [b"2"]
        with pytest.raises(Compacted):
            await settled(store.compact(4))
        with pytest.raises(FutureRevision):
            await settled(store.compact(99))
        with pytest.raises(Compacted):
            await settled(other.history("/r/", 2))
        assert await settled(other.compact()) == 6
        with pytest.raises(Compacted):
            await settled(store.range("/r/", revision=5))
        sink = Sink()
        other.subscribe(sink, 2)
        await until(lambda: bool(sink.lost))
        assert isinstance(sink.lost[0], Compacted)

    run(backend, tmp_path, test)


def test_a_value_with_a_time_to_live_is_deleted_unless_it_is_written_again(
    backend: Backend, tmp_path: Path
) -> None:
    async def test(member: Member) -> None:
        store = await member("m0")
        sink = Sink()
        store.subscribe(sink, 0, ["/e/"])
        await begun(sink)

        def told(prefix: str) -> list[StoreEvent]:
            return [event for event in sink.events if event.key.startswith(prefix)]

        for ttl_s in (1.0, 10.0, 30.0):
            prefix = f"/e/{ttl_s:g}/"
            promises = [
                store.txn(Txn(prefix + name, b"1", ABSENT, ttl_s=ttl_s)) for name in ("a", "b", "kept")
            ]
            made = [await settled(promise) for promise in promises]
            assert all(each.succeeded for each in made)
            again = await settled(store.txn(Txn(prefix + "kept", b"2", made[2].revision)))
            if again.succeeded:
                break  # else this machine stood still until it had gone
        assert again.succeeded
        await until(lambda: len(told(prefix)) == 6)
        gone = told(prefix)[4:]
        assert sorted(event.key for event in gone) == [prefix + "a", prefix + "b"]
        assert [(event.value, event.previous) for event in gone] == [(None, b"1")] * 2
        assert [kv.key for kv in (await settled(store.range(prefix))).kvs] == [prefix + "kept"]

    run(backend, tmp_path, test)


def test_a_store_can_be_made_slow(backend: Backend, tmp_path: Path) -> None:
    async def test(member: Member) -> None:
        store = await member("m0")
        loop = asyncio.get_running_loop()
        await settled(store.set_delay(0.2, 0.1))
        started_s = loop.time()
        await settled(store.current_revision())
        assert loop.time() - started_s >= 0.09
        started_s = loop.time()
        await settled(store.txn(Txn("/r/a", b"1")))
        assert loop.time() - started_s >= 0.19
        await settled(store.set_delay(0.0, 0.0))
        await settled(store.current_revision())

    run(backend, tmp_path, test)
