"""The emulated apiserver's listener: asyncio (uvloop where the process runs it), TLS with ALPN, a session each.

Over TLS the client chooses by ALPN (h2, http/1.1); without TLS, or without ALPN, by its first bytes: those of an
HTTP/2 preface make an HTTP/2 session. What sessions do stands in `harness.apiserver.serving`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from harness.apiserver.clock import Clock, Timer
from harness.apiserver.exchange import ClientCertificate
from harness.apiserver.process.clientcertificate import client_certificate
from harness.apiserver.serving.common import (
    Channel,
    Handler,
    Serving,
    ServingOptions,
    Session,
    log,
)
from harness.apiserver.serving.http1 import Http1Session
from harness.apiserver.serving.http2 import Http2Session
from harness.wire.errors import ConfigError
from harness.wire.http2.frames import PREFACE

_BACKLOG = 4096

_NO_CHECK_TIME = 0x200000  # OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which Python has no name for

_ACCEPTS = 64
"""Connections accepted in one turn of the loop; more wait for the next, so that those open are served too."""

_ACCEPT_RETRY_S = 1.0

_TLS_SHUTDOWN_S = 1.0
"""How long a closing TLS connection waits for the peer's close_notify; Go does not wait at all."""

_DISTINCT = 4
"""Bytes after which an HTTP/2 preface cannot be a method of HTTP/1.1 ("PRI " is reserved, RFC 9113, 11.3)."""

DEFAULTS = ServingOptions()

OnConnection = Callable[[Callable[[], None]], object]
"""(go on) -> ...: called once for each TLS connection whose handshake is done; it is read once `go on` is called."""


def _at_once(go_on: Callable[[], None]) -> None:
    go_on()


@dataclass(frozen=True)
class ServerStatistics:
    """`connections` are open now; `handshakes` are TLS handshakes under way, `handshake_errors` those that failed."""

    connections: int
    http2: int
    http1: int
    accepted: int
    handshakes: int
    handshake_errors: int


