"""harness.wire.http2 on its own, each side alone against bytes recorded beforehand; python-h2 as the yardstick."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection

from benchmarks.child import in_child
from benchmarks.measure import Make, Work, cpu_us, grown_kb, ratio, side_by_side
from benchmarks.objects import BODY, REQUEST_HEADERS, response_headers
from benchmarks.registry import FEW, Better, Line, Plan, benchmark
from harness.wire.http2 import (
    GO_CLIENT_CONNECTION_WINDOW,
    GO_CLIENT_SETTINGS,
    KUBE_APISERVER_CONNECTION_WINDOW,
    KUBE_APISERVER_SETTINGS,
    Connection,
    Headers,
    Role,
)

BURST = 8
STREAMS = 35  # of a kubelet with 30 pods, about


def _client() -> Connection:
    connection = Connection(Role.CLIENT, GO_CLIENT_SETTINGS, GO_CLIENT_CONNECTION_WINDOW)
    connection.initiate()
    return connection


def _server() -> Connection:
    connection = Connection(Role.SERVER, KUBE_APISERVER_SETTINGS, KUBE_APISERVER_CONNECTION_WINDOW)
    connection.initiate()
    return connection


def _peer(client_side: bool) -> H2Connection:
    connection = H2Connection(H2Configuration(client_side=client_side, header_encoding=None))
    connection.initiate_connection()
    if client_side:  # as Go's client: a window that no benchmark uses up
        connection.increment_flow_control_window(GO_CLIENT_CONNECTION_WINDOW - 65535)
    return connection


class _Recorded:
    """A conversation of `n` GETs: what each side had to read, one item a read."""

    def __init__(self, n: int) -> None:
        client, server = _client(), _server()
        self.to_server, self.to_client = [client.take_output()], [server.take_output()]
        server.feed(self.to_server[0])
        self.to_client[0] += server.take_output()
        client.feed(self.to_client[0])
        client.take_output()
        for number in range(n):
            client.request(REQUEST_HEADERS)
            self.to_server.append(client.take_output())
            head = server.feed(self.to_server[-1])[0]
            assert isinstance(head, Headers)
            server.respond(head.stream_id, response_headers(number, len(BODY)), BODY, True)
            self.to_client.append(server.take_output())
            client.feed(self.to_client[-1])


def _client_gets(n: int) -> Work:
    recorded, client = _Recorded(n), _client()

    def work() -> None:
        for read in recorded.to_client[1:]:
            client.request(REQUEST_HEADERS)
            client.take_output()
            client.feed(read)

    client.take_output()
    client.feed(recorded.to_client[0])
    return work


def _peer_client_gets(n: int) -> Work:
    recorded, client = _Recorded(n), _peer(client_side=True)

    def work() -> None:
        for number, read in enumerate(recorded.to_client[1:]):
            client.send_headers(2 * number + 1, REQUEST_HEADERS, end_stream=True)
            client.data_to_send()
            client.receive_data(read)

    client.receive_data(recorded.to_client[0])
    client.data_to_send()
    return work


def _server_gets(n: int) -> Work:
    recorded, server = _Recorded(n), _server()

    def work() -> None:
        for number, read in enumerate(recorded.to_server[1:]):
            head: Any = server.feed(read)[0]
            server.respond(head.stream_id, response_headers(number, len(BODY)), BODY, True)
            server.take_output()

    server.feed(recorded.to_server[0])
    server.take_output()
    return work


def _peer_server_gets(n: int) -> Work:
    recorded, server = _Recorded(n), _peer(client_side=False)

    def work() -> None:
        for number, read in enumerate(recorded.to_server[1:]):
            head: Any = server.receive_data(read)[0]
            server.send_headers(head.stream_id, response_headers(number, len(BODY)))
            server.send_data(head.stream_id, BODY, end_stream=True)
            server.data_to_send()

    server.receive_data(recorded.to_server[0])
    server.data_to_send()
    return work


def _open_watches(streams: int, client: Connection | None = None) -> tuple[list[bytes], bytes]:
    """What a client reads until `streams` watches are open, and then one event on the last of them."""
    client, server = client or _client(), _server()
    server.feed(client.take_output())
    reads = [server.take_output()]
    client.feed(reads[0])
    server.feed(client.take_output())
    ids = [client.request(REQUEST_HEADERS) for _ in range(streams)]
    server.feed(client.take_output())
    for number, stream_id in enumerate(ids):
        server.respond(stream_id, response_headers(number), BODY)
    reads.append(server.take_output())
    client.feed(reads[1])
    server.send_data(ids[-1], BODY)
    return reads, server.take_output()


def _client_frames(per_read: int) -> Make:
    def make(n: int) -> Work:
        client = _client()
        read = _open_watches(1, client)[1] * per_read

        def work() -> None:
            for _ in range(max(1, n // per_read)):
                client.feed(read)
            client.take_output()

        return work

    return make


def _peer_frames(per_read: int) -> Make:
    def make(n: int) -> Work:
        reads, frame = _open_watches(1)
        client = _peer(client_side=True)
        client.receive_data(reads[0])
        client.send_headers(1, REQUEST_HEADERS, end_stream=True)
        client.increment_flow_control_window(2**30, 1)
        client.receive_data(reads[1])
        read = frame * per_read

        def work() -> None:
            for _ in range(max(1, n // per_read)):
                frames: list[Any] = client.receive_data(read)
                for each in frames:
                    client.acknowledge_received_data(each.flow_controlled_length, 1)
            client.data_to_send()

        return work

    return make


@benchmark("codec/get")
def get(plan: Plan) -> Iterator[Line]:
    """One GET with 8 headers, answered with 8 and 1 KB."""
    for side, ours, peers in (
        ("client", _client_gets, _peer_client_gets),
        ("server", _server_gets, _peer_server_gets),
    ):
        values, peer = side_by_side(plan, 1500, ours, peers)
        yield Line(f"codec/get/{side}", "us", values)
        yield Line(f"codec/get/{side}, h2 ÷ ours", "x", ratio(peer, values), Better.HIGHER)


@benchmark("codec/data")
def data(plan: Plan) -> Iterator[Line]:
    """A DATA frame of 1 KB on an open stream, as a watch event comes."""
    for name, per_read in (("one a read", 1), (f"{BURST} a read", BURST)):
        values, peer = side_by_side(plan, 16_000, _client_frames(per_read), _peer_frames(per_read))
        yield Line(f"codec/data/{name}", "us", values)
        yield Line(f"codec/data/{name}, h2 ÷ ours", "x", ratio(peer, values), Better.HIGHER)

    def send(n: int) -> Work:
        client, server = _client(), _server()
        server.feed(client.take_output())
        client.request(REQUEST_HEADERS)
        server.feed(client.take_output())
        server.respond(1, response_headers(0), BODY)

        def work() -> None:
            for _ in range(n):
                server.send_data(1, BODY)
                server.take_output()

        return work

    # Fewer than a client's window of 4 MB admits.
    yield Line("codec/data/sent by server", "us", cpu_us(plan, 4000, send))


@benchmark("codec/memory", FEW)
def memory(plan: Plan) -> Iterator[Line]:
    """A client's connection with 35 watches open."""
    values = [in_child(connection_kb, connections=plan.count(3000)) for _ in range(plan.repeats)]
    peers = [in_child(peer_connection_kb, connections=plan.count(300)) for _ in range(plan.repeats)]
    yield Line(f"codec/memory/{STREAMS} streams", "KB", values)
    yield Line(f"codec/memory/{STREAMS} streams, h2 ÷ ours", "x", ratio(peers, values), Better.HIGHER)


def connection_kb(connections: int) -> float:
    """KB of resident memory for each of so many connections. Runs in a child."""
    reads, _ = _open_watches(STREAMS)

    def make() -> Connection:
        client = _client()
        client.take_output()
        client.feed(reads[0])
        for _ in range(STREAMS):
            client.request(REQUEST_HEADERS)
        client.feed(reads[1])
        client.take_output()
        return client

    return grown_kb(lambda n: [make() for _ in range(n)], connections)


def peer_connection_kb(connections: int) -> float:
    """The same of h2."""
    reads, _ = _open_watches(STREAMS)

    def make() -> H2Connection:
        client = _peer(client_side=True)
        client.receive_data(reads[0])
        for stream in range(STREAMS):
            client.send_headers(2 * stream + 1, REQUEST_HEADERS, end_stream=True)
        client.receive_data(reads[1])
        client.data_to_send()
        return client

    return grown_kb(lambda n: [make() for _ in range(n)], connections)
