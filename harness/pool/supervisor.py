"""The process that owns a pool: ``python -m harness.pool.supervisor`` with `PoolOptions` as JSON on standard input.

It says ``describe()`` of the pool when all members are ready, then a line for each event of the pool, and stops
everything on SIGTERM, SIGINT, SIGHUP (its terminal has gone), or the end of its standard input (its parent has).
"""

from __future__ import annotations

import queue
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec

from harness.pool.emulated import EmulatedPool, PoolOptions
from harness.pool.restarts import RestartOrder
from harness.wire.errors import SwarmletError


class Ending:
    """A flag that a signal handler may set. The lock in a threading.Event cannot be taken twice: a handler that runs
    while the main thread looks at one would wait for ever. SimpleQueue.put is made for that."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[None] = queue.SimpleQueue()

    def set(self) -> None:
        self._queue.put(None)

    def is_set(self) -> bool:
        return not self._queue.empty()

    def wait(self, timeout_s: float) -> bool:
        """Whether it was set. For one thread, which waits no more once it was."""
        try:
            self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return False
        return True


def supervise(
    options: PoolOptions,
    *,
    on_ready: Callable[[EmulatedPool], None],
    on_event: Callable[[dict[str, Any]], None],
    ended: Ending,
) -> None:
    """Run a pool until `ended` is set or a signal comes. Call from the main thread."""

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    pool = EmulatedPool(options, on_event)
    try:
        pool.start()
        if not ended.is_set():
            on_ready(pool)
        while not ended.wait(1.0):  # in slices: a signal handler runs only between waits on some platforms
            pass
    finally:
        pool.stop()


def say(message: dict[str, Any]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


class _AfterReady:
    """Holds events back until the pool has been announced, which must be the first line."""

    def __init__(self, say: Callable[[dict[str, Any]], None]) -> None:
        self._say = say
        self._lock = threading.Lock()  # events come on threads, one a process
        self._held: list[dict[str, Any]] | None = []

    def ready(self, announcement: dict[str, Any]) -> None:
        with self._lock:
            held, self._held = self._held or [], None
            for message in (announcement, *held):
                self._say(message)

    def __call__(self, event: dict[str, Any]) -> None:
        with self._lock:
            if self._held is None:
                self._say(event)
            else:
                self._held.append(event)


def main() -> None:
    options = msgspec.json.decode(sys.stdin.buffer.readline(), type=PoolOptions)
    ended = Ending()
    running: list[EmulatedPool] = []

    def follow_parent() -> None:
        for line in sys.stdin.buffer:
            order = msgspec.json.decode(line, type=RestartOrder)
            for pool in running:
                threading.Thread(target=pool.restart, args=(order,), daemon=True).start()
        ended.set()

    threading.Thread(target=follow_parent, daemon=True).start()
    events = _AfterReady(say)

    def ready(pool: EmulatedPool) -> None:
        running.append(pool)
        events.ready(pool.describe())

    try:
        supervise(options, on_ready=ready, on_event=events, ended=ended)
    except SwarmletError as error:
        say({"error": str(error)})
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
