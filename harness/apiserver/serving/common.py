"""What sessions of both protocols share: the server's state, the socket behind a session, one exchange's life."""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any, Protocol

from harness.apiserver.clock import Clock
from harness.apiserver.exchange import ClientCertificate, Exchange
from harness.wire.http2 import KUBE_APISERVER_CONNECTION_WINDOW, KUBE_APISERVER_SETTINGS, ErrorCode, Settings

log = logging.getLogger("swarmlet.apiserver.serving")

Handler = Callable[[Exchange], object]

NEW, STREAMING, CUTTING, DONE, GONE = range(5)
"""An exchange's life: not answered, head sent, to be cut off in the middle of its next write, answered, broken off (by
either side)."""

PANIC_TEXT = b"This request caused apiserver to panic. Look in the logs for details.\n"
"""What a kube-apiserver answers where a handler failed (apiserver/pkg/server/filters/wrap.go)."""

_DRAIN_POLL_S = 0.005

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s: closing sends RST and drops what was not sent


@dataclass(frozen=True)
class ServingOptions:
    """`idle_timeout_s`: a connection without a request for this long is closed (apiserver/pkg/server/
    secure_serving.go, ``IdleTimeout``). `header_timeout_s`: the head of an HTTP/1.1 request, and a TLS handshake, must
    be there by then (``ReadHeaderTimeout`` there, from which net/http takes the handshake's); `preface_timeout_s`: a
    client's HTTP/2 preface and SETTINGS (x/net/http2 server.go ``prefaceTimeout`` and ``firstSettingsTimeout``).
    `request_timeout_s`: a body must have come by then, and an answer been taken (``--request-timeout``).
    `max_body_bytes`: apiserver/pkg/server/config.go ``MaxRequestBodyBytes``.
    `max_header_bytes`: net/http ``DefaultMaxHeaderBytes``. `drained_close_s`: x/net/http2 server.go ``goAwayTimeout``,
    from the end of the last stream of a connection that drains to its close. `full_bytes`: while the client has not
    taken this much, no further request of its connection is served.

    What is overdue is found by `Serving.sweep`, so within `sweep_s` of its time.
    """

    idle_timeout_s: float = 90.0
    header_timeout_s: float = 32.0
    preface_timeout_s: float = 12.0
    request_timeout_s: float = 60.0
    sweep_s: float = 2.0
    max_body_bytes: int = 3 << 20
    max_header_bytes: int = 1 << 20
    drained_close_s: float = 1.0
    full_bytes: int = 4 << 20
    http2: Settings = KUBE_APISERVER_SETTINGS
    http2_window: int = KUBE_APISERVER_CONNECTION_WINDOW


class Transport(Protocol):
    """What a session needs of an asyncio transport."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def get_write_buffer_size(self) -> int: ...
    def get_extra_info(self, name: str) -> Any: ...


class Channel:
    """One accepted connection."""

    __slots__ = ("certificate", "peer", "transport")

    def __init__(self, transport: Transport, peer: str, certificate: ClientCertificate | None = None) -> None:
        self.transport = transport
        self.peer = peer
        self.certificate = certificate

    def buffered(self) -> int:
        """Bytes written that the socket has not taken. A TLS transport leaves out up to 64 KiB and its last write: what
        asyncio holds for the socket beneath it."""
        return self.transport.get_write_buffer_size()

    def reset(self) -> None:
        """End the connection with a TCP RST."""
        beneath = self.transport.get_extra_info("socket")
        if beneath is not None:
            beneath.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.transport.abort()


class Serving:
    """State of one server, shared by its sessions."""

    __slots__ = (
        "_date",
        "_date_second",
        "call_soon",
        "clock",
        "draining",
        "handler",
        "on_session_end",
        "options",
        "sessions",
    )

    def __init__(
        self, handler: Handler, clock: Clock, call_soon: Callable[..., Any], options: ServingOptions
    ) -> None:
        self.handler = handler
        self.clock = clock
        self.call_soon = call_soon
        self.options = options
        self.sessions: set[Session] = set()
        self.draining = False
        self.on_session_end: Callable[[], None] = lambda: None
        self._date = ""
        self._date_second = -1

    def date(self) -> str:
        """The Date header's value."""
        second = int(self.clock.wall())
        if second != self._date_second:
            self._date_second = second
            self._date = formatdate(second, usegmt=True)
        return self._date

    def handle(self, exchange: BaseExchange) -> None:
        """Give a request to the core; a handler that fails costs its own request only."""
        try:
            self.handler(exchange)
        except Exception:
            log.exception("handler failed: %s %s", exchange.method, exchange.path)
            if exchange.state == NEW:
                exchange.respond(500, {"content-type": "text/plain; charset=utf-8"}, PANIC_TEXT)
            else:
                exchange.abort()

    def sweep(self) -> None:
        """Have every session look for what is overdue."""
        now = self.clock.now()
        for session in list(self.sessions):
            session.sweep(now)

    def drain(self) -> None:
        """Take no further requests; what is open goes on."""
        self.draining = True
        for session in list(self.sessions):
            session.drain()


