"""One request under way, as the apiserver's core sees it.

The serving shell makes one for each HTTP/2 stream or HTTP/1.1 request and gives it to the core; tests make their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec


class ClientCertificate(msgspec.Struct, frozen=True):
    """What a client has shown in its TLS handshake and the server's authority has signed. Times are seconds since 1970;
    `fingerprint` is the SHA-256 of the whole, in hex."""

    common_name: str
    organizations: tuple[str, ...]
    not_before: float
    not_after: float
    fingerprint: str


class Exchange(Protocol):
    """Request in, answer out. All calls come from the thread of the clock.

    `path` includes the query; header names are lower case. `peer` is the client's address. `http2`: it is a stream
    of an HTTP/2 connection. `certificate` is the connection's, None where the client has shown none.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    peer: str
    http2: bool

    @property
    def certificate(self) -> ClientCertificate | None: ...

    def respond(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        """The whole answer; content-length and date are added by the shell. Ignored when the client has gone."""
        ...

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Head of a streamed answer."""
        ...

    def write(self, data: bytes) -> None:
        """More of a streamed answer; never blocks. What the client does not take adds to `buffered`."""
        ...

    def finish(self) -> None:
        """Clean end of a streamed answer."""
        ...

    def abort(self, code: int = 2) -> None:
        """Break the stream: RST_STREAM with this code (RFC 9113, 7; 2 is INTERNAL_ERROR), or close the connection in
        HTTP/1.1."""
        ...

    def go_away(self) -> None:
        """Have the client's connection take no further request; what is open goes on."""
        ...

    @property
    def buffered(self) -> int:
        """Bytes written but not yet taken by the client (flow-control window or socket)."""
        ...

    def on_drain(self, callback: Callable[[], None]) -> None:
        """Call once when `buffered` is 0 again."""
        ...

    def on_gone(self, callback: Callable[[], None], *, instead: bool = False) -> None:
        """Call when the client cancels or disconnects before the answer is complete; at once if it already has.
        `instead` of whoever was to be called."""
        ...
