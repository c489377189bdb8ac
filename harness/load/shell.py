"""The gevent shell of a pure machine: carries out its actions over one transport, feeds back what happens.

No greenlet waits here. Answers and timers come from the worker's one dispatcher; each event runs the machine to its
next actions, at once and in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from harness.client.machine import (
    Action,
    Answered,
    Arm,
    Cancel,
    CloseConnections,
    Closed,
    Disarm,
    Event,
    Failed,
    Finished,
    Fired,
    Key,
    Machine,
    Note,
    Opened,
    Received,
    Sample,
    Seen,
    Send,
    UseCertificate,
)
from harness.load.byclient import TransportsByClient
from harness.load.statistics import NO_ANSWER, Statistics
from harness.transport.handles import Handle
from harness.transport.pool import Transport
from harness.transport.timers import Timer, Timers
from harness.wire.request import Request, Response, TransportError

_NO_HEADERS: Mapping[str, str] = {}
_ANSWERED = Request("watch", "GET", "", "answered")


class Shell:
    """One machine, running. `user` names it in statistics; `on_note` gets its notes and samples.

    `on_certificate` gets one that was signed for this client. `on_error` hears of an exception that the machine
    raised: a bug of ours, as a machine answers for whatever a peer does. The shell has stopped then.
    """

    __slots__ = (
        "_busy",
        "_events",
        "_handles",
        "_machine",
        "_on_certificate",
        "_on_error",
        "_on_finished",
        "_on_note",
        "_statistics",
        "_stopped",
        "_timers",
        "_transport",
        "_waiting",
        "user",
    )

    def __init__(
        self,
        user: str,
        machine: Machine,
        transport: Transport | TransportsByClient,
        timers: Timers,
        statistics: Statistics,
        on_note: Callable[[Note | Sample], None],
        on_finished: Callable[[Finished], None],
        on_error: Callable[[Exception], None],
        on_certificate: Callable[[bytes], None] | None = None,
    ) -> None:
        self.user = user
        self._machine = machine
        self._transport = transport
        self._timers = timers
        self._statistics = statistics
        self._on_note = on_note
        self._on_finished = on_finished
        self._on_error = on_error
        self._on_certificate = on_certificate
        self._handles: dict[Key, Handle] = {}
        self._waiting: dict[Key, Timer] = {}
        self._events: deque[Event] = deque()
        self._busy = False
        self._stopped = False

    def start(self) -> None:
        try:
            self._carry_out(self._machine.start(self._timers.now()))
        except Exception as error:
            self._close()
            self._on_error(error)

    def stop(self) -> None:
        """The machine's last actions, then everything that is still open is given up; the transport is closed."""
        if self._stopped:
            return
        try:
            self._carry_out(self._machine.stop(self._timers.now()))
        finally:
            self._close()

    def _close(self) -> None:
        self._stopped = True
        for timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()
        self._handles.clear()
        self._transport.close()

    def now(self) -> float:
        return self._timers.now()

    def feed(self, event: Event) -> None:
        """Give the machine an event; one that comes while it works on another waits its turn."""
        self._events.append(event)
        if self._busy:
            return
        self._busy = True
        try:
            while self._events and not self._stopped:
                self._carry_out(self._machine.handle(self._events.popleft(), self._timers.now()))
        except Exception as error:
            self._close()
            self._on_error(error)
        finally:
            self._busy = False

    def _carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            kind = type(action)
            if kind is Send:
                self._send(action)  # type: ignore[arg-type]
            elif kind is Arm:
                self._arm(action)  # type: ignore[arg-type]
            elif kind is Disarm:
                timer = self._waiting.pop(action.key, None)  # type: ignore[union-attr]
                if timer is not None:
                    timer.cancel()
            elif kind is Cancel:
                handle = self._handles.pop(action.key, None)  # type: ignore[union-attr]
                if handle is not None:
                    handle.cancel()
            elif kind is Seen:
                self._statistics.deliveries.seen(self.user, action)  # type: ignore[arg-type]
            elif kind is CloseConnections:
                self._closing(action)  # type: ignore[arg-type]
            elif kind is UseCertificate:
                if self._on_certificate is not None:
                    self._on_certificate(action.certificate)  # type: ignore[union-attr]
            elif kind is Finished:
                self._on_finished(action)  # type: ignore[arg-type]
            else:
                self._on_note(action)  # type: ignore[arg-type]

    def _closing(self, action: CloseConnections) -> None:
        self._on_note(Sample("connections_closed", 1.0, (("why", action.why),)))
        self._transport.close_connections()

    def _arm(self, action: Arm) -> None:
        key = action.key
        earlier = self._waiting.get(key)
        if earlier is not None:
            earlier.cancel()
        self._waiting[key] = self._timers.call_at(action.at, lambda: self._fired(key))

    def _fired(self, key: Key) -> None:
        self._waiting.pop(key, None)
        self.feed(Fired(key))

    def _send(self, action: Send) -> None:
        sink = _Sink(self, action.key, action.request)
        handle = self._transport.send(action.request, sink)
        if not sink.ended:
            self._handles[action.key] = handle
            sink.handle = handle

    def _over(self, sink: _Sink) -> None:
        if sink.handle is not None and self._handles.get(sink.key) is sink.handle:
            del self._handles[sink.key]

    def _wrote(self, sink: _Sink, response: Response) -> None:
        took_s = self._timers.now() - sink.sent_at
        self._statistics.deliveries.wrote(sink.request, response, took_s)

    def _count(self, sink: _Sink, code: int, length: int, error: str = "") -> None:
        seconds = self._timers.now() - sink.sent_at
        self._statistics.request(self.user, sink.request, code, sink.member, seconds, length, error)


