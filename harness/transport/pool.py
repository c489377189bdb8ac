"""The transport of one simulated node: which connection takes a request, when to dial, what is sent again."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import TypeAlias

import gevent

from harness.transport.credentials import Bearer
from harness.transport.dialing import Dialled, Tls, dial
from harness.transport.endpoints import Endpoint, Endpoints
from harness.transport.handles import Handle
from harness.transport.http1 import Http1Connection
from harness.transport.http2 import Http2Connection
from harness.transport.options import HttpMode, TransportOptions
from harness.transport.proxies import Proxy
from harness.transport.sinks import Answer, Sink, UnarySink
from harness.transport.tally import Count, Tally, TransportStatistics
from harness.transport.timers import Timer, Timers
from harness.wire.draws import Draws
from harness.wire.request import Failure, Request, TransportError

logger = logging.getLogger(__name__)

Headers: TypeAlias = Mapping[str, str | Sequence[str]]
"""Header names to one value or several (``Impersonate-Group``)."""

HttpConnection: TypeAlias = Http2Connection | Http1Connection

MAX_RETRIES = 6
"""Sends of a request after the first: golang.org/x/net/http2 transport.go, ``RoundTripOpt``."""

FIRST_BACKOFF_S = 1.0
"""Wait before the second retry; it doubles with each further one. The first retry does not wait."""

_BODY_METHODS = frozenset(("POST", "PUT", "PATCH"))


class Transport:
    """Carries the requests of one node.

    `headers` go with every request (User-Agent, Impersonate-*), and so does what `bearer` has. `tls` is shared by all
    transports of a process (`tls.client_context`), or has the node's certificate (`tls.ClientTls`); None is cleartext.
    `server_name` is what certificates are checked for; "" takes the endpoint's host. `http` is explained at `HttpMode`.
    `timers` are the worker's, and `tally` may be.

    Nothing here blocks or raises for what a peer did: every failure reaches the sink as a TransportError that names
    the member. All of it belongs to one thread.
    """

    __slots__ = (
        "__weakref__", "_backing_off", "_bearer", "_closed", "_connections", "_dials", "_endpoints", "_gone_received",
        "_gone_sent", "_headers", "_http", "_idle", "_options", "_owed", "_path_prefix", "_protocol", "_proxy", "_rng",
        "_scheme", "_server_name", "_tally", "_timers", "_tls", "_waiting", "members_talked_to",
    )  # fmt: skip

    def __init__(
        self,
        endpoints: Endpoints,
        tls: Tls | None,
        timers: Timers,
        *,
        server_name: str = "",
        http: HttpMode = "auto",
        headers: Headers | None = None,
        path_prefix: str = "",
        options: TransportOptions | None = None,
        rng: Draws | None = None,
        bearer: Bearer | None = None,
        proxy: Proxy | None = None,
        tally: Tally | None = None,
    ) -> None:
        self._endpoints = endpoints
        self._tls = tls
        self._timers = timers
        self._server_name = server_name
        self._http = http
        self._options = options or TransportOptions()
        self._rng = rng or Random()
        self._path_prefix = path_prefix.rstrip("/")
        self._scheme = b"http" if tls is None else b"https"
        self._headers = _encode_headers(headers or {})
        # What connections will speak; "" until the first TLS handshake says it.
        self._protocol = _protocol_without_asking(http, tls)
        self._connections: list[HttpConnection] = []
        self._idle: list[Http1Connection] = []
        self._waiting: list[Handle] = []
        self._dials: dict[gevent.Greenlet, Endpoint] = {}
        self._backing_off: dict[Handle, Timer] = {}
        self._bearer = bearer
        self._proxy = proxy
        self._tally = tally or Tally()
        self._closed = False
        self._gone_received = self._gone_sent = self._owed = 0
        self.members_talked_to: frozenset[str] = frozenset()
        """Members that have answered a request."""

    def __repr__(self) -> str:
        return (
            f"<Transport {self._protocol or self._http} connections={self._connections}"
            f" waiting={self.waiting} dialling={len(self._dials)}{' closed' if self._closed else ''}>"
        )

    # ---- what users call --------------------------------------------------------------------------------------------
    def send(self, request: Request, sink: Sink) -> Handle:
        """Send now or as soon as there is a connection; never blocks.

        The request's `timeout_s` counts from here, waiting for a connection included.
        """
        timers = self._timers
        handle = Handle(self, request, sink)
        if self._closed:
            timers.dispatcher.push(
                lambda: self.end(handle, TransportError(Failure.CLOSED, "transport is closed"))
            )
            return handle
        limit = request.timeout_s
        if limit is None and not request.is_stream:
            limit = self._options.unary_timeout_s
        if limit is not None:
            handle.deadline = timers.call_later(limit, self._expire, handle, limit)
        self._place_or_wait(handle)
        return handle

    def unary(self, request: Request, callback: Callable[[Answer], object]) -> Handle:
        """Send, and have the whole answer given to `callback`: a Response of any status, or a TransportError."""
        return self.send(request, UnarySink(callback))

    def statistics(self) -> TransportStatistics:
        connections = self._connections
        return TransportStatistics(
            dialled=self._tally.of(Count.DIALLED),
            failed_dials=self._tally.of(Count.DIAL_FAILED),
            open_connections=dict(Counter(connection.member for connection in connections)),
            open_streams=sum(connection.open_streams for connection in connections),
            waiting=self.waiting,
            retries=sum(self._tally.of(Count.RETRIED).values()),
            sent_bytes=self._gone_sent + sum(connection.sent_bytes for connection in connections),
            received_bytes=self._gone_received + sum(connection.received_bytes for connection in connections),
        )

    @property
    def waiting(self) -> int:
        """Requests without a connection, those that wait to be sent again included."""
        return sum(not handle.done for handle in self._waiting) + len(self._backing_off)

    def close_connections(self) -> None:
        """Close all connections, as a kubelet does when its certificate is renewed or its heartbeats fail (client-go
        connrotation, ``CloseAll``). Their requests end with CLOSED; new ones, and those that wait, go to new ones."""
        connections = tuple(self._connections)
        for connection in connections:
            connection.hang_up()  # all of them, before anybody who hears of it sends something new
        for connection in connections:
            self._tally.add(Count.CLOSED, connection.member)
            detail = "all connections of the client were closed"
            connection.close(TransportError(Failure.CLOSED, detail, connection.member))

    def kill(self) -> None:
        """Close as a process does that is killed: its peers get no goodbye, only what the kernel sends. Requests end
        with CLOSED."""
        for connection in tuple(self._connections):
            connection.hang_up(killed=True)
        self.close()

    @property
    def tls(self) -> Tls | None:
        """What connections are made with."""
        return self._tls

    def use_tls(self, tls: Tls) -> None:
        """From the next connection on; those that are open stay as they are."""
        self._tls = tls

    def close(self) -> None:
        """Close all connections and end every request with CLOSED; does nothing the second time."""
        if self._closed:
            return
        self._closed = True
        dials, self._dials = self._dials, {}
        for greenlet, endpoint in dials.items():
            self._endpoints.closed(endpoint.member)
            # A dial's greenlet never runs callbacks, so this is not one of them; kill() waits until it has gone.
            greenlet.kill()
            if isinstance(greenlet.value, Dialled):
                greenlet.value.sock.close()
        error = TransportError(Failure.CLOSED, "transport is closed")
        for connection in tuple(self._connections):
            connection.close(TransportError(Failure.CLOSED, "transport is closed", connection.member))
        backing_off, self._backing_off = self._backing_off, {}
        for timer in backing_off.values():
            timer.cancel()
        waiting, self._waiting = self._waiting, []
        for handle in (*waiting, *backing_off):
            self.end(handle, error)

    # ---- placing ----------------------------------------------------------------------------------------------------
    def place_waiting(self) -> None:
        """Give waiting requests, oldest first, to connections that can take them; dial for the rest."""
        waiting = self._waiting
        while waiting:
            if not waiting[0].done:
                connection = self._free_connection()
                if connection is None:
                    break
                self._submit(connection, waiting[0])
            del waiting[0]
        if waiting:
            self._dial_if_needed()

    def _place_or_wait(self, handle: Handle) -> None:
        connection = None if self._waiting else self._free_connection()
        if connection is not None:
            self._submit(connection, handle)
        else:
            self._waiting.append(handle)
            self._dial_if_needed()

    def _free_connection(self) -> HttpConnection | None:
        """HTTP/2: the first that can take another stream; HTTP/1.1: the one that became idle last, as in Go."""
        while self._idle:
            connection = self._idle.pop()
            if connection.can_take():
                return connection
        for candidate in self._connections:
            if isinstance(candidate, Http2Connection) and candidate.can_take():
                return candidate
        return None

    def _submit(self, connection: HttpConnection, handle: Handle) -> None:
        assert handle.request is not None
        connection.submit(handle, handle.request)

    def _dial_if_needed(self) -> None:
        """One dial at a time serves all that wait (x/net/http2 client_conn_pool.go, ``getStartDialLocked``); with
        HTTP/1.1 each waiting request needs its own."""
        wanted = self.waiting - len(self._backing_off) if self._protocol == "http/1.1" else 1
        while len(self._dials) < wanted and not self._closed:
            endpoint = self._endpoints.choose()
            greenlet = gevent.Greenlet(self._dial, endpoint)
            self._dials[greenlet] = endpoint
            greenlet.start()

    def _dial(self, endpoint: Endpoint) -> Dialled | None:
        """In a greenlet of its own; what comes of it is handled in the dispatcher, or by `close`."""
        greenlet = gevent.getcurrent()
        try:
            dialled = dial(endpoint, self._tls, self._server_name, self._options, self._proxy)
        except TransportError as error:
            failure = error.with_traceback(None)
            self._timers.dispatcher.push(lambda: self._dial_failed(greenlet, endpoint, failure))
            return None
        self._timers.dispatcher.push(lambda: self._connected(greenlet, dialled))
        return dialled

    def _connected(self, greenlet: gevent.Greenlet, dialled: Dialled) -> None:
        if self._closed:
            return  # close() has closed the socket
        self._dial_over(greenlet)
        member = dialled.endpoint.member
        # Without an agreement on TLS it is HTTP/1.1, as in Go.
        protocol = self._protocol if self._tls is None else dialled.protocol or "http/1.1"
        if self._http not in ("auto", protocol):
            dialled.sock.close()
            agreed = dialled.protocol or "no protocol"
            detail = f"{dialled.endpoint.authority} agreed to {agreed}, wanted is {self._http}"
            self._dial_failed(greenlet, dialled.endpoint, TransportError(Failure.PROTOCOL, detail, member))
            return
        self._protocol = protocol
        self._established(member)
        connection: HttpConnection
        if protocol == "h2":
            connection = Http2Connection(self, dialled, self._timers, self._options)
            self._connections.append(connection)
            self.place_waiting()
        else:
            connection = Http1Connection(self, dialled, self._timers, self._options)
            self._connections.append(connection)
            self.connection_idle(connection)

    def _dial_over(self, greenlet: gevent.Greenlet) -> None:
        self._dials.pop(greenlet, None)

    def _established(self, member: str) -> None:
        self._endpoints.succeeded()
        self._tally.add(Count.DIALLED, member)
        if self._owed:
            self._owed -= 1
            self._tally.add(Count.REDIALLED, member)

    def _dial_failed(self, greenlet: gevent.Greenlet, endpoint: Endpoint, error: TransportError) -> None:
        """The requests that waited for this dial fail; Go does not dial again for them either."""
        self._dial_over(greenlet)
        self._endpoints.failed(endpoint)
        self._tally.add(Count.DIAL_FAILED, endpoint.member)
        waiting = self._waiting
        if self._protocol == "http/1.1":
            while waiting and waiting[0].done:
                del waiting[0]
            failed = [waiting.pop(0)] if waiting else []
        else:
            failed, self._waiting = waiting, []
        for handle in failed:
            self.end(handle, error)
        if self._waiting:
            self._dial_if_needed()

    # ---- what connections tell --------------------------------------------------------------------------------------
    def head_of(self, request: Request, authority: bytes) -> list[tuple[bytes, bytes]]:
        """Four pseudo-headers in Go's order (authority, method, path, scheme), then the request's headers."""
        head = [
            (b":authority", authority),
            (b":method", request.method.encode()),
            (b":path", (self._path_prefix + request.path).encode()),
            (b":scheme", self._scheme),
            (b"accept", request.accept.encode()),
        ]
        if request.content_type:
            head.append((b"content-type", request.content_type.encode()))
        if request.body or request.method in _BODY_METHODS:
            head.append((b"content-length", b"%d" % len(request.body)))
        head += self._headers
        bearer = self._bearer
        if bearer is not None and bearer.field is not None:
            head.append(bearer.field)
        return head

    def heard_from(self, member: str) -> None:
        """A member has answered."""
        if member not in self.members_talked_to:
            self.members_talked_to = _with(self.members_talked_to, member)

    def refused(self) -> None:
        """A server answered 401."""
        if self._bearer is not None:
            self._bearer.on_refused()

    def connection_lost(self, member: str) -> None:
        """A connection broke, or the peer closed it, while it carried requests."""
        self._tally.add(Count.LOST, member)
        self._owed += 1

    def told_to_go_away(self, member: str) -> None:
        """A connection got its first GOAWAY."""
        self._tally.add(Count.GOAWAY, member)
        self._owed += 1

    def stream_reset(self, member: str) -> None:
        self._tally.add(Count.STREAM_RESET, member)

    def connection_idle(self, connection: Http1Connection) -> None:
        """An HTTP/1.1 connection has nothing to do: it serves who waits, is kept, or is closed where enough are."""
        self._idle.append(connection)
        self.place_waiting()
        if connection not in self._idle:
            return
        if len(self._idle) > self._options.max_idle_http1:
            connection.close(TransportError(Failure.CLOSED, "enough idle connections", connection.member))
        else:
            connection.idle()

    def connection_closed(self, connection: HttpConnection) -> None:
        """Forget it; its requests are ended by itself. Those that wait may need a new one."""
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        self._endpoints.closed(connection.member)
        if isinstance(connection, Http1Connection) and connection in self._idle:
            self._idle.remove(connection)
        self._gone_received += connection.received_bytes
        self._gone_sent += connection.sent_bytes
        if self._waiting and not self._closed:
            self._dial_if_needed()

    def retry(self, handle: Handle, reason: str, member: str) -> None:
        """The peer has provably not processed this request: send it again, at once the first time, then after 1, 2,
        4... seconds with 10 % jitter (x/net/http2 transport.go, ``RoundTripOpt``)."""
        if handle.done:
            return
        handle.carrier = None
        if handle.attempts >= MAX_RETRIES or self._closed:
            self.end(
                handle, TransportError(Failure.RESET, f"{reason}, after {handle.attempts} retries", member)
            )
            return
        handle.attempts += 1
        self._tally.add(Count.RETRIED, member)
        if handle.attempts == 1:
            self._place_or_wait(handle)
            return
        delay_s = FIRST_BACKOFF_S * 2.0 ** (handle.attempts - 2) * (1 + 0.1 * self._rng.random())
        self._backing_off[handle] = self._timers.call_later(delay_s, self._send_again, handle)

    def _send_again(self, handle: Handle) -> None:
        del self._backing_off[handle]
        self._place_or_wait(handle)

    # ---- ends -------------------------------------------------------------------------------------------------------
    def end(self, handle: Handle, error: TransportError | None) -> None:
        """Tell the sink that this was all; does nothing for a request that was cancelled."""
        sink = handle.sink
        if sink is None:
            return
        self._forget(handle)
        try:
            sink.on_end(error)
        except Exception:
            logger.exception("error in a sink's on_end, %r", sink)

    def cancel(self, handle: Handle) -> None:
        """`Handle.cancel`."""
        carrier = handle.carrier
        self._forget(handle)
        timer = self._backing_off.pop(handle, None)
        if timer is not None:
            timer.cancel()
        if carrier is not None:
            carrier.abandon(handle)

    def sink_raised(self, handle: Handle) -> None:
        """Called from the except block: log it, and call this sink no more."""
        logger.exception("error in a sink, its stream is reset, %r", handle.sink)
        self._forget(handle)

    def _forget(self, handle: Handle) -> None:
        handle.sink = None
        if handle.deadline is not None:
            handle.deadline.cancel()
            handle.deadline = None

    def _expire(self, handle: Handle, limit_s: float) -> None:
        sink, carrier = handle.sink, handle.carrier
        if sink is None:
            return
        where = "waiting for a connection" if carrier is None else "waiting for the answer"
        if handle.request is None:
            where = "in the middle of the answer"
        member = handle.member
        self.cancel(handle)
        handle.sink = sink
        self.end(handle, TransportError(Failure.TIMEOUT, f"no end within {limit_s:g} s, {where}", member))


def _protocol_without_asking(http: HttpMode, tls: Tls | None) -> str:
    """What connections speak where no ALPN decides: "" where it will."""
    if tls is not None:
        return "" if http == "auto" else http
    return "http/1.1" if http == "auto" else http


@lru_cache(maxsize=256)
def _with(members: frozenset[str], member: str) -> frozenset[str]:
    """One set for all nodes that have talked to the same members."""
    return members | {member}


def _encode_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [
        _field(name, one)
        for name, value in headers.items()
        for one in ((value,) if isinstance(value, str) else value)
    ]


@lru_cache(maxsize=64)
def _field(name: str, value: str) -> tuple[bytes, bytes]:
    """Nodes differ in the one that says who they are."""
    return name.lower().encode("ascii"), value.encode("latin-1")
