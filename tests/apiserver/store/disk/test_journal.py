"""When a write is told to be durable, what it is told when it cannot be, and what goes on meanwhile."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.apiserver.store.core import Txn
from harness.apiserver.store.disk.journal import NO_SPACE
from harness.apiserver.store.disk.records import records
from tests.apiserver.store.disk.disks import Disk, opened, state


def failing(
    monkeypatch: pytest.MonkeyPatch, name: str, number: int, after_bytes: int = 0
) -> Callable[[], None]:
    """Let os.<name> fail from now on; `pwrite` writes `after_bytes` before. Call what is returned to mend it."""
    real = getattr(os, name)
    left = after_bytes

    def broken(descriptor: int, *rest: object) -> int:
        nonlocal left
        if name == "pwrite" and left:
            data, at = rest
            count = int(real(descriptor, data[:left], at))  # type: ignore[index]
            left = 0
            return count
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, name, broken)
    return lambda: monkeypatch.setattr(os, name, real)


def snapshotting(disk: Disk) -> bool:
    return disk.journal.snapshotting


def put(number: int) -> Txn:
    return Txn("/r/a", b"%d" % number)


def test_nothing_is_applied_before_it_is_on_disk(tmp_path: Path) -> None:
    with opened(tmp_path) as disk:
        disk.ask(put(1))
        assert (disk.results, disk.core.revision) == ([], 1)
        disk.log.step()
        assert ([result.revision for result in disk.results], disk.core.revision) == ([2], 2)


def test_what_comes_during_a_sync_shares_the_next(tmp_path: Path) -> None:
    with opened(tmp_path) as disk:
        disk.ask(put(1))
        for number in range(2, 50):
            disk.ask(put(number))
        assert len(disk.log.jobs) == 1
        disk.log.step()
        assert len(disk.log.jobs) == 1
        disk.log.step()
        assert [result.revision for result in disk.results] == list(range(2, 51))
        data = disk.folder.log(0).read_bytes()
        assert [record.number for record in records(data)] == [0, 1]


@pytest.mark.parametrize("after_bytes", [0, 1, 20, 40])
def test_a_full_disk_fails_writes_and_those_alone_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after_bytes: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with opened(tmp_path) as disk:
        disk.write(put(1))
        mend = failing(monkeypatch, "pwrite", errno.ENOSPC, after_bytes)
        disk.write(put(2))
        disk.write(put(3))
        assert [str(error) for error in disk.errors] == [NO_SPACE] * 2
        found = disk.core.get("/r/a").kv
        assert found is not None
        assert found.value == b"1"
        mend()
        disk.write(put(4))
        assert disk.results[-1].revision == 3
        expected = state(disk.core)
        said = capfd.readouterr().err.splitlines()
        assert len(said) == 2
        assert NO_SPACE in said[0]
        assert "writes succeed again" in said[1]
    with opened(tmp_path) as disk:
        assert state(disk.core) == expected
        assert disk.recovered.dropped == ""


@pytest.mark.parametrize("number", [errno.EROFS, errno.EIO])
def test_other_errors_are_told_by_their_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    with opened(tmp_path) as disk:
        disk.write(put(1))
        failing(monkeypatch, "pwrite", number)
        disk.write(put(2))
        assert [str(error) for error in disk.errors] == [f"etcdserver: log: {os.strerror(number)}"]


def test_after_a_failed_sync_nothing_is_acknowledged_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel tells of such an error once, and may have thrown the pages away."""
    with opened(tmp_path) as disk:
        disk.write(put(1))
        mend = failing(monkeypatch, "fdatasync", errno.EIO)
        disk.write(put(2))
        mend()
        disk.write(put(3))
        assert len(disk.errors) == 2
        assert "could not be made sure of" in str(disk.errors[1])
    with opened(tmp_path) as disk:
        disk.write(put(4))
        assert disk.errors == []


@pytest.mark.parametrize("call", ["pwrite", "open", "fsync"])
def test_a_new_log_that_cannot_be_begun_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    with opened(tmp_path, 100) as disk:
        while disk.folder.log(0).exists() is False or disk.folder.log(0).stat().st_size < 100:
            disk.write(put(1))
        mend = failing(monkeypatch, call, errno.ENOSPC)
        disk.write(put(2))
        assert [str(error) for error in disk.errors] == [NO_SPACE]
        assert not snapshotting(disk)
        mend()
        disk.write(put(3))
        assert len(disk.folder.snapshots()) == 1
        expected = state(disk.core)
    with opened(tmp_path) as disk:
        assert state(disk.core) == expected


def test_a_snapshot_that_cannot_be_written_leaves_the_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with opened(tmp_path, 100) as disk:
        while not snapshotting(disk):
            disk.ask(put(1))
            disk.log.run_all()
        mend = failing(monkeypatch, "fsync", errno.ENOSPC)
        disk.snapshots.run_all()
        assert not snapshotting(disk)
        assert "no snapshot" in capfd.readouterr().err
        assert disk.folder.snapshots() == []
        assert list(tmp_path.glob("*.new")) == []
        mend()
        expected = state(disk.core)
    with opened(tmp_path) as disk:
        assert state(disk.core) == expected


def test_writes_go_on_while_a_snapshot_is_written(tmp_path: Path) -> None:
    with opened(tmp_path, 2000) as disk:
        for number in range(500):  # several slices
            disk.ask(Txn(f"/r/{number:03}", b"x"))
        disk.log.run_all()
        disk.ask(Txn("/r/000", b"y"))
        disk.log.run_all()
        assert snapshotting(disk)
        while disk.snapshots.step():
            disk.ask(Txn("/r/499", None), Txn("/r/499", b"z"), Txn("/r/new", b"new"), Txn("/r/000", None))
            disk.ask(Txn("/r/000", b"again", ttl_s=5.0))
            disk.log.run_all()
        assert not snapshotting(disk)
        expected = state(disk.core)
    with opened(tmp_path) as disk:
        assert state(disk.core) == expected
        assert disk.recovered.snapshot_bytes


def test_a_snapshot_that_a_crash_cut_short_is_thrown_away(tmp_path: Path) -> None:
    disk = Disk(tmp_path, 100)
    while not snapshotting(disk):
        disk.ask(put(1))
        disk.log.run_all()
    disk.snapshots.step()
    (unfinished,) = tmp_path.glob("*.new")
    data = unfinished.read_bytes()
    expected = state(disk.core)
    disk.close()
    unfinished.write_bytes(data)
    with opened(tmp_path) as disk:
        assert state(disk.core) == expected
    assert not unfinished.exists()