class _Sink:
    """Where the answer of one request arrives, from the transport's reader."""

    __slots__ = (
        "body",
        "ended",
        "handle",
        "headers",
        "key",
        "member",
        "request",
        "sent_at",
        "shell",
        "status",
        "streams",
    )

    def __init__(self, shell: Shell, key: Key, request: Request) -> None:
        self.shell = shell
        self.key = key
        self.request = request
        self.sent_at = shell.now()
        self.status = 0
        self.headers: Mapping[str, str] = _NO_HEADERS
        self.member = ""
        self.body: bytes | list[bytes] = b""
        self.ended = False
        self.streams = False  # a watch that was answered 2xx
        self.handle: Handle | None = None

    def on_head(self, status: int, headers: dict[str, str], member: str) -> None:
        self.status = status
        self.member = member
        if not self.request.is_stream or not 200 <= status < 300:
            self.headers = headers
        else:
            self.shell._count(self, status, 0)
            self.streams = True
            self.request, self.sent_at = _ANSWERED, 0.0  # a watch lives long: what it was asked by is 0.4 KB
            self.shell.feed(Opened(self.key, member, headers.get("content-type", "")))

    def on_data(self, data: bytes) -> None:
        if self.streams:
            self.shell.feed(Received(self.key, data))
        elif not self.body:  # most answers come whole
            self.body = data
        elif isinstance(self.body, bytes):
            self.body = [self.body, data]
        else:
            self.body.append(data)

    def on_end(self, error: TransportError | None) -> None:
        self.ended = True
        self.shell._over(self)
        if self.streams:
            self.shell.feed(Closed(self.key, error))
        elif error is not None:
            self.member = self.member or error.member
            self.shell._count(self, NO_ANSWER, 0, error.failure.value)
            self.shell.feed(Failed(self.key, error))
        else:
            body = self.body if isinstance(self.body, bytes) else b"".join(self.body)
            self.shell._count(self, self.status, len(body))
            response = Response(self.status, dict(self.headers), body, self.member)
            if response.ok:
                self.shell._wrote(self, response)
            self.shell.feed(Answered(self.key, response))
