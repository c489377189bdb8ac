"""The store process: how it begins, how it ends, what its members hear of that."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from harness.apiserver.store.core import Compacted, FutureRevision, StoreTimeout, StoreUnavailable, Txn
from harness.apiserver.store.frames import FrameReader, error_of, failure, framed
from harness.apiserver.store.socketclient import SocketStore, connect
from harness.wire.errors import ConfigError
from tests.apiserver.store.test_store_contract import Sink, finish, first_line, launch, settled, until
from tests.conftest import HANG_S


def test_it_says_when_it_listens_and_only_its_user_may_connect(tmp_path: Path) -> None:
    process = launch(tmp_path)
    try:
        ready = first_line(process)
        path = tmp_path / "store.sock"
        assert ready == {"ready": True, "socket": str(path), "pid": process.pid}
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    finally:
        assert finish(process) == 0
    assert not path.exists()


def test_it_ends_when_its_parent_lets_go_of_it_and_when_it_is_told_to(tmp_path: Path) -> None:
    process = launch(tmp_path)
    first_line(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(HANG_S) == 0
    assert finish(process) == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{}\n", "no configuration"),
        (b"", "no configuration"),
        (b'{"socket":"/nowhere/at/all.sock","members":["m0"]}\n', "cannot listen at /nowhere/at/all.sock"),
        (b'{"socket":"/tmp/x.sock","members":["m0"],"etcd":{"fsync":1}}\n', "unknown key 'fsync'"),
        (b'{"socket":"/tmp/x.sock","members":[]}\n', "members must be different names"),
    ],
)
def test_what_it_cannot_use_is_one_line_and_exit_code_2(line: bytes, message: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness.apiserver.process.store"],
        input=line,
        capture_output=True,
        timeout=HANG_S,
    )
    assert (done.returncode, done.stderr) == (2, b"")
    assert message in done.stdout.decode()
    assert done.stdout.startswith(b'{"error":')
    assert done.stdout.count(b"\n") == 1


def test_when_it_is_killed_every_member_is_told_and_every_call_fails(tmp_path: Path) -> None:
    process = launch(tmp_path, ("m0",), fsync_s=60.0, fsync_sigma=0.0)

    async def main() -> None:
        store = await connect(str(tmp_path / "store.sock"), "m0")
        sink = Sink()
        store.subscribe(sink)
        pending = store.txn(Txn("/a", b"1"))
        await settled(store.current_revision())
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(StoreUnavailable, match="code = Unavailable"):
            await settled(pending)
        with pytest.raises(StoreUnavailable):
            await settled(store.get("/a"))
        assert len(sink.lost) == 1
        late = Sink()
        store.subscribe(late)
        await until(lambda: bool(late.lost))
        store.close()

    try:
        first_line(process)
        asyncio.run(main())
    finally:
        assert finish(process) == -signal.SIGKILL


def test_a_member_that_goes_takes_its_replica_along_and_may_come_back(tmp_path: Path) -> None:
    process = launch(tmp_path, election_least_s=0.05, election_most_s=0.06)

    async def main() -> None:
        path = str(tmp_path / "store.sock")
        leader, other = await connect(path, "m0"), await connect(path, "m1")
        await settled(leader.txn(Txn("/a", b"1")))
        leader.close()
        await asyncio.sleep(0.02)
        written = await written_by(other)
        back = await connect(path, "m0")
        assert (await settled(back.get("/a"))).revision == written
        for store in (back, other):
            store.close()

    try:
        first_line(process)
        asyncio.run(main())
    finally:
        assert finish(process) == 0


async def written_by(store: SocketStore) -> int:
    """The revision. A write that was passed on to the leader just before it was noticed to have gone fails later."""
    while True:
        with contextlib.suppress(StoreTimeout):
            return (await settled(store.txn(Txn("/a", b"2")))).revision


@pytest.mark.parametrize("second", ["m0", "nobody"])
def test_a_member_that_is_here_already_or_unknown_is_cut_off(tmp_path: Path, second: str) -> None:
    process = launch(tmp_path)

    async def main() -> None:
        path = str(tmp_path / "store.sock")
        first = await connect(path, "m0")
        await settled(first.current_revision())
        intruder = await connect(path, second)
        with pytest.raises(StoreUnavailable):
            await settled(intruder.current_revision())
        assert await settled(first.current_revision()) == 1
        for store in (first, intruder):
            store.close()

    try:
        first_line(process)
        asyncio.run(main())
    finally:
        assert finish(process) == 0


def test_bytes_that_are_no_frames_end_the_connection_and_not_the_process(tmp_path: Path) -> None:
    process = launch(tmp_path)

    async def main() -> None:
        path = str(tmp_path / "store.sock")
        for junk in (b"\xff" * 16, framed(b"junk"), framed(b"\x92\x00\x90")[:6]):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(junk)
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
        store = await connect(path, "m0")
        assert await settled(store.current_revision()) == 1
        store.close()

    try:
        first_line(process)
        asyncio.run(main())
    finally:
        assert finish(process) == 0


def test_connecting_to_nobody_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"store: cannot connect to .*none\.sock"):
        asyncio.run(_connect(tmp_path / "none.sock"))


async def _connect(path: Path) -> SocketStore:
    return await connect(str(path), "m0")


def test_frames_come_out_whole_however_they_are_split() -> None:
    data = framed(b"") + framed(b"one") + framed(b"x" * 1000)
    for size in (1, 3, 7, len(data)):
        reader, bodies = FrameReader(), []
        for start in range(0, len(data), size):
            bodies += reader.feed(data[start : start + size])
        assert bodies == [b"", b"one", b"x" * 1000]


@pytest.mark.parametrize(
    "error", [Compacted(3, 5), FutureRevision(9, 5), StoreTimeout("timed out"), StoreUnavailable("gone")]
)
def test_errors_travel(error: Exception) -> None:
    arrived = error_of(failure(1, error))  # type: ignore[arg-type]
    assert (type(arrived), str(arrived), arrived.__dict__) == (type(error), str(error), error.__dict__)
