"""Goroutines of one process as generators: straight code that yields what it waits for.

A routine yields a `Request` and is resumed with its answer; a `Sleep`, and is resumed when that is over; a `Signal`,
and is resumed with the value that it is given; an `Open`, and is resumed with a `Stream` once the watch is answered, or
with the answer that refused it.

Keys: ("thread", number) for a routine's request and timer, ("stream", number) for a watch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

import msgspec

from harness.client.machine import (
    Answered,
    Arm,
    Cancel,
    Closed,
    Disarm,
    Event,
    Failed,
    Opened,
    Received,
    Send,
)
from harness.fleet.context import Out
from harness.fleet.controllers.api import Answer
from harness.wire.errors import SwarmletError
from harness.wire.request import Request
from harness.wire.watching import WatchDecoder, WatchError

T = TypeVar("T")


class Sleep(msgspec.Struct, frozen=True, gc=False):
    seconds: float


class Signal:
    """A value that one routine waits for; given once, before or after."""

    __slots__ = ("_resume", "given", "value")

    def __init__(self) -> None:
        self.given = False
        self.value: Any = None
        self._resume: Callable[[Any], None] | None = None

    def give(self, value: Any = None) -> None:
        """The first value counts."""
        if self.given:
            return
        self.given, self.value = True, value
        if self._resume is not None:
            self._resume(value)

    def then(self, resume: Callable[[Any], None]) -> None:
        self._resume = resume


class Open(msgspec.Struct, frozen=True):
    """Open a watch: `on_event(kind, raw)` gets each event, `on_closed()` its end, neither after `Threads.close`."""

    request: Request
    on_event: Callable[[str, bytes], None]
    on_closed: Callable[[], None]


class Stream:
    """An open watch."""

    __slots__ = ("_decoder", "number", "watch")

    def __init__(self, number: int, watch: Open) -> None:
        self.number = number
        self.watch = watch
        self._decoder = WatchDecoder()

    def received(self, data: bytes) -> None:
        """Raises WatchError, msgspec.DecodeError."""
        for kind, raw in self._decoder.feed(data):
            self.watch.on_event(kind, raw)


Wait: TypeAlias = Request | Sleep | Signal | Open
Routine: TypeAlias = Generator[Wait, Any, T]


class Threads:
    """Runs routines. What a routine raises as SwarmletError ends it and reaches its `done`; `out` is where actions go
    and is set by the owner before each call."""

    def __init__(self) -> None:
        self.out: Out = []
        self.now = 0.0
        self._numbers = itertools.count()
        self._routines: dict[int, tuple[Routine[None], Callable[[SwarmletError | None], None]]] = {}
        self._asleep: set[int] = set()
        self._asking: set[int] = set()
        self._opening: dict[int, int] = {}  # stream -> the routine that waits for it
        self._streams: dict[int, Stream] = {}

    def __len__(self) -> int:
        return len(self._routines)

    def spawn(self, routine: Routine[None], done: Callable[[SwarmletError | None], None]) -> None:
        """Run a routine to its first wait, now; `done` hears how it ended."""
        number = next(self._numbers)
        self._routines[number] = (routine, done)
        self._resume(number, None)

    def handle(self, event: Event) -> None:
        part, number = event.key[0], event.key[1]
        assert isinstance(number, int)
        if part == "stream":
            self._streamed(number, event)
        elif isinstance(event, Answered | Failed):
            self._asking.discard(number)
            self._resume(number, event.response if isinstance(event, Answered) else event.error)
        else:
            self._asleep.discard(number)
            self._resume(number, None)

    def close(self, stream: Stream) -> None:
        """Give a watch up; no effect once it has ended."""
        if self._streams.pop(stream.number, None) is not None:
            self.out.append(Cancel(("stream", stream.number)))

    def stop(self) -> None:
        """Everything ends where it waits."""
        self.out += [Cancel(("thread", number)) for number in sorted(self._asking)]
        self.out += [Disarm(("thread", number)) for number in sorted(self._asleep)]
        self.out += [Cancel(("stream", number)) for number in sorted(self._streams)]
        routines, self._routines = self._routines, {}
        self._asking.clear()
        self._asleep.clear()
        self._opening.clear()
        self._streams.clear()
        for routine, _ in routines.values():
            routine.close()

    # ---- one step ----------------------------------------------------------------------------------------------------
    def _resume(self, number: int, value: Any) -> None:
        found = self._routines.get(number)
        if found is None:
            return
        routine, done = found
        error: SwarmletError | None = None
        try:
            wait = routine.send(value)
        except StopIteration:
            pass
        except SwarmletError as raised:
            error = raised
        else:
            self._begin(number, wait)
            return
        del self._routines[number]
        done(error)

    def _begin(self, number: int, wait: Wait) -> None:
        if isinstance(wait, Request):
            self._asking.add(number)
            self.out.append(Send(("thread", number), wait))
        elif isinstance(wait, Sleep):
            self._asleep.add(number)
            self.out.append(Arm(("thread", number), self.now + wait.seconds))
        elif isinstance(wait, Signal):
            if wait.given:
                self._resume(number, wait.value)
            else:
                wait.then(lambda value: self._resume(number, value))
        else:
            stream = Stream(next(self._numbers), wait)
            self._opening[stream.number] = number
            self._streams[stream.number] = stream
            self.out.append(Send(("stream", stream.number), wait.request))

    def _streamed(self, number: int, event: Event) -> None:
        waiting = self._opening.pop(number, None)
        stream = self._streams.get(number)
        if stream is None:
            return
        if isinstance(event, Opened):
            assert waiting is not None
            self._resume(waiting, stream)
        elif isinstance(event, Received):
            self._received(stream, event.data)
        else:
            del self._streams[number]
            if waiting is not None:
                answer: Answer | None = None
                if isinstance(event, Answered):
                    answer = event.response
                elif isinstance(event, Failed):
                    answer = event.error
                self._resume(waiting, answer)
            elif isinstance(event, Closed):
                stream.watch.on_closed()

    def _received(self, stream: Stream, data: bytes) -> None:
        try:
            stream.received(data)
        except (WatchError, msgspec.DecodeError, UnicodeDecodeError):
            self.close(stream)
            stream.watch.on_closed()
