"""Modelled work whose results must come out in the order in which it was given, on however many cores."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from harness.apiserver.model.capacity import Class, Host


class _Step:
    __slots__ = ("done", "fn", "owner")

    def __init__(self, owner: InOrder, fn: Callable[[], object]) -> None:
        self.owner = owner
        self.fn = fn
        self.done = False

    def __call__(self) -> None:
        self.done = True
        self.owner.drain()


class InOrder:
    """`Host.run` for a stream: a short job behind a long one waits for it, as entries of a log do."""

    __slots__ = ("_cls", "_draining", "_host", "_steps")

    def __init__(self, host: Host, cls: Class) -> None:
        self._host = host
        self._cls = cls
        self._steps: deque[_Step] = deque()
        self._draining = False

    def run(self, cost_us: float, fn: Callable[[], object]) -> None:
        """Call `fn` once the host has done this job and `fn` of all earlier ones has been called."""
        step = _Step(self, fn)
        self._steps.append(step)
        self._host.run(cost_us, step, self._cls)

    def drain(self) -> None:
        if self._draining:  # fn gave more work that was done at once: the loop below takes it in turn
            return
        self._draining = True
        try:
            while self._steps and self._steps[0].done:
                self._steps.popleft().fn()
        finally:
            self._draining = False
