"""Users begin one after the other, not as many at once as Locust spawns.

Locust spawns each second's users in one go (locust/dispatch.py), and each begins with a millisecond of work: all of a
second's would hold the loop up for as many milliseconds, and the apiservers would get their registrations in bursts.
"""

from __future__ import annotations

from collections.abc import Callable

SPACING_S = 0.005
"""Between two beginnings: 200 a second, of which each takes 1 to 2 ms; the loop has the rest."""


class Turns:
    """`now` is monotonic seconds, `sleep` lets others run meanwhile."""

    def __init__(self, now: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._now = now
        self._sleep = sleep
        self._next = 0.0

    def wait(self) -> None:
        """Return when it is the caller's turn; turns are given in the order of the calls."""
        now = self._now()
        at = max(now, self._next)
        self._next = at + SPACING_S
        if at > now:
            self._sleep(at - now)
