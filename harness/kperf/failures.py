"""Failures sorted and named as kperf does (kperf/metrics/request.go: ObserveFailure, utils.go)."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from harness.wire.objectviews import view_decoder
from harness.wire.request import Failure, Response, TransportError

_CONNECTION = {
    Failure.REFUSED: "connection refused",
    Failure.RESET: "connection reset by peer",
    Failure.TIMEOUT: "context deadline exceeded",
}
"""Go's words for it (syscall.Errno, context.DeadlineExceeded)."""

CONNECTION_LOST = "http2: client connection lost"
"""utils.go: errHTTP2ClientConnectionLost."""

NO_BOOKMARK = "don't receive bookmark"
"""requester.go: WatchListRequester.Do, of a stream that ends before its initial events do."""


class RequestFailure(NamedTuple):
    """`type` is http, http2-protocol, connection or unknown; `code` is that of HTTP, `message` says what it was where
    there is none."""

    type: str
    code: int = 0
    message: str = ""

    @property
    def key(self) -> str:
        """As in errorStats (utils.go: BuildErrorStatsGroupByType)."""
        return f"{self.type}/{self.code or self.message}"


def of_key(key: str) -> RequestFailure:
    """The failure that has this key."""
    kind, _, rest = key.partition("/")
    return RequestFailure(kind, code=int(rest)) if kind == "http" else RequestFailure(kind, message=rest)


def of_answer(response: Response) -> RequestFailure | None:
    """None for an answer 2xx."""
    return None if response.ok else RequestFailure("http", code=response.status)


def of_error(error: TransportError) -> RequestFailure:
    message = _CONNECTION.get(error.failure)
    if message is not None:
        return RequestFailure("connection", message=message)
    if error.failure is Failure.LOST:
        return RequestFailure("http2-protocol", message=CONNECTION_LOST)
    if error.failure is Failure.PROTOCOL:
        return RequestFailure("http2-protocol", message=error.detail)
    return RequestFailure("unknown", message=error.failure.value)


class _Status(msgspec.Struct):
    code: int = 0


_decode_status = view_decoder(_Status)


def of_event(body: bytes) -> RequestFailure:
    """Of an ERROR event in a stream, whose object is a Status."""
    try:
        code = _decode_status(body).code
    except (msgspec.DecodeError, UnicodeDecodeError):
        code = 0
    return RequestFailure("http", code=code) if code else RequestFailure("unknown", message="an error event")
