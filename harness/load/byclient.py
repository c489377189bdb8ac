"""Connections of one machine that speaks as several users: which one a request takes is what its `client` says."""

from __future__ import annotations

from collections.abc import Mapping

from harness.transport.handles import Handle
from harness.transport.pool import Transport
from harness.transport.sinks import Sink
from harness.wire.request import Request


class TransportsByClient:
    """What a shell needs of a `Transport`, over one for each client name."""

    __slots__ = ("_transports",)

    def __init__(self, transports: Mapping[str, Transport]) -> None:
        self._transports = dict(transports)

    def __repr__(self) -> str:
        return f"TransportsByClient({', '.join(self._transports)})"

    def send(self, request: Request, sink: Sink) -> Handle:
        """Raises KeyError for a client that has no connections."""
        return self._transports[request.client].send(request, sink)

    def close_connections(self) -> None:
        for transport in self._transports.values():
            transport.close_connections()

    def kill(self) -> None:
        for transport in self._transports.values():
            transport.kill()

    def close(self) -> None:
        for transport in self._transports.values():
            transport.close()
