"""gRPC on one connection, against a server that says what the test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from harness.apiserver.store.core import StoreError, StoreTimeout, StoreUnavailable
from harness.apiserver.store.etcd3 import channel as channel_module
from harness.apiserver.store.etcd3.channel import Call, Channel, dial, error_of
from harness.wire.http2 import Connection, Data, Headers, Reset, Role, Settings
from tests.apiserver.store.test_store_contract import settled, until
from tests.conftest import HANG_S

OK = [(b"grpc-status", b"0")]
HEAD = [(b":status", b"200"), (b"content-type", b"application/grpc")]


def framed(body: bytes) -> bytes:
    return b"\0" + len(body).to_bytes(4, "big") + body


class Server(asyncio.Protocol):
    """Keeps what it is asked; `answer(server, stream, path)` is called with each request's head."""

    def __init__(self, answer: Callable[[Server, int, bytes], None], settings: Settings) -> None:
        self.codec = Connection(Role.SERVER, settings)
        self.bodies: dict[int, bytes] = {}
        self.heads: dict[int, dict[bytes, bytes]] = {}
        self.resets: list[int] = []
        self.silent = False
        self._answer = answer
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.codec.initiate()
        self.flush()

    def data_received(self, data: bytes) -> None:
        if self.silent:
            return
        for event in self.codec.feed(data):
            if isinstance(event, Headers):
                self.heads[event.stream_id] = dict(event.headers)
                self.bodies[event.stream_id] = b""
                self._answer(self, event.stream_id, dict(event.headers)[b":path"])
            elif isinstance(event, Data):
                self.bodies[event.stream_id] += event.data
            elif isinstance(event, Reset):
                self.resets.append(event.stream_id)
        self.flush()

    def say(self, stream: int, *messages: bytes) -> None:
        self.codec.respond(stream, HEAD)
        for message in messages:
            self.codec.send_data(stream, framed(message))
        self.flush()

    def trailers(self, stream: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Trailing headers, or trailers alone where no answer has begun."""
        codec = self.codec
        codec._sender.header_block(stream, codec._coder.encode(headers), True)
        if (open_ := codec._streams.get(stream)) is not None:
            codec._end_local(stream, open_)
        self.flush()

    def flush(self) -> None:
        if self.transport is not None:
            self.transport.write(self.codec.take_output())


def run(
    answer: Callable[[Server, int, bytes], None],
    test: Callable[[Channel, Server], Awaitable[None]],
    settings: Settings | None = None,
) -> None:
    async def main() -> None:
        made: list[Server] = []

        def accept() -> Server:
            made.append(Server(answer, settings or Settings()))
            return made[-1]

        listener = await asyncio.get_running_loop().create_server(accept, "127.0.0.1", 0)
        channel = await dial("127.0.0.1", listener.sockets[0].getsockname()[1], None)
        try:
            await test(channel, made[0])
        finally:
            channel.end(StoreUnavailable("over"))
            listener.close()
            await listener.wait_closed()
            for server in made:
                if server.transport is not None:
                    server.transport.abort()
            await asyncio.sleep(0.01)

    asyncio.run(main())


def echo(server: Server, stream: int, path: bytes) -> None:
    server.say(stream, path)
    server.trailers(stream, OK)


def nothing(server: Server, stream: int, path: bytes) -> None:
    """Leave the caller waiting."""


def test_a_call_is_a_framed_message_each_way() -> None:
    async def test(channel: Channel, server: Server) -> None:
        assert await settled(channel.unary(b"/a.B/C", b"body", HANG_S)) == b"/a.B/C"
        assert server.bodies == {1: framed(b"body")}
        head = server.heads[1]
        assert (head[b":method"], head[b"content-type"], head[b"te"], head[b"hasleader"]) == (
            b"POST",
            b"application/grpc",
            b"trailers",
            b"true",
        )

    run(echo, test)


def test_calls_wait_for_a_stream_where_the_server_allows_no_more() -> None:
    async def test(channel: Channel, server: Server) -> None:
        await settled(channel.unary(b"/first", b"", HANG_S))  # its settings are known by now
        calls = [channel.unary(b"/%d" % number, b"", HANG_S) for number in range(7)]
        assert [await settled(call) for call in calls] == [b"/%d" % number for number in range(7)]

    run(echo, test, Settings(max_concurrent_streams=2))


def test_a_stream_brings_messages_in_any_split_and_takes_more() -> None:
    def answer(server: Server, stream: int, path: bytes) -> None:
        server.codec.respond(stream, HEAD)
        data = framed(b"one") + framed(b"") + framed(b"three" * 1000)
        for at in range(0, len(data), 7):
            server.codec.send_data(stream, data[at : at + 7])

    async def test(channel: Channel, server: Server) -> None:
        heard: list[bytes] = []
        ends: list[StoreError | None] = []
        calls: list[Call] = []
        channel.stream(b"/w", heard.append, ends.append, calls.append)
        calls[0].send(b"x")
        calls[0].send(b"y")
        await until(lambda: len(heard) == 3)
        assert heard == [b"one", b"", b"three" * 1000]
        assert server.bodies[1] == framed(b"x") + framed(b"y")
        calls[0].cancel()
        await until(lambda: server.resets == [1])
        assert ends == []

    run(answer, test)


@pytest.mark.parametrize(
    ("headers", "kind", "message"),
    [
        ([(b"grpc-status", b"14"), (b"grpc-message", b"etcdserver: leader changed")], StoreTimeout, "^etcdserver"),
        ([(b"grpc-status", b"14"), (b"grpc-message", b"down%20%25")], StoreUnavailable, "Unavailable desc = down %$"),
        ([(b"grpc-status", b"4"), (b"grpc-message", b"late")], StoreTimeout, "code = DeadlineExceeded desc = late"),
        ([(b"grpc-status", b"8"), (b"grpc-message", b"etcdserver: mvcc: database space exceeded")], StoreError,
         "^etcdserver: mvcc: database space exceeded$"),
        ([(b"grpc-status", b"99")], StoreError, r"code = Code\(99\)"),
        ([(b"other", b"1")], StoreUnavailable, "unexpected HTTP status code 200"),
    ],
)  # fmt: skip
def test_a_status_is_an_error_of_the_store(
    headers: list[tuple[bytes, bytes]], kind: type[StoreError], message: str
) -> None:
    async def test(channel: Channel, server: Server) -> None:
        with pytest.raises(kind, match=message) as caught:
            await settled(channel.unary(b"/x", b"", HANG_S))
        assert type(caught.value) is kind
        assert await settled(channel.unary(b"/y", b"", HANG_S)) == b"/y", "the connection goes on"

    def answer(server: Server, stream: int, path: bytes) -> None:
        if path == b"/x":
            server.trailers(stream, [(b":status", b"200"), *headers])
        else:
            echo(server, stream, path)

    run(answer, test)


def _reset(server: Server, stream: int) -> None:
    server.codec.reset(stream, 7)


def _end_without_trailers(server: Server, stream: int) -> None:
    server.codec.respond(stream, HEAD, b"", end_stream=False)
    server.codec.send_data(stream, b"", end_stream=True)


def _no_message(server: Server, stream: int) -> None:
    server.trailers(stream, [(b":status", b"200"), *OK])


def _goaway(server: Server, stream: int) -> None:
    server.codec.goaway()


def _garbage(server: Server, stream: int) -> None:
    assert server.transport is not None
    server.transport.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def _hang_up(server: Server, stream: int) -> None:
    assert server.transport is not None
    server.transport.abort()


@pytest.mark.parametrize(
    ("fault", "ends"),
    [
        (_reset, False),
        (_end_without_trailers, False),
        (_no_message, False),
        (_goaway, True),
        (_garbage, True),
        (_hang_up, True),
    ],
)
def test_whatever_breaks_a_call_it_is_unavailable(fault: Callable[[Server, int], None], ends: bool) -> None:
    lost: list[Any] = []

    async def test(channel: Channel, server: Server) -> None:
        channel.on_lost = lost.append
        call = channel.unary(b"/x", b"", HANG_S)
        with pytest.raises(StoreUnavailable, match=r"rpc error: code = Unavailable desc = "):
            await settled(call)
        await asyncio.sleep(0.01)
        assert (channel.error is not None) is ends
        assert len(lost) == ends
        if ends:
            with pytest.raises(StoreUnavailable):
                await settled(channel.unary(b"/y", b"", HANG_S))

    def answer(server: Server, stream: int, path: bytes) -> None:
        fault(server, stream)

    run(answer, test)


def test_a_call_that_is_not_answered_is_given_up() -> None:
    async def test(channel: Channel, server: Server) -> None:
        with pytest.raises(StoreTimeout, match="deadline exceeded"):
            await settled(channel.unary(b"/x", b"", 0.05))
        await until(lambda: server.resets == [1])

    run(nothing, test)


def test_a_connection_that_says_nothing_at_all_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that is put forward: what this machine takes itself is nothing beside that."""
    monkeypatch.setattr(channel_module, "KEEPALIVE_S", HANG_S)
    monkeypatch.setattr(channel_module, "KEEPALIVE_TIMEOUT_S", HANG_S)

    async def test(channel: Channel, server: Server) -> None:
        loop = asyncio.get_running_loop()
        real, forward = loop.time, [0.0]
        monkeypatch.setattr(loop, "time", lambda: real() + forward[0])
        call = channel.unary(b"/x", b"", 100 * HANG_S)
        for _ in range(3):  # idle, and pings are answered
            before = channel._heard_s
            forward[0] += HANG_S + 1
            await until(lambda before=before: channel._heard_s > before + HANG_S)  # type: ignore[misc]
            assert channel.error is None
        server.silent = True
        for _ in range(10):
            forward[0] += HANG_S / 2
            await asyncio.sleep(0.001)
        with pytest.raises(StoreUnavailable, match="keepalive ping"):
            await settled(call)

    run(nothing, test)


def test_errors_of_etcd_stand_alone_and_others_with_their_code() -> None:
    assert str(error_of(9, "etcdserver: duplicate")) == "etcdserver: duplicate"
    assert (
        type(error_of(14, "etcdserver: request timed out, possibly due to connection lost")) is StoreTimeout
    )
    assert str(error_of(2, "x")) == "rpc error: code = Unknown desc = x"
