"""The gevent shell of a pure machine: carries out its actions over one transport, feeds back what happens.

No greenlet waits here. Answers and timers come from the worker's one dispatcher; each event runs the machine to its
next actions, at once and in order.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

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
    Tell,
    UseCertificate,
)
from harness.load.byclient import TransportsByClient
from harness.load.discarding import Discarded
from harness.load.missing import MissingWatches
from harness.load.statistics import NO_ANSWER, Statistics
from harness.transport.handles import Handle
from harness.transport.pool import Transport
from harness.transport.timers import Timer, Timers
from harness.wire.request import Request, Response, TransportError


class Shell:
    """One machine, running. `user` names it in statistics; `on_note` gets its notes, its samples and what it tells
    other parts of the run.

    `on_certificate` gets one that was signed for this client. `on_error` hears of an exception that the machine
    raised: a bug of ours, as a machine answers for whatever a peer does. The shell has stopped then.
    """

    __slots__ = (
        "_busy",
        "_events",
        "_handles",
        "_machine",
        "_missing",
        "_on_certificate",
        "_on_error",
        "_on_finished",
        "_on_note",
        "_statistics",
        "_stopped",
        "_timers",
        "_transport",
        "_waiting",
        "_watches",
        "user",
    )

    def __init__(
        self,
        user: str,
        machine: Machine,
        transport: Transport | TransportsByClient,
        timers: Timers,
        statistics: Statistics,
        on_note: Callable[[Note | Sample | Tell], None],
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
        # Those that are open are kept apart: among what comes and goes the table would be twice the size.
        self._watches: dict[Key, Handle] = {}
        self._missing: MissingWatches | None = None  # None: none is, as nearly always
        self._waiting: dict[Key, Timer] = {}
        self._events: list[Event] = []  # a deque begins with 0.6 KB
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
        if self._missing is not None:
            self._on_note(self._missing.left())
            self._missing = None
        try:
            self._carry_out(self._machine.stop(self._timers.now()))
        finally:
            self._close()

    def kill(self) -> None:
        """The client's process dies: its machine has no last action, its peers get no goodbye."""
        if not self._stopped:
            self._missing = None  # to whom nothing is missing any more
            self._end()
            self._transport.kill()

    def _close(self) -> None:
        self._end()
        self._transport.close()

    def _end(self) -> None:
        self._stopped = True
        for timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()
        self._handles.clear()
        self._watches.clear()

    def now(self) -> float:
        return self._timers.now()

    def feed(self, event: Event) -> None:
        """Give the machine an event; one that comes while it works on another waits its turn."""
        if self._busy:
            self._events.append(event)
            return
        self._busy = True
        try:
            if not self._stopped:
                self._carry_out(self._machine.handle(event, self._timers.now()))
            while self._events and not self._stopped:
                self._carry_out(self._machine.handle(self._events.pop(0), self._timers.now()))
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
                key = action.key  # type: ignore[union-attr]
                timer = self._waiting.pop(key, None)
                if timer is not None:
                    timer.cancel()
                if self._missing is not None:
                    self._whole(self._missing.given_up(key))
            elif kind is Cancel:
                key = action.key  # type: ignore[union-attr]
                handle = self._handles.pop(key, None) or self._watches.pop(key, None)
                if handle is not None:
                    handle.cancel()
                if self._missing is not None:
                    self._whole(self._missing.given_up(key))
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
        self._waiting[key] = self._timers.call_at(action.at, self._fired, key)

    def _fired(self, key: Key) -> None:
        self._waiting.pop(key, None)
        self.feed(Fired(key))

    def _send(self, action: Send) -> None:
        sink = _Sink(self, action.key, _Exchange(action.request, self._timers.now()))
        handle = self._transport.send(action.request, sink)
        if not sink.ended:
            self._handles[action.key] = handle
            sink.handle = handle

    def over(self, sink: _Sink) -> None:
        """The request of this sink has ended."""
        handles = self._watches if sink.exchange is None else self._handles
        if sink.handle is not None and handles.get(sink.key) is sink.handle:
            del handles[sink.key]

    def opened(self, sink: _Sink) -> None:
        """The request of this sink has become a stream of events."""
        if sink.handle is not None and self._handles.get(sink.key) is sink.handle:
            self._watches[sink.key] = self._handles.pop(sink.key)
            if self._missing is not None:
                self._whole(self._missing.opened(sink.key))
            if not self._handles:
                self._handles.clear()  # a start's table of many

    def lost(self, key: Key, error: TransportError | None) -> None:
        """An open watch has ended, not by us; whoever wants it will open it again."""
        if self._missing is None:
            self._missing = MissingWatches(self._timers.now())
        self._missing.lost(key, error is not None)

    def _whole(self, whole: bool) -> None:
        """Say how long watches were missing, when none is missing any more."""
        if whole and self._missing is not None:
            self._on_note(self._missing.sample(self._timers.now()))
            self._missing = None

    def answered(self, exchange: _Exchange, length: int) -> float:
        """Count an answer; how long it took."""
        took_s = self._timers.now() - exchange.sent_at
        self._statistics.request(
            self.user, exchange.request, exchange.status, exchange.member, took_s, length
        )
        return took_s

    def failed(self, exchange: _Exchange, error: TransportError) -> None:
        """Count a request that got no whole answer."""
        took_s = self._timers.now() - exchange.sent_at
        member, why = exchange.member or error.member, error.failure.value
        self._statistics.request(self.user, exchange.request, NO_ANSWER, member, took_s, 0, why)

    def wrote(self, exchange: _Exchange, response: Response, took_s: float) -> None:
        """A request succeeded, which may be a write that is followed."""
        self._statistics.deliveries.wrote(exchange.request, response, took_s)


