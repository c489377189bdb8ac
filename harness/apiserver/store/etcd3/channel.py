"""gRPC on one HTTP/2 connection, on asyncio: calls with one answer, and streams (grpc.io: PROTOCOL-HTTP2.md)."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable
from typing import cast
from urllib.parse import unquote

from harness.apiserver.clock import Promise
from harness.apiserver.store.core import StoreError, StoreTimeout, StoreUnavailable
from harness.wire.http2 import (
    GO_CLIENT_CONNECTION_WINDOW,
    GO_CLIENT_SETTINGS,
    Connection,
    Data,
    Event,
    GoAway,
    Headers,
    ProtocolError,
    Reset,
    Role,
    Trailers,
)

KEEPALIVE_S = 30.0  # as/storage/storagebackend/factory/etcd3.go: keepaliveTime, keepaliveTimeout
KEEPALIVE_TIMEOUT_S = 10.0
DIAL_TIMEOUT_S = 20.0  # etcd3.go: dialTimeout

_HEADER_BYTES = 5  # of a gRPC message: compressed or not, length
_OK, _DEADLINE, _UNAVAILABLE = 0, 4, 14  # google.golang.org/grpc/codes
_CODES = ("OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists",
    "PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal",
    "Unavailable", "DataLoss", "Unauthenticated")  # fmt: skip
_OWN_TIMEOUTS = re.compile(r"request timed out|leader changed|no leader")  # v3rpc/rpctypes/error.go


def error_of(code: int, text: str) -> StoreError:
    """As etcd's client has it: what etcd itself says stands alone, the rest with gRPC's code (clientv3: toErr)."""
    if text.startswith("etcdserver:"):
        return StoreTimeout(text) if _OWN_TIMEOUTS.search(text) else StoreError(text)
    name = _CODES[code] if code < len(_CODES) else f"Code({code})"
    message = f"rpc error: code = {name} desc = {text}"
    if code == _UNAVAILABLE:
        return StoreUnavailable(message)
    return StoreTimeout(message) if code == _DEADLINE else StoreError(message)


def unavailable(text: str) -> StoreUnavailable:
    return StoreUnavailable(f"rpc error: code = Unavailable desc = {text}")


class Call:
    """One stream of the connection: each message to `on_message`, then `on_end`, once, None being success."""

    __slots__ = ("_buffer", "_channel", "_stream", "_text", "on_end", "on_message")

    def __init__(
        self,
        channel: Channel,
        stream: int,
        on_message: Callable[[bytes], object],
        on_end: Callable[[StoreError | None], object],
    ) -> None:
        self.on_message = on_message
        self.on_end = on_end
        self._channel = channel
        self._stream = stream
        self._buffer = bytearray()

    def send(self, body: bytes) -> None:
        self._channel.send(self._stream, body)

    def cancel(self) -> None:
        """Nothing more is heard of it."""
        self._channel.cancel(self._stream)

    def feed(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        at = 0
        while len(buffer) - at >= _HEADER_BYTES:
            end = at + _HEADER_BYTES + int.from_bytes(buffer[at + 1 : at + _HEADER_BYTES], "big")
            if len(buffer) < end:
                break
            message = bytes(buffer[at + _HEADER_BYTES : end])
            at = end
            self.on_message(message)
        del buffer[:at]


class Channel(asyncio.Protocol):
    """Made by `dial`. `on_lost` is called, once, when the connection ends, after all calls have failed."""

    def __init__(self, authority: str, scheme: str, loop: asyncio.AbstractEventLoop) -> None:
        self.on_lost: Callable[[StoreUnavailable], object] = lambda error: None
        self.error: StoreUnavailable | None = None
        self._headers = [
            (b":method", b"POST"),
            (b":scheme", scheme.encode()),
            (b":authority", authority.encode()),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
            (b"hasleader", b"true"),  # clientv3.WithRequireLeader: a member that is cut off says so
        ]
        self._loop = loop
        self._codec = Connection(Role.CLIENT, GO_CLIENT_SETTINGS, GO_CLIENT_CONNECTION_WINDOW)
        self._transport: asyncio.Transport | None = None
        self._calls: dict[int, Call] = {}
        self._waiting: list[Callable[[], object]] = []  # for the peer to allow another stream
        self._flushing = False
        self._heard_s = loop.time()
        self._alive: asyncio.TimerHandle | None = None

    # ---- calls
    def unary(self, path: bytes, body: bytes, timeout_s: float) -> Promise[bytes]:
        """The one message that answers `body`. Fails with StoreError."""
        promise: Promise[bytes] = Promise()

        def ended(error: StoreError | None) -> None:
            timer.cancel()
            promise.fail(error or unavailable("the server sent no message"))

        def give_up() -> None:
            if not promise.done:
                promise.fail(StoreTimeout("context deadline exceeded"))
                for call in calls:
                    call.cancel()

        calls: list[Call] = []
        timer = self._loop.call_later(timeout_s, give_up)
        self._open(path, body, True, promise.resolve, ended, calls.append)
        return promise

    def stream(
        self,
        path: bytes,
        on_message: Callable[[bytes], object],
        on_end: Callable[[StoreError | None], object],
        opened: Callable[[Call], object],
    ) -> None:
        """Open a stream of messages both ways; `opened` is called with it."""
        self._open(path, None, False, on_message, on_end, opened)

    def send(self, stream: int, body: bytes) -> None:
        self._codec.send_data(stream, _framed(body))
        self._flush_soon()

    def cancel(self, stream: int) -> None:
        if self._calls.pop(stream, None) is not None:
            self._codec.reset(stream)
            self._flush_soon()

    def _open(
        self,
        path: bytes,
        body: bytes | None,
        end: bool,
        on_message: Callable[[bytes], object],
        on_end: Callable[[StoreError | None], object],
        opened: Callable[[Call], object],
    ) -> None:
        if self.error is not None:
            on_end(self.error)
            return
        if not self._codec.can_open():
            self._waiting.append(lambda: self._open(path, body, end, on_message, on_end, opened))
            return
        data = b"" if body is None else _framed(body)
        stream = self._codec.request([(b":path", path), *self._headers], data, end)
        call = self._calls[stream] = Call(self, stream, on_message, on_end)
        opened(call)
        self._flush_soon()

    # ---- asyncio.Protocol
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._codec.initiate()
        self._flush()
        self._alive = self._loop.call_later(KEEPALIVE_S, self._keep_alive)

    def data_received(self, data: bytes) -> None:
        self._heard_s = self._loop.time()
        try:
            events = self._codec.feed(data)
        except ProtocolError as error:
            self.end(unavailable(f"error reading from server: {error}"))
            return
        for event in events:
            self._take(event)
        if self.error is not None:
            return
        if self._codec.has_output:
            self._flush_soon()
        if self._waiting and self._codec.can_open():
            waiting, self._waiting = self._waiting, []
            for request in waiting:
                request()

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(unavailable(f"error reading from server: {exc or 'EOF'}"))

    def _take(self, event: Event) -> None:
        if isinstance(event, Data):
            if (call := self._calls.get(event.stream_id)) is not None:
                call.feed(event.data)
            if event.end_stream:
                self._finish(
                    event.stream_id, unavailable("server closed the stream without sending trailers")
                )
        elif isinstance(event, Trailers) or (isinstance(event, Headers) and event.end_stream):
            self._finish(event.stream_id, _status(event.headers))
        elif isinstance(event, Reset):
            why = f"stream terminated by RST_STREAM with error code: {event.code}"
            self._finish(event.stream_id, unavailable(why))
        elif isinstance(event, GoAway):  # it is about to stop, and so would our watch be
            self.end(unavailable("the server is going away"))

    def _finish(self, stream: int, error: StoreError | None) -> None:
        call = self._calls.pop(stream, None)
        if call is not None:
            call.on_end(error)

    # ---- the connection
    def _keep_alive(self) -> None:
        """A PING where nothing was heard for long; no answer to that is the end."""
        silent_s = self._loop.time() - self._heard_s
        if silent_s >= KEEPALIVE_S + KEEPALIVE_TIMEOUT_S:
            self.end(unavailable("keepalive ping failed to receive ACK within timeout"))
            return
        if silent_s >= KEEPALIVE_S:
            self._codec.ping(b"swarmlet")
            self._flush_soon()
        next_s = KEEPALIVE_TIMEOUT_S if silent_s >= KEEPALIVE_S else KEEPALIVE_S - silent_s
        self._alive = self._loop.call_later(next_s, self._keep_alive)

    def end(self, error: StoreUnavailable) -> None:
        """Give the connection up; every call fails with `error`."""
        if self.error is not None:
            return
        self.error = error
        if self._alive is not None:
            self._alive.cancel()
        if self._transport is not None:
            self._transport.abort()
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.on_end(error)
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            request()
        self.on_lost(error)

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if self._transport is not None and self.error is None:
            data = self._codec.take_output()
            if data:
                self._transport.write(data)


def _framed(body: bytes) -> bytes:
    return b"\0" + len(body).to_bytes(4, "big") + body


def _status(headers: list[tuple[bytes, bytes]]) -> StoreError | None:
    found = dict(headers)
    if b"grpc-status" not in found:
        return unavailable(f"unexpected HTTP status code {found.get(b':status', b'none').decode()}")
    code = int(found[b"grpc-status"])
    return None if code == _OK else error_of(code, unquote(found.get(b"grpc-message", b"").decode()))


async def dial(
    host: str, port: int, context: ssl.SSLContext | None, timeout_s: float = DIAL_TIMEOUT_S
) -> Channel:
    """Connect to one etcd member. Raises StoreUnavailable."""
    loop = asyncio.get_running_loop()
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        async with asyncio.timeout(timeout_s):
            _, channel = await loop.create_connection(
                lambda: Channel(authority, "https" if context else "http", loop), host, port, ssl=context
            )
    except (OSError, TimeoutError) as error:
        why = str(error) or "context deadline exceeded"
        raise unavailable(f'connection error: desc = "transport: Error while dialing: {why}"') from None
    return channel
