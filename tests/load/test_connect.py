"""Transports to a target: whose certificate a connection shows, and what happens when it changes."""

from __future__ import annotations

import random
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from gevent.event import AsyncResult

from harness.load.connect import Connections, Connector, from_own_address, has_own_addresses
from harness.load.identity.authority import Authority
from harness.load.plan import Target, TargetMember
from harness.pool.certificates import ServingFiles, make_serving_files
from harness.transport.credentials import Credentials
from harness.transport.endpoints import Endpoint
from harness.transport.pool import Transport
from harness.transport.tally import Count
from harness.transport.timers import Timers
from harness.transport.tls import ClientTls
from harness.wire.errors import ConfigError
from harness.wire.request import Request, Response
from tests.conftest import HANG_S


class Server:
    """HTTP/1.1 over TLS; answers with the name in the client's certificate, "" where it shows none."""

    def __init__(self, files: ServingFiles) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.cert, files.key)
        context.load_verify_locations(files.ca)
        context.verify_mode = ssl.CERT_OPTIONAL
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self.peers: list[str] = []
        """The addresses that connections have come from."""
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                sock, address = self._listener.accept()
            except OSError:
                return
            self.peers.append(address[0])
            self._threads.append(threading.Thread(target=self._serve, args=(sock,)))
            self._threads[-1].start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            with self._context.wrap_socket(sock, server_side=True) as tls:
                self._open.append(tls)
                shown = tls.getpeercert() or {}
                fields = [pair for name in shown.get("subject", ()) for pair in name]  # type: ignore[union-attr]
                name = dict(fields).get("commonName", "").encode()  # type: ignore[call-overload]
                while b"\r\n\r\n" in tls.recv(65536):
                    tls.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(name), name))
        except OSError:
            pass

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for sock in self._open:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        for thread in self._threads[1:]:
            thread.join()
        self._listener.close()


@pytest.fixture
def files(tmp_path: Path) -> ServingFiles:
    return make_serving_files(tmp_path, ["localhost"], ["127.0.0.1"])


@pytest.fixture
def server(files: ServingFiles) -> Iterator[Server]:
    made = Server(files)
    yield made
    made.close()


@pytest.fixture
def timers() -> Iterator[Timers]:
    made = Timers()
    yield made
    made.close()


@pytest.fixture
def authority(files: ServingFiles) -> Authority:
    return Authority(Path(files.ca).read_bytes(), Path(files.ca_key).read_bytes(), "here")


def split(pem: bytes) -> tuple[bytes, bytes]:
    """Certificate and key."""
    at = pem.index(b"-----BEGIN CERT")
    return pem[at:], pem[:at]


def target(server: Server, files: ServingFiles, own: bytes = b"", rotates: bool = False) -> Target:
    certificate, key = split(own) if own else (b"", b"")
    return Target(
        (TargetMember("m", "127.0.0.1", server.port),),
        ca=Path(files.ca).read_text(),
        cert=certificate.decode(),
        key=key.decode(),
        rotates=rotates,
    )


def whoami(transport: Transport) -> str:
    result: AsyncResult = AsyncResult()
    transport.unary(Request("get", "GET", "/", "x", timeout_s=HANG_S), result.set)
    answer = result.get()
    assert isinstance(answer, Response), answer
    return answer.body.decode()


def test_clients_connect_to_what_stands_before_members_each_from_an_address_of_its_own(
    server: Server, files: ServingFiles, timers: Timers
) -> None:
    behind = target(server, files)
    front = (TargetMember("balancer", "127.0.0.1", server.port),)
    told = msgspec.structs.replace(behind, members=(TargetMember("m", "127.0.0.1", 1),), front=front)
    connector = Connector(told, timers, Connections(http="http/1.1"))
    for source in ("node-a", "node-b", "node-a"):
        transport = connector.transport("kubelet", random.Random(1), source=source)
        whoami(transport)
        assert transport.members_talked_to == {"balancer"}
        transport.close()
    first, second, again = server.peers
    assert first == again != second
    assert first.startswith("127.")


def test_only_a_balancer_on_this_machine_is_met_from_many_addresses() -> None:
    assert has_own_addresses(TargetMember("balancer", "127.0.0.1", 1)) == (sys.platform == "linux")
    assert not has_own_addresses(TargetMember("balancer", "10.0.0.1", 1))
    assert not has_own_addresses(TargetMember("member-0", "127.0.0.1", 1))
    own = {from_own_address(Endpoint("127.0.0.1", 1, "balancer"), f"node-{n}").source for n in range(2000)}
    assert len(own) > 1990


def test_nodes_that_share_a_context_show_a_certificate_each(
    server: Server, files: ServingFiles, timers: Timers, authority: Authority
) -> None:
    connector = Connector(
        target(server, files, authority.make("me", ())), timers, Connections(http="http/1.1")
    )
    context = connector.anonymous_tls()
    assert context is not None
    own = connector.transport("swarmlet", random.Random(1))
    nodes = [
        connector.transport("kubelet", random.Random(1), tls=ClientTls(context, authority.make(f"n{i}", ())))
        for i in range(3)
    ]
    assert [whoami(node) for node in nodes] == ["n0", "n1", "n2"]
    assert whoami(own) == "me"
    nodes[0].close_connections()
    assert [whoami(node) for node in nodes] == ["n0", "n1", "n2"]
    for transport in (own, *nodes):
        transport.close()


def test_a_new_certificate_of_the_runs_own_closes_what_was_made_with_the_old(
    server: Server, files: ServingFiles, timers: Timers, authority: Authority
) -> None:
    first = target(server, files, authority.make("old", ()), rotates=True)
    connector = Connector(first, timers, Connections(http="http/1.1"))
    transport = connector.transport("swarmlet", random.Random(1))
    assert whoami(transport) == "old"
    certificate, key = split(authority.make("new", ()))
    for _ in range(2):
        connector.replace(Credentials(certificate=certificate, key=key))
    assert whoami(transport) == "new"
    assert connector.tally.of(Count.CLOSED) == {"m": 1}, "the same one again changes nothing"
    transport.close()


def test_a_new_token_needs_no_new_connection(server: Server, files: ServingFiles, timers: Timers) -> None:
    connector = Connector(target(server, files), timers, Connections(http="http/1.1"))
    transport = connector.transport("swarmlet", random.Random(1))
    connector.replace(Credentials("fresh"))
    assert whoami(transport) == ""
    assert connector.bearer.field == (b"authorization", b"Bearer fresh")
    assert connector.tally.of(Count.DIALLED) == {"m": 1}
    transport.close()


def test_files_that_openssl_refuses_are_said_at_once(
    server: Server, files: ServingFiles, timers: Timers
) -> None:
    bad = target(server, files, b"key\n-----BEGIN CERT", rotates=True)
    with pytest.raises(
        ConfigError, match="the target's TLS files: client certificate and key cannot be used"
    ):
        Connector(bad, timers)
