"""Work in many greenlets that would hold up the event loop if all of it were done in one go.

A TLS handshake costs 1 to 3 ms in steps that do not wait. When a hundred nodes are spawned at once their sockets become
readable together, and the loop would hand all of them out before it looks at anything else: 200 ms in which Locust
sends no heartbeat. Here each turn of the loop has a budget, and who comes too late waits for the next turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import gevent
from gevent import get_hub

T = TypeVar("T")

BUDGET_S = 0.01
"""Of one turn of the loop. Of a core's time, other work of the loop gets at least the rest of every turn."""

WAIT_S = 0.001


class LoopBudget:
    """One for a process and thread; `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._spent_s = 0.0
        self._armed = False

    def run(self, work: Callable[[], T]) -> T:
        """Do `work`, which does not wait, in this turn or a later one; blocks the calling greenlet until then."""
        while self._spent_s >= BUDGET_S:
            gevent.sleep(WAIT_S)
        if not self._armed:
            self._armed = True
            get_hub().loop.run_callback(self._next)
        began = self._clock()
        try:
            return work()
        finally:
            self._spent_s += self._clock() - began

    def _next(self) -> None:
        """From the hub, before it looks for what is ready."""
        self._armed = False
        self._spent_s = 0.0


HANDSHAKES = LoopBudget()
