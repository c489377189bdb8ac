"""The one greenlet of a worker in which sockets are read, timers run and sinks are called."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

import gevent
from gevent import get_hub, getcurrent

logger = logging.getLogger(__name__)

Work: TypeAlias = Callable[[], object]

TURN_ITEMS = 256
"""Items handled before other greenlets of the process get their turn: some 5 ms of work. Locust's heartbeats run
beside us."""


class Dispatcher:
    """A queue of work that event-loop callbacks fill and one greenlet empties, in order.

    Work must not block; where it does all the same, everything behind it waits, and nothing breaks. An exception is
    logged and the next item runs. Belongs to the thread (and its hub) that made it; make it after a fork.
    """

    __slots__ = ("_closed", "_dirty", "_greenlet", "_loop", "_queue", "_scheduled", "_wakeup")

    def __init__(self) -> None:
        self._queue: deque[Work] = deque()
        self._dirty: list[Work] = []
        self._scheduled = False
        self._closed = False
        self._wakeup: Any = None
        self._loop = get_hub().loop
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
        for _ in range(TURN_ITEMS):
            if not queue:
                break
            self._attempt(queue.popleft())
            if self._dirty:
                self.flush()
        self._scheduled = False
        if queue:
            self._wake()

    def _attempt(self, work: Work) -> None:
        try:
            work()
        except Exception:
            logger.exception("error in %r", work)
