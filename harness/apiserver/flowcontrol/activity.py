"""Requests of one kind, reads or writes, at once: what `apiserver_current_inflight_requests` and its like are made of.

k8s.io/apiserver v1.36 pkg/server/filters/maxinflight.go:57-110: a watermark is the most that was seen at any change
since it was last published, each second; a second without a change publishes 0.
"""

from __future__ import annotations


class Activity:
    """`times` says for how many seconds which (executing, waiting) has lasted until `at` since somebody took it. Who
    changes `executing` settles the time first and minds the peak; nearly every request does, so there is no method."""

    __slots__ = ("at", "executing", "executing_peak", "times", "waiting", "waiting_peak")

    def __init__(self, now: float) -> None:
        self.executing = self.executing_peak = 0
        self.waiting = self.waiting_peak = 0
        self.times: dict[tuple[int, int], float] = {}
        self.at = now

    def wait(self, change: int, now: float) -> None:
        """One more waits, or one less."""
        self.settle(now)
        self.waiting += change
        if self.waiting > self.waiting_peak:
            self.waiting_peak = self.waiting

    def settle(self, now: float) -> None:
        """Account for the time up to now."""
        elapsed = now - self.at
        if elapsed > 0:
            self.at = now
            state = (self.executing, self.waiting)
            self.times[state] = self.times.get(state, 0.0) + elapsed

    def take_peaks(self) -> tuple[int, int]:
        """(executing, waiting) at most since the last call."""
        peaks = self.executing_peak, self.waiting_peak
        self.executing_peak = self.waiting_peak = 0
        return peaks
