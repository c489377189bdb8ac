"""The garbage collector while a fleet is spawned, and after it.

A fleet is millions of objects that stay. A collection that walks them takes a second and finds nothing, and while it
walks nobody's events are handled. So what has been made is collected while it is little and then frozen: twice a second
as long as the fleet grows, and no more once it is there.
"""

from __future__ import annotations

import gc

from harness.transport.timers import Timer, Timers

THRESHOLDS = (50_000, 20, 50)  # as the emulated members have them
FREEZE_EVERY_S = 0.5
"""50 kubelets that register in a second make 25,000 objects in that time, which are walked in 5 ms."""
GROWS_S = 30.0  # after the last user was spawned: registration, first watches


class Heap:
    """From `begin` to `GROWS_S` after `spawned`. It is the process's, whoever asks: there is one collector."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._timer: Timer | None = None
        self._ends_at = float("inf")

    def begin(self) -> None:
        """Before the first user is spawned."""
        gc.set_threshold(*THRESHOLDS)
        self._freeze()

    def spawned(self) -> None:
        """The last user was spawned."""
        self._ends_at = self._timers.now() + GROWS_S

    def stop(self) -> None:
        """The collector is left as it is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _freeze(self) -> None:
        gc.collect()
        gc.freeze()
        now = self._timers.now()
        self._timer = None
        if now < self._ends_at:
            self._timer = self._timers.call_at(now + FREEZE_EVERY_S, self._freeze)
