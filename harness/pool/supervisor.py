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

from harness.apiserver.faults.spec import parse_spec
from harness.pool.backend import OnEvent, Pool
from harness.pool.balancer.telling import Telling
from harness.pool.binaries.servers import BinariesPool
from harness.pool.control import Control, obey
from harness.pool.disturbances import BeginFault, Disturbances, PoolOrder
from harness.pool.emulated import EmulatedPool, PoolOptions
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


def make_pool(options: PoolOptions, on_event: OnEvent) -> Pool:
    """A pool of the backend that the options name, not yet started. Raises ConfigError."""
    return (BinariesPool if options.backend == "binaries" else EmulatedPool)(options, on_event)


def supervise(
    options: PoolOptions,
    *,
    on_ready: Callable[[Pool, Disturbances], None],
    on_event: OnEvent,
    ended: Ending,
) -> None:
    """Run a pool, with the faults that it begins with, until `ended` is set or a signal comes. Call from the main
    thread."""

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    pool = make_pool(options, on_event)
    disturbances = Disturbances(pool, on_event, options.pace)
    control: Control | None = None
    try:
        pool.start()
        control = Control(pool.control, disturbances)
        if not ended.is_set():
            on_ready(pool, disturbances)
            for spec in map(parse_spec, options.faults):
                if spec.of_pool:
                    disturbances.begin(spec)
        telling = Telling(pool.around.balanced, on_event) if options.balancer.kind else None
        while not ended.wait(1.0):  # in slices: a signal handler runs only between waits on some platforms
            if telling is not None:
                telling.look()
    finally:
        if control is not None:
            control.close()
        disturbances.close()
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


def _obey(disturbances: Disturbances, order: PoolOrder, tell: OnEvent) -> None:
    """An order of our parent's; what cannot be is an event, as what comes of it is."""
    try:
        obey(disturbances, order)
    except SwarmletError as error:
        if isinstance(order, BeginFault):
            tell({"kind": "fault-failed", "member": "pool", "fault": order.fault, "error": str(error)})


def main() -> None:
    options = msgspec.json.decode(sys.stdin.buffer.readline(), type=PoolOptions)
    ended = Ending()
    running: list[Disturbances] = []

    def follow_parent() -> None:
        for line in sys.stdin.buffer:
            order = msgspec.json.decode(line, type=PoolOrder)
            for disturbances in running:
                threading.Thread(target=_obey, args=(disturbances, order, events), daemon=True).start()
        ended.set()

    events = _AfterReady(say)
    threading.Thread(target=follow_parent, daemon=True).start()

    def ready(pool: Pool, disturbances: Disturbances) -> None:
        running.append(disturbances)
        events.ready(pool.describe())

    try:
        supervise(options, on_ready=ready, on_event=events, ended=ended)
    except SwarmletError as error:
        say({"error": str(error)})
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
