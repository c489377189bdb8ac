"""A link's sockets: what passes, how connections end, what a cut does."""

from __future__ import annotations

import asyncio
import socket
import struct
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
import uvloop

from harness.pool.network.config import Address, LinkConfig, LinkState
from harness.pool.network.proxy import Link
from harness.pool.network.shaping import HELD_BYTES, Shape
from harness.pool.ports import HOST

uvloop.new_event_loop().close()  # opens libuv's signal pipe, which stays open as long as the process

WITHIN_S = 60.0
CUT = LinkState(Shape(cut=True))
RESET = LinkState(reset=True)


class Peer:
    """A server behind a link, which says what it hears in capitals; and a client in front."""

    def __init__(self, link: Link, server: asyncio.Server) -> None:
        self.link = link
        self.server = server
        self.writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(HOST, self.link.port)
        self.writers.append(writer)
        return reader, writer

    async def quiet(self, connections: int = 0) -> None:
        """Until the link has so few connections."""
        while self.link.connections > connections:
            await asyncio.sleep(0.001)


async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data.upper())
            await writer.drain()
        writer.write(b"BYE")
        writer.close()
        await writer.wait_closed()


def run(
    play: Callable[[Peer], Awaitable[None]], *, state: LinkState | None = None, path: bool = False
) -> None:
    """`play` against a link to a server, over TCP or a Unix socket."""

    async def main(folder: str) -> None:
        to = Address(path=f"{folder}/s") if path else Address(HOST, 0)
        if path:
            server = await asyncio.start_unix_server(shout, to.path)
        else:
            server = await asyncio.start_server(shout, HOST, 0)
            to = Address(HOST, server.sockets[0].getsockname()[1])
        link = Link(LinkConfig("clients,member-0", Address(HOST), to, "seed"))
        await link.start()
        if state is not None:
            link.become(state)
        peer = Peer(link, server)
        try:
            async with asyncio.timeout(WITHIN_S):
                await play(peer)
        finally:
            link.close()
            server.close()
            for writer in peer.writers:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()
            async with asyncio.timeout(WITHIN_S):
                await peer.quiet()

    with tempfile.TemporaryDirectory() as folder:
        uvloop.run(main(folder))


@pytest.mark.parametrize("path", [False, True])
@pytest.mark.parametrize("shape", [Shape(), Shape(latency_s=0.001, rate_bit_s=1e9, drop=0.001)])
def test_what_is_said_passes_both_ways_and_an_end_too(shape: Shape, path: bool) -> None:
    said = b"hello " * 50_000

    async def play(peer: Peer) -> None:
        reader, writer = await peer.connect()
        writer.write(said)
        writer.write_eof()  # the other direction goes on
        assert await reader.read() == said.upper() + b"BYE"
        await peer.quiet()

    run(play, state=LinkState(shape), path=path)


def test_a_member_that_is_not_there_is_a_reset() -> None:
    async def main() -> None:
        link = Link(LinkConfig("x", Address(HOST), Address(HOST, 1), "seed"))
        await link.start()
        reader, writer = await asyncio.open_connection(HOST, link.port)
        with pytest.raises(ConnectionResetError):
            async with asyncio.timeout(WITHIN_S):
                await reader.read()
        link.close()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    uvloop.run(main())


def test_a_silent_cut_holds_what_is_sent_and_gives_it_when_it_is_over() -> None:
    async def play(peer: Peer) -> None:
        reader, writer = await peer.connect()
        writer.write(b"one ")
        assert await reader.readexactly(4) == b"ONE "
        peer.link.become(CUT)
        writer.write(b"two")
        await writer.drain()
        other, _ = await peer.connect()  # the kernel takes it
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await reader.readexactly(1)
        peer.link.become(LinkState())
        assert await reader.readexactly(3) == b"TWO"
        assert not other.at_eof()

    run(play)


def test_a_cut_makes_a_sender_wait_once_buffers_are_full() -> None:
    async def play(peer: Peer) -> None:
        reader, writer = await peer.connect()
        sent = b"x" * (64 * HELD_BYTES)
        writer.write(sent)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await writer.drain()
        reading = asyncio.ensure_future(reader.readexactly(len(sent)))
        peer.link.become(LinkState())
        assert await reading == sent.upper()

    run(play, state=CUT)


def test_a_reset_breaks_connections_and_those_that_come() -> None:
    async def play(peer: Peer) -> None:
        reader, writer = await peer.connect()
        writer.write(b"one")
        assert await reader.readexactly(3) == b"ONE"
        peer.link.become(RESET)
        with pytest.raises(ConnectionResetError):
            await reader.read()
        late, _ = await peer.connect()
        with pytest.raises(ConnectionResetError):
            await late.read()
        peer.link.become(LinkState())
        reader, writer = await peer.connect()
        writer.write(b"again")
        assert await reader.readexactly(5) == b"AGAIN"

    run(play)


def test_a_peer_whose_connection_breaks_takes_the_other_side_along() -> None:
    async def play(peer: Peer) -> None:
        _, writer = await peer.connect()
        writer.write(b"x")
        await writer.drain()
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        writer.transport.abort()
        await peer.quiet()

    run(play, state=LinkState(Shape(latency_s=5.0)))


def test_whoever_connects_to_a_taken_address_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        link = Link(LinkConfig("x", Address(HOST), Address(path=str(tmp_path / "none")), "seed"))
        await link.start()
        again = Link(LinkConfig("y", Address(HOST, link.port), Address(HOST, 1), "seed"))
        with pytest.raises(OSError, match="address already in use"):
            await again.start()
        link.close()
        again.close()

    uvloop.run(main())
