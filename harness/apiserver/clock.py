"""Time and waiting inside the emulated apiserver, without asyncio.

Request handlers are plain coroutines that await `Promise`s (a seat, modelled CPU time, an answer of the store). A
`Clock` drives them: an asyncio loop in a member process, a heap of times in tests and in virtual runs. The same code
thus serves sockets and simulates hours in seconds, in an order that only the clock's order decides.
"""

from __future__ import annotations

import heapq
import itertools
import sys
import traceback
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    """`now` is monotonic seconds; `wall` is seconds since 1970 (stamps only)."""

    def now(self) -> float: ...
    def wall(self) -> float: ...
    def call_at(self, when: float, fn: Callable[..., object], *args: object) -> Timer: ...


class Promise(Generic[T]):
    """A value that comes later. Resolved or failed once; later calls are ignored (the waiter may have given up)."""

    __slots__ = ("_callbacks", "_error", "_value", "done")

    def __init__(self) -> None:
        self.done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Promise[T]], object]] | None = None

    def resolve(self, value: T) -> None:
        if not self.done:
            self._value = value
            self._settle()

    def fail(self, error: BaseException) -> None:
        if not self.done:
            self._error = error
            self._settle()

    def then(self, callback: Callable[[Promise[T]], object]) -> None:
        """Call `callback(self)` when settled; at once if it is."""
        if self.done:
            callback(self)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for it to settle."""
        return self._callbacks is not None

    def result(self) -> T:
        """The value; raises the error. Only after `done`."""
        assert self.done, "promise is not settled"
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def _settle(self) -> None:
        self.done = True
        callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            callback(self)

    def __await__(self) -> Generator[Promise[T], None, T]:
        if not self.done:
            yield self
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


def resolved(value: T) -> Promise[T]:
    promise: Promise[T] = Promise()
    promise.resolve(value)
    return promise


DONE: Promise[None] = resolved(None)
"""One for all who need not wait: nothing that is called on a settled promise changes it."""


class Task(Generic[T]):
    """A coroutine under way. `outcome` settles with its result; `cancel()` closes it where it waits.

    What fails while nobody waits for the outcome would be lost: it goes to standard error with its traceback.
    """

    __slots__ = ("_coroutine", "outcome")

    def __init__(self, coroutine: Coroutine[Promise[Any], None, T]) -> None:
        self._coroutine = coroutine
        self.outcome: Promise[T] = Promise()
        self._step(None)

    def cancel(self) -> None:
        """Close the coroutine (its `finally` blocks run); `outcome` never settles. No effect once it has ended."""
        if not self.outcome.done:
            self._coroutine.close()

    def _step(self, _: Promise[Any] | None) -> None:
        try:
            waiting = self._coroutine.send(None)
        except StopIteration as end:
            self.outcome.resolve(end.value)
        except Exception as error:
            if not self.outcome.awaited:
                traceback.print_exception(error, file=sys.stderr)
            self.outcome.fail(error)
        else:
            waiting.then(self._resume)

    def _resume(self, promise: Promise[Any]) -> None:
        if self._coroutine.cr_frame is not None:  # type: ignore[attr-defined]  # closed by cancel() meanwhile
            self._step(promise)


def spawn(coroutine: Coroutine[Promise[Any], None, T]) -> Task[T]:
    """Run a coroutine up to its first wait, now; the rest as its promises settle."""
    return Task(coroutine)


def sleep(clock: Clock, seconds: float) -> Promise[None]:
    promise: Promise[None] = Promise()
    clock.call_at(clock.now() + seconds, promise.resolve, None)
    return promise


def timeout(clock: Clock, promise: Promise[T], seconds: float, value: T) -> Promise[T]:
    """`promise`, or `value` when it has not settled after `seconds`."""
    either: Promise[T] = Promise()
    timer = clock.call_at(clock.now() + seconds, either.resolve, value)

    def settle(source: Promise[T]) -> None:
        timer.cancel()
        try:
            either.resolve(source.result())
        except BaseException as error:
            either.fail(error)

    promise.then(settle)
    return either


class _VirtualTimer:
    __slots__ = ("cancelled",)

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class VirtualClock:
    """A clock that moves only when told to; equal times run in the order in which they were armed."""

    def __init__(self, start: float = 0.0, epoch_s: float = 1_700_000_000.0) -> None:
        self._now = start
        self._epoch_s = epoch_s
        self._order = itertools.count()
        self._heap: list[tuple[float, int, _VirtualTimer, Callable[..., object], tuple[object, ...]]] = []

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._epoch_s + self._now

    def call_at(self, when: float, fn: Callable[..., object], *args: object) -> Timer:
        timer = _VirtualTimer()
        heapq.heappush(self._heap, (max(when, self._now), next(self._order), timer, fn, args))
        return timer

    def next_at(self) -> float | None:
        """When the next timer is due; None if there is none."""
        while self._heap and self._heap[0][2].cancelled:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def advance(self, seconds: float) -> None:
        """Run everything due within `seconds`, then stand there."""
        self.run_until(self._now + seconds)

    def run_until(self, when: float) -> None:
        while (due := self.next_at()) is not None and due <= when:
            _, _, _, fn, args = heapq.heappop(self._heap)
            self._now = due
            fn(*args)
        self._now = max(self._now, when)
