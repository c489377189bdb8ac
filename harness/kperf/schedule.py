"""When each request of a spec is due, and which of them a process of several sends.

kperf's limiter (golang.org/x/time/rate, burst 1) lets the first request out at once and one each 1/rate after it, but
only when a client has come to ask. Here the times are fixed before anybody asks: request i of a spec is due i/rate
seconds after the spec's start, whatever the target does. Without a rate nothing is due at any time, and a request
begins when a client is free.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from harness.kperf.profile import Spec


class Share(NamedTuple):
    """A process's part of a run that `of` processes share: every `of`-th request, and as much of connections and
    clients. `position` counts from 0."""

    position: int = 0
    of: int = 1

    def of_runner(self, runner: int, spec: Spec) -> Share | None:
        """This process's share of one runner's spec; None where that has too few connections or clients for so many
        processes. Which processes then have one goes round by runner."""
        parts = min(self.of, spec.conns, spec.client)
        position = (self.position - runner) % self.of
        return Share(position, parts) if position < parts else None

    def count(self, total: int) -> int:
        """How many of `total` things, dealt in turn, come to this share."""
        return max(0, math.ceil((total - self.position) / self.of))


class Schedule:
    """The requests of one share, 0 to `count` - 1; `count` is None where only time ends them."""

    def __init__(self, spec: Spec, share: Share) -> None:
        self.rate = spec.rate
        self.duration_s = float(spec.duration) if spec.duration > 0 else math.inf
        self._share = share
        self.count = self._count(spec)

    def index(self, number: int) -> int:
        """The place of request `number` of this share among all of its runner's spec."""
        return self._share.position + number * self._share.of

    def due_s(self, number: int) -> float:
        """Seconds after the spec's start at which it is due; 0 without a rate."""
        return self.index(number) / self.rate if self.rate else 0.0

    def _count(self, spec: Spec) -> int | None:
        ends = [spec.total] if spec.total > 0 else []
        if self.rate and spec.duration > 0:
            ends.append(math.ceil(spec.duration * self.rate))  # those that are due before it is over
        return self._share.count(min(ends)) if ends else None
