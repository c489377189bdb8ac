"""Our client of etcd against etcd itself: members that are lost, histories that are long, keys of others."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.apiserver.clock import Promise
from harness.apiserver.store.core import ABSENT, Compacted, StoreTimeout, StoreUnavailable, Txn
from harness.apiserver.store.etcd3 import store as store_module
from harness.apiserver.store.etcd3.compaction import Compactor
from harness.apiserver.store.etcd3.endpoints import EtcdServers
from harness.apiserver.store.etcd3.store import EtcdStore, connect
from harness.pool.certificates import make_client_files, make_serving_files
from harness.pool.etcd import EtcdCluster
from harness.pool.guardian import Guarded
from harness.pool.process import Process
from harness.wire.errors import ConfigError
from tests.apiserver.store.test_store_contract import Sink, a_real_etcd, begun, settled, until
from tests.conftest import HANG_S


@contextmanager
def running(folder: Path, members: int = 1) -> Iterator[EtcdCluster]:
    cluster = EtcdCluster(a_real_etcd(), members, folder / "etcd", folder, durable=False)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


def run(cluster: EtcdCluster, test: Callable[[list[EtcdStore]], Awaitable[None]], stores: int = 1) -> None:
    async def main() -> None:
        made = [await connect(EtcdServers(cluster.urls, compaction_s=0), number) for number in range(stores)]
        try:
            await test(made)
        finally:
            for store in made:
                store.close()
            await asyncio.sleep(0)

    asyncio.run(main())


def test_history_beyond_what_is_remembered_comes_from_etcd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "REMEMBERED_EVENTS", 5)

    async def test(stores: list[EtcdStore]) -> None:
        (store,) = stores
        before = await settled(store.txn(Txn("/r/a", b"before")))
        sink = Sink()
        store.subscribe(sink)
        await begun(sink)
        for number in range(20):
            await settled(store.txn(Txn(f"/r/{number % 3}", b"%d" % number)))
        await until(lambda: len(sink.events) == 20)
        for after in range(before.revision - 1, before.revision + 21):
            found = await settled(store.history("/r/", after))
            assert found.revision == before.revision + 20
            revisions = [event.revision for event in found.events]
            assert revisions == list(range(after + 1, before.revision + 21))
        named = await settled(store.history("/r/2", before.revision))
        assert [event.value for event in named.events] == [b"%d" % number for number in range(2, 20, 3)]
        assert [event.previous for event in named.events][1:] == [event.value for event in named.events][:-1]

    with running(tmp_path) as cluster:
        run(cluster, test)


def test_keys_of_others_move_the_revision_and_are_no_events(tmp_path: Path) -> None:
    async def test(stores: list[EtcdStore]) -> None:
        (store,) = stores
        sink = Sink()
        store.subscribe(sink)
        await begun(sink)
        await settled(store.txn(Txn("/r/a", b"1", ABSENT)))
        await settled(store.compare_and_put("someone_elses", 0, b"x"))
        revision = await settled(store.current_revision())
        await until(lambda: sink.progress >= revision)
        assert sink.revisions == [2]

    with running(tmp_path) as cluster:
        run(cluster, test)


def test_two_apiservers_compact_together(tmp_path: Path) -> None:
    async def test(stores: list[EtcdStore]) -> None:
        loop = asyncio.get_running_loop()
        compactors = [Compactor(store, loop.call_later, 0.2) for store in stores]
        revisions = []
        for _ in range(3):
            for number in range(5):
                result = await settled(stores[0].txn(Txn("/r/a", b"%d" % number)))
            revisions.append(result.revision)
            for compactor in compactors:
                await _done(compactor.compact())
        with pytest.raises(Compacted):
            await settled(stores[1].range("/r/", revision=revisions[0]))
        assert len((await settled(stores[1].range("/r/", revision=revisions[2]))).kvs) == 1

    with running(tmp_path) as cluster:
        run(cluster, test, stores=2)


async def _done(round_: Awaitable[None]) -> None:
    """A coroutine of promises on asyncio."""
    iterator = round_.__await__()
    while True:
        try:
            promise = next(iterator)
        except StopIteration:
            return
        await settled(promise)


def test_each_member_that_is_killed_is_left_for_another_and_no_event_is_missed(tmp_path: Path) -> None:
    async def test(stores: list[EtcdStore]) -> None:
        sinks = [Sink() for _ in stores]
        for store, sink in zip(stores, sinks, strict=True):
            store.subscribe(sink, 0, ["/r/"])
            await begun(sink)
        await settled(stores[0].txn(Txn("/r/0", b"")))
        written = 1
        for name in ("etcd-0", "etcd-1"):
            os.kill(cluster.pid(name), signal.SIGKILL)
            for _ in range(20):
                for store in stores:
                    if await _put(store, f"/r/{written}"):
                        written += 1
            cluster.start_member(name)
            reads = [store.range("/r/") for store in stores]
            for read in reads:
                assert len((await settled(read)).kvs) >= written
        revision = await settled(stores[0].current_revision())
        for sink in sinks:
            await until(lambda sink=sink: sink.progress >= revision or sink.revisions[-1] >= revision)  # type: ignore[misc]
            assert sink.revisions == list(range(2, revision + 1))
            assert sink.lost == []
        assert sum(len(sink.interrupted) for sink in sinks) >= 2
        assert written > 20

    with running(tmp_path, 3) as cluster:
        run(cluster, test, stores=3)


async def _put(store: EtcdStore, key: str) -> bool:
    """Whether it was acknowledged within a second; a lost leader's proposals are not for seven, or are refused."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    promise = store.txn(Txn(key, b"x"))
    promise.then(lambda _: None if future.done() else future.set_result(None))
    try:
        await asyncio.wait_for(future, 1.0)
        return promise.result().succeeded
    except (TimeoutError, StoreTimeout, StoreUnavailable):
        return False


