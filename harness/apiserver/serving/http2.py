"""HTTP/2 sessions: each stream is an exchange."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from sys import intern

from harness.apiserver.serving.common import (
    CUTTING,
    DONE,
    GONE,
    NEW,
    STREAMING,
    BaseExchange,
    Channel,
    Serving,
    Session,
)
from harness.apiserver.serving.helpers import FirstSeen, body_too_large, joined
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
from harness.wire.status import request_timeout

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
        self._gone = None
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
        elif self.state == CUTTING:
            self._cut_off(data)

    def finish(self) -> None:
        if self.state in (STREAMING, CUTTING):
            self.state = DONE
            self._gone = None
            self.session.connection.send_data(self.stream_id, b"", True)
            self.session.written(self, 0)
            self.session.ended(self)

    def abort(self, code: int = ErrorCode.INTERNAL_ERROR) -> None:
        """The default is what x/net/http2 server.go sends for a handler that panics with ErrAbortHandler."""
        if self.state < DONE:
            self.state = GONE
            self.session.connection.reset(self.stream_id, code)
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

    __slots__ = (
        "_data_held",
        "_deferred",
        "_heads",
        "_late_answers",
        "_late_uploads",
        "_uploads",
        "connection",
        "exchanges",
        "queued",
        "taken",
        "went_away",
    )

    def __init__(self, serving: Serving, channel: Channel) -> None:
        super().__init__(serving, channel)
        self.connection = Connection(Role.SERVER, serving.options.http2, serving.options.http2_window)
        self.exchanges: dict[int, Http2Exchange] = {}
        self.taken = self.queued = 0
        self.went_away = self._data_held = False
        self._heads: dict[_FrozenHead, dict[str, str]] = {}
        self._uploads: dict[int, Http2Exchange] = {}
        self._deferred: deque[Http2Exchange] = deque()
        self._late_uploads: FirstSeen[int] = FirstSeen()
        self._late_answers: FirstSeen[int] = FirstSeen()
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
        if self._deferred:
            self._resume()
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
                self._uploads.pop(event.stream_id, None)
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
            self, event.stream_id, intern(method.decode("latin-1")), path.decode("latin-1"), headers
        )
        self.exchanges[event.stream_id] = exchange
        self.idle_since = None
        if event.end_stream:
            self._begin(exchange)
        else:
            exchange.parts = bytearray()
            self._uploads[event.stream_id] = exchange
            if headers.get("expect", "").lower() == "100-continue":
                self.connection.respond(event.stream_id, [(b":status", b"100")])

    def _refuse_body(self, exchange: Http2Exchange, status: int, body: bytes) -> None:
        """Answer before the body is there; the rest of it is not wanted (RFC 9113, 8.1)."""
        exchange.parts = None
        self._uploads.pop(exchange.stream_id, None)
        exchange.respond(status, {"content-type": "application/json"}, body)
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
        limit = self.serving.options.max_body_bytes
        if len(exchange.parts) > limit:
            self._refuse_body(exchange, 413, body_too_large(limit))
        elif event.end_stream:
            self._complete(exchange)

    def _complete(self, exchange: Http2Exchange) -> None:
        """The request has come in whole."""
        self._uploads.pop(exchange.stream_id, None)
        if exchange.parts is None:
            return
        declared = exchange.headers.get("content-length")
        if declared is not None and declared != str(len(exchange.parts)):
            self._break_off(exchange, ErrorCode.PROTOCOL_ERROR)  # malformed (RFC 9113, 8.1.1)
            return
        exchange.body = bytes(exchange.parts)
        exchange.parts = None
        self._begin(exchange)

    # ---- back pressure and time limits -------------------------------------------------------------------------
    def _begin(self, exchange: Http2Exchange) -> None:
        """Have the request served, once the client takes the answers that it has."""
        if self.queued > self.serving.options.full_bytes or (
            self.connection.open_streams > len(self.exchanges) and self._crowded()
        ):
            if not self._deferred:
                self.serving.call_soon(self._resume)
            self._deferred.append(exchange)
        else:
            self.serving.handle(exchange)

    def _crowded(self) -> bool:
        waiting = self.queued + sum(self.connection.unsent_answers.values())
        return waiting > self.serving.options.full_bytes

    def _resume(self) -> None:
        while self._deferred and not self._crowded():
            exchange = self._deferred.popleft()
            if exchange.state == NEW:  # not cancelled meanwhile
                self.serving.handle(exchange)
        if (
            self._deferred and self.queued
        ):  # the turn's write makes room; what windows hold back waits for the client
            self.serving.call_soon(self._resume)

    def sweep(self, now: float) -> None:
        options = self.serving.options
        if not self.connection.established:
            if self.idle_since is not None and self.idle_since <= now - options.preface_timeout_s:
                self.channel.transport.abort()
            return
        for stream_id in self._late_uploads.older(list(self._uploads), now, options.request_timeout_s):
            self._time_out(self._uploads.pop(stream_id))
        stuck = self.connection.unsent_answers if self.connection.open_streams > len(self.exchanges) else ()
        for stream_id in self._late_answers.older(stuck, now, options.request_timeout_s):
            # As for a handler whose write is still under way when the time limit comes (as/server/filters/timeout.go).
            self.connection.reset(stream_id, ErrorCode.INTERNAL_ERROR)
            self.schedule()
        self._resume()
        super().sweep(now)

    def _time_out(self, exchange: Http2Exchange) -> None:
        """The body has not come in time."""
        if exchange.parts is not None and exchange.state == NEW:
            self._refuse_body(exchange, 504, request_timeout().body())

    def _break_off(self, exchange: Http2Exchange, code: ErrorCode) -> None:
        exchange.parts = None
        exchange.state = GONE
        self.connection.reset(exchange.stream_id, code)
        self.ended(exchange)
        self.schedule()

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
        if self.cuts:
            self.cuts.pop(exchange, None)
        if not self.exchanges:
            self.idle_since = self.serving.clock.now()
            if self.went_away:
                self._close_later()

    def break_off_all(self) -> None:
        exchanges, self.exchanges = self.exchanges, {}
        self._uploads.clear()
        self._deferred.clear()
        for exchange in exchanges.values():
            exchange.break_off()

    def drain(self) -> None:
        if not self.went_away:
            self.went_away = True
            self.connection.goaway()
            self.schedule()
            if not self.exchanges:
                self._close_later()

    # ---- faults ------------------------------------------------------------------------------------------------
    def hold(self, *, everything: bool) -> None:
        if everything:
            super().hold(everything=True)
        elif not self._data_held:
            self._data_held = True
            self.connection.hold_data()

    def release(self) -> None:
        super().release()
        if self._data_held:
            self._data_held = False
            for event in self.connection.release_data():
                self._take(event)
            self.schedule()

    def streaming(self) -> list[BaseExchange]:
        return [exchange for exchange in self.exchanges.values() if exchange.state == STREAMING]

    # ---- going away --------------------------------------------------------------------------------------------
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
    """``:authority`` becomes ``host``, names that come twice are joined."""
    return joined(
        ("host" if name == b":authority" else name.decode("latin-1"), value.decode("latin-1"))
        for name, value in headers
        if name != b":scheme"
    )
