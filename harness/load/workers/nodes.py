"""Names of a fleet's nodes: each worker has a range of its own, and what a lost one had is handed to others.

A worker makes names of its own range, ``swarmlet-<worker>-<number>``, as long as the fleet is being spawned. Once it
was complete a kubelet that Locust starts takes the place of one that is gone, so its worker asks the master, which
knows whose names are free. Such a kubelet is the same node again, as after a restart of the real one: it finds its Node
and its pods there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum

import gevent
from gevent.event import AsyncResult

from harness.load.identity.tokens import node_name
from harness.wire.errors import SwarmletError

NODES_WANTED = "nodes-wanted"
"""A worker's note to the master: `index` and `count`."""
NODES_NAMED = "swarmlet-nodes"
"""Locust's message from master to worker: what `NodeNames.hand_over` takes."""
ANSWERED_WITHIN_S = 30.0


class Unnamed(SwarmletError):
    """A kubelet that replaces another was not told which node it is."""


class LostWorker(Enum):
    """What becomes of a run that loses a worker, and of the worker's nodes."""

    END = "end"
    TAKE_OVER = "take-over"
    LEAVE = "leave"


class NodeNames:
    """A worker's. `ask` tells the master how many names are wanted; `hand_over` is called with its answer."""

    def __init__(self, worker: int, ask: Callable[[int], None]) -> None:
        self.made = 0
        """How many of its own range there are."""
        self.settled = False
        """The fleet was complete: what is spawned from now on takes another's place."""
        self._worker = worker
        self._ask = ask
        self._free: deque[str] = deque()
        self._waiting: deque[AsyncResult] = deque()
        self._unasked = 0

    def take(self, *, replaces: bool) -> str | None:
        """The next node's name. One that `replaces` another waits for the master, the calling greenlet alone; None
        where its place is to stay empty. Raises Unnamed."""
        if self._free:
            return self._free.popleft()
        if not replaces:
            return self._make()
        result: AsyncResult = AsyncResult()
        self._waiting.append(result)
        self._unasked += 1
        if self._unasked == 1:
            gevent.spawn(self._ask_for_all)
        try:
            name: str | None = result.get(timeout=ANSWERED_WITHIN_S)
        except gevent.Timeout:  # which is no Exception: nobody would hear of it
            self._waiting.remove(result)
            raise Unnamed(f"the master named no node within {ANSWERED_WITHIN_S:g} s") from None
        return name

    def give_back(self, name: str) -> None:
        """Its kubelet was stopped, for Locust places users elsewhere; the next one here is this node again."""
        self._free.append(name)

    def hand_over(self, names: list[str], made_here: int, empty: int) -> None:
        """To those that wait: names of others first, then so many of this worker's own range, then none."""
        own = [self._make() for _ in range(made_here)]
        for name in [*names, *own, *[None] * empty]:
            if not self._waiting:
                return
            self._waiting.popleft().set(name)

    def _make(self) -> str:
        name = node_name(self._worker, self.made)
        self.made += 1
        return name

    def _ask_for_all(self) -> None:
        """Of all greenlets that began in this turn of the loop."""
        wanted, self._unasked = self._unasked, 0
        self._ask(wanted)


class Handover:
    """The master's. `fleet` is how many nodes there are to be; `take_over` decides whether those of lost workers are
    given to others, or their places stay empty."""

    def __init__(self, fleet: int, *, take_over: bool) -> None:
        self._fleet = fleet
        self._take_over = take_over
        self._made: dict[int, int] = {}
        self._adopted: dict[int, list[str]] = {}
        self._free: deque[str] = deque()
        self._left = 0

    @property
    def waiting(self) -> int:
        """How many nodes of lost workers nobody has taken over."""
        return len(self._free)

    def reported(self, worker: int, made: int) -> None:
        """So many names of its own range a worker has made; it may have been allowed more since."""
        self._made[worker] = max(made, self._made.get(worker, 0))

    def lost(self, worker: int) -> list[str]:
        """A worker has gone: the nodes that it had."""
        own = [node_name(worker, number) for number in range(self._made.pop(worker, 0))]
        names = [*own, *self._adopted.pop(worker, [])]
        if self._take_over:
            self._free.extend(names)
        else:
            self._left += len(names)
        return names

    def wanted(self, worker: int, count: int) -> tuple[list[str], int, int]:
        """What `NodeNames.hand_over` takes: names of lost workers; new ones as far as the fleet is not complete, for a
        slow worker spawns its part when Locust believes that all are there, or where a lost worker had not yet reported
        what it spawned last."""
        names = [self._free.popleft() for _ in range(min(count, len(self._free)))]
        self._adopted.setdefault(worker, []).extend(names)
        wanted = count - len(names)
        room = max(0, self._fleet - sum(self._made.values()) - self._left)
        new = wanted if self._take_over else min(wanted, room)
        self._made[worker] = self._made.get(worker, 0) + new
        return names, new, wanted - new
