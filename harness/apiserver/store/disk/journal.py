"""The log as the store sees it: proposals in, and word when they are on disk. Many share a sync."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeVar

from harness.apiserver.clock import Promise, spawn
from harness.apiserver.store.core import StoreCore, StoreError
from harness.apiserver.store.disk import snapshot
from harness.apiserver.store.disk.files import LogFile, SnapshotFile
from harness.apiserver.store.disk.folder import DataFolder
from harness.apiserver.store.disk.records import Proposal, encode
from harness.apiserver.store.disk.recovery import Recovered

T = TypeVar("T")

SNAPSHOT_AFTER_BYTES = 64 << 20
"""A log that has grown to this, and to the size of the last snapshot, is followed by a snapshot and a new log: what is
on disk stays within a few times what is in memory, and a snapshot costs no more than the log before it."""

NO_SPACE = "etcdserver: mvcc: database space exceeded"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Done = Callable[[StoreError | None], object]


class Worker(Protocol):
    """A thread that does one thing after another, and tells of it on the clock's thread."""

    def __call__(self, job: Callable[[], T], /) -> Promise[T]: ...


class Journal:
    """Appends to the log of an opened data folder. `snapshotting`: compactions must wait."""

    def __init__(
        self,
        folder: DataFolder,
        recovered: Recovered,
        log_worker: Worker,
        snapshot_worker: Worker,
        snapshot_after_bytes: int = SNAPSHOT_AFTER_BYTES,
    ) -> None:
        self.snapshotting = False
        self._folder = folder
        self._core: StoreCore = recovered.core
        self._number = recovered.proposals  # of the next proposal
        self._log = LogFile(folder)
        self._log_worker = log_worker
        self._snapshot_worker = snapshot_worker
        self._pending: list[tuple[Sequence[Proposal], Done]] = []
        self._file: SnapshotFile | None = None
        self._writing = False
        self._failing = False
        self._log_bytes = recovered.log_bytes
        self._snapshot_after_bytes = snapshot_after_bytes
        self._snapshot_at_bytes = max(snapshot_after_bytes, recovered.snapshot_bytes)

    def append(self, proposals: Sequence[Proposal], done: Done) -> None:
        """`done(None)` once they are on disk, in the order of calls, whereupon they must be applied; `done(error)`
        where they could not be written: then they never happened."""
        self._pending.append((proposals, done))
        if not self._writing:
            self._write()

    def close(self) -> None:
        """Once nothing is being written. A snapshot that is not finished is given up."""
        self._log.close()
        if self._file is not None:
            self._file.abandon()

    # ---- log
    def _write(self) -> None:
        """Everything that waits, in one record. All that was written before has been applied by now."""
        batch, self._pending = self._pending, []
        proposals = [proposal for some, _ in batch for proposal in some]
        state = None
        if rotate := self._is_time_for_a_snapshot(proposals):
            self.snapshotting = True
            state = snapshot.payloads(self._core, self._number)
        self._writing = True
        written = self._log_worker(partial(self._log.append, self._number, encode(proposals), rotate))
        written.then(partial(self._written, batch, len(proposals), state))

    def _written(
        self,
        batch: list[tuple[Sequence[Proposal], Done]],
        count: int,
        state: Iterator[bytes] | None,
        log: Promise[int],
    ) -> None:
        error: StoreError | None = None
        try:
            self._log_bytes = log.result()
            if state is not None:
                spawn(self._snapshot(self._number, state))
            self._number += count
        except OSError as failure:
            self.snapshotting = self.snapshotting and state is None
            error = StoreError(NO_SPACE if failure.errno in _FULL else f"etcdserver: log: {failure.strerror}")
        self._say_if_failing(error)
        for _, done in batch:
            done(error)
        self._writing = False
        if self._pending:
            self._write()

    def _say_if_failing(self, error: StoreError | None) -> None:
        if (error is not None) != self._failing:
            self._failing = error is not None
            what = f"nothing can be written: {error}" if error else "writes succeed again"
            print(f"store: data folder {self._folder.path}: {what}", file=sys.stderr, flush=True)

    # ---- snapshots
    def _is_time_for_a_snapshot(self, proposals: Sequence[Proposal]) -> bool:
        return (
            self._log_bytes >= self._snapshot_at_bytes
            and not self.snapshotting
            and not any(isinstance(proposal, int) for proposal in proposals)
        )

    async def _snapshot(self, number: int, payloads: Iterator[bytes]) -> None:
        """Write the state after `number` proposals, a slice at a time."""
        work = self._snapshot_worker
        try:
            file = self._file = await work(partial(SnapshotFile, self._folder, number))
            for payload in payloads:
                await work(partial(file.write, payload))
            size = await work(file.finish)
            self._snapshot_at_bytes = max(self._snapshot_after_bytes, size)
        except OSError as error:
            print(
                f"store: data folder {self._folder.path}: no snapshot: {error}", file=sys.stderr, flush=True
            )
            if self._file is not None:
                await work(self._file.abandon)
        finally:
            self._file = None
            self.snapshotting = False
