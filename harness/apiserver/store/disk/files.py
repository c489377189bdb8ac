"""Writing logs and snapshots. Everything here blocks: it is called from threads of its own, each object from one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from harness.apiserver.store.disk.folder import DataFolder
from harness.apiserver.store.disk.records import MAGIC, record

SYNC_BYTES = (
    16 << 20
)  # of a snapshot that are synced at a time, so that syncs of the log are not held up by all of it


class LogFile:
    """The newest log. What `append` has returned from is on disk."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._descriptor = -1
        self._end = 0  # of what is whole
        self._failed = (
            False  # a sync: what is on disk is not known any more (fsync(2): it tells of an error once)
        )
        if folder.logs():
            self._open(folder.log(folder.logs()[-1]), os.O_WRONLY)
            self._end = os.fstat(self._descriptor).st_size

    def append(self, number: int, payload: bytes, rotate: bool) -> int:
        """Write and sync a record whose first proposal has this number, to a new file where `rotate`. The length of
        the file. Raises OSError: then nothing has been added."""
        if self._failed:
            raise OSError(0, "an earlier write could not be made sure of")
        if rotate or self._descriptor < 0:
            self._begin(number)
        pieces = record(number, payload)
        try:
            self._write(pieces)
        except OSError:
            self._take_back()
            raise
        self._sync()
        self._end += sum(map(len, pieces))
        return self._end

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _begin(self, number: int) -> None:
        path = self._folder.log(number)
        before = self._descriptor, self._end
        try:
            self._open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            self._end = 0
            self._write((MAGIC,))
            self._end = len(MAGIC)
            self._folder.sync()
        except OSError:
            if self._descriptor != before[0]:
                os.close(self._descriptor)
                with contextlib.suppress(OSError):
                    path.unlink()
            self._descriptor, self._end = before
            raise
        if before[0] >= 0:
            os.close(before[0])

    def _open(self, path: Path, flags: int) -> None:
        self._descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)

    def _write(self, pieces: Iterable[bytes]) -> None:
        data = b"".join(pieces)
        at = self._end
        while data:
            count = os.pwrite(self._descriptor, data, at)
            at += count
            data = data[count:]

    def _take_back(self) -> None:
        """Take off what a failed write has left."""
        try:
            os.ftruncate(self._descriptor, self._end)
        except OSError:
            self._failed = True

    def _sync(self) -> None:
        try:
            os.fdatasync(self._descriptor)
        except OSError:
            self._failed = True
            raise


class SnapshotFile:
    """A snapshot as it is written; it counts once `finish` has returned."""

    def __init__(self, folder: DataFolder, number: int) -> None:
        self._folder = folder
        self._number = number
        self._path = folder.snapshot(number).with_suffix(".new")
        self._file = os.fdopen(
            os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb"
        )
        self._file.write(MAGIC)
        self._payloads = 0
        self._unsynced = 0

    def write(self, payload: bytes) -> None:
        pieces = record(self._payloads, payload)
        self._file.writelines(pieces)
        self._payloads += 1
        self._unsynced += len(payload)
        if self._unsynced >= SYNC_BYTES:
            self._file.flush()
            os.fdatasync(self._file.fileno())
            self._unsynced = 0

    def finish(self) -> int:
        """Make it the newest and remove what it supersedes; its length."""
        self._file.flush()
        os.fsync(self._file.fileno())
        size = self._file.tell()
        self._file.close()
        self._path.rename(self._folder.snapshot(self._number))
        self._folder.sync()
        self._folder.remove_before(self._number)
        return size

    def abandon(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self._path.unlink()
