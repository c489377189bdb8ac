"""What every `Store` must do, whatever stands behind it: in process, or the store process over its socket."""

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
from harness.apiserver.store.replicated import ReplicatedStore
from harness.apiserver.store.socketclient import connect

T = TypeVar("T")

MEMBERS = ("m0", "m1", "m2")


class Sink:
    def __init__(self) -> None:
        self.events: list[StoreEvent] = []
        self.lost: list[StoreError] = []

    def on_events(self, events: Sequence[StoreEvent]) -> None:
        self.events += events

    def on_lost(self, error: StoreError) -> None:
        self.lost.append(error)

    @property
    def revisions(self) -> list[int]:
        return [event.revision for event in self.events]


async def settled(promise: Promise[T]) -> T:
    """A promise's result on asyncio."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    promise.then(lambda _: future.done() or future.set_result(None))
    await asyncio.wait_for(future, 20)
    return promise.result()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)


@contextlib.asynccontextmanager
async def local(folder: Path) -> AsyncIterator[Callable[[str], Awaitable[Store]]]:
    clock = LoopClock(asyncio.get_running_loop())
    replicated = ReplicatedStore(StoreCore(), EtcdModel(MEMBERS, Random(1)), clock, 0.0005)

    async def member(name: str) -> Store:
        return LocalStore(replicated, name, clock)

    try:
        yield member
    finally:
        replicated.close()


def launch(folder: Path, members: tuple[str, ...] = MEMBERS, **etcd: float) -> subprocess.Popen[bytes]:
    config = StoreConfig(socket=str(folder / "store.sock"), members=members, etcd=etcd)
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
        return process.wait(10)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def first_line(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    decoded: dict[str, Any] = msgspec.json.decode(process.stdout.readline())
    return decoded


@contextlib.asynccontextmanager
async def over_the_socket(folder: Path) -> AsyncIterator[Callable[[str], Awaitable[Store]]]:
    process = launch(folder)
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


Backend = Callable[[Path], contextlib.AbstractAsyncContextManager[Callable[[str], Awaitable[Store]]]]


@pytest.fixture(params=[local, over_the_socket], ids=["local", "socket"])
def backend(request: pytest.FixtureRequest) -> Backend:
    made: Backend = request.param
    return made


def run(
    backend: Backend, folder: Path, test: Callable[[Callable[[str], Awaitable[Store]]], Awaitable[None]]
) -> None:
    async def main() -> None:
        async with backend(folder) as member:
            await test(member)

    asyncio.run(main())


def test_conditional_writes_and_reads(backend: Backend, tmp_path: Path) -> None:
    async def test(member: Callable[[str], Awaitable[Store]]) -> None:
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
    async def test(member: Callable[[str], Awaitable[Store]]) -> None:
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
    async def test(member: Callable[[str], Awaitable[Store]]) -> None:
        stores = [await member(name) for name in MEMBERS]
        sinks = [Sink() for _ in stores]
        for store, sink in zip(stores, sinks, strict=True):
            store.subscribe(sink)
        await settled(stores[2].current_revision())
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
    async def test(member: Callable[[str], Awaitable[Store]]) -> None:
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
    async def test(member: Callable[[str], Awaitable[Store]]) -> None:
        store = await member("m0")
        store.subscribe(Sink(), 0, ["/s/"])
        for key in ("/r/a", "/s/a", "/r/b", "/s/a"):
            await settled(store.txn(Txn(key, b"1")))
        found = await settled(store.history("/s/", 2))
        assert [(event.revision, event.previous) for event in found.events] == [(3, None), (5, b"1")]
        assert found.revision == 5
        with pytest.raises(Compacted):
            await settled(store.history("/s/", -1))

    run(backend, tmp_path, test)


def test_large_values_and_many_keys_come_whole(backend: Backend, tmp_path: Path) -> None:
    async def test(member: Callable[[str], Awaitable[Store]]) -> None:
        store = await member("m0")
        value = b"x" * 300_000
        await asyncio.gather(*(settled(store.txn(Txn(f"/r/{number:03}", value))) for number in range(20)))
        found = await settled(store.range("/r/"))
        assert [kv.key for kv in found.kvs] == [f"/r/{number:03}" for number in range(20)]
        assert all(kv.value == value for kv in found.kvs)

    run(backend, tmp_path, test)
