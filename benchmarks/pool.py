"""A member and its store, each a process as a pool starts them, and a client that asks over TLS and HTTP/2.

Nothing is modelled here: the member has no cores to be short of, the store's replicas answer at once.
"""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.child import ROOT
from benchmarks.measure import PAGE
from benchmarks.objects import encode
from harness.apiserver.process.config import ENVIRONMENT, MemberConfig, StoreConfig
from harness.pool.certificates import ServingFiles, make_client_files, make_serving_files
from harness.pool.process import Process, stop_all
from harness.transport.tls import client_context
from harness.wire.http2 import (
    GO_CLIENT_CONNECTION_WINDOW,
    GO_CLIENT_SETTINGS,
    Connection,
    Data,
    Headers,
    Role,
)

TOKEN = "benchmark"  # noqa: S105  # of a server that only this machine can reach
_AT_ONCE = {"fsync_s": 0.0, "rtt_s": 0.0}
NODES = 4
"""Connections that ask at the same time: as many as the clients that a real server was measured with."""


class Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    body: bytes = b""
    content_type: str = "application/json"


def request(method: str, path: str, body: Any = None, content_type: str = "application/json") -> Request:
    return Request(method, path, b"" if body is None else encode(body), content_type)


class Link:
    """One blocking connection: an administrator's by its token, or of the user whose certificate it shows."""

    def __init__(
        self, port: int, ca: bytes, certificate: bytes | None = None, key: bytes | None = None
    ) -> None:
        plain = socket.create_connection(("127.0.0.1", port), timeout=30)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        context = client_context(ca, certificate, key, http="h2")
        self._socket = context.wrap_socket(plain, server_hostname="localhost")
        self._connection = Connection(Role.CLIENT, GO_CLIENT_SETTINGS, GO_CLIENT_CONNECTION_WINDOW)
        self._connection.initiate()
        self._headers = [(b"accept", b"application/json"), (b"user-agent", b"kubelet/v1.36.2 (linux/amd64)")]
        if certificate is None:
            self._headers.append((b"authorization", b"Bearer " + TOKEN.encode()))

    def close(self) -> None:
        self._socket.close()

    def send(self, *requests: Request) -> None:
        """Ask, all in one write, and wait for nothing."""
        for each in requests:
            head = [
                (b":method", each.method.encode()),
                (b":scheme", b"https"),
                (b":authority", b"localhost"),
                (b":path", each.path.encode()),
                *self._headers,
            ]
            if each.body:
                head.append((b"content-type", each.content_type.encode()))
            self._connection.request(head, each.body)
        self._flush()

    def receive(self) -> bytes:
        """The body of the one answer that is awaited; fails where its status is not 2xx."""
        status, body, ended = b"", [], False
        while not ended:
            for event in self._connection.feed(self._read()):
                if isinstance(event, Data):
                    body.append(event.data)
                    ended = event.end_stream
                elif isinstance(event, Headers):
                    status, ended = event.headers[0][1], event.end_stream
            self._flush()
        assert status.startswith(b"2"), f"{status!r} {b''.join(body)[:500]!r}"
        return b"".join(body)

    def ask(self, asked: Request) -> bytes:
        self.send(asked)
        return self.receive()

    def take(self, lines: int) -> None:
        """Read until watches have sent so many events more."""
        while lines > 0:
            for event in self._connection.feed(self._read()):
                if isinstance(event, Data):
                    lines -= event.data.count(b"\n")
                elif isinstance(event, Headers):
                    assert event.headers[0][1] == b"200", event
            self._flush()

    def _read(self) -> bytes:
        data = self._socket.recv(1 << 18)
        assert data, "the member closed the connection"
        return data

    def _flush(self) -> None:
        if self._connection.has_output:
            self._socket.sendall(self._connection.take_output())


class Spent(msgspec.Struct, frozen=True):
    """Microseconds of CPU for each operation, of the member's process and of the store's."""

    member: float
    store: float


class Pool:
    """`pid` is the member's. `admins` are connections of an administrator, `nodes` one of each node n0, n1..., by its
    certificate."""

    def __init__(
        self, member: Process, store: Process, port: int, files: ServingFiles, stack: ExitStack
    ) -> None:
        self.pid, self._store = member.pid, store.pid
        self.port, self.ca, self._stack = port, Path(files.ca).read_bytes(), stack
        self.admins = [self.connect() for _ in range(NODES)]
        self.admin = self.admins[0]
        self.nodes: list[Link] = []
        for number in range(NODES):
            own = make_client_files(files, Path(files.ca).parent, f"system:node:n{number}", ["system:nodes"])
            self.nodes.append(self.connect(Path(own.cert).read_bytes(), Path(own.key).read_bytes()))

    def connect(self, certificate: bytes | None = None, key: bytes | None = None) -> Link:
        link = Link(self.port, self.ca, certificate, key)
        self._stack.callback(link.close)
        return link

    def measure(self, operations: int, work: Callable[[], object]) -> Spent:
        """What both processes use for `work`, divided by its operations."""
        member, store = cpu_s(self.pid), cpu_s(self._store)
        work()
        spent = cpu_s(self.pid) - member, cpu_s(self._store) - store
        return Spent(*(seconds / operations * 1e6 for seconds in spent))

    def run(self, links: Sequence[Link], requests: Sequence[Request]) -> list[bytes]:
        """Ask all, the first by the first of `links` and so on in turn, one at a time on each; their answers."""
        answers = []
        for start in range(0, len(requests), len(links)):
            turn = requests[start : start + len(links)]
            for link, each in zip(links, turn, strict=False):
                link.send(each)
            answers += [link.receive() for link, _ in zip(links, turn, strict=False)]
        return answers

    def spent(self, links: Sequence[Link], requests: Sequence[Request]) -> Spent:
        return self.measure(len(requests), lambda: self.run(links, requests))

    def resident_bytes(self) -> int:
        """Of the member."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE


def cpu_s(pid: int) -> float:
    """CPU seconds of a process, as in /proc/PID/stat, but not in hundredths: the id is clock_getcpuclockid's."""
    return time.clock_gettime((~pid << 3) | 2)


@contextmanager
def pool(**options: Any) -> Iterator[Pool]:
    """Both processes, for as long as the block lasts; `options` are further ones of the member's configuration."""
    processes: list[Process] = []
    with tempfile.TemporaryDirectory() as path, ExitStack() as stack:
        stack.callback(stop_all, processes)
        folder = Path(path)
        files = make_serving_files(folder, ["localhost"], ["127.0.0.1"])
        at = str(folder / "store.sock")
        store = StoreConfig(socket=at, members=("m",), etcd=_AT_ONCE)
        member = MemberConfig(
            name="m",
            index=0,
            members=("m",),
            store_socket=at,
            cert=files.cert,
            key=files.key,
            client_ca=files.ca,
            admin_token=TOKEN,
            token_key=TOKEN * 4,
            **options,
        )
        for name, config in (("store", store), ("member", member)):
            process = Process(
                name,
                f"harness.apiserver.process.{name}",
                config,
                folder / f"{name}.log",
                environ={**ENVIRONMENT, "PYTHONPATH": str(ROOT)},
            )
            processes.append(process)
            process.wait_ready()
        yield Pool(processes[1], processes[0], int(processes[1].ready["port"]), files, stack)
