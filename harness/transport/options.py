"""What a transport can be told about time and size; the defaults are client-go's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

HttpMode: TypeAlias = Literal["auto", "h2", "http/1.1"]
"""``auto``: HTTP/2 where the peer's TLS agrees to it, else HTTP/1.1, as Go does; without TLS that is HTTP/1.1.
``h2``: HTTP/2 only, without TLS by prior knowledge. ``http/1.1``: HTTP/1.1 only."""


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """Seconds unless the name says otherwise."""

    connect_timeout_s: float = 30.0
    """client-go transport/cache.go, ``net.Dialer.Timeout``; covers the look-up of the name too."""

    tls_handshake_timeout_s: float = 10.0
    """client-go transport/cache.go, ``TLSHandshakeTimeout``."""

    read_idle_s: float = 30.0
    """HTTP/2: PING after so long without a frame from the peer; 0: never. apimachinery net/http.go."""

    ping_timeout_s: float = 15.0
    """HTTP/2: the connection is given up when a PING has no answer after so long. apimachinery net/http.go."""

    idle_timeout_s: float = 90.0
    """A connection without a request is closed after so long; 0: never. net/http ``DefaultTransport.IdleConnTimeout``,
    which apimachinery net/http.go copies."""

    unary_timeout_s: float | None = None
    """For a request that has no `timeout_s` of its own and is not a stream. None: no limit, as in client-go, where
    the server's own limit (60 s) and the PING end what hangs."""

    max_idle_http1: int = 25
    """Unused HTTP/1.1 connections that are kept; client-go transport/cache.go, ``idleConnsPerHost``."""

    streams_per_connection: int | None = None
    """HTTP/2: requests, watches included, that one connection carries at once before another is dialled. None: as many
    as the peer's SETTINGS allow, as in Go (``StrictMaxConcurrentStreams`` is false)."""
