"""One new connection: name look-up, TCP, TLS. Blocks the calling greenlet, nothing else."""

from __future__ import annotations

import _socket
import errno
import os
import ssl
from typing import Any, TypeAlias

import gevent
import msgspec
from gevent import get_hub
from gevent import socket as gevent_socket

from harness.transport.endpoints import Endpoint
from harness.transport.loopbudget import HANDSHAKES
from harness.transport.options import TransportOptions
from harness.transport.proxies import Proxy, refusal
from harness.transport.tls import ClientTls
from harness.wire.request import Failure, TransportError

READ, WRITE = 1, 2
"""Event masks of libev's io watchers."""

KEEPALIVE_S = 30
"""TCP keep-alive, client-go transport/cache.go ``net.Dialer.KeepAlive``. The only check that HTTP/1.1 streams have."""


_LONGEST_HEAD_BYTES = 65_536
"""Of a proxy's answer."""

Tls: TypeAlias = ssl.SSLContext | ClientTls
"""What gives a socket TLS."""


class PlainSocket(_socket.socket):
    """The operating system's socket, the same with and without monkey patching; the ssl module refers to it weakly."""

    __slots__ = ("__weakref__",)


class Dialled(msgspec.Struct, gc=False):
    """A connected non-blocking socket; `tls` is None without TLS, `protocol` what ALPN agreed on, "" for nothing."""

    endpoint: Endpoint
    sock: PlainSocket
    tls: Any
    protocol: str


def dial(
    endpoint: Endpoint,
    context: Tls | None,
    server_name: str,
    options: TransportOptions,
    proxy: Proxy | None = None,
) -> Dialled:
    """Connect to `endpoint`, through `proxy` where given. `server_name` is for SNI and the certificate's name; "" takes
    the endpoint's host.

    Raises TransportError with the endpoint's member, nothing else that a peer can cause.
    """
    limit = gevent.Timeout.start_new(options.connect_timeout_s)
    try:
        sock = _connect(endpoint) if proxy is None else _through(proxy, endpoint)
    except gevent.Timeout as expired:
        if expired is not limit:
            raise
        detail = f"no connection to {endpoint.authority} within {options.connect_timeout_s:g} s"
        raise TransportError(Failure.TIMEOUT, detail, endpoint.member) from None
    finally:
        limit.close()
    if context is None:
        return Dialled(endpoint, sock, None, "")
    limit = gevent.Timeout.start_new(options.tls_handshake_timeout_s)
    try:
        tls = _handshake(endpoint, sock, context, server_name or endpoint.host)
    except BaseException as error:
        sock.close()
        if error is limit:
            detail = (
                f"no TLS handshake with {endpoint.authority} within {options.tls_handshake_timeout_s:g} s"
            )
            raise TransportError(Failure.TIMEOUT, detail, endpoint.member) from None
        raise
    finally:
        limit.close()
    return Dialled(endpoint, sock, tls, tls.selected_alpn_protocol() or "")


def _connect(endpoint: Endpoint) -> PlainSocket:
    """A connected socket to the first address that takes one."""
    try:
        addresses = _resolve(endpoint)
    except OSError as error:
        raise _as_transport_error(endpoint, error) from error
    failure = OSError("the name has no address")
    for family, kind, protocol, _, address in addresses:
        try:
            return _connect_to(family, kind, protocol, address, endpoint.source)
        except OSError as error:
            failure = error
    raise _as_transport_error(endpoint, failure) from failure


def _through(proxy: Proxy, endpoint: Endpoint) -> PlainSocket:
    """A tunnel: CONNECT, and the proxy's answer to it (net/http transport.go, ``dialConn``)."""
    try:
        sock = _connect(Endpoint(proxy.host, proxy.port, endpoint.member))
    except TransportError as error:
        raise TransportError(error.failure, f"proxy: {error.detail}", endpoint.member) from error
    try:
        answer = _exchange(sock, proxy.request(endpoint.authority))
        problem = refusal(answer)
        if problem:
            detail = f"proxy {proxy.host}:{proxy.port} does not connect to {endpoint.authority}: {problem}"
            raise TransportError(Failure.PROTOCOL, detail, endpoint.member)
    except OSError as error:
        sock.close()
        raise _as_transport_error(endpoint, error) from error
    except BaseException:
        sock.close()
        raise
    return sock


