"""Sessions without sockets: a transport that records, a loop that turns when told, virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.apiserver.clock import VirtualClock
from harness.apiserver.exchange import Exchange
from harness.apiserver.serving.common import Channel, Serving, ServingOptions


class FakeTransport:
    """`taken` is whether the peer reads: if not, what is written stays in the buffer."""

    def __init__(self) -> None:
        self.output = b""
        self.writes = 0
        self.taken = True
        self.held = 0
        self.closed = False
        self.reading = True

    def write(self, data: bytes) -> None:
        self.output += data
        self.writes += 1
        if not self.taken:
            self.held += len(data)

    def take(self) -> bytes:
        output, self.output = self.output, b""
        return output

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def get_extra_info(self, name: str) -> None:
        return None

    def get_write_buffer_size(self) -> int:
        return self.held


class World:
    """A server's state with a handler that keeps the exchanges it was given."""

    def __init__(self, handler: Callable[[Exchange], object] | None = None, **options: Any) -> None:
        self.clock = VirtualClock()
        self.soon: list[tuple[Callable[..., object], tuple[object, ...]]] = []
        self.exchanges: list[Any] = []
        self.serving = Serving(
            handler or self.exchanges.append, self.clock, self._call_soon, ServingOptions(**options)
        )

    def _call_soon(self, fn: Callable[..., object], *args: object) -> None:
        self.soon.append((fn, args))

    def turn(self) -> None:
        """One turn of the loop."""
        soon, self.soon = self.soon, []
        for fn, args in soon:
            fn(*args)

    def channel(self) -> tuple[Channel, FakeTransport]:
        transport = FakeTransport()
        return Channel(transport, "127.0.0.1:50000"), transport