def test_a_call_waits_a_little_for_an_etcd_that_restarts(tmp_path: Path) -> None:
    async def test(stores: list[EtcdStore]) -> None:
        (store,) = stores
        sink = Sink()
        store.subscribe(sink)
        await begun(sink)
        await settled(store.txn(Txn("/r/a", b"1")))
        cluster.stop_member("etcd-0")
        await until(lambda: bool(sink.interrupted))
        read, write = store.get("/r/a"), store.txn(Txn("/r/a", b"2"))
        await asyncio.to_thread(cluster.start_member, "etcd-0")
        found = (await settled(read)).kv
        assert found is not None
        assert (await settled(write)).revision == 3
        await until(lambda: sink.revisions == [2, 3])
        assert sink.lost == []

    with running(tmp_path) as cluster:
        run(cluster, test)


def test_without_any_etcd_calls_fail_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.apiserver.store.etcd3.client.RECONNECT_WITHIN_S", 0.2)

    async def test(stores: list[EtcdStore]) -> None:
        (store,) = stores
        sink = Sink()
        store.subscribe(sink)
        await begun(sink)
        await settled(store.current_revision())
        cluster.stop()
        calls: list[Promise[Any]] = [
            store.get("/r/a"),
            store.txn(Txn("/r/a", b"1")),
            store.current_revision(),
        ]
        for promise in calls:
            with pytest.raises(StoreUnavailable, match=r"rpc error: code = Unavailable desc = "):
                await settled(promise)
        assert len(sink.interrupted) == 1
        late = Sink()
        store.subscribe(late)
        await until(lambda: bool(late.interrupted))

    with running(tmp_path) as cluster:
        run(cluster, test)


def test_connecting_to_nobody_is_one_clear_line() -> None:
    with pytest.raises(ConfigError, match=r"etcd: cannot connect to http://127\.0\.0\.1:1: .*Errno 111"):
        asyncio.run(connect(EtcdServers(("http://127.0.0.1:1",))))


def test_tls_with_a_clients_certificate(tmp_path: Path) -> None:
    files = make_serving_files(tmp_path, ["localhost"], ["127.0.0.1"])
    client = make_client_files(files, tmp_path, "apiserver", [])
    free = EtcdCluster("none", 1, tmp_path / "ports", tmp_path).members[0]
    url = f"https://127.0.0.1:{free.client_port}"
    arguments = {
        "data-dir": str(tmp_path / "data"),
        "listen-client-urls": url,
        "advertise-client-urls": url,
        "listen-peer-urls": free.peer_url,
        "initial-advertise-peer-urls": free.peer_url,
        "initial-cluster": f"default={free.peer_url}",
        "cert-file": files.cert,
        "key-file": files.key,
        "trusted-ca-file": files.ca,
        "client-cert-auth": "true",
    }
    argv = [a_real_etcd(), *(f"--{name}={value}" for name, value in arguments.items())]
    etcd = Process("etcd", "harness.pool.guardian", Guarded(argv), tmp_path / "log")

    async def main() -> None:
        servers = EtcdServers((url,), files.ca, client.cert, client.key, 0)
        store = await _patiently(servers)
        assert (await settled(store.txn(Txn("/r/a", b"1")))).revision == 2
        store.close()
        with pytest.raises(ConfigError, match="cannot connect"):
            await connect(EtcdServers((url,)))  # an authority that nobody knows
        await asyncio.sleep(0)

    try:
        etcd.wait_ready()
        asyncio.run(main())
    finally:
        etcd.stop()


async def _patiently(servers: EtcdServers) -> EtcdStore:
    async with asyncio.timeout(HANG_S):
        while True:
            try:
                return await connect(servers)
            except ConfigError:
                await asyncio.sleep(0.05)
