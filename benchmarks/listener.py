"""A server in a process of its own, for loads over real sockets: ``python -m benchmarks.listener CERT KEY``.

It prints its port, serves until its stdin ends, and answers by path:

``/cpu``          what it has used: CPU seconds, open watches
``/memory``       its resident bytes
``/watch...``     a stream that begins with one event and stays open
``/emit/N``       N events to every open watch, then the answer
``/every/N``      an event to every Nth open watch, then the answer
``/trickle/N``    the answer, then N events, each to one open watch, 2 ms apart
``/api...``       a whole member (see `suites.member`), without a capacity model
any other         1 KB, at once: what the listener itself costs
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec
import uvloop

from benchmarks.child import environment
from benchmarks.measure import resident_bytes
from benchmarks.objects import BODY, response_headers
from benchmarks.suites.member import TOKEN
from harness.apiserver.exchange import Exchange
from harness.apiserver.member import Member
from harness.apiserver.options import MemberOptions
from harness.apiserver.process.loopclock import LoopClock
from harness.apiserver.process.server import serve, server_context
from harness.apiserver.store.client import LocalStore
from harness.apiserver.store.core import StoreCore
from harness.apiserver.store.etcd import EtcdModel
from harness.apiserver.store.replicated import ReplicatedStore
from harness.pool.certificates import make_serving_files

EVENT = BODY + b"\n"
TRICKLE_S = 0.002
_HEADERS = {name.decode(): value.decode() for name, value in response_headers(0)[1:-1]}


class Usage(msgspec.Struct):
    cpu_s: float
    watches: int


@dataclass(frozen=True)
class Address:
    """Where a `Listener` is; `ca` is PEM."""

    port: int
    ca: bytes


@contextmanager
def listening() -> Iterator[Address]:
    """A listener that lives as long as the block."""
    with tempfile.TemporaryDirectory() as folder:
        files = make_serving_files(Path(folder), ["localhost"], ["127.0.0.1"])
        command = [sys.executable, "-m", __name__, files.cert, files.key]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                port = int(process.stdout.readline())
                yield Address(port, Path(files.ca).read_bytes())
            finally:
                process.stdin.close()


class _Handler:
    def __init__(self, member: Member) -> None:
        self._member = member
        self._watches: list[Exchange] = []
        self._rng = Random(1)
        self._trickle: asyncio.Task[None] | None = None

    def __call__(self, exchange: Exchange) -> None:
        path = exchange.path
        if path.startswith("/api"):
            self._member.handle(exchange)
        elif path.startswith("/watch"):
            exchange.start(200, _HEADERS)
            exchange.write(EVENT)
            self._watches.append(exchange)
        elif path == "/cpu":
            usage = Usage(time.process_time(), len(self._watches))
            exchange.respond(200, {}, msgspec.json.encode(usage))
        elif path == "/memory":
            exchange.respond(200, {}, msgspec.json.encode(resident_bytes()))
        elif path.startswith("/emit/"):
            for _ in range(int(path[6:])):
                for watch in self._watches:
                    watch.write(EVENT)
            exchange.respond(200, {}, b"{}")
        elif path.startswith("/every/"):
            for watch in self._watches[:: int(path[7:])]:
                watch.write(EVENT)
            exchange.respond(200, {}, b"{}")
        elif path.startswith("/trickle/"):
            exchange.respond(200, {}, b"{}")
            self._trickle = asyncio.get_running_loop().create_task(self._events(int(path[9:])))
        else:
            exchange.respond(200, _HEADERS, BODY)

    async def _events(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(TRICKLE_S)
            self._rng.choice(self._watches).write(EVENT)


async def _main(certificate: str, key: str) -> None:
    clock = LoopClock(asyncio.get_running_loop())
    store = ReplicatedStore(StoreCore(), EtcdModel(["m"], Random(1)), clock)
    member = Member(MemberOptions(name="m", admin_token=TOKEN), clock, LocalStore(store, "m", clock))
    member.start()
    while not member.ready:
        await asyncio.sleep(0.01)
    context = server_context(certificate, key)
    server = await serve(_Handler(member), "127.0.0.1", 0, context, clock)
    gc.set_threshold(50_000, 20, 50)
    gc.freeze()
    print(server.port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()
    await server.wait_closed()
    member.stop()


if __name__ == "__main__":
    uvloop.run(_main(*sys.argv[1:3]))
