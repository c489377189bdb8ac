"""Input that a server must survive: it answers or closes, what it holds is bounded, and nobody else notices.

Sessions on scripted bytes and virtual time. What the codec itself refuses (floods of frames, CONTINUATIONs, resets)
stands in tests/wire/http2/test_floods.py; bodies that are no JSON in tests/apiserver/member/test_bad_bodies.py.
"""

from __future__ import annotations

import gc
import sys
import time
from typing import Any

import pytest

from harness.apiserver.serving.helpers import joined
from harness.wire.http2 import Data, ErrorCode, Headers, Reset, Settings
from harness.wire.http2.frames import PREFACE
from tests.apiserver.process.test_server_http1 import GET, echo
from tests.apiserver.process.test_server_http1 import Served as Http1Served
from tests.apiserver.process.test_server_http2 import Served, get

BIG = b"x" * 3_000_000


def sweep(served: Any, seconds: float) -> Any:
    """Let time pass, with looks at what is overdue as often as the server has them."""
    clock, serving = served.world.clock, served.world.serving
    until = clock.now() + seconds
    while clock.now() < until:
        clock.advance(min(serving.options.sweep_s, until - clock.now()))
        serving.sweep()
    return served.run() if isinstance(served, Served) else served.written()


def status(events: list[Any], stream_id: int) -> bytes:
    return next(e.headers[0][1] for e in events if isinstance(e, Headers) and e.stream_id == stream_id)


# ---- bodies --------------------------------------------------------------------------------------------------------
def upload(served: Served, declared: int | None = None) -> int:
    more = [] if declared is None else [(b"content-length", b"%d" % declared)]
    return served.client.request([*get(method=b"POST"), *more], end_stream=False)


def test_a_body_slower_than_a_minute_is_answered_504_and_others_are_served() -> None:
    served = Served()
    slow = upload(served)
    served.client.send_data(slow, b"{")
    served.run()
    assert sweep(served, 58) == []
    served.client.request(get())
    served.run()
    events = sweep(served, 6)
    assert status(events, slow) == b"504"
    assert any(b"request did not complete within the allotted timeout" in e.data for e in events[1:2])
    assert served.session.connection.open_streams == 1
    served.exchanges[0].respond(200, {})
    assert status(served.run(), 3) == b"200"


def test_a_body_that_comes_in_time_is_not_timed_out_later() -> None:
    served = Served()
    stream = upload(served)
    served.run()
    sweep(served, 50)
    served.client.send_data(stream, b"{}", end_stream=True)
    served.run()
    assert sweep(served, 100) == []
    assert served.exchanges[0].body == b"{}"


@pytest.mark.parametrize("sent", [b"1234", b"123456"])
def test_a_body_that_is_not_as_long_as_it_says_is_malformed(sent: bytes) -> None:
    served = Served()
    stream = upload(served, declared=5)
    served.client.send_data(stream, sent, end_stream=True)
    assert served.run() == [Reset(stream, ErrorCode.PROTOCOL_ERROR)]
    assert served.exchanges == []


@pytest.mark.parametrize("declared", ["", "5x", "-5", "+5", "5, 5"])
def test_a_length_that_is_none_is_malformed(declared: str) -> None:
    served = Served()
    head = [*get(method=b"POST"), (b"content-length", declared.encode())]
    served.client.request(head, b"12345")
    assert served.run() == [Reset(1, ErrorCode.PROTOCOL_ERROR)]


def test_a_client_that_goes_in_the_middle_of_its_body_leaves_nothing() -> None:
    for how in ("reset", "connection"):
        served = Served()
        stream = upload(served)
        served.client.send_data(stream, b"{")
        served.run()
        if how == "reset":
            served.client.reset(stream)
            served.run()
        else:
            served.session.connection_lost(None)
        assert served.session.exchanges == {}
        assert served.exchanges == []


def test_over_http_1_1_a_slow_body_is_answered_504_and_the_connection_closed() -> None:
    served = Http1Served(echo)
    served.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nslow")
    assert sweep(served, 58) == b""
    assert sweep(served, 6).startswith(b"HTTP/1.1 504 Gateway Timeout\r\n")
    served.world.clock.advance(1)
    served.written()
    assert served.transport.closed


