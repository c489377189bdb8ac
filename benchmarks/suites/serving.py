"""The emulated apiserver's listener over TLS and HTTP/2: CPU of its process, asked of it before and after each load."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from types import TracebackType

import msgspec

from benchmarks.listener import Address, Usage, listening
from benchmarks.objects import request_headers
from benchmarks.registry import Better, Line, Plan, benchmark
from harness.transport.tls import client_context
from harness.wire.http2 import (
    GO_CLIENT_CONNECTION_WINDOW,
    GO_CLIENT_SETTINGS,
    Connection,
    Data,
    Headers,
    Role,
)

_IN_FLIGHT = (1, 10, 100)
_CONNECTIONS = 100
_STREAMS = 35
_EVENTS = 5
_WATCH_LIST = (
    "/api/v1/namespaces/default/secrets?allowWatchBookmarks=true&fieldSelector=metadata.name%3D{}"
    "&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=1800&watch=true"
)


class Client:
    """One blocking connection that asks for several things at once and waits for all of them."""

    def __init__(self, address: Address) -> None:
        plain = socket.create_connection(("127.0.0.1", address.port), timeout=30)
        self._socket = client_context(address.ca, http="h2").wrap_socket(plain, server_hostname="localhost")
        self._connection = Connection(Role.CLIENT, GO_CLIENT_SETTINGS, GO_CLIENT_CONNECTION_WINDOW)
        self._connection.initiate()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._socket.close()

    def ask(self, *paths: str, authorization: str = "") -> bytes:
        """Send all in one write, take all answers; the bodies joined."""
        for path in paths:
            headers = request_headers(path)
            if authorization:
                headers = [(name, value) for name, value in headers if name != b"authorization"]
                headers.append((b"authorization", authorization.encode()))
            self._connection.request(headers)
        self._flush()
        ended, body = 0, b""
        while ended < len(paths):
            for event in self._connection.feed(self._read()):
                if isinstance(event, Data):
                    body += event.data
                    ended += event.end_stream
                elif isinstance(event, Headers):
                    assert dict(event.headers)[b":status"] == b"200", event
                    ended += event.end_stream
            self._flush()
        return body

    def open(self, count: int) -> None:
        """Open watches, and take the first event of each."""
        for number in range(count):
            self._connection.request(request_headers(f"/watch/{number}"))
        self._flush()
        self.take(count)

    def send(self, paths: Iterable[str]) -> None:
        """Ask a member, and wait for nothing."""
        for path in paths:
            headers = [(name, value) for name, value in request_headers(path) if name != b"authorization"]
            self._connection.request([*headers, (b"authorization", b"Bearer benchmark")])
        self._flush()

    def take(self, events: int) -> None:
        """Read until so many DATA frames have come."""
        while events > 0:
            events -= sum(isinstance(event, Data) for event in self._connection.feed(self._read()))
            self._flush()

    def usage(self) -> Usage:
        return msgspec.json.decode(self.ask("/cpu"), type=Usage)

    def _read(self) -> bytes:
        data = self._socket.recv(1 << 18)
        assert data, "the listener closed the connection"
        return data

    def _flush(self) -> None:
        if self._connection.has_output:
            self._socket.sendall(self._connection.take_output())


@benchmark("serving/get")
def get(plan: Plan) -> Iterator[Line]:
    """GETs of 1 KB that the listener answers at once; and of a member's object, for what comes on top."""
    with listening() as address, Client(address) as client:
        for in_flight in _IN_FLIGHT:
            n = plan.count(4000) // in_flight or 1
            paths = [f"/node-{number}" for number in range(in_flight)]
            values = _per_cpu_second(client, plan, n, paths)
            yield Line(f"serving/get/{in_flight} in flight", "GET/CPU s", values, Better.HIGHER)
        paths = ["/api/v1/namespaces/default?resourceVersion=0"] * 10
        values = _per_cpu_second(client, plan, plan.count(1500) // 10 or 1, paths, "Bearer benchmark")
        yield Line("serving/get/of a member, 10 in flight", "GET/CPU s", values, Better.HIGHER)


def _per_cpu_second(
    client: Client, plan: Plan, rounds: int, paths: list[str], authorization: str = ""
) -> list[float]:
    client.ask(*paths, authorization=authorization)
    values = []
    for _ in range(plan.repeats):
        before = client.usage().cpu_s
        for _ in range(rounds):
            client.ask(*paths, authorization=authorization)
        values.append(rounds * len(paths) / (client.usage().cpu_s - before))
    return values


@benchmark("serving/watch")
def watch(plan: Plan) -> Iterator[Line]:
    """125 connections with 35 watches each; every watch gets an event, 35 writes to a connection in one turn."""
    connections = plan.count(_CONNECTIONS)
    with ExitStack() as stack:
        address = stack.enter_context(listening())
        asker = stack.enter_context(Client(address))
        watchers: list[Client] = []
        before = 0
        for number in range(connections + connections // 4):
            if number == connections // 4:  # those before have filled what the process had free
                before = int(asker.ask("/memory"))
            watchers.append(stack.enter_context(Client(address)))
            watchers[-1].open(_STREAMS)
        kilobytes = (int(asker.ask("/memory")) - before) / connections / 1024
        watches = asker.usage().watches
        values = []
        for _ in range(plan.repeats):
            begun = asker.usage().cpu_s
            for _ in range(_EVENTS):
                asker.ask("/emit/1")
                for each in watchers:
                    each.take(_STREAMS)
            values.append((asker.usage().cpu_s - begun) / (_EVENTS * watches) * 1e6)
    yield Line("serving/watch/event", "us", values)
    yield Line(f"serving/watch/connection with {_STREAMS}", "KB", [max(kilobytes, 0.0)])


@benchmark("serving/idle")
def idle(plan: Plan) -> Iterator[Line]:
    """Watch-lists of single secrets at a whole member, at rest, 35 on each of 300 TLS connections: memory for each."""
    connections = plan.count(300)
    with ExitStack() as stack:
        address = stack.enter_context(listening())
        asker = stack.enter_context(Client(address))
        before = 0
        for number in range(connections + connections // 4):
            if number == connections // 4:
                before = int(asker.ask("/memory"))
            watcher = stack.enter_context(Client(address))
            watcher.send(_WATCH_LIST.format(f"s{number}-{at}") for at in range(_STREAMS))
            watcher.take(_STREAMS)
        grown = int(asker.ask("/memory")) - before
    yield Line("serving/idle/watch of one secret", "KB", [max(grown, 0) / (connections * _STREAMS) / 1024])
