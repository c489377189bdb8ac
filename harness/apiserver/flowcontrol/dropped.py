"""How long a turned-away client is told to stay away: the Retry-After of a 429.

k8s.io/apiserver v1.36 pkg/util/flowcontrol/dropped_requests_tracker.go: seconds start at 1, double (to 32) when the
last r seconds saw at least 3 r drops, and fall by one when they saw fewer than r. Looked at once a second, and only
when there is a drop.
"""

from __future__ import annotations

from collections import deque

MAX_RETRY_AFTER_S = 32


class DroppedRequests:
    """The drops of one priority level, by whole seconds of the wall clock."""

    __slots__ = ("_count", "_history", "_raised_at", "_second", "retry_after_s")

    def __init__(self) -> None:
        self.retry_after_s = 1
        self._second = 0
        self._count = 0
        self._history: deque[tuple[int, int]] = deque()
        self._raised_at = 0

    def record(self, wall_s: float) -> None:
        """One more drop; what it does to Retry-After counts for this drop already."""
        second = int(wall_s)
        if second == self._second:
            self._count += 1
            return
        self._history.append((self._second, self._count))
        keep_s = min(2 * self.retry_after_s, MAX_RETRY_AFTER_S)
        while self._second - self._history[0][0] > keep_s:
            self._history.popleft()
        self._second, self._count = second, 1
        self._adjust(second)

    def _adjust(self, second: int) -> None:
        wait = self.retry_after_s
        dropped = sum(count for at, count in self._history if second - wait <= at < second)
        if second - self._raised_at >= wait and dropped >= 3 * wait:
            self.retry_after_s = min(2 * wait, MAX_RETRY_AFTER_S)
            self._raised_at = second
        elif dropped < wait and wait > 1:
            self.retry_after_s = wait - 1
