"""A store process that is killed and comes back: nothing acknowledged is lost, and members go on where they were."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from harness.apiserver.store.core import Compacted, StoreUnavailable, Txn
from harness.apiserver.store.socketclient import connect
from tests.apiserver.store.test_store_contract import Sink, finish, first_line, launch, settled, until

AT_ONCE = {"fsync_s": 0.0, "rtt_s": 0.0}


@contextmanager
def running(folder: Path, *members: str, data: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    process = launch(folder, members or ("m0",), str(data or folder / "data"), **AT_ONCE)
    try:
        yield process
    finally:
        finish(process)


def killed(process: subprocess.Popen[bytes]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("seed", range(4))
def test_what_was_acknowledged_before_kill_9_is_there_after(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    acknowledged: dict[str, tuple[int, bytes]] = {}

    async def write(process: subprocess.Popen[bytes]) -> None:
        store = await connect(str(tmp_path / "store.sock"), "m0")
        stop = asyncio.Event()

        async def writer(number: int) -> None:
            for count in range(100_000):
                key, value = f"/r/{number}-{count % 20}", b"%d" % count * 50
                try:
                    result = await settled(store.txn(Txn(key, value)))
                except StoreUnavailable:
                    return
                acknowledged[key] = (result.revision, value)
                if len(acknowledged) > 100:
                    stop.set()

        writers = [asyncio.create_task(writer(number)) for number in range(16)]
        await stop.wait()
        await asyncio.sleep(random.random() * 0.02)
        killed(process)
        await asyncio.gather(*writers)
        store.close()

    async def read() -> None:
        store = await connect(str(tmp_path / "store.sock"), "m0")
        found = {kv.key: kv for kv in (await settled(store.range("/r/"))).kvs}
        for key, (revision, value) in acknowledged.items():
            assert found[key].mod_revision >= revision
            if found[key].mod_revision == revision:
                assert found[key].value == value
        history = await settled(store.history("/r/", 1))
        assert [event.revision for event in history.events] == list(range(2, history.revision + 1))
        store.close()

    with running(tmp_path) as process:
        first_line(process)
        asyncio.run(write(process))
    with running(tmp_path) as process:
        recovered = first_line(process)["recovered"]
        assert recovered["keys"] >= len(acknowledged)
        asyncio.run(read())


def test_members_find_a_store_that_comes_back_and_miss_no_event(tmp_path: Path) -> None:
    async def main() -> None:
        with running(tmp_path, "m0", "m1") as process:
            first_line(process)
            path = str(tmp_path / "store.sock")
            stores = [await connect(path, member) for member in ("m0", "m1")]
            sinks = [Sink(), Sink()]
            for store, sink in zip(stores, sinks, strict=True):
                store.subscribe(sink, 0, ["/r/"])
            for number in range(3):
                await settled(stores[0].txn(Txn("/r/a", b"%d" % number)))
            killed(process)
            await until(lambda: all(sink.interrupted for sink in sinks))
            with pytest.raises(StoreUnavailable):
                await settled(stores[0].get("/r/a"))
        with running(tmp_path, "m0", "m1") as process:
            first_line(process)
            await until(lambda: all(sink.resumed for sink in sinks))
            assert (await settled(stores[1].txn(Txn("/r/a", b"3", 4)))).revision == 5
            for sink in sinks:
                await until(lambda sink=sink: len(sink.events) == 4)  # type: ignore[misc]
                assert sink.revisions == [2, 3, 4, 5]
                assert sink.events[-1].previous == b"2"
                assert sink.lost == []
            for store in stores:
                store.close()

    asyncio.run(main())


def test_what_a_member_missed_of_a_store_that_was_compacted_ends_its_subscription(tmp_path: Path) -> None:
    async def main() -> None:
        path = str(tmp_path / "store.sock")
        sink = Sink()
        with running(tmp_path, "m0", "m1") as process:
            first_line(process)
            away = await connect(path, "m0")
            away.subscribe(sink)
            await settled(away.txn(Txn("/r/a", b"1")))
            await until(lambda: len(sink.events) == 1)
            killed(process)
            await until(lambda: bool(sink.interrupted))
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        with running(elsewhere, "m0", "m1", data=tmp_path / "data") as process:
            first_line(process)
            other = await connect(str(elsewhere / "store.sock"), "m1")
            for number in range(3):
                await settled(other.txn(Txn("/r/a", b"%d" % number)))
            await settled(other.compact())
            (elsewhere / "store.sock").rename(tmp_path / "store.sock")
            await until(lambda: bool(sink.lost))
            assert isinstance(sink.lost[0], Compacted)
            again = Sink()
            away.subscribe(again)
            assert (await settled(away.txn(Txn("/r/a", b"x")))).revision == 6
            await until(lambda: again.revisions == [6])
            for store in (away, other):
                store.close()

    asyncio.run(main())


def test_another_store_in_its_place_ends_the_subscription(tmp_path: Path) -> None:
    async def main() -> None:
        sink = Sink()
        with running(tmp_path) as process:
            first_line(process)
            store = await connect(str(tmp_path / "store.sock"), "m0")
            store.subscribe(sink)
            await settled(store.txn(Txn("/r/a", b"1")))
            killed(process)
            await until(lambda: bool(sink.interrupted))
        (tmp_path / "data").rename(tmp_path / "old")
        with running(tmp_path) as process:
            first_line(process)
            await until(lambda: bool(sink.lost))
            assert isinstance(sink.lost[0], Compacted)
            assert (await settled(store.get("/r/a"))).kv is None
            store.close()

    asyncio.run(main())


def test_a_damaged_folder_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    async def write() -> None:
        store = await connect(str(tmp_path / "store.sock"), "m0")
        for number in range(3):
            await settled(store.txn(Txn("/r/a", b"%d" % number)))
        store.close()

    with running(tmp_path) as process:
        first_line(process)
        asyncio.run(write())
    log = tmp_path / "data" / "log-0000000000000000"
    data = bytearray(log.read_bytes())
    data[60] ^= 1
    log.write_bytes(data)
    process = launch(tmp_path, ("m0",), str(tmp_path / "data"))
    assert "the file has changed since it was written" in first_line(process)["error"]
    assert finish(process) == 2
