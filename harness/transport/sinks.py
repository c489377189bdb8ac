"""Who gets what comes back for a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from harness.wire.request import Response, TransportError

Answer: TypeAlias = Response | TransportError


class Sink(Protocol):
    """Receives one answer: `on_head` at most once, `on_data` any number of times, `on_end` once, last.

    All are called in the dispatcher's greenlet and must not block; they may send and cancel requests. After
    `Handle.cancel()` nothing is called. One that raises is logged and its stream is reset; nothing more is called.
    """

    def on_head(self, status: int, headers: dict[str, str], member: str) -> None:
        """Status and headers, names in lower case; `member` is the endpoint that answers."""
        ...

    def on_data(self, data: bytes) -> None:
        """A piece of the body, in any split."""
        ...

    def on_end(self, error: TransportError | None) -> None:
        """Clean end (None), or why there is no (or only part of an) answer."""
        ...


class UnarySink:
    """Collects one whole answer for a callback; a broken answer is the error alone."""

    __slots__ = ("_body", "_callback", "_headers", "_member", "_more", "_status")

    def __init__(self, callback: Callable[[Answer], object]) -> None:
        self._callback = callback
        self._status = 0
        self._headers: dict[str, str] = {}
        self._member = ""
        self._body = b""
        self._more: list[bytes] | None = None

    def on_head(self, status: int, headers: dict[str, str], member: str) -> None:
        self._status, self._headers, self._member = status, headers, member

    def on_data(self, data: bytes) -> None:
        if self._more is not None:
            self._more.append(data)
        elif self._body:
            self._more = [self._body, data]
        else:
            self._body = data

    def on_end(self, error: TransportError | None) -> None:
        if error is not None:
            self._callback(error)
            return
        body = self._body if self._more is None else b"".join(self._more)
        self._callback(Response(self._status, self._headers, body, self._member))