class Server:
    """A listening server. `port` is the one bound."""

    def __init__(
        self, serving: Serving, context: ssl.SSLContext | None, on_connection: OnConnection = _at_once
    ) -> None:
        self.on_connection = on_connection
        self._serving = serving
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._listener: socket.socket | None = None
        self._undecided: set[_Accepted] = set()
        self._establishing: set[asyncio.Task[None]] = set()
        self._accepted = 0
        self._handshake_errors = 0
        self._closed = asyncio.Event()
        self._sweep_timer: Timer | None = None
        self._grace_timer: Timer | None = None
        self._refusing = False
        self.host, self.port = "", 0
        serving.on_session_end = self._check_closed

    def listen(self, host: str, port: int) -> None:
        """Bind and accept. Raises ConfigError."""
        try:
            listener = socket.create_server((host, port), family=_family(host), backlog=_BACKLOG)
        except OSError as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        listener.setblocking(False)
        self._listener = listener
        self.host, self.port = host, listener.getsockname()[1]
        self._resume_accepting()
        self._sweep()

    def sessions(self) -> list[Session]:
        """The connections whose protocol is known."""
        return list(self._serving.sessions)

    # ---- faults ------------------------------------------------------------------------------------------------
    def refuse(self) -> None:
        """Have the system refuse new connections (a fault); the port stays ours."""
        if self._listener is None or self._refusing:
            return
        self._refusing = True
        self._loop.remove_reader(self._listener)
        self._listener.close()
        # Bound and not listening: the system answers a SYN with RST, and nobody else takes the port.
        self._listener = socket.socket(_family(self.host), socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.setblocking(False)
        self._listener.bind((self.host, self.port))

    def accept_again(self) -> None:
        """After `refuse`."""
        if self._listener is not None and self._refusing:
            self._refusing = False
            self._listener.listen(_BACKLOG)
            self._resume_accepting()

    def statistics(self) -> ServerStatistics:
        sessions = self._serving.sessions
        http2 = sum(isinstance(session, Http2Session) for session in sessions)
        return ServerStatistics(
            connections=len(sessions) + len(self._undecided),
            http2=http2,
            http1=len(sessions) - http2,
            accepted=self._accepted,
            handshakes=len(self._establishing),
            handshake_errors=self._handshake_errors,
        )

    def shutdown(self, grace_s: float = 60.0) -> None:
        """As on SIGTERM: refuse connections and send GOAWAY at once; open requests, watches too, go on for at most
        `grace_s`. `wait_closed()` returns when no connection is left."""
        self._stop_listening()
        if self._grace_timer is not None:
            return
        self._serving.drain()
        clock = self._serving.clock
        self._grace_timer = clock.call_at(clock.now() + grace_s, self.close)
        for connection in list(self._undecided):
            connection.abort()
        self._check_closed()

    def close(self) -> None:
        """Cut every connection off now."""
        self._stop_listening()
        for timer in (self._sweep_timer, self._grace_timer):
            if timer is not None:
                timer.cancel()
        self._serving.draining = True
        for task in self._establishing:
            task.cancel()
        for connection in list(self._undecided):
            connection.abort()
        for session in list(self._serving.sessions):
            session.channel.transport.abort()
        self._check_closed()

    async def wait_closed(self) -> None:
        """Wait until `shutdown()` or `close()` has ended the last connection."""
        await self._closed.wait()

    def _stop_listening(self) -> None:
        if self._listener is not None:
            if not self._refusing:
                self._loop.remove_reader(self._listener)
            self._listener.close()
            self._listener = None

    def _sweep(self) -> None:
        clock, options = self._serving.clock, self._serving.options
        self._serving.sweep()
        for connection in list(self._undecided):
            if connection.since <= clock.now() - options.header_timeout_s:
                connection.abort()
        self._sweep_timer = clock.call_at(clock.now() + options.sweep_s, self._sweep)

    def _check_closed(self) -> None:
        if (
            self._listener is None
            and not self._serving.sessions
            and not self._undecided
            and not self._establishing
        ):
            for timer in (self._sweep_timer, self._grace_timer):
                if timer is not None:
                    timer.cancel()
            self._closed.set()

    # ---- accepting ---------------------------------------------------------------------------------------------
    def _accept(self) -> None:
        """The listening socket has connections."""
        assert self._listener is not None, "a closed listener has no reader"
        for _ in range(_ACCEPTS):
            try:
                connection, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                # Too few file descriptors, most likely: those that wait are looked at again when some may be free.
                log.error("cannot accept a connection: %s", error)
                self._loop.remove_reader(self._listener)
                self._loop.call_later(_ACCEPT_RETRY_S, self._resume_accepting)
                return
            self._accepted += 1
            connection.setblocking(False)
            task = self._loop.create_task(self._establish(connection, f"{address[0]}:{address[1]}"))
            self._establishing.add(task)
            task.add_done_callback(self._established)

    def _resume_accepting(self) -> None:
        if self._listener is not None and not self._refusing:
            self._loop.add_reader(self._listener, self._accept)

    async def _establish(self, connection: socket.socket, peer: str) -> None:
        """Make a transport of an accepted socket, TLS handshake included."""
        timeouts: dict[str, float] = {}
        if self._context is not None:
            timeouts["ssl_handshake_timeout"] = self._serving.options.header_timeout_s
            timeouts["ssl_shutdown_timeout"] = _TLS_SHUTDOWN_S
        try:
            await self._loop.connect_accepted_socket(
                lambda: _Accepted(self, peer, self._serving.clock.now()),
                connection,
                ssl=self._context,
                **timeouts,
            )
        except OSError as error:  # ssl.SSLError, a reset, a timeout
            self._handshake_errors += 1
            log.info("http: TLS handshake error from %s: %s", peer, str(error) or type(error).__name__)

    def _established(self, task: asyncio.Task[None]) -> None:
        self._establishing.discard(task)
        self._check_closed()

    def undecided(self, connection: _Accepted) -> None:
        """The connection is there, its protocol not known yet."""
        self._undecided.add(connection)
        if self._listener is None:
            connection.abort()

    def forget(self, connection: _Accepted) -> None:
        """The connection has ended before its protocol was known."""
        self._undecided.discard(connection)
        self._check_closed()

    def begin(self, connection: _Accepted, channel: Channel, kind: type[Session], data: bytes) -> None:
        """The connection's protocol is known; `data` has been read already."""
        self._undecided.discard(connection)
        session = kind(self._serving, channel)
        transport = cast(asyncio.Transport, channel.transport)
        transport.set_protocol(cast(asyncio.BaseProtocol, session))
        if data:
            session.data_received(data)


class _Accepted(asyncio.Protocol):
    """A connection whose protocol is not known yet: the TLS handshake is done and has to be paid for, or its first
    bytes are awaited."""

    def __init__(self, server: Server, peer: str, since: float) -> None:
        self._server = server
        self._peer = peer
        self._first = b""
        self._certificate: ClientCertificate | None = None
        self._transport: asyncio.Transport | None = None
        self._gone = False
        self.since = since

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.undecided(self)
        if transport.get_extra_info("ssl_object") is not None:
            self._transport.pause_reading()
            self._server.on_connection(self._secured)

    def _secured(self) -> None:
        """The handshake has been paid for."""
        if self._gone:
            return
        assert self._transport is not None, "connection_made comes first"
        self._transport.resume_reading()
        secured = self._transport.get_extra_info("ssl_object")
        self._certificate = client_certificate(secured)
        chosen = secured.selected_alpn_protocol()
        if chosen is not None:
            self._begin(Http2Session if chosen == "h2" else Http1Session)

    def data_received(self, data: bytes) -> None:
        self._first += data
        if self._first.startswith(PREFACE[:_DISTINCT]):
            self._begin(Http2Session)
        elif not PREFACE.startswith(self._first):
            self._begin(Http1Session)

    def _begin(self, kind: type[Session]) -> None:
        assert self._transport is not None, "connection_made comes first"
        channel = Channel(self._transport, self._peer, self._certificate)
        self._server.begin(self, channel, kind, self._first)

    def connection_lost(self, _: Exception | None) -> None:
        self._gone = True
        self._server.forget(self)

    def abort(self) -> None:
        assert self._transport is not None, "connection_made comes first"
        self._transport.abort()


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


async def serve(
    handler: Handler,
    host: str,
    port: int,
    ssl_context: ssl.SSLContext | None,
    clock: Clock,
    options: ServingOptions = DEFAULTS,
    on_connection: OnConnection = _at_once,
) -> Server:
    """Listen on `host`:`port` (0: any free port) and give each request to `handler`, which must not block.

    `ssl_context` None serves cleartext; otherwise its ALPN protocols should be ``h2`` and ``http/1.1``
    (`server_context()`). `on_connection` may hold up what a TLS connection asks. Raises ConfigError where the address
    cannot be bound.
    """
    loop = asyncio.get_running_loop()
    server = Server(Serving(handler, clock, loop.call_soon, options), ssl_context, on_connection)
    server.listen(host, port)
    return server


def server_context(certificate: str, key: str, client_ca: str | None = None) -> ssl.SSLContext:
    """TLS as a kube-apiserver serves it: ALPN h2 and http/1.1; client certificates are asked for where `client_ca` is
    given, and not required. Their time is for the authenticator to check. Paths of PEM files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2", "http/1.1"])
    if client_ca is not None:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags |= _NO_CHECK_TIME
    return context
