"""HTTP/1.1 on one connection: one request at a time, kept alive between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httptools

from harness.transport.channel import Channel
from harness.transport.dialing import Dialled
from harness.transport.handles import Handle
from harness.transport.options import TransportOptions
from harness.transport.timers import Timer, Timers
from harness.wire.request import Failure, Request, TransportError

if TYPE_CHECKING:
    from harness.transport.pool import Transport

REPLAYED_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
"""Sent again where a kept-alive connection closed before the answer began: net/http request.go, ``isReplayable``."""

_NO_BODY = frozenset((204, 304))
_UNAUTHORIZED = 401


class Http1Connection:
    """Carries one request; between requests it waits in the transport's idle pool until the peer or time ends it."""

    __slots__ = (
        "_answered", "_channel", "_delimited", "_finished", "_handle", "_headers", "_idle_end", "_idle_timeout_s",
        "_keep_alive", "_parser", "_timers", "_transport", "_used", "authority", "member",
    )  # fmt: skip

    def __init__(
        self, transport: Transport, dialled: Dialled, timers: Timers, options: TransportOptions
    ) -> None:
        self.member = dialled.endpoint.member
        self.authority = dialled.endpoint.authority.encode()
        self._transport = transport
        self._timers = timers
        self._idle_timeout_s = options.idle_timeout_s
        self._handle: Handle | None = None
        self._used = 0
        self._idle_end: Timer | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._expect_head()
        self._channel = Channel(dialled, timers.dispatcher, self)

    def __repr__(self) -> str:
        state = "closed" if self._channel.closed else "busy" if self._handle is not None else "idle"
        return f"<Http1Connection {self.member} {state} used={self._used}>"

    # ---- what the transport asks ------------------------------------------------------------------------------------
    @property
    def open_streams(self) -> int:
        return int(self._handle is not None)

    @property
    def received_bytes(self) -> int:
        return self._channel.received_bytes

    @property
    def sent_bytes(self) -> int:
        return self._channel.sent_bytes

    def can_take(self) -> bool:
        return self._handle is None and not self._channel.closed and not self._channel.blocked

    def submit(self, handle: Handle, request: Request) -> None:
        """Send the request; only where `can_take()`."""
        if self._idle_end is not None:
            self._idle_end.cancel()
            self._idle_end = None
        handle.carrier = self
        self._handle = handle
        self._used += 1
        self._channel.write(encode_request(self._transport.head_of(request, self.authority), request.body))

    def abandon(self, handle: Handle) -> None:
        """There is no other way to stop an answer than to close."""
        if self._handle is handle:
            self._handle = None
            self.close(TransportError(Failure.CLOSED, "cancelled", self.member))

    def idle(self) -> None:
        """The transport keeps the connection for later."""
        if self._idle_timeout_s:
            self._idle_end = self._timers.call_later(self._idle_timeout_s, self._idle_too_long)

    def hang_up(self, *, killed: bool = False) -> None:
        """Take nothing more and hear nothing more; `close` is due."""
        self._channel.close(killed=killed)

    def close(self, error: TransportError) -> None:
        """Close at once; the request under way ends in `error`."""
        self._channel.close()
        if self._idle_end is not None:
            self._idle_end.cancel()
            self._idle_end = None
        handle, self._handle = self._handle, None
        self._transport.connection_closed(self)
        if handle is not None:
            self._transport.end(handle, error)

    def _idle_too_long(self) -> None:
        self.close(TransportError(Failure.CLOSED, "idle", self.member))

    # ---- what the channel tells -------------------------------------------------------------------------------------
    def received(self, data: bytes) -> None:
        if self._handle is None:
            # A late answer to nothing: net/http's ``readLoopPeekFailLocked`` closes too.
            self.close(TransportError(Failure.PROTOCOL, "bytes without a request", self.member))
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if not self._channel.closed:
                self.close(TransportError(Failure.PROTOCOL, f"HTTP/1.1: {error}", self.member))
            return
        if self._finished:
            self._end_answer()

    def writable(self) -> None:
        """A request is written whole; nothing waits."""

    def lost(self, error: TransportError | None) -> None:
        handle = self._handle
        if handle is not None and error is None and self._answered and not self._delimited:
            # An answer without a length ends with the connection (RFC 9112, 6.3).
            self._handle = None
            self._transport.connection_closed(self)
            self._transport.end(handle, None)
            return
        if handle is not None:
            self._transport.connection_lost(self.member)
        if handle is not None and self._may_replay(handle):
            self._handle = None
            self._transport.connection_closed(self)
            self._transport.retry(handle, "the peer closed the idle connection", self.member)
            return
        where = "in the middle of the answer" if self._answered else "before the answer"
        self.close(
            error or TransportError(Failure.RESET, f"the peer closed the connection {where}", self.member)
        )

    def _may_replay(self, handle: Handle) -> bool:
        """The peer may have closed before it saw the request: net/http transport.go ``shouldRetryRequest``."""
        return (
            self._used > 1
            and not self._answered
            and handle.request is not None
            and handle.request.method in REPLAYED_METHODS
        )

    # ---- callbacks of the parser; what they raise would come out of feed_data as another error ----------------------
    def on_header(self, raw_name: bytes, raw_value: bytes) -> None:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers = self._headers
        headers[name] = f"{headers[name]}, {value}" if name in headers else value

    def on_headers_complete(self) -> None:
        status, headers = self._parser.get_status_code(), self._headers
        self._headers = {}
        if status < 200:
            return
        self._answered = True
        self._delimited = (
            "content-length" in headers
            or "chunked" in headers.get("transfer-encoding", "").lower()
            or status in _NO_BODY
        )
        handle = self._handle
        if handle is None or handle.sink is None:
            return
        handle.request = None
        self._transport.heard_from(self.member)
        if status == _UNAUTHORIZED:
            self._transport.refused()
        try:
            handle.sink.on_head(status, headers, self.member)
        except Exception:
            self._sink_raised(handle)

    def on_body(self, data: bytes) -> None:
        handle = self._handle
        if handle is None or handle.sink is None:
            return
        try:
            handle.sink.on_data(data)
        except Exception:
            self._sink_raised(handle)

    def on_message_complete(self) -> None:
        if self._answered:
            self._finished = True
            self._keep_alive = self._parser.should_keep_alive()

    # ---- the end of an answer ---------------------------------------------------------------------------------------
    def _end_answer(self) -> None:
        handle, self._handle = self._handle, None
        keep = self._keep_alive and self._delimited
        self._expect_head()
        if self._channel.closed or handle is None:
            return
        if keep:
            self._transport.connection_idle(self)
        else:
            self.close(TransportError(Failure.CLOSED, "Connection: close", self.member))
        self._transport.end(handle, None)

    def _expect_head(self) -> None:
        self._headers = {}
        self._answered = self._delimited = self._finished = self._keep_alive = False

    def _sink_raised(self, handle: Handle) -> None:
        self._transport.sink_raised(handle)
        self.abandon(handle)


def encode_request(head: list[tuple[bytes, bytes]], body: bytes) -> bytes:
    """The HTTP/1.1 form of a head that was made for HTTP/2: four pseudo-headers, then headers."""
    (_, authority), (_, method), (_, path) = head[:3]
    lines = [b"%b %b HTTP/1.1\r\nhost: %b\r\n" % (method, path, authority)]
    lines += [b"%b: %b\r\n" % field for field in head[4:]]
    lines.append(b"\r\n")
    lines.append(body)
    return b"".join(lines)