class BaseExchange:
    """`Exchange`, but for what depends on the protocol."""

    http2 = False

    __slots__ = ("_gone", "body", "drained", "headers", "method", "path", "peer", "state")

    def __init__(self, method: str, path: str, headers: Mapping[str, str], peer: str) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.body = b""
        self.peer = peer
        self.state = NEW
        self.drained: Callable[[], None] | None = None
        self._gone: Callable[[], None] | None = None

    @property
    def certificate(self) -> ClientCertificate | None:
        return self._session().channel.certificate

    def __repr__(self) -> str:
        return f"<{self.method} {self.path} {('new', 'streaming', 'cutting', 'done', 'gone')[self.state]}>"

    def on_gone(self, callback: Callable[[], None], *, instead: bool = False) -> None:
        if self.state >= DONE:
            if self.state == GONE:
                callback()
        elif self._gone is None or instead:
            self._gone = callback
        else:
            self._gone = _both(self._gone, callback)

    def on_drain(self, callback: Callable[[], None]) -> None:
        if not self.buffered:
            callback()
            return
        waiting = self.drained
        self.drained = callback if waiting is None else _both(waiting, callback)
        if waiting is None:
            self._session().wait_for_drain(self)

    def respond(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        raise NotImplementedError

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        raise NotImplementedError

    def write(self, data: bytes) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        raise NotImplementedError

    def abort(self, code: int = ErrorCode.INTERNAL_ERROR) -> None:
        raise NotImplementedError

    def go_away(self) -> None:
        """Have the connection take no further request."""
        self._session().drain()

    @property
    def buffered(self) -> int:
        raise NotImplementedError

    # ---- faults ------------------------------------------------------------------------------------------------
    def cut_next(self, done: Callable[[], object], *, reset: bool) -> None:
        """Cut a stream off in the middle of what is written next; `done` is called then. No effect on what is none."""
        if self.state == STREAMING:
            self.state = CUTTING
            self._session().cuts[self] = (done, reset)

    def _cut_off(self, data: bytes) -> None:
        session = self._session()
        done, reset = session.cuts.pop(self)
        self.state = STREAMING
        self.write(data[: len(data) // 2])
        gone, self._gone = self._gone, None
        if reset:
            self.abort()
        else:
            self.finish()
        if gone is not None:
            session.serving.call_soon(gone)  # not within the dispatch of the event that was cut
        done()

    def _session(self) -> Session:
        raise NotImplementedError

    def break_off(self) -> None:
        """The client has cancelled or disconnected; tells who asked, where the answer was not complete."""
        self.drained = None
        if self.state < DONE:
            self.state = GONE
            gone, self._gone = self._gone, None
            if gone is not None:
                gone()


def _both(first: Callable[[], None], second: Callable[[], None]) -> Callable[[], None]:
    def call() -> None:
        first()
        second()

    return call


class Session:
    """One connection, whatever it speaks: asyncio's protocol interface above, a `Channel` below.

    `idle_since` is when its last request ended, None while one is under way. Output is written once in a turn of the
    event loop, however many answers and events it holds.
    """

    __slots__ = (
        "_draining",
        "_full",
        "_held",
        "_polling",
        "_scheduled",
        "_shut",
        "channel",
        "closing",
        "cuts",
        "idle_since",
        "serving",
    )

    def __init__(self, serving: Serving, channel: Channel) -> None:
        self.serving = serving
        self.channel = channel
        self.idle_since: float | None = serving.clock.now()
        self.closing = False
        self._scheduled = False
        self._draining: list[BaseExchange] = []
        self._full = False
        self._polling = False
        self._shut = False
        self._held = False
        self.cuts: dict[BaseExchange, tuple[Callable[[], object], bool]] = {}
        serving.sessions.add(self)

    # ---- asyncio.Protocol --------------------------------------------------------------------------------------
    def connection_made(self, transport: object) -> None:
        """Made before the session was."""

    def data_received(self, data: bytes) -> None:
        raise NotImplementedError

    def eof_received(self) -> bool:
        """A client that closes its side has gone, as for net/http; the transport closes."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.closing = self._shut = True
        self.serving.sessions.discard(self)
        self._draining.clear()
        self._full = self._held = False
        self.cuts.clear()
        self.break_off_all()
        self.serving.on_session_end()

    def pause_writing(self) -> None:
        """Exchanges see it in `buffered`."""

    def resume_writing(self) -> None:
        """Seen by the poll of `wait_for_drain`."""

    # ---- output ------------------------------------------------------------------------------------------------
    def schedule(self) -> None:
        """Write what is queued before the loop's next turn."""
        if not self._scheduled:
            self._scheduled = True
            self.serving.call_soon(self._flush)

    def _flush(self) -> None:
        if self._held:
            return  # still scheduled, as far as writers know
        self._scheduled = False
        output = self.take_output()
        if self._shut:
            return
        if output:
            self.channel.transport.write(output)
            if self.channel.buffered() > self.serving.options.full_bytes:
                self._check_full()
        if self.closing:
            self._shut = True
            self.channel.transport.close()
            if self.channel.buffered():  # a transport waits for ever for a peer that takes nothing
                clock = self.serving.clock
                clock.call_at(
                    clock.now() + self.serving.options.request_timeout_s, self.channel.transport.abort
                )

    def sweep(self, now: float) -> None:
        """End what has waited too long for the client: the whole connection where no request is under way."""
        idle_since = self.idle_since
        if idle_since is None or idle_since > now - self.serving.options.idle_timeout_s:
            return
        if self.channel.buffered():
            self.channel.transport.abort()
        else:
            self.close_gracefully()

    def _check_full(self) -> None:
        """Read no further while the peer takes nothing: its requests would only pile up answers."""
        full = self.channel.buffered() > self.serving.options.full_bytes
        if full != self._full and not self.closing:
            self._full = full
            (self.channel.transport.pause_reading if full else self.channel.transport.resume_reading)()
            if full:
                self._poll_later()

    def wait_for_drain(self, exchange: BaseExchange) -> None:
        """Call `exchange.drained` when its bytes have been taken.

        Polled: transports tell when they fall below a low-water mark, not when they are empty, and only slow clients
        are waited for.
        """
        self._draining.append(exchange)
        self._poll_later()

    def _poll_later(self) -> None:
        if self._polling:
            return
        self._polling = True
        clock = self.serving.clock
        clock.call_at(clock.now() + _DRAIN_POLL_S, self._poll)

    def _poll(self) -> None:
        self._polling = False
        if self._full:
            self._check_full()
        waiting, self._draining = self._draining, []
        for exchange in waiting:
            if exchange.drained is None:
                continue
            if exchange.buffered:
                self._draining.append(exchange)
            else:
                callback, exchange.drained = exchange.drained, None
                callback()
        if self._draining or self._full:
            self._poll_later()

    # ---- faults ------------------------------------------------------------------------------------------------
    def hold(self, *, everything: bool) -> None:
        """Send nothing any more; without `everything`, no data (where the protocol knows the difference)."""
        self._held = self._scheduled = True

    def release(self) -> None:
        """Send what was held back, and all that follows."""
        if self._held:
            self._held = self._scheduled = False
            self.schedule()

    def streaming(self) -> list[BaseExchange]:
        """The exchanges whose answers have begun and not ended."""
        raise NotImplementedError

    # ---- what each protocol does -------------------------------------------------------------------------------
    def take_output(self) -> bytes:
        raise NotImplementedError

    def break_off_all(self) -> None:
        raise NotImplementedError

    def drain(self) -> None:
        """Tell the client that no further request is taken; close when what is open has ended."""
        raise NotImplementedError

    def close_gracefully(self) -> None:
        """Close an idle connection."""
        self.closing = True
        self.schedule()
