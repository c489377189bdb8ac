"""A store on disk without threads, and what two stores must have in common to be the same."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from harness.apiserver.clock import Promise
from harness.apiserver.store.core import StoreCore, StoreError, Txn, TxnResult
from harness.apiserver.store.disk.folder import DataFolder
from harness.apiserver.store.disk.journal import SNAPSHOT_AFTER_BYTES, Journal
from harness.apiserver.store.disk.records import Proposal
from harness.apiserver.store.disk.recovery import Recovered, recover

T = TypeVar("T")


class Steps:
    """Workers whose jobs run when told to, each in its own order."""

    def __init__(self) -> None:
        self.jobs: deque[Callable[[], None]] = deque()

    def __call__(self, job: Callable[[], T], /) -> Promise[T]:
        promise: Promise[T] = Promise()

        def run() -> None:
            try:
                result = job()
            except Exception as error:
                promise.fail(error)
            else:
                promise.resolve(result)

        self.jobs.append(run)
        return promise

    def run_all(self) -> None:
        while self.jobs:
            self.jobs.popleft()()

    def step(self) -> bool:
        if self.jobs:
            self.jobs.popleft()()
        return bool(self.jobs)


class Disk:
    """A recovered store and its journal; `write` applies once it is on disk, as `ReplicatedStore` does."""

    def __init__(self, path: Path, snapshot_after_bytes: int = SNAPSHOT_AFTER_BYTES) -> None:
        self.folder = DataFolder(path)
        try:
            self.recovered: Recovered = recover(self.folder, 0.0)
        except BaseException:
            self.folder.close()
            raise
        self.core: StoreCore = self.recovered.core
        self.log, self.snapshots = Steps(), Steps()
        self.journal = Journal(self.folder, self.recovered, self.log, self.snapshots, snapshot_after_bytes)
        self.results: list[TxnResult] = []
        self.errors: list[StoreError] = []

    def close(self) -> None:
        self.journal.close()
        self.folder.close()

    def ask(self, *proposals: Proposal) -> None:
        def done(error: StoreError | None) -> None:
            if error is not None:
                self.errors.append(error)
                return
            for proposal in proposals:
                if isinstance(proposal, Txn):
                    self.results.append(self.core.txn(proposal)[0])
                else:
                    self.core.compact(proposal)

        self.journal.append(proposals, done)

    def write(self, *proposals: Proposal) -> None:
        self.ask(*proposals)
        self.log.run_all()
        self.snapshots.run_all()


@contextmanager
def opened(path: Path, snapshot_after_bytes: int = SNAPSHOT_AFTER_BYTES) -> Iterator[Disk]:
    disk = Disk(path, snapshot_after_bytes)
    try:
        yield disk
    finally:
        disk.close()


def state(core: StoreCore) -> dict[str, Any]:
    """Everything that can be asked of a store."""
    core.validate()
    return {
        "revision": core.revision,
        "compacted": core.compacted,
        "size": core.size_bytes,
        "keys": core.save(core.keys(), core.revision),
        "events": core.events(core.compacted),
        "live": [kv.key for kv in core.range("/").kvs],
    }


def random_proposal(random: Random, core: StoreCore, keys: int = 12) -> Proposal:
    """A write of any kind, one in ten times a condition that fails; now and then a compaction."""
    if random.random() < 0.03 and core.revision > core.compacted + 1:
        return random.randint(core.compacted + 1, core.revision)
    key = f"/registry/pods/ns/{random.randrange(keys)}"
    current = core.get(key).kv
    expected = random.choice([None, current.mod_revision if current else 0, 999_999])
    value = None if random.random() < 0.25 else random.randbytes(random.randrange(1, 200)).hex().encode()
    return Txn(key, value, expected, random.choice([0.0, 0.0, 0.0, 3600.0]) if value else 0.0)
