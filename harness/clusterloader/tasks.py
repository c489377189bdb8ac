"""Coroutines inside a pure machine: many things at once, written as straight code.

A test does hundreds of operations at the same time, each a few requests and waits in a row. They are `async def`
functions that await `Future`s; `Tasks` turns their waits into actions (`Send`, `Arm`) and the events back into
results. There is no event loop, thread or clock: everything happens inside `handle(event, now)`, in a fixed order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar, cast

from harness.client.machine import (
    Action,
    Answered,
    Arm,
    Cancel,
    Disarm,
    Event,
    Failed,
    Finished,
    Fired,
    Note,
    Sample,
    Send,
    Tell,
)
from harness.wire.request import Request, Response, TransportError

T = TypeVar("T")

REQUEST = "request"
TIMER = "timer"


class Future(Generic[T]):
    """A result that comes later. Awaiting a done one returns at once; setting it twice keeps the first result."""

    __slots__ = ("_callbacks", "_value", "done")

    def __init__(self) -> None:
        self.done = False
        self._value: T | None = None
        self._callbacks: list[Callable[[], None]] = []

    def set(self, value: T) -> None:
        if self.done:
            return
        self.done, self._value = True, value
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_done(self, callback: Callable[[], None]) -> None:
        """Call once done; at once where it is."""
        if self.done:
            callback()
        else:
            self._callbacks.append(callback)

    @property
    def value(self) -> T:
        """The result of a done future."""
        assert self.done
        return cast(T, self._value)

    def __await__(self) -> Generator[Future[Any], None, T]:
        if not self.done:
            yield self
        return cast(T, self._value)


class Task(Future[T]):
    """A running coroutine; its result is the future's. An exception in it is a bug and leaves `Tasks.handle`."""

    __slots__ = ("_ready", "coroutine")

    def __init__(self, coroutine: Coroutine[Future[Any], None, T], ready: deque[Task[Any]]) -> None:
        super().__init__()
        self.coroutine = coroutine
        self._ready = ready

    def wake(self) -> None:
        self._ready.append(self)

    def step(self) -> bool:
        """Run until the next wait; True when the coroutine has ended."""
        try:
            waits_for = self.coroutine.send(None)
        except StopIteration as stop:
            self.set(cast(T, stop.value))
            return True
        waits_for.on_done(self.wake)
        return False


class Signal:
    """Something that changes now and then: `notify` wakes all who wait for the next change."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: Future[None] = Future()

    def notify(self) -> None:
        waited, self._next = self._next, Future()
        waited.set(None)

    @property
    def changed(self) -> Future[None]:
        """Done at the next `notify`."""
        return self._next


class Tasks:
    """The tasks of one machine, and the actions they have asked for since the last `take`."""

    def __init__(self) -> None:
        self.now = 0.0
        self._actions: list[Action] = []
        self._ready: deque[Task[Any]] = deque()
        self._running: set[Task[Any]] = set()
        self._requests: dict[int, Future[Response | TransportError]] = {}
        self._timers: dict[int, Future[None]] = {}
        self._count = 0

    # ---- for coroutines --------------------------------------------------------------------------------------------
    def spawn(self, coroutine: Coroutine[Future[Any], None, T]) -> Task[T]:
        """Start a coroutine; it first runs after the present one waits."""
        task = Task(coroutine, self._ready)
        self._running.add(task)
        self._ready.append(task)
        return task

    def ask(self, request: Request) -> Future[Response | TransportError]:
        """Send a unary request."""
        self._count += 1
        future = self._requests[self._count] = Future()
        self._actions.append(Send((REQUEST, self._count), request))
        return future

    def until(self, at: float) -> Future[None]:
        """Done at time `at`; at once where that has passed."""
        future: Future[None] = Future()
        if at <= self.now:
            future.set(None)
            return future
        self._count += 1
        self._timers[self._count] = future
        self._actions.append(Arm((TIMER, self._count), at))
        return future

    async def either(self, first: Future[Any], at: float) -> bool:
        """Wait for `first`, at most until `at`; True where it is done."""
        if first.done or at <= self.now:
            return first.done
        timer = self.until(at)
        number = self._count
        both: Future[None] = Future()
        first.on_done(lambda: both.set(None))
        timer.on_done(lambda: both.set(None))
        await both
        if self._timers.pop(number, None) is not None:
            self._actions.append(Disarm((TIMER, number)))
        return first.done

    def emit(self, action: Note | Sample | Tell | Finished) -> None:
        self._actions.append(action)

    # ---- for the machine -------------------------------------------------------------------------------------------
    def extend(self, actions: list[Action]) -> None:
        """Actions of a part that is not a coroutine (an informer)."""
        self._actions.extend(actions)

    def handle(self, event: Event) -> None:
        """Give an event with a key of ours to whoever waits for it; a late one is dropped."""
        number = cast(int, event.key[1])
        if isinstance(event, Fired):
            timer = self._timers.pop(number, None)
            if timer is not None:
                timer.set(None)
        elif isinstance(event, (Answered, Failed)):
            request = self._requests.pop(number, None)
            if request is not None:
                request.set(event.response if isinstance(event, Answered) else event.error)

    def run(self) -> None:
        """Run every task that can."""
        while self._ready:
            task = self._ready.popleft()
            if task in self._running and task.step():
                self._running.discard(task)

    def take(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions

    def cancel_all(self) -> None:
        """End every task, give up every request, disarm every timer."""
        for task in self._running:
            task.coroutine.close()
        self._running.clear()
        self._ready.clear()
        self._actions.extend(Cancel((REQUEST, number)) for number in self._requests)
        self._actions.extend(Disarm((TIMER, number)) for number in self._timers)
        self._requests.clear()
        self._timers.clear()
