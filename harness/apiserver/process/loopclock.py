"""The `Clock` of a process: an asyncio loop's timers, the system's monotonic time, at the pace of the model."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from harness.apiserver.clock import Timer
from harness.wire.pace import REAL, Pace

SLACK_S = 0.0005
"""uvloop rounds delays to whole milliseconds, so a timer fires up to this early, in real seconds (`LoopClock.slack_s`);
what is due by then counts as due."""


class _Loop(Protocol):
    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> Timer: ...


class LoopClock:
    """uvloop's own time stands still during a turn and counts milliseconds; durations of microseconds need better.
    `slack_s` is how early a timer may fire."""

    def __init__(self, loop: _Loop, pace: Pace = REAL) -> None:
        self.now: Callable[[], float] = pace.seconds(time.monotonic)
        self.wall: Callable[[], float] = pace.stamps(time.time)
        self.slack_s = SLACK_S / pace.factor
        self._loop = loop
        self._real_s = pace.factor

    def call_at(self, when: float, fn: Callable[..., object], *args: object) -> Timer:
        return self._loop.call_later(max(0.0, when - self.now()) * self._real_s, fn, *args)
