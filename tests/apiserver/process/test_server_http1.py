"""HTTP/1.1 sessions of the serving shell, on scripted bytes and virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.apiserver.serving.http1 import Http1Session
from tests.apiserver.process.serving_fakes import World

DATE = b"Date: Tue, 14 Nov 2023 22:13:20 GMT\r\n"


class Served:
    def __init__(self, handler: Callable[[Any], object] | None = None, **options: Any) -> None:
        self.world = World(handler, **options)
        channel, self.transport = self.world.channel()
        self.session = Http1Session(self.world.serving, channel)

    @property
    def exchanges(self) -> list[Any]:
        return self.world.exchanges

    def send(self, data: bytes) -> bytes:
        """What the server writes in answer."""
        self.session.data_received(data)
        return self.written()

    def written(self) -> bytes:
        while self.world.soon:
            self.world.turn()
        return self.transport.take()


def echo(exchange: Any) -> None:
    exchange.respond(200, {"content-type": "text/plain"}, exchange.path.encode() + exchange.body)


GET = b"GET /a?b=c HTTP/1.1\r\nHost: x\r\nX-Dup: 1\r\nX-Dup: 2\r\n\r\n"


def answer(body: bytes, more: bytes = b"") -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
        + more
        + b"Content-Length: %d\r\n" % len(body)
        + DATE
        + b"\r\n"
        + body
    )


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_request_reaches_the_handler_in_any_split(size: int) -> None:
    served = Served()
    data = b"POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
    for start in range(0, len(data), size):
        served.session.data_received(data[start : start + size])
    (exchange,) = served.exchanges
    assert (exchange.method, exchange.path, exchange.body) == ("POST", "/p", b"hello")
    assert exchange.headers == {"host": "x", "content-length": "5"}


def test_an_answer_gets_its_length_and_date_and_the_connection_stays() -> None:
    served = Served(echo)
    assert served.send(GET) == answer(b"/a?b=c")
    assert served.send(GET) == answer(b"/a?b=c")
    assert not served.transport.closed


def test_repeated_headers_are_joined() -> None:
    served = Served()
    served.send(GET)
    assert served.exchanges[0].headers["x-dup"] == "1, 2"


def test_pipelined_requests_are_answered_in_order_and_one_at_a_time() -> None:
    served = Served()
    requests = b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(3))
    assert served.send(requests) == b""
    for number in range(3):
        assert len(served.exchanges) == number + 1
        echo(served.exchanges[number])
    assert served.written() == b"".join(answer(b"/%d" % number) for number in range(3))


def test_a_thousand_pipelined_requests_stop_reading_and_nest_no_calls() -> None:
    served = Served()
    served.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 5000)
    assert not served.transport.reading
    served.world.serving.handler = echo
    echo(served.exchanges[0])
    assert served.written() == answer(b"/") * 5000
    assert served.transport.reading


def test_a_chunked_stream() -> None:
    served = Served()
    served.send(GET)
    watch = served.exchanges[0]
    watch.start(200, {"content-type": "application/json"})
    head = served.written()
    assert b"Transfer-Encoding: chunked\r\n" in head
    assert b"Content-Length" not in head
    watch.write(b"one\n")
    watch.write(b"")
    watch.write(b"0123456789abcdef")
    assert served.written() == b"4\r\none\n\r\n10\r\n0123456789abcdef\r\n"
    watch.finish()
    assert served.written() == b"0\r\n\r\n"
    assert not served.transport.closed


def test_http_1_0_gets_a_stream_that_ends_with_the_connection() -> None:
    served = Served()
    served.send(b"GET / HTTP/1.0\r\n\r\n")
    served.exchanges[0].start(200, {})
    served.exchanges[0].write(b"one\n")
    served.exchanges[0].finish()
    output = served.written()
    assert b"chunked" not in output
    assert b"Connection: close\r\n" in output
    assert output.endswith(b"\r\n\r\none\n")
    assert served.transport.closed


def test_connection_close_is_honoured() -> None:
    served = Served(echo)
    output = served.send(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert output == answer(b"/", b"Connection: close\r\n")
    assert served.transport.closed


def test_a_client_that_expects_100_continue_is_asked_for_its_body() -> None:
    served = Served(echo)
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    assert served.send(head) == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert served.send(b"hi") == answer(b"/hi")


def test_100_continue_waits_for_the_answers_before_it() -> None:
    served = Served()
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    assert served.send(GET + head) == b""
    echo(served.exchanges[0])
    assert served.written() == answer(b"/a?b=c") + b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.parametrize("length", [1000, 1001])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_above_the_limit_is_answered_413_and_the_connection_closed(length: int, chunked: bool) -> None:
    served = Served(echo, max_body_bytes=1000)
    head = b"POST / HTTP/1.1\r\nHost: x\r\n"
    if chunked:
        data = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (length, b"x" * length)
    else:
        data = head + b"Content-Length: %d\r\n\r\n%b" % (length, b"x" * length)
    output = served.send(data)
    if length == 1000:
        assert output == answer(b"/" + b"x" * 1000)
        return
    assert output.startswith(b"HTTP/1.1 413 Request Entity Too Large\r\n")
    assert b"Connection: close\r\n" in output
    assert not served.transport.closed  # time to read the answer
    served.world.clock.advance(0.5)
    served.written()
    assert served.transport.closed


def test_a_head_above_the_limit_is_answered_431() -> None:
    served = Served(echo, max_header_bytes=1000)
    output = served.send(b"GET / HTTP/1.1\r\nHost: x\r\nX: %b\r\n\r\n" % (b"y" * 1000))
    assert output.startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(
    "data", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n"]
)
def test_a_malformed_request_is_answered_400_after_those_before_it(data: bytes) -> None:
    served = Served()
    assert served.send(GET + data) == b""
    echo(served.exchanges[0])
    output = served.written()
    assert output.startswith(answer(b"/a?b=c"))
    assert output.endswith(b"\r\nConnection: close\r\n\r\n400 Bad Request")
    served.send(GET)
    assert len(served.exchanges) == 1
    served.world.clock.advance(0.5)
    served.written()
    assert served.transport.closed


def test_an_upgrade_is_not_taken_and_the_request_answered() -> None:
    served = Served(echo)
    upgrade = b"GET /u HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    assert served.send(upgrade * 2 + GET) == answer(b"/u") * 2 + answer(b"/a?b=c")


@pytest.mark.parametrize("size", [1, 1000])
def test_the_body_of_a_request_that_asks_for_an_upgrade_is_read(size: int) -> None:
    served = Served(echo)
    data = (
        b"POST /u HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        b"HTTP2-Settings: AAMAAABk\r\nContent-Length: 5\r\n\r\nhello" + GET
    )
    output = b"".join(served.send(data[start : start + size]) for start in range(0, len(data), size))
    assert output == answer(b"/uhello") + answer(b"/a?b=c")


def test_connect_is_refused() -> None:
    served = Served(echo)
    output = served.send(b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\nwhatever")
    assert output.startswith(b"HTTP/1.1 405 Method Not Allowed\r\n")


def test_head_has_a_length_and_no_body() -> None:
    served = Served(lambda exchange: exchange.respond(200, {}, b"body"))
    output = served.send(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"Content-Length: 4\r\n" in output
    assert output.endswith(b"\r\n\r\n")


def test_a_lost_connection_is_told() -> None:
    served = Served()
    served.send(GET + GET)
    gone: list[int] = []
    served.exchanges[0].on_gone(lambda: gone.append(1))
    served.session.connection_lost(None)
    assert gone == [1]
    served.exchanges[0].respond(200, {})
    assert len(served.exchanges) == 1
    assert served.world.serving.sessions == set()


def test_an_abort_closes_without_the_last_chunk() -> None:
    served = Served()
    served.send(GET)
    served.exchanges[0].start(200, {})
    served.exchanges[0].write(b"x")
    served.exchanges[0].abort()
    assert served.written().endswith(b"1\r\nx\r\n")
    assert served.transport.closed


def test_a_handler_that_fails_is_answered_500() -> None:
    def handler(exchange: Any) -> None:
        raise ValueError(exchange.path)

    served = Served(handler)
    assert served.send(GET).startswith(b"HTTP/1.1 500 Internal Server Error\r\n")


def test_what_is_written_is_buffered_until_the_socket_takes_it() -> None:
    served = Served()
    served.transport.taken = False
    served.send(GET)
    watch = served.exchanges[0]
    watch.start(200, {})
    watch.write(b"x" * 100)
    before = watch.buffered
    served.written()
    assert watch.buffered == before > 100
    drained: list[int] = []
    watch.on_drain(lambda: drained.append(1))
    served.transport.held = 0
    served.world.clock.advance(0.01)
    assert drained == [1]


def test_while_the_server_drains_idle_connections_close_and_busy_ones_after_their_answer() -> None:
    idle, busy = Served(), Served()
    busy.send(GET)
    for served in (idle, busy):
        served.world.serving.drain()
        served.written()
    assert idle.transport.closed
    assert not busy.transport.closed
    echo(busy.exchanges[0])
    assert b"Connection: close\r\n" in busy.written()
    assert busy.transport.closed


def test_an_idle_connection_is_closed_after_90_s() -> None:
    served = Served(echo)
    served.world.clock.advance(50)
    served.send(GET)
    for seconds, closed in ((89.9, False), (0.1, True)):
        served.world.clock.advance(seconds)
        served.world.serving.sweep()
        served.written()
        assert served.transport.closed == closed


@pytest.mark.parametrize("data", [GET, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nslow"])
def test_a_request_under_way_is_not_idle(data: bytes) -> None:
    served = Served()
    served.send(data)
    served.world.clock.advance(1000)
    served.world.serving.sweep()
    served.written()
    assert not served.transport.closed


PIECES = [
    GET,
    b"GET ",
    b"POST / HTTP/1.1\r\n",
    b"CONNECT x:1 HTTP/1.1\r\n",
    b"Host: x\r\n",
    b"Content-Length: 3\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Expect: 100-continue\r\n",
    b"Connection: upgrade\r\nUpgrade: h2c\r\n",
    b"\r\n",
    b"abc",
    b"3\r\nabc\r\n0\r\n\r\n",
]


@settings(deadline=None, max_examples=200)
@given(
    parts=st.lists(st.one_of(st.binary(max_size=20), st.sampled_from(PIECES)), max_size=12),
    size=st.integers(1, 30),
)
def test_whatever_comes_no_error_escapes_and_splits_do_not_matter(parts: list[bytes], size: int) -> None:
    whole, split = Served(echo), Served(echo)
    data = b"".join(parts)
    expected = whole.send(data)
    assert b"".join(split.send(data[start : start + size]) for start in range(0, len(data), size)) == expected


def test_nothing_is_polled_once_the_connection_is_lost() -> None:
    served = Served(full_bytes=10)
    served.transport.taken = False
    served.send(GET)
    served.exchanges[0].start(200, {})
    served.exchanges[0].on_drain(lambda: None)
    served.written()
    served.session.connection_lost(None)
    served.exchanges[0].write(b"too late")
    assert served.written() == b""
    served.world.clock.advance(1)
    assert served.world.clock.next_at() is None