# ---- heads ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("begun", [b"", b"GET /", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_a_head_slower_than_32_s_ends_the_connection(begun: bytes) -> None:
    served = Http1Served(echo)
    served.send(begun)
    for _ in range(15):
        sweep(served, 2)
        if begun:
            served.send(b"x")
    assert not served.transport.closed
    sweep(served, 4)
    assert served.transport.closed


def test_the_head_of_a_later_request_has_32_s_of_its_own() -> None:
    served = Http1Served(echo)
    served.send(GET)
    sweep(served, 60)  # idle for less than 90 s
    served.send(b"GET / HTT")
    sweep(served, 30)
    assert not served.transport.closed
    sweep(served, 4)
    assert served.transport.closed


@pytest.mark.parametrize("begun", [b"", PREFACE[:10], PREFACE])
def test_a_preface_slower_than_12_s_ends_the_connection(begun: bytes) -> None:
    served = Served()
    fresh, transport = served.world.channel()
    session = type(served.session)(served.world.serving, fresh)
    session.data_received(begun)
    sweep(served, 10)
    assert not transport.closed
    sweep(served, 4)
    assert transport.closed
    assert not served.transport.closed


@pytest.mark.parametrize("repeated", [b"a: b\r\n", b"a:\r\n"])
def test_a_megabyte_of_one_header_costs_time_that_is_linear(repeated: bytes) -> None:
    count = 900_000 // len(repeated)
    began = time.process_time()
    joined([("a", "b")] * count)
    assert time.process_time() - began < 60  # joined one by one it takes minutes
    served = Http1Served(echo, max_header_bytes=2 << 20)
    assert served.send(b"GET / HTTP/1.1\r\nHost: x\r\n" + repeated * count + b"\r\n").startswith(
        b"HTTP/1.1 200"
    )


def test_headers_beyond_a_megabyte_are_refused_however_many_they_are() -> None:
    served = Http1Served(echo)
    output = served.send(
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"h%d: v\r\n" % n for n in range(300_000))
    )
    assert output.startswith(b"HTTP/1.1 431 ")
    over = Served()
    over.client.request([*get(), *((b"h%d" % n, b"v" * 100) for n in range(9000))])
    assert status(over.run(), 1) == b"431"


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5, 6\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length: 99999999999999999999999\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n",
        b" Transfer-Encoding: chunked\r\n",
        b"X: y\nTransfer-Encoding: chunked\r\n",
        b"X: y\x00z\r\n",
        b"X: y\rContent-Length: 5\r\n",
    ],
)
def test_a_request_whose_end_two_servers_could_see_differently_is_refused(head: bytes) -> None:
    served = Http1Served(echo)
    output = served.send(
        b"POST /first HTTP/1.1\r\nHost: x\r\n"
        + head
        + b"\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    assert output.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 "))
    assert b"smuggled" not in output
    served.world.clock.advance(1)
    served.written()
    assert served.transport.closed


# ---- connections that end -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "data", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"nonsense\r\n\r\n", b"POST / HT"]
)
def test_an_http_1_1_connection_that_has_ended_is_freed_without_the_garbage_collector(data: bytes) -> None:
    served = Http1Served(echo)
    served.send(data)
    _ends_and_is_freed(served)


@pytest.mark.parametrize(
    "data", [b"", b"nonsense", b"\0\0\0\6\0\0\0\0\1", b"\0\0\4\1\5\0\0\0\1\xff\xff\xff\xff"]
)
def test_an_http_2_connection_that_has_ended_is_freed_without_the_garbage_collector(data: bytes) -> None:
    served = Served(echo)
    served.client.request(get())
    served.run()
    served.session.data_received(data)
    served.world.turn()
    _ends_and_is_freed(served)


def _ends_and_is_freed(served: Any) -> None:
    """A TLS connection holds 256 KB of buffers: thousands of them must not wait for a collection."""
    gc.disable()
    try:
        channel = served.session.channel
        served.session.connection_lost(None)
        served.world.clock.advance(1)  # a refused request's answer is given this long to arrive
        served.world.turn()
        del served.session
        assert sys.getrefcount(channel) == 2  # our name and the call's: the session that held it has gone
    finally:
        gc.enable()


