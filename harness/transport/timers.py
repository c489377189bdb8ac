"""All timers of a worker in one heap behind one timer of the event loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import ceil
from typing import Any

from gevent import get_hub

from harness.transport.dispatch import Dispatcher
from harness.wire.pace import REAL, Pace

COMPACT_ABOVE = 256
"""Cancelled entries tolerated in the heap. Most timers are request timeouts, which are nearly always cancelled."""

NEVER = float("inf")

FAR_S = 1.0
GRAIN_S = 0.01
"""What is due in more than `FAR_S` waits for the next hundredth of a second. Nearly all of that are heartbeats, which
have 4% of jitter: of 5,000 nodes a thousand a second, which then wake the process a hundred times instead."""


class Timer:
    """A call in the future. `when` is in the time of `Timers.now()`."""

    __slots__ = ("_arguments", "_callback", "_heap_of", "when")

    def __init__(
        self, timers: Timers, when: float, callback: Callable[..., object], arguments: tuple[Any, ...]
    ) -> None:
        self.when = when
        self._heap_of: Timers | None = timers
        self._callback: Callable[..., object] | None = callback
        self._arguments = arguments

    def __repr__(self) -> str:
        return f"<Timer when={self.when:.3f} {self._callback!r}>"

    @property
    def pending(self) -> bool:
        """False once it has run or was cancelled."""
        return self._callback is not None

    def cancel(self) -> None:
        """Nothing is called any more; does nothing where it has run or was cancelled."""
        if self._callback is None:
            return
        self._callback = None
        if self._heap_of is not None:
            self._heap_of.forget()

    def run(self) -> None:
        """Call it now, unless it was cancelled while it waited in the dispatcher's queue."""
        callback, self._callback = self._callback, None
        if callback is not None:
            callback(*self._arguments)

    def leave_heap(self) -> bool:
        """Called by `Timers` when it takes the timer out; whether there is anything to run."""
        self._heap_of = None
        return self._callback is not None


class Timers:
    """Calls functions at given times, in order of time, in the dispatcher's greenlet (they must not block).

    `now()` is monotonic seconds since this object was made, the time that machines of `harness.client` are given; at a
    `pace` it is the model's. `close()` drops all timers and ends the dispatcher.
    """

    __slots__ = (
        "_armed_for",
        "_cancelled",
        "_clock",
        "_count",
        "_heap",
        "_loop",
        "_origin",
        "_watcher",
        "dispatcher",
        "pace",
    )

    def __init__(self, pace: Pace = REAL) -> None:
        self.dispatcher = Dispatcher()
        self.pace = pace
        self._clock = pace.seconds(time.monotonic)
        self._origin = self._clock()
        self._heap: list[tuple[float, int, Timer]] = []
        self._count = 0
        self._cancelled = 0
        self._loop = get_hub().loop
        self._watcher: Any = None
        self._armed_for = NEVER

    def __repr__(self) -> str:
        return f"<Timers pending={self.pending}>"

    @property
    def pending(self) -> int:
        """Timers that are still to run."""
        return len(self._heap) - self._cancelled

    def now(self) -> float:
        return self._clock() - self._origin

    def call_at(self, when: float, callback: Callable[..., object], *arguments: Any) -> Timer:
        """Call `callback` at `when` or soon after; in the dispatcher's next turn where `when` has passed. With
        `arguments` of its own it needs no closure, which is five times their size."""
        if when - self.now() > FAR_S and when != NEVER:
            when = ceil(when / GRAIN_S) * GRAIN_S
        timer = Timer(self, when, callback, arguments)
        self._count += 1
        heappush(self._heap, (when, self._count, timer))
        if when < self._armed_for:
            self._arm(when)
        return timer

    def call_later(self, delay_s: float, callback: Callable[..., object], *arguments: Any) -> Timer:
        return self.call_at(self.now() + delay_s, callback, *arguments)

    def forget(self) -> None:
        """A timer in the heap was cancelled (called by `Timer.cancel`)."""
        self._cancelled += 1
        if self._cancelled > COMPACT_ABOVE and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].pending]
            heapify(self._heap)
            self._cancelled = 0

    def close(self) -> None:
        """Drop all timers and end the dispatcher; does nothing the second time."""
        heap, self._heap = self._heap, []
        for _, _, timer in heap:
            timer.leave_heap()
            timer.cancel()
        self._cancelled = 0
        self._disarm()
        self.dispatcher.close()

    def _fire(self) -> None:
        """From the hub: hand what is due to the dispatcher and arm for the next."""
        now = self.now()
        heap = self._heap
        while heap and heap[0][0] <= now:
            timer = heappop(heap)[2]
            if timer.leave_heap():
                self.dispatcher.push(timer.run)
            else:
                self._cancelled -= 1
        self._disarm()
        if heap:
            self._arm(heap[0][0])

    def _arm(self, when: float) -> None:
        self._disarm()
        self._armed_for = when
        self._watcher = self._loop.timer(max(self.pace.real_s(when - self.now()), 0.0))
        # The loop's idea of the time is that of its last iteration; without update a timer could fire too soon.
        self._watcher.start(self._fire, update=True)

    def _disarm(self) -> None:
        self._armed_for = NEVER
        if self._watcher is not None:
            self._watcher.stop()
            self._watcher.close()
            self._watcher = None