class _Exchange:
    """A request and what has come of its answer."""

    __slots__ = ("body", "headers", "member", "request", "sent_at", "status")

    def __init__(self, request: Request, sent_at: float) -> None:
        self.request = request
        self.sent_at = sent_at
        self.status = 0
        self.headers: dict[str, str] = {}
        self.member = ""
        self.body: bytes | list[bytes] | Discarded = b""

    def response(self) -> Response:
        """The whole answer."""
        body = self.body
        if isinstance(body, Discarded):
            return Response(self.status, self.headers, b"", self.member, body.size_bytes)
        whole = body if isinstance(body, bytes) else b"".join(body)
        return Response(self.status, self.headers, whole, self.member)


class _Sink(msgspec.Struct, gc=False, eq=False):
    """Where the answer of one request arrives, from the transport's reader. `exchange` is None for a watch that was
    answered 2xx: it lives long, so no more is kept of it than what its events need."""

    shell: Shell
    key: Key
    exchange: _Exchange | None
    handle: Handle | None = None
    ended: bool = False

    def on_head(self, status: int, headers: dict[str, str], member: str) -> None:
        exchange = self.exchange
        assert exchange is not None, "one head"
        exchange.status = status
        exchange.member = member
        if exchange.request.is_stream and 200 <= status < 300:
            self.shell.answered(exchange, 0)
            self.shell.opened(self)
            self.exchange = None
            self.shell.feed(Opened(self.key, member, headers.get("content-type", "")))
        else:
            exchange.headers = headers
            if exchange.request.discards and 200 <= status < 300:
                exchange.body = Discarded(headers)

    def on_data(self, data: bytes) -> None:
        exchange = self.exchange
        if exchange is None:
            self.shell.feed(Received(self.key, data))
        elif not exchange.body:  # most answers come whole
            exchange.body = data
        elif isinstance(exchange.body, bytes):
            exchange.body = [exchange.body, data]
        else:
            exchange.body.append(data)

    def on_end(self, error: TransportError | None) -> None:
        self.ended = True
        shell, exchange = self.shell, self.exchange
        shell.over(self)
        if exchange is None:
            shell.lost(self.key, error)
            shell.feed(Closed(self.key, error))
        elif error is not None:
            shell.failed(exchange, error)
            shell.feed(Failed(self.key, error))
        else:
            response = exchange.response()
            took_s = shell.answered(exchange, len(response.body) + response.discarded_bytes)
            if response.ok and not exchange.request.discards:
                shell.wrote(exchange, response, took_s)
            shell.feed(Answered(self.key, response))