def _exchange(sock: PlainSocket, request: bytes) -> bytes:
    """Send a request, which a fresh socket's buffer takes whole, and read the answer's head or what there is of it.
    Behind the head comes nothing: TLS has the client speak first."""
    sock.send(request)
    answer = b""
    while b"\r\n\r\n" not in answer and len(answer) < _LONGEST_HEAD_BYTES:
        _wait(sock, READ)
        piece = sock.recv(4096)
        if not piece:
            break
        answer += piece
    return answer


def _resolve(endpoint: Endpoint) -> list[Any]:
    """As getaddrinfo. Numbers need no resolver, which under gevent is a thread."""
    try:
        return _socket.getaddrinfo(
            endpoint.host, endpoint.port, 0, _socket.SOCK_STREAM, 0, _socket.AI_NUMERICHOST
        )
    except OSError:
        return list(gevent_socket.getaddrinfo(endpoint.host, endpoint.port, 0, _socket.SOCK_STREAM))


def _connect_to(family: int, kind: int, protocol: int, address: Any, source: str) -> PlainSocket:
    sock = PlainSocket(family, kind, protocol)
    try:
        sock.setblocking(False)
        if source:
            sock.bind((source, 0))
        sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_KEEPALIVE, 1)
        for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
            if hasattr(_socket, name):
                sock.setsockopt(_socket.IPPROTO_TCP, getattr(_socket, name), KEEPALIVE_S)
        code = sock.connect_ex(address)
        if code == errno.EINPROGRESS:
            _wait(sock, WRITE)
            code = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
    except BaseException:
        sock.close()
        raise
    return sock


def _handshake(endpoint: Endpoint, sock: PlainSocket, context: Any, name: str) -> Any:
    """TLS over the socket.

    `SSLContext._wrap_socket` gives the bare C object, which gevent's own SSLSocket is built on too: it takes the plain
    socket under monkey patching as well, and costs 5 KB a connection less than memory BIOs and 1 KB less than an
    SSLSocket.
    """
    try:
        tls = HANDSHAKES.run(lambda: context._wrap_socket(sock, False, name))
        while True:
            try:
                HANDSHAKES.run(tls.do_handshake)
                return tls
            except ssl.SSLWantReadError:
                _wait(sock, READ)
            except ssl.SSLWantWriteError:
                _wait(sock, WRITE)
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError) as error:
        detail = f"{endpoint.authority} closed the connection during the TLS handshake"
        raise TransportError(Failure.RESET, detail, endpoint.member) from error
    except ssl.SSLError as error:
        detail = f"TLS handshake with {endpoint.authority} for {name!r}: {describe_tls(error)}"
        raise TransportError(Failure.TLS, detail, endpoint.member) from error
    except OSError as error:
        raise _as_transport_error(endpoint, error) from error


def describe_tls(error: ssl.SSLError) -> str:
    """One line without OpenSSL's file names: ``certificate verify failed: self-signed certificate``."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    return (error.reason or str(error)).lower().replace("_", " ")


def _as_transport_error(endpoint: Endpoint, error: OSError) -> TransportError:
    """Only a refusal is REFUSED: reflectors treat it apart from the rest (client-go tools/cache/reflector.go:815)."""
    kind = {
        errno.ECONNREFUSED: Failure.REFUSED,
        errno.ETIMEDOUT: Failure.TIMEOUT,
    }.get(error.errno or 0, Failure.RESET)
    detail = f"cannot connect to {endpoint.authority}: {error.strerror or error}"
    return TransportError(kind, detail, endpoint.member)


def _wait(sock: PlainSocket, events: int) -> None:
    hub = get_hub()
    watcher = hub.loop.io(sock.fileno(), events)
    try:
        hub.wait(watcher)
    finally:
        watcher.close()
