"""The `Clock` of a process: an asyncio loop's timers, the system's monotonic time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from harness.apiserver.clock import Timer

SLACK_S = 0.0005
"""uvloop rounds delays to whole milliseconds, so a timer fires up to this early; what is due by then counts as due."""


class _Loop(Protocol):
    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> Timer: ...


class LoopClock:
    """uvloop's own time stands still during a turn and counts milliseconds; durations of microseconds need better."""

    def __init__(self, loop: _Loop) -> None:
        self._loop = loop

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    def call_at(self, when: float, fn: Callable[..., object], *args: object) -> Timer:
        return self._loop.call_later(max(0.0, when - time.monotonic()), fn, *args)
