"""How late the event loop of a worker runs what is due: the measure of whether its latencies are the target's.

A beat is due every 100 ms; one that comes more than 20 ms after its time was kept waiting by other work of this
process, or by this machine. Everything a client measures may be that much too long.
"""

from __future__ import annotations

import time

import gevent

from harness.transport.timers import Timer, Timers

BEAT_S = 0.1
LATE_S = 0.020  # as the emulated members count their modelled jobs late


class LoopLag:
    """Counts beats from `start` to `stop`; `take` gives what is new."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._timer: Timer | None = None
        self._due = 0.0
        self._beats = 0
        self._late = 0

    def start(self) -> None:
        """Begin, once the fleet is spawned: Locust's spawning blocks the loop, and nobody measures anything yet."""
        if self._timer is None:
            self._arm()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def take(self) -> dict[str, float]:
        """Beats since the last call, how many of them were late; empty where there were none."""
        beats, late = self._beats, self._late
        self._beats = self._late = 0
        return {"beats": beats, "late": late} if beats else {}

    def _arm(self) -> None:
        self._due = self._timers.now() + BEAT_S
        self._timer = self._timers.call_at(self._due, self._beat)

    def _beat(self) -> None:
        self._beats += 1
        if self._timers.now() - self._due > LATE_S:
            self._late += 1
        self._arm()


class LoopBlock:
    """How long one piece of work held up everything else in this process, at most: what a greenlet of Locust's own, its
    heartbeat say, would have waited. `longest_s` counts CPU time only: another process's turn on the core is none."""

    LOOK_S = 0.01

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.over = False

    def run(self) -> None:
        """In a greenlet of its own, until it is `over`: 100 looks a second are a load by themselves."""
        while not self.over:
            due, used = time.monotonic() + self.LOOK_S, time.thread_time()
            gevent.sleep(self.LOOK_S)
            late_s = time.monotonic() - due
            self.longest_s = max(self.longest_s, min(late_s, time.thread_time() - used))
