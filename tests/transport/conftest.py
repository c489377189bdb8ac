"""Timers, transports and peers that are closed when a test ends."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
from gevent.event import AsyncResult, Event

from harness.transport.endpoints import Endpoint, Endpoints
from harness.transport.options import TransportOptions
from harness.transport.pool import Transport
from harness.transport.sinks import Answer
from harness.transport.timers import Timers
from harness.wire.request import Request, Response, TransportError

from .peers import Peer

LONGEST_S = 60
"""A test that waits so long has failed."""


def get(path: str = "/api", timeout_s: float | None = None) -> Request:
    return Request("get", "GET", path, "things", timeout_s=timeout_s)


def watch(path: str = "/watch") -> Request:
    return Request("watch", "GET", path, "things")


class Recorder:
    """A sink that keeps everything and lets a test wait for it."""

    def __init__(self) -> None:
        self.head: tuple[int, dict[str, str], str] | None = None
        self.chunks: list[bytes] = []
        self.error: TransportError | None = None
        self.ends = 0
        self._changed = Event()

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    def on_head(self, status: int, headers: dict[str, str], member: str) -> None:
        assert self.head is None
        self.head = (status, headers, member)
        self._changed.set()

    def on_data(self, data: bytes) -> None:
        assert data
        assert self.head is not None
        self.chunks.append(data)
        self._changed.set()

    def on_end(self, error: TransportError | None) -> None:
        self.error = error
        self.ends += 1
        self._changed.set()

    def until(self, condition: Callable[[Recorder], Any]) -> Recorder:
        """Wait until `condition(self)` holds."""
        while not condition(self):
            assert not self.ends, f"it ended: {vars(self)}"
            self._changed.clear()
            assert self._changed.wait(LONGEST_S), f"nothing more came: {vars(self)}"
        return self

    def until_head(self) -> Recorder:
        return self.until(lambda sink: sink.head)

    def until_end(self) -> Recorder:
        return self.until(lambda sink: sink.ends)


def ask(transport: Transport, request: Request) -> Answer:
    """Send a unary request and wait for what comes."""
    result: AsyncResult = AsyncResult()
    transport.unary(request, result.set)
    return result.get(timeout=LONGEST_S)  # type: ignore[no-any-return]


def answer_of(transport: Transport, request: Request) -> Response:
    answer = ask(transport, request)
    assert isinstance(answer, Response), answer
    return answer


def failure_of(transport: Transport, request: Request) -> TransportError:
    answer = ask(transport, request)
    assert isinstance(answer, TransportError), answer
    return answer


def wait_until(condition: Callable[[], Any]) -> None:
    """For what happens in a peer's thread."""
    with gevent.Timeout(LONGEST_S):
        while not condition():
            gevent.sleep(0.002)


@pytest.fixture
def timers() -> Iterator[Timers]:
    made = Timers()
    yield made
    assert made.pending == 0, "a transport left a timer"
    made.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Peer], Peer]]:
    """Registers a peer to be closed."""
    peers: list[Peer] = []

    def register(peer: Peer) -> Peer:
        peers.append(peer)
        return peer

    yield register
    for peer in peers:
        peer.close()


@pytest.fixture
def connect(timers: Timers) -> Iterator[Callable[..., Transport]]:
    """Makes transports to peers: `connect(peer, ...)`, members are named m1, m2..."""
    transports: list[Transport] = []

    def make(*peers: Peer, tls: Any = None, http: Any = "h2", **options: Any) -> Transport:
        addresses = [Endpoint("127.0.0.1", peer.port, f"m{n}") for n, peer in enumerate(peers, 1)]
        transport = Transport(
            Endpoints(addresses, random.Random(1), options.pop("policy", "random")),
            tls,
            timers,
            http=http,
            headers=options.pop("headers", None),
            path_prefix=options.pop("path_prefix", ""),
            server_name=options.pop("server_name", ""),
            bearer=options.pop("bearer", None),
            proxy=options.pop("proxy", None),
            tally=options.pop("tally", None),
            options=TransportOptions(**options),
            rng=random.Random(2),
        )
        transports.append(transport)
        return transport

    yield make
    for transport in transports:
        transport.close()
        statistics = transport.statistics()
        assert (statistics.open_streams, statistics.waiting) == (0, 0)
        assert not statistics.open_connections
