"""Stand-ins for what a shell and a session work with: a transport that is told what to answer, timers that are moved
by hand, a machine that plays a list of actions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any

from harness.client.machine import Action, Event
from harness.wire.request import Request, TransportError


class FakeTimer:
    def __init__(self, when: float, callback: Callable[[], object]) -> None:
        self.when = when
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeTimers:
    """`advance(to)` runs what is due, in order, each at its own time plus `late_s`."""

    def __init__(self) -> None:
        self.time = 0.0
        self.late_s = 0.0
        self.timers: list[FakeTimer] = []

    def now(self) -> float:
        return self.time

    def call_at(self, when: float, callback: Callable[..., object], *arguments: Any) -> FakeTimer:
        timer = FakeTimer(when, partial(callback, *arguments))
        self.timers.append(timer)
        return timer

    @property
    def pending(self) -> list[FakeTimer]:
        return [timer for timer in self.timers if not timer.cancelled]

    def advance(self, to: float) -> None:
        while due := [timer for timer in self.pending if timer.when <= to]:
            timer = min(due, key=lambda timer: timer.when)
            self.timers.remove(timer)
            self.time = max(self.time, timer.when + self.late_s)
            timer.callback()
        self.time = max(self.time, to)


class FakeHandle:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeTransport:
    """Keeps what was sent. A test answers by `head`, `data` and `end` of the sink of the newest request of a name."""

    def __init__(self) -> None:
        self.sent: list[tuple[Request, Any, FakeHandle]] = []
        self.closed = self.killed = False
        self.closings = 0
        self.at_once: tuple[int, bytes] | None = None

    def send(self, request: Request, sink: Any) -> FakeHandle:
        handle = FakeHandle()
        self.sent.append((request, sink, handle))
        if self.at_once is not None:
            sink.on_head(self.at_once[0], {}, "member-0")
            sink.on_data(self.at_once[1])
            sink.on_end(None)
        return handle

    def close(self) -> None:
        self.closed = True

    def kill(self) -> None:
        self.killed = True

    def close_connections(self) -> None:
        self.closings += 1

    def answer(self, index: int, status: int, *body: bytes, member: str = "member-0") -> None:
        sink = self.sent[index][1]
        sink.on_head(status, {"audit-id": "1"}, member)
        for data in body:
            sink.on_data(data)
        sink.on_end(None)

    def fail(self, index: int, error: TransportError) -> None:
        self.sent[index][1].on_end(error)


class FakeMachine:
    """Gives, for each event, the next of the lists it was made with (then nothing); remembers the events."""

    def __init__(self, *steps: Iterable[Action], last: Iterable[Action] = ()) -> None:
        self.steps = deque(list(step) for step in steps)
        self.last = list(last)
        self.events: list[tuple[float, Event]] = []
        self.raises: Exception | None = None

    def start(self, now: float) -> list[Action]:
        return self._next()

    def handle(self, event: Event, now: float) -> list[Action]:
        self.events.append((now, event))
        if self.raises is not None:
            raise self.raises
        return self._next()

    def stop(self, now: float) -> list[Action]:
        return self.last

    def _next(self) -> list[Action]:
        return self.steps.popleft() if self.steps else []

    @property
    def seen(self) -> list[Event]:
        return [event for _, event in self.events]


def client(worker: str, state: str = "running") -> Any:
    return SimpleNamespace(id=worker, state=state, user_classes_count={})


class FakeRunner:
    """As much of Locust's master as a session looks at."""

    def __init__(self, *workers: str) -> None:
        self.workers = {worker: client(worker) for worker in workers}
        self.quits = 0
        self.sent: list[tuple[str, Any, str]] = []

    @property
    def clients(self) -> Any:
        return SimpleNamespace(all=list(self.workers.values()))

    def get_worker_index(self, worker: str) -> int:
        return int(worker[-1])

    def send_message(self, kind: str, data: Any, client_id: str) -> None:
        self.sent.append((kind, data, client_id))

    def quit(self) -> None:
        self.quits += 1
