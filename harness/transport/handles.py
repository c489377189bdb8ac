"""A request under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

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


class Handle(msgspec.Struct, gc=False, eq=False):
    """One request on its way and the only object it costs, streams of watches included.

    `request` is dropped once the answer has begun (a watch lives long).
    """

    _transport: Transport
    request: Request | None
    sink: Sink | None
    deadline: Timer | None = None
    carrier: Carrier | None = None
    stream_id: int = 0
    attempts: int = 0

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
