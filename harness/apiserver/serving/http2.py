"""HTTP/2 sessions: each stream is an exchange."""

from __future__ import annotations

from collections.abc import Mapping

from harness.apiserver.serving.common import (
    DONE,
    GONE,
    NEW,
    STREAMING,
    BaseExchange,
    Channel,
    Serving,
    Session,
    body_too_large,
)
from harness.wire.http2 import (
    Connection,
    Data,
    Drained,
    ErrorCode,
    Event,
    Headers,
    ProtocolError,
    Reset,
    Role,
    Trailers,
)

_FrozenHead = tuple[tuple[bytes, bytes], ...]

_MAX_CACHED_HEADS = 16

_names: dict[str, bytes] = {}
"""Names of answers' headers as they go on the wire; our own code's, so few."""


class Http2Exchange(BaseExchange):
    """One stream. `mark` is how far into the connection's output its last byte lies."""

    http2 = True

    __slots__ = ("mark", "parts", "session", "stream_id")

    def __init__(
        self, session: Http2Session, stream_id: int, method: str, path: str, headers: Mapping[str, str]
    ) -> None:
        super().__init__(method, path, headers, session.channel.peer)
        self.session = session
        self.stream_id = stream_id
        self.mark = 0
        self.parts: bytearray | None = None

    def respond(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        if self.state == GONE:
            return
        assert self.state == NEW, f"{self!r} is answered twice"
        self.state = DONE
        bodiless = self.method == "HEAD" or status in (204, 304)
        head = self.session.encode_head(status, headers, None if status in (204, 304) else len(body))
        self.session.connection.respond(self.stream_id, head, b"" if bodiless else body, True)
        self.session.written(self, len(body))
        self.session.ended(self)

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        if self.state == GONE:
            return
        assert self.state == NEW, f"{self!r} is answered twice"
        self.state = STREAMING
        self.session.connection.respond(self.stream_id, self.session.encode_head(status, headers, None))
        self.session.written(self, 0)

    def write(self, data: bytes) -> None:
        if self.state == STREAMING:
            session = self.session
            session.connection.send_data(self.stream_id, data)
            session.written(self, len(data))

    def finish(self) -> None:
        if self.state == STREAMING:
            self.state = DONE
            self.session.connection.send_data(self.stream_id, b"", True)
            self.session.written(self, 0)
            self.session.ended(self)

    def abort(self) -> None:
        if self.state < DONE:
            self.state = GONE
            # As x/net/http2 server.go does for a handler that panics with ErrAbortHandler.
            self.session.connection.reset(self.stream_id, ErrorCode.INTERNAL_ERROR)
            self.session.written(self, 0)
            self.session.ended(self)

    @property
    def buffered(self) -> int:
        session = self.session
        unsent = session.connection.unsent(self.stream_id)
        in_socket = self.mark - unsent - session.taken + session.channel.buffered()
        return unsent + in_socket if in_socket > 0 else unsent

    def _session(self) -> Http2Session:
        return self.session


class Http2Session(Session):
    """`taken` counts the bytes given to the socket, `queued` estimates those that follow in this turn."""

    __slots__ = ("_heads", "connection", "exchanges", "queued", "taken", "went_away")

    def __init__(self, serving: Serving, channel: Channel) -> None:
        super().__init__(serving, channel)
        self.connection = Connection(Role.SERVER, serving.options.http2, serving.options.http2_window)
        self.exchanges: dict[int, Http2Exchange] = {}
        self.taken = self.queued = 0
        self.went_away = False
        self._heads: dict[_FrozenHead, dict[str, str]] = {}
        self.connection.initiate()
        if serving.draining:
            self.drain()
        self.schedule()

    def __repr__(self) -> str:
        return f"<{self.channel.peer} {self.connection!r}>"

    # ---- input -------------------------------------------------------------------------------------------------
    def data_received(self, data: bytes) -> None:
        try:
            events = self.connection.feed(data)
        except ProtocolError as error:
            events = error.events
            self.closing = True
        for event in events:
            self._take(event)
        if self.closing or self.connection.has_output:
            self.schedule()

    def _take(self, event: Event) -> None:
        if isinstance(event, Headers):
            self._on_headers(event)
        elif isinstance(event, Data):
            self._on_data(event)
        elif isinstance(event, Reset):
            exchange = self.exchanges.get(event.stream_id)
            if exchange is not None:
                self.ended(exchange)
                exchange.break_off()
        elif isinstance(event, Drained):
            exchange = self.exchanges.get(event.stream_id)
            if exchange is not None:
                exchange.mark = self.taken + self.queued
        elif isinstance(event, Trailers):
            exchange = self.exchanges.get(event.stream_id)
            if exchange is not None:
                self._complete(exchange)

    def _on_headers(self, event: Headers) -> None:
        method = path = b""
        rest = []
        for header in event.headers:
            name = header[0]
            if name == b":path":
                path = header[1]
            elif name == b":method":
                method = header[1]
            else:
                rest.append(header)
        headers = self._shared_head(tuple(rest)) if event.end_stream else _decode(rest)
        exchange = Http2Exchange(
            self, event.stream_id, method.decode("latin-1"), path.decode("latin-1"), headers
        )
        self.exchanges[event.stream_id] = exchange
        self.idle_since = None
        if event.end_stream:
            self.serving.handle(exchange)
        else:
            exchange.parts = bytearray()
            if headers.get("expect", "").lower() == "100-continue":
                self.connection.respond(event.stream_id, [(b":status", b"100")])

    def _refuse_body(self, exchange: Http2Exchange) -> None:
        """Answer 413; the rest of the request is not wanted (RFC 9113, 8.1)."""
        exchange.parts = None
        limit = self.serving.options.max_body_bytes
        exchange.respond(413, {"content-type": "application/json"}, body_too_large(limit))
        self.connection.reset(exchange.stream_id, ErrorCode.NO_ERROR)

    def _shared_head(self, rest: _FrozenHead) -> dict[str, str]:
        """The same headers, method and path aside, come with each of a kubelet's watches: they share one dict."""
        head = self._heads.get(rest)
        if head is None:
            if len(self._heads) >= _MAX_CACHED_HEADS:
                self._heads.clear()
            head = self._heads[rest] = _decode(rest)
        return head

    def _on_data(self, event: Data) -> None:
        exchange = self.exchanges.get(event.stream_id)
        if exchange is None or exchange.parts is None:
            return
        exchange.parts += event.data
        if len(exchange.parts) > self.serving.options.max_body_bytes:
            self._refuse_body(exchange)
        elif event.end_stream:
            self._complete(exchange)

    def _complete(self, exchange: Http2Exchange) -> None:
        """The request has come in whole."""
        if exchange.parts is not None:
            exchange.body = bytes(exchange.parts)
            exchange.parts = None
            self.serving.handle(exchange)

    # ---- output ------------------------------------------------------------------------------------------------
    def encode_head(
        self, status: int, headers: Mapping[str, str], length: int | None
    ) -> list[tuple[bytes, bytes]]:
        head = [(b":status", b"%d" % status)]
        for name, value in headers.items():
            wire_name = _names.get(name)
            if wire_name is None:
                wire_name = _names[name] = name.lower().encode("latin-1")
            head.append((wire_name, value.encode("latin-1", "replace")))
        if length is not None:
            head.append((b"content-length", b"%d" % length))
        head.append((b"date", self.serving.date().encode("latin-1")))
        return head

    def written(self, exchange: Http2Exchange, count: int) -> None:
        """The exchange has queued this much."""
        self.queued += count
        exchange.mark = self.taken + self.queued
        if not self._scheduled:
            self.schedule()

    def take_output(self) -> bytes:
        output = self.connection.take_output()
        self.taken += len(output)
        self.queued = 0
        return output

    # ---- ends --------------------------------------------------------------------------------------------------
    def ended(self, exchange: Http2Exchange) -> None:
        self.exchanges.pop(exchange.stream_id, None)
        if not self.exchanges:
            self.idle_since = self.serving.clock.now()
            if self.went_away:
                self._close_later()

    def break_off_all(self) -> None:
        exchanges, self.exchanges = self.exchanges, {}
        for exchange in exchanges.values():
            exchange.break_off()

    def drain(self) -> None:
        if not self.went_away:
            self.went_away = True
            self.connection.goaway()
            self.schedule()
            if not self.exchanges:
                self._close_later()

    def _close_later(self) -> None:
        clock = self.serving.clock
        clock.call_at(clock.now() + self.serving.options.drained_close_s, self._close_drained)

    def _close_drained(self) -> None:
        if not self.exchanges and not self.connection.open_streams and not self.closing:
            self.closing = True
            self.schedule()

    def close_gracefully(self) -> None:
        self.connection.goaway()
        super().close_gracefully()


def _decode(headers: _FrozenHead | list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Repeated headers are joined by a comma and a space (RFC 9110, 5.2); ``:authority`` becomes ``host``."""
    decoded: dict[str, str] = {}
    for name, value in headers:
        if name == b":scheme":
            continue
        key = "host" if name == b":authority" else name.decode("latin-1")
        text = value.decode("latin-1")
        decoded[key] = f"{decoded[key]}, {text}" if key in decoded else text
    return decoded
