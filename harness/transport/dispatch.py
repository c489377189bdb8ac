"""The one greenlet of a worker in which sockets are read, timers run and sinks are called."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from time import monotonic, thread_time
from typing import Any, TypeAlias

import gevent
from gevent import get_hub, getcurrent

logger = logging.getLogger(__name__)

Work: TypeAlias = Callable[[], object]

TURN_S = 0.010
"""CPU time of the work that is done before other greenlets of the process get their turn: Locust's heartbeats run
beside us. Not wall-clock time: on a crowded machine a turn would be over before it began, and the loop, which has work
of its own at every turn, would do nothing else."""


class Dispatcher:
    """A queue of work that event-loop callbacks fill and one greenlet empties, in order.

    Work must not block; where it does all the same, everything behind it waits, and nothing breaks. An exception is
    logged and the next item runs. Belongs to the thread (and its hub) that made it; make it after a fork.
    """

    __slots__ = ("_again", "_closed", "_dirty", "_greenlet", "_loop", "_queue", "_scheduled", "_wakeup")

    def __init__(self) -> None:
        self._queue: deque[Work] = deque()
        self._dirty: list[Work] = []
        self._scheduled = False
        self._closed = False
        self._wakeup: Any = None
        self._loop = get_hub().loop
        self._again: Any = self._loop.timer(0)
        self._greenlet = gevent.spawn(self._run)
        self._greenlet.name = "transport"

    def __repr__(self) -> str:
        return f"<Dispatcher queued={len(self._queue)} closed={self._closed}>"

    def push(self, work: Work) -> None:
        """Have `work` done soon. May be called from the hub and from any greenlet of this thread."""
        self._queue.append(work)
        if not self._scheduled:
            self._wake()

    def flush_later(self, flush: Work) -> None:
        """Have `flush` called when the item under way is done; soon, where none is."""
        self._dirty.append(flush)
        if not self._scheduled:
            self._wake()

    def flush(self) -> None:
        """Call what `flush_later` was given."""
        dirty = self._dirty
        while dirty:
            self._attempt(dirty.pop())

    def close(self) -> None:
        """End the greenlet; what is queued is dropped. Does nothing the second time."""
        if self._closed:
            return
        self._closed = True
        self._queue.clear()
        self._dirty.clear()
        if self._wakeup is not None:
            self._wakeup.stop()
        self._again.stop()
        self._again.close()
        if getcurrent() is not self._greenlet:
            self._greenlet.kill()

    def _wake(self) -> None:
        if not self._closed:
            self._scheduled = True
            self._wakeup = self._loop.run_callback(self._greenlet.switch)

    def _run(self) -> None:
        hub = get_hub()
        while not self._closed:
            hub.switch()
            self.flush()
            self._turn()

    def _turn(self) -> None:
        """Handle what is queued, but leave what exceeds a turn to the next."""
        queue = self._queue
        look_at, ends_at = monotonic() + TURN_S, thread_time() + TURN_S
        while queue:
            self._attempt(queue.popleft())
            if self._dirty:
                self.flush()
            # A turn takes no more CPU time than time, and that is cheaper to look at: the other is a system call.
            if monotonic() > look_at and thread_time() > ends_at:
                break
        if queue and not self._closed:
            # Not by a callback: gevent runs 50 of these, turns of ours, before it looks at timers and sockets again.
            self._again.start(self._greenlet.switch)
        else:
            self._scheduled = False

    def _attempt(self, work: Work) -> None:
        try:
            work()
        except Exception:
            logger.exception("error in %r", work)
