"""The store process's data folder on asyncio: recovered at start, written by threads of its own."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from harness.apiserver.clock import Promise
from harness.apiserver.store.disk.folder import DataFolder
from harness.apiserver.store.disk.journal import Journal
from harness.apiserver.store.disk.recovery import recover

T = TypeVar("T")


class Thread:
    """A `disk.journal.Worker`: one thread, whose results arrive on the loop."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._loop = loop

    def __call__(self, job: Callable[[], T], /) -> Promise[T]:
        promise: Promise[T] = Promise()
        self._executor.submit(job).add_done_callback(partial(self._arrived, promise))
        return promise

    def _arrived(self, promise: Promise[T], future: Future[T]) -> None:
        self._loop.call_soon_threadsafe(_settle, promise, future)

    def close(self) -> None:
        """Wait for what has been begun."""
        self._executor.shutdown()


def _settle(promise: Promise[T], future: Future[T]) -> None:
    error = future.exception()
    if error is not None:
        promise.fail(error)
    else:
        promise.resolve(future.result())


class DurableStore:
    """An opened data folder, what was in it, and the journal that goes on there. Raises ConfigError where the folder
    cannot be used; says on standard error what a crash had cut short."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        started_s = time.monotonic()
        self._folder = DataFolder(path)
        try:
            self._recovered = recover(self._folder, started_s)
        except BaseException:
            self._folder.close()
            raise
        self.core = self._recovered.core
        self.identity = self._folder.identity
        self._threads = Thread("log", loop), Thread("snapshot", loop)
        self.journal = Journal(self._folder, self._recovered, *self._threads)
        self._took_s = time.monotonic() - started_s
        if self._recovered.dropped:
            print(f"store: {self._recovered.dropped}", file=sys.stderr, flush=True)

    def describe(self) -> dict[str, Any]:
        """What the folder held, and how long it took to read."""
        return {
            "revision": self.core.revision,
            "keys": len(self.core),
            "seconds": round(self._took_s, 3),
            "dropped": self._recovered.dropped,
        }

    def close(self) -> None:
        for thread in self._threads:
            thread.close()
        self.journal.close()
        self._folder.close()
