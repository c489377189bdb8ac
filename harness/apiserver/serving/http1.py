"""HTTP/1.1 sessions: one request at a time, keep-alive, pipelined requests answered in order, chunked streams."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus

import httptools

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
from harness.wire.http2 import ErrorCode
from harness.wire.status import request_timeout

_REASONS = {status.value: status.phrase for status in HTTPStatus}
_REASONS[413] = "Request Entity Too Large"  # Go keeps the older names
_REASONS[422] = "Unprocessable Entity"

_LINGER_S = 0.5

_MAX_PIPELINED = 16
"""Requests that wait behind the one under way; reading stops until they have been answered."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Http1Exchange(BaseExchange):
    """One request. `keep_alive` and `chunked` say what the client allows; `refused` is the status of a request that
    the core does not see (0: it does)."""

    __slots__ = ("chunked", "expects", "keep_alive", "length", "parts", "refused", "session")

    def __init__(
        self, session: Http1Session, method: str, path: str, headers: Mapping[str, str], refused: int = 0
    ) -> None:
        super().__init__(method, path, headers, session.channel.peer)
        self.session = session
        self.refused = refused
        self.keep_alive = False
        self.chunked = True
        self.expects = False
        self.parts: list[bytes] = []
        self.length = 0

    def respond(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        if self.state == GONE:
            return
        assert self.state == NEW, f"{self!r} is answered twice"
        self.state = DONE
        self._gone = None
        without_body = status in (204, 304)
        length = "" if without_body else f"Content-Length: {len(body)}\r\n"
        head = self.session.encode_head(self, status, headers, length)
        self.session.queue(head if without_body or self.method == "HEAD" else head + body)
        self.session.ended(self)

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        if self.state == GONE:
            return
        assert self.state == NEW, f"{self!r} is answered twice"
        self.state = STREAMING
        encoding = "Transfer-Encoding: chunked\r\n" if self.chunked else ""
        self.session.queue(self.session.encode_head(self, status, headers, encoding))

    def write(self, data: bytes) -> None:
        if self.state == STREAMING and data:
            self.session.queue(b"%x\r\n%b\r\n" % (len(data), data) if self.chunked else data)
        elif self.state == CUTTING and data:
            self._cut_off(data)

    def finish(self) -> None:
        if self.state in (STREAMING, CUTTING):
            self.state = DONE
            self._gone = None
            if self.chunked:
                self.session.queue(b"0\r\n\r\n")
            self.session.ended(self)

    def abort(self, code: int = ErrorCode.INTERNAL_ERROR) -> None:
        if self.state < DONE:
            self.state = GONE
            self.session.close_now()

    @property
    def buffered(self) -> int:
        return self.session.queued + self.session.channel.buffered()

    def _session(self) -> Http1Session:
        return self.session


class Http1Session(Session):
    """`active` is the request under way; those read behind it wait in `waiting`. Methods called on_... are the
    parser's callbacks."""

    __slots__ = (
        "_advancing",
        "_head_since",
        "_header_bytes",
        "_headers",
        "_incoming",
        "_late_body",
        "_out",
        "_parser",
        "_paused",
        "_refused",
        "_url",
        "active",
        "queued",
        "waiting",
    )

    def __init__(self, serving: Serving, channel: Channel) -> None:
        super().__init__(serving, channel)
        self._parser = httptools.HttpRequestParser(self)
        self._out: list[bytes] = []
        self._url = b""
        self._headers: list[tuple[str, str]] = []
        self._header_bytes = 0
        self._incoming: Http1Exchange | None = None
        self._head_since: float | None = self.idle_since
        self._late_body: FirstSeen[Http1Exchange] = FirstSeen()
        self._refused = 0
        self._paused = self._advancing = False
        self.active: Http1Exchange | None = None
        self.waiting: deque[Http1Exchange] = deque()
        self.queued = 0

    def __repr__(self) -> str:
        return f"<{self.channel.peer} http/1.1 {self.active or 'idle'}>"

    # ---- input -------------------------------------------------------------------------------------------------
    def data_received(self, data: bytes) -> None:
        while data and not self._refused and not self.closing:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                head = self._plain_head()
                self._parser = httptools.HttpRequestParser(self)
                data = head + data[upgrade.args[0] :]
            except httptools.HttpParserError:
                if not self._refused:
                    self._refuse(400)

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = []
        self._header_bytes = 0
        self.idle_since = None
        if self._head_since is None:
            self._head_since = self.serving.clock.now()

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))
        self._count(len(name) + len(value))

    def _count(self, count: int) -> None:
        self._header_bytes += count
        if self._header_bytes > self.serving.options.max_header_bytes:
            self._stop_parsing(431)

    def on_headers_complete(self) -> None:
        self._head_since = None
        headers = joined(self._headers)
        http_1_1 = self._parser.get_http_version() != "1.0"
        if http_1_1 and "host" not in headers:
            self._stop_parsing(400)  # RFC 9112, 3.2
        method: bytes = self._parser.get_method()
        exchange = Http1Exchange(self, method.decode("latin-1"), self._url.decode("latin-1"), headers)
        exchange.chunked = http_1_1
        exchange.keep_alive = http_1_1 and self._parser.should_keep_alive()
        exchange.expects = http_1_1 and headers.get("expect", "").lower() == "100-continue"
        if not self._parser.should_upgrade():
            self.idle_since = None
            self._incoming = exchange
            self._continue()

    def _plain_head(self) -> bytes:
        """The head that was read, without its upgrade (h2c, WebSocket): none is taken, and the parser would leave the
        body out. What it was to be upgraded to stays, for handlers that would."""
        method: bytes = self._parser.get_method()
        if method == b"CONNECT":
            self._refuse(405)
            return b""
        lines = [f"{method.decode('latin-1')} {self._url.decode('latin-1')} HTTP/1.1"]
        dropped = ("connection", "http2-settings")
        lines += [f"{name}: {value}" for name, value in self._headers if name not in dropped]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def on_body(self, data: bytes) -> None:
        exchange = self._incoming
        assert exchange is not None, "a body follows a head"
        exchange.length += len(data)
        if exchange.length > self.serving.options.max_body_bytes:
            self._stop_parsing(413)
        exchange.parts.append(data)

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return  # the head is read again by `data_received`
        exchange, self._incoming = self._incoming, None
        assert exchange is not None, "a message has a head"
        exchange.body = b"".join(exchange.parts)
        exchange.parts = []
        self._take(exchange)

    def _stop_parsing(self, status: int) -> None:
        """Within a callback: refuse the request; the parser passes the exception on to `data_received`."""
        self._refuse(status)
        raise ValueError(status)

    def _refuse(self, status: int) -> None:
        """Answer this in turn, then close; nothing more is read."""
        self._refused = status
        self._incoming = None
        self._take(Http1Exchange(self, "", "", {}, refused=status))

    # ---- requests in order -------------------------------------------------------------------------------------
    def _take(self, exchange: Http1Exchange) -> None:
        self.waiting.append(exchange)
        self.idle_since = None
        self._advance()
        if len(self.waiting) > _MAX_PIPELINED and not self._paused:
            self._paused = True
            self.channel.transport.pause_reading()

    def _advance(self) -> None:
        """Begin the next request where none is under way. Answers given at once come back here: hence the flag."""
        if self._advancing:
            return
        self._advancing = True
        while self.waiting and self.active is None and not self.closing and not self._crowded():
            exchange = self.active = self.waiting.popleft()
            if exchange.refused:
                self._answer_refused(exchange)
            else:
                self.serving.handle(exchange)
        self._advancing = False
        if self._paused and not self.waiting and not self.closing:
            self._paused = False
            self.channel.transport.resume_reading()
        if self.active is None and self._incoming is None:
            self.idle_since = self.serving.clock.now()
        self._continue()

    def _crowded(self) -> bool:
        """Whether the client has to take answers before it gets more."""
        return self._full or self.queued > self.serving.options.full_bytes

    def _flush(self) -> None:
        super()._flush()
        if self.waiting and self.active is None:
            self._advance()

    def _poll(self) -> None:
        super()._poll()
        if self.waiting and self.active is None:
            self._advance()

    def sweep(self, now: float) -> None:
        options = self.serving.options
        if self._head_since is not None and self._head_since <= now - options.header_timeout_s:
            self.channel.transport.abort()  # without an answer, as net/http on a read that timed out
            return
        incoming = () if self._incoming is None else (self._incoming,)
        if self._late_body.older(incoming, now, options.request_timeout_s) and not self._refused:
            self._refuse(504)
        super().sweep(now)

    def _continue(self) -> None:
        """Ask for the body of a request that waits for it (RFC 9110, 10.1.1), once it is its turn."""
        incoming = self._incoming
        if incoming is not None and incoming.expects and self.active is None and not self.waiting:
            incoming.expects = False
            self.queue(_CONTINUE)

    def _answer_refused(self, exchange: Http1Exchange) -> None:
        if exchange.refused in (413, 504):
            limit = self.serving.options.max_body_bytes
            body = body_too_large(limit) if exchange.refused == 413 else request_timeout().body()
            exchange.respond(exchange.refused, {"content-type": "application/json"}, body)
        else:
            exchange.state = DONE
            self.queue(_refusal(exchange.refused))
            self.ended(exchange)

    def ended(self, exchange: Http1Exchange) -> None:
        self.active = None
        self.cuts.clear()
        if exchange.refused:
            # Closing with a body unread would reset the connection and with it the answer (net/http server.go,
            # closeWriteAndWait): the client gets the time to read it.
            clock = self.serving.clock
            clock.call_at(clock.now() + _LINGER_S, self.close_now)
        elif not exchange.keep_alive or self.serving.draining:
            self.close_now()
        else:
            self._advance()

    # ---- output ------------------------------------------------------------------------------------------------
    def encode_head(
        self, exchange: Http1Exchange, status: int, headers: Mapping[str, str], more: str
    ) -> bytes:
        if not exchange.chunked:
            exchange.keep_alive = False
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}\r\n"]
        lines += [f"{_canonical(name)}: {value}\r\n" for name, value in headers.items()]
        if not exchange.keep_alive or self.serving.draining:
            lines.append("Connection: close\r\n")
        lines.append(f"{more}Date: {self.serving.date()}\r\n\r\n")
        return "".join(lines).encode("latin-1", "replace")

    def queue(self, data: bytes) -> None:
        self._out.append(data)
        self.queued += len(data)
        if not self._scheduled:
            self.schedule()

    def take_output(self) -> bytes:
        output, self._out = b"".join(self._out), []
        self.queued = 0
        return output

    # ---- ends --------------------------------------------------------------------------------------------------
    def close_now(self) -> None:
        """Write what is queued and close."""
        self.closing = True
        self.active = None
        self.waiting.clear()
        self.schedule()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        del self._parser  # it holds our callbacks: a ring that only the garbage collector would find

    def break_off_all(self) -> None:
        exchange, self.active = self.active, None
        self.waiting.clear()
        if exchange is not None:
            exchange.break_off()

    def drain(self) -> None:
        if self.idle_since is not None:
            self.close_now()
        elif self.active is not None:
            self.active.keep_alive = False

    def streaming(self) -> list[BaseExchange]:
        return [self.active] if self.active is not None and self.active.state == STREAMING else []


@lru_cache(maxsize=256)
def _canonical(name: str) -> str:
    """As Go writes header names."""
    return "-".join(part.capitalize() for part in name.split("-"))


def _refusal(status: int) -> bytes:
    """What net/http answers a request that it cannot read (server.go, ``conn.serve``)."""
    text = f"{status} {_REASONS[status]}"
    head = f"HTTP/1.1 {text}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
    return f"{head}{text}".encode()
