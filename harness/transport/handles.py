"""A request under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from harness.transport.sinks import Sink
from harness.transport.timers import Timer
from harness.wire.request import Request

if TYPE_CHECKING:
    from harness.transport.pool import Transport


class Carrier(Protocol):
    """The connection that carries a request."""

    member: str

    def abandon(self, handle: Handle) -> None:
        """Give up the exchange: RST_STREAM, or the connection closed in HTTP/1.1."""
        ...


class Handle:
    """One request on its way and the only object it costs, streams of watches included.

    `sent_at` is when `Transport.send` was called, in the time of `Timers.now()`: the latency of an answer is
    ``timers.now() - handle.sent_at`` in the sink. `request` is dropped once the answer has begun (a watch lives long).
    """

    __slots__ = ("_transport", "attempts", "carrier", "deadline", "request", "sent_at", "sink", "stream_id")

    def __init__(self, transport: Transport, request: Request, sink: Sink, sent_at: float) -> None:
        self._transport = transport
        self.request: Request | None = request
        self.sink: Sink | None = sink
        self.sent_at = sent_at
        self.deadline: Timer | None = None
        self.carrier: Carrier | None = None
        self.stream_id = 0
        self.attempts = 0

    def __repr__(self) -> str:
        what = f"{self.request.method} {self.request.path}" if self.request is not None else "answered"
        where = f"stream {self.stream_id} of {self.carrier!r}" if self.carrier is not None else "waiting"
        return f"<Handle {what}, {where if self.sink is not None else 'ended'}>"

    @property
    def member(self) -> str:
        """The endpoint that carries it, "" while it waits for a connection."""
        return "" if self.carrier is None else self.carrier.member

    @property
    def done(self) -> bool:
        return self.sink is None

    def cancel(self) -> None:
        """Give up; the sink hears no more. Does nothing where the request has ended."""
        if self.sink is not None:
            self._transport.cancel(self)
