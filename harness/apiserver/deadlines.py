"""When requests under way must have been answered, on one timer for all of them.

Nearly every request has the server's own limit and is answered long before it, so a timer for each would be armed and
cancelled for nothing: with libuv, an allocation and a callback for its end.
"""

from __future__ import annotations

from typing import Protocol

from harness.apiserver.clock import Clock


class Late(Protocol):
    def time_out(self) -> None:
        """Its deadline has come. May call `Deadlines.remove`."""


class Deadlines:
    """Of requests that all have `limit_s`, so that they come due in the order in which they began. `slack_s` is how
    early the clock's timers may fire."""

    def __init__(self, clock: Clock, limit_s: float, slack_s: float = 0.0) -> None:
        self.limit_s = limit_s
        self._clock = clock
        self._slack_s = slack_s
        self._due: dict[Late, float] = {}
        self._armed = False

    def add(self, request: Late, started_at: float) -> None:
        due = self._due[request] = started_at + self.limit_s
        if not self._armed:
            self._arm(due)

    def remove(self, request: Late) -> None:
        self._due.pop(request, None)

    def _arm(self, when: float) -> None:
        self._armed = True
        self._clock.call_at(when, self._fire)

    def _fire(self) -> None:
        self._armed = False
        now = self._clock.now() + self._slack_s
        while self._due:
            request, due = next(iter(self._due.items()))
            if due > now:
                if not self._armed:
                    self._arm(due)
                return
            del self._due[request]
            request.time_out()