# ---- clients that do not read --------------------------------------------------------------------------------------
def test_with_a_closed_window_no_more_is_served_than_fits_and_the_rest_follows() -> None:
    def big(exchange: Any) -> None:
        exchange.respond(200, {}, BIG)

    served = Served(big, settings=Settings(initial_window_size=0))
    handled: list[int] = []
    served.world.serving.handler = lambda exchange: (handled.append(exchange.stream_id), big(exchange))
    for _ in range(50):
        served.client.request(get())
    served.run()
    assert len(handled) == 2  # 4 MB and what brought it above
    served.client.reset(1)
    served.run()
    assert len(handled) == 3
    served.client.reset(9)  # one that waits
    served.run()
    for stream_id in handled[1:]:
        served.client.reset(stream_id)
        served.run()
    assert 9 not in handled


def test_answers_that_nobody_takes_for_a_minute_are_cut_off() -> None:
    served = Served(lambda exchange: exchange.respond(200, {}, BIG), settings=Settings(initial_window_size=0))
    for _ in range(3):
        served.client.request(get())
    served.run()
    assert sweep(served, 58) == []
    cut = [event for event in sweep(served, 6) if isinstance(event, Reset)]
    assert cut == [Reset(1, ErrorCode.INTERNAL_ERROR), Reset(3, ErrorCode.INTERNAL_ERROR)]
    assert served.session.connection.unsent_answers.keys() <= {5}


def test_a_hundred_answers_at_once_to_a_client_that_reads_are_all_sent() -> None:
    served = Served(lambda exchange: exchange.respond(200, {}, b"x" * 500_000))
    for _ in range(100):
        served.client.request(get())
    events = served.run()
    received = sum(len(event.data) for event in events if isinstance(event, Data))
    assert received == 100 * 500_000


def test_pipelined_requests_wait_while_answers_are_not_taken() -> None:
    handled: list[str] = []

    def big(exchange: Any) -> None:
        handled.append(exchange.path)
        exchange.respond(200, {}, BIG)

    served = Http1Served(big)
    served.transport.taken = False
    served.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
    assert len(handled) == 2
    served.transport.held = 0
    served.transport.taken = True
    served.world.clock.advance(1)
    assert served.written().count(b"HTTP/1.1 200 OK") == 18  # after the first two
    assert len(handled) == 20


def test_a_connection_that_takes_nothing_does_not_outlive_its_idle_timeout() -> None:
    served = Http1Served(lambda exchange: exchange.respond(200, {}, BIG))
    served.transport.taken = False
    served.send(GET)
    sweep(served, 88)
    assert not served.transport.closed
    sweep(served, 6)
    assert served.transport.closed


def test_a_client_may_not_open_more_than_100_streams() -> None:
    served = Served()
    served.client._stream_limit = 200  # one that does not heed SETTINGS
    for _ in range(101):
        served.client.request(get(), end_stream=True)
    assert served.run() == [Reset(201, ErrorCode.PROTOCOL_ERROR)]
    assert len(served.exchanges) == 100


def test_before_it_can_know_the_limit_a_client_is_told_to_try_again() -> None:
    served = Served()
    served.session.connection._settings_acked = False
    served.client._stream_limit = 200
    for _ in range(101):
        served.client.request(get())
    assert served.run() == [Reset(201, ErrorCode.REFUSED_STREAM)]


@pytest.mark.parametrize("kind", [Served, Http1Served])
def test_an_answered_request_holds_nobody_who_waited_for_its_client_to_go(kind: type[Any]) -> None:
    served = kind()
    if kind is Served:
        served.client.request(get())
        served.run()
    else:
        served.send(GET)
    (exchange,) = served.exchanges
    told: list[int] = []

    def gone() -> None:
        told.append(1)

    held = sys.getrefcount(gone)
    exchange.on_gone(gone)
    exchange.respond(200, {})
    assert sys.getrefcount(gone) == held
    exchange.on_gone(gone)
    assert (sys.getrefcount(gone), told) == (held, [])
