"""HTTP/2 sessions of the serving shell, on scripted bytes and virtual time; our own codec is the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.apiserver.serving.common import GONE
from harness.apiserver.serving.http2 import Http2Session
from harness.wire.http2 import Connection, Data, ErrorCode, Event, GoAway, Headers, Reset, Role, Settings
from harness.wire.http2.frames import HEADERS
from tests.apiserver.process.serving_fakes import FakeTransport, World
from tests.wire.http2.http2_peer import raw_frames

DEFAULT = Settings()


def get(path: str = "/api/v1/nodes", method: bytes = b"GET") -> list[tuple[bytes, bytes]]:
    return [
        (b":method", method),
        (b":scheme", b"https"),
        (b":authority", b"127.0.0.1:6443"),
        (b":path", path.encode()),
        (b"user-agent", b"kubelet"),
    ]


class Served:
    """A session and its client."""

    def __init__(
        self, handler: Callable[[Any], object] | None = None, settings: Settings = DEFAULT, **options: Any
    ) -> None:
        self.world = World(handler, **options)
        channel, self.transport = self.world.channel()
        self.session = Http2Session(self.world.serving, channel)
        self.client = Connection(Role.CLIENT, settings)
        self.client.initiate()
        self.run()
        self.transport.writes = 0

    @property
    def exchanges(self) -> list[Any]:
        return self.world.exchanges

    def run(self) -> list[Event]:
        """Move bytes until both sides are silent; what the client was told."""
        told: list[Event] = []
        while True:
            up = self.client.take_output()
            if up:
                self.session.data_received(up)
            self.world.turn()
            down = self.transport.take()
            if down:
                told += self.client.feed(down)
            if not (up or down or self.client.has_output or self.world.soon):
                return told


@pytest.fixture
def served() -> Served:
    return Served()


def test_a_request_reaches_the_handler_whole(served: Served) -> None:
    served.client.request([*get("/a?b=c"), (b"x-dup", b"1"), (b"x-dup", b"2")])
    served.run()
    (exchange,) = served.exchanges
    assert (exchange.method, exchange.path, exchange.body) == ("GET", "/a?b=c", b"")
    assert exchange.headers == {"host": "127.0.0.1:6443", "user-agent": "kubelet", "x-dup": "1, 2"}
    assert exchange.peer == "127.0.0.1:50000"


def test_an_answer_gets_its_length_and_date(served: Served) -> None:
    served.client.request(get())
    served.run()
    served.exchanges[0].respond(200, {"Content-Type": "application/json", "audit-id": "x"}, b"{}")
    head, body = served.run()
    assert head == Headers(
        1,
        [
            (b":status", b"200"),
            (b"content-type", b"application/json"),
            (b"audit-id", b"x"),
            (b"content-length", b"2"),
            (b"date", b"Tue, 14 Nov 2023 22:13:20 GMT"),
        ],
        False,
    )
    assert body == Data(1, b"{}", True)
    assert served.session.connection.open_streams == 0


@pytest.mark.parametrize(("method", "status"), [(b"HEAD", 200), (b"GET", 204), (b"GET", 304)])
def test_answers_without_a_body_end_with_their_head(method: bytes, status: int) -> None:
    served = Served(lambda exchange: exchange.respond(status, {}, b"body" if method == b"HEAD" else b""))
    served.client.request(get(method=method))
    (head,) = served.run()
    assert isinstance(head, Headers)
    assert head.end_stream
    assert (dict(head.headers).get(b"content-length")) == (b"4" if method == b"HEAD" else None)


def test_a_body_is_collected_before_the_handler_is_called(served: Served) -> None:
    served.client.request(get(method=b"POST"), b"x" * 100_000)
    served.run()
    assert served.exchanges[0].body == b"x" * 100_000


@pytest.mark.parametrize("length", [1000, 1001])
def test_a_body_above_the_limit_is_answered_413(length: int) -> None:
    served = Served(max_body_bytes=1000)
    served.client.request(get(method=b"POST"), b"x" * 999, end_stream=False)
    served.run()
    served.client.send_data(1, b"x" * (length - 999), end_stream=False)
    events = served.run()
    if length == 1000:
        assert events == []
        served.client.send_data(1, b"", end_stream=True)
        served.run()
        assert len(served.exchanges[0].body) == 1000
        return
    assert isinstance(events[0], Headers)
    assert events[0].headers[0] == (b":status", b"413")
    assert b'"Request entity too large: limit is 1000"' in events[1].data
    assert served.exchanges == []
    assert served.session.connection.open_streams == 0


def test_a_client_that_expects_100_continue_is_asked_for_its_body(served: Served) -> None:
    head = [*get(method=b"POST"), (b"expect", b"100-continue")]
    served.client.request(head, end_stream=False)
    served.session.data_received(served.client.take_output())
    served.world.turn()
    assert [kind for kind, *_ in raw_frames(served.transport.output)] == [HEADERS]  # :status 100
    served.run()
    served.client.send_data(1, b"body", end_stream=True)
    served.run()
    assert served.exchanges[0].body == b"body"


def test_a_stream_of_events(served: Served) -> None:
    served.client.request(get("/api/v1/pods?watch=1"))
    served.run()
    watch = served.exchanges[0]
    watch.start(200, {"content-type": "application/json"})
    (head,) = served.run()
    assert b"content-length" not in dict(head.headers)
    watch.write(b"one\n")
    assert served.run() == [Data(1, b"one\n", False)]
    watch.finish()
    assert served.run() == [Data(1, b"", True)]


def test_everything_of_one_turn_is_one_write(served: Served) -> None:
    for _ in range(5):
        served.client.request(get())
    served.run()
    served.transport.writes = 0
    for exchange in served.exchanges:
        exchange.start(200, {})
        exchange.write(b"event")
    served.run()
    assert served.transport.writes == 1


def test_requests_with_the_same_headers_share_them(served: Served) -> None:
    for number in range(3):
        served.client.request(get(f"/{number}"))
    served.run()
    first, second, third = served.exchanges
    assert first.headers is second.headers is third.headers
    assert [exchange.path for exchange in served.exchanges] == ["/0", "/1", "/2"]


def test_a_cancelled_request_is_told_once(served: Served) -> None:
    served.client.request(get())
    served.run()
    gone: list[int] = []
    exchange = served.exchanges[0]
    exchange.on_gone(lambda: gone.append(1))
    exchange.on_gone(lambda: gone.append(2))
    served.client.reset(1)
    served.run()
    assert gone == [1, 2]
    exchange.on_gone(lambda: gone.append(3))
    assert gone == [1, 2, 3]
    exchange.respond(200, {}, b"too late")
    exchange.start(200, {})
    exchange.write(b"too late")
    exchange.finish()
    exchange.abort()
    assert served.run() == []


def test_a_lost_connection_breaks_off_what_is_open(served: Served) -> None:
    for _ in range(2):
        served.client.request(get())
    served.run()
    gone: list[str] = []
    for exchange in served.exchanges:
        exchange.on_gone(lambda: gone.append("gone"))
    served.exchanges[0].respond(200, {})
    served.session.connection_lost(None)
    assert gone == ["gone"]
    assert served.world.serving.sessions == set()


def test_an_abort_resets_the_stream(served: Served) -> None:
    served.client.request(get())
    served.run()
    served.exchanges[0].start(200, {})
    served.exchanges[0].abort()
    assert served.run()[-1] == Reset(1, ErrorCode.INTERNAL_ERROR)
    assert served.exchanges[0].state == GONE


def test_a_handler_that_fails_costs_its_own_request_only() -> None:
    def handler(exchange: Any) -> None:
        if exchange.path == "/streamed":
            exchange.start(200, {})
        if exchange.path != "/fine":
            raise ValueError("broken")
        exchange.respond(200, {})

    served = Served(handler)
    for path in ("/plain", "/streamed", "/fine"):
        served.client.request(get(path))
    events = served.run()
    statuses = {e.stream_id: e.headers[0][1] for e in events if isinstance(e, Headers)}
    assert statuses == {1: b"500", 3: b"200", 5: b"200"}
    assert Reset(3, ErrorCode.INTERNAL_ERROR) in events
    assert any(
        isinstance(e, Data) and e.data.startswith(b"This request caused apiserver to panic") for e in events
    )


# ---- back pressure -------------------------------------------------------------------------------------------------
def stalled(**settings: int) -> tuple[Served, Any]:
    served = Served(settings=Settings(**settings))
    served.client.request(get())
    served.run()
    served.exchanges[0].start(200, {})
    served.run()
    return served, served.exchanges[0]


def test_what_the_stream_window_holds_back_is_buffered_until_it_opens() -> None:
    served, watch = stalled(initial_window_size=100)
    drained: list[int] = []
    watch.write(b"x" * 150)
    served.world.turn()
    assert watch.buffered == 50
    watch.on_drain(lambda: drained.append(1))
    served.run()  # the client gives its window back
    assert watch.buffered == 0
    served.world.clock.advance(0.01)
    assert drained == [1]


def test_what_the_socket_does_not_take_is_buffered() -> None:
    served, watch = stalled()
    drained: list[int] = []
    served.transport.taken = False
    watch.write(b"x" * 1000)
    assert watch.buffered == 1000  # before the turn's write
    served.world.turn()
    assert watch.buffered >= 1000
    watch.on_drain(lambda: drained.append(watch.buffered))
    served.world.clock.advance(1)
    assert drained == []
    served.transport.held = 0
    served.world.clock.advance(0.01)
    assert drained == [0]


def test_a_stream_that_wrote_before_the_socket_stalled_has_nothing_buffered() -> None:
    served, early = stalled()
    early.write(b"x" * 1000)
    served.world.turn()
    served.client.request(get())
    served.run()
    served.transport.taken = False
    served.exchanges[1].respond(200, {}, b"y" * 5000)
    served.world.turn()
    assert early.buffered == 0


def test_on_drain_calls_at_once_where_nothing_is_buffered() -> None:
    _, watch = stalled()
    drained: list[int] = []
    watch.on_drain(lambda: drained.append(1))
    assert drained == [1]


def test_a_drain_callback_may_wait_again() -> None:
    served, watch = stalled()
    drained: list[int] = []
    served.transport.taken = False

    def again() -> None:
        drained.append(1)
        if len(drained) < 3:
            watch.write(b"x" * 10)
            served.world.turn()
            watch.on_drain(again)

    watch.write(b"x")
    watch.on_drain(again)
    for _ in range(5):
        served.world.turn()
        served.transport.held = 0
        served.world.clock.advance(0.006)
    assert drained == [1, 1, 1]


def test_no_requests_are_read_while_the_peer_takes_nothing() -> None:
    served = Served(full_bytes=1000)
    served.client.request(get())
    served.run()
    served.transport.taken = False
    served.exchanges[0].respond(200, {}, b"x" * 2000)
    served.world.turn()
    assert not served.transport.reading
    served.transport.held = 0
    served.world.clock.advance(0.01)
    assert served.transport.reading


# ---- ends ----------------------------------------------------------------------------------------------------------
def test_a_protocol_error_ends_the_connection_after_what_was_understood(served: Served) -> None:
    served.client.request(get())
    served.session.data_received(served.client.take_output() + b"\0\0\0\6\0\0\0\0\1")
    assert len(served.exchanges) == 1
    served.world.turn()
    assert served.transport.closed
    assert isinstance(served.client.feed(served.transport.take())[-1], GoAway)


def test_on_drain_of_the_server_open_streams_go_on_and_new_ones_get_no_answer(served: Served) -> None:
    served.client.request(get())
    served.run()
    served.world.serving.drain()
    served.client.request(get("/late"))
    events = served.run()
    assert events[0] == GoAway(0, 1, b"")
    assert len(served.exchanges) == 1
    served.world.clock.advance(59)
    served.exchanges[0].start(200, {})
    served.exchanges[0].write(b"event")
    assert served.run()[-1] == Data(1, b"event", False)
    assert not served.transport.closed
    served.exchanges[0].finish()
    served.run()
    served.world.clock.advance(0.999)
    served.world.turn()
    assert not served.transport.closed
    served.world.clock.advance(0.001)
    served.world.turn()
    assert served.transport.closed


def test_an_idle_connection_is_closed_after_90_s_and_one_with_a_watch_is_not() -> None:
    world = World()
    transports: list[FakeTransport] = []
    for path in ("idle", "watching"):
        channel, transport = world.channel()
        session = Http2Session(world.serving, channel)
        client = Connection(Role.CLIENT)
        client.initiate()
        if path == "watching":
            client.request(get())
        session.data_received(client.take_output())
        transports.append(transport)
    world.turn()
    for seconds, closed in ((89.9, False), (0.1, True)):
        world.clock.advance(seconds)
        world.serving.sweep()
        world.turn()
        assert [transport.closed for transport in transports] == [closed, False]
