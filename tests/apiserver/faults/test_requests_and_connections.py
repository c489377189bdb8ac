"""What clients see of each fault, on scripted bytes and virtual time: sessions as the server has them, no sockets."""

from __future__ import annotations

from typing import Any

import pytest

from harness.apiserver.exchange import Exchange
from harness.apiserver.faults.active import Faults
from harness.apiserver.faults.connections import ConnectionFaults
from harness.apiserver.faults.requests import RequestFaults
from harness.apiserver.faults.spec import parse_spec
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.serving.common import Session
from harness.apiserver.serving.http1 import Http1Session
from harness.wire.http2 import Data, ErrorCode, GoAway, Headers, Reset
from tests.apiserver.process.test_server_http1 import GET
from tests.apiserver.process.test_server_http1 import Served as Http1Served
from tests.apiserver.process.test_server_http2 import Served, get

PODS = "/api/v1/namespaces/ns/pods"


class Faulty:
    """A session with its client, behind faults; `reached` are the requests that the member saw."""

    def __init__(self, http1: bool = False) -> None:
        self.reached: list[Any] = []
        served: Any = Http1Served(self._handle) if http1 else Served(self._handle)
        self.served = served
        self.clock = served.world.clock
        self.metrics = Metrics()
        self.faults = Faults(self.clock, "1/member-0", self.metrics)
        self.handler: Any = self.reached.append
        self.refusing = False
        RequestFaults(self.faults, self.clock, self.reached.append, self._install)
        ConnectionFaults(self.faults, self.clock, self)

    def _handle(self, exchange: Exchange) -> None:
        self.handler(exchange)

    def _install(self, handler: Any) -> None:
        self.handler = handler

    # ---- faults.connections.Listener
    def sessions(self) -> list[Session]:
        return list(self.served.world.serving.sessions)

    def refuse(self) -> None:
        self.refusing = True

    def accept_again(self) -> None:
        self.refusing = False

    # ---- the client
    def begin(self, text: str, for_s: float | None = None) -> Any:
        return self.faults.begin(parse_spec(text).fault, for_s)

    def ask(self, path: str = PODS, method: bytes = b"GET") -> list[Any]:
        self.served.client.request(get(path, method))
        return self.served.run()

    def pass_time(self, seconds: float) -> list[Any]:
        self.clock.advance(seconds)
        return self.served.run()


@pytest.fixture
def faulty() -> Faulty:
    return Faulty()


def status(events: list[Any]) -> bytes:
    head = next(event for event in events if isinstance(event, Headers))
    return head.headers[0][1]


def test_nothing_stands_in_the_way_before_the_first_fault_and_after_the_last(faulty: Faulty) -> None:
    plain = faulty.handler
    first, second = faulty.begin("error chance=1"), faulty.begin("slow")
    assert faulty.handler != plain
    faulty.faults.end(first.id)
    assert faulty.handler != plain
    faulty.faults.end(second.id)
    assert faulty.handler == plain


@pytest.mark.parametrize(
    ("options", "code", "retry_after", "words"),
    [
        ("", b"500", None, b'"reason":"InternalError"'),
        ("status=503", b"503", b"1", b'"reason":"ServiceUnavailable"'),
        ("status=503 retry-after=7", b"503", b"7", b"ServiceUnavailable"),
        ("status=429", b"429", b"1", b"Too many requests, please try again later.\n"),
        ("status=504", b"504", None, b'"reason":"Timeout"'),
    ],
)
def test_an_error_is_answered_in_front_of_the_member(
    faulty: Faulty, options: str, code: bytes, retry_after: bytes | None, words: bytes
) -> None:
    running = faulty.begin(f"error chance=1 {options}")
    head, body = faulty.ask()
    assert head.headers[0] == (b":status", code)
    assert dict(head.headers).get(b"retry-after") == retry_after
    assert words in body.data
    assert faulty.reached == []
    assert running.hits == 1


@pytest.mark.parametrize(
    ("method", "path", "hit"),
    [
        (b"GET", PODS, True),
        (b"GET", f"{PODS}?watch=1", False),
        (b"POST", PODS, False),
        (b"GET", f"{PODS}/p", True),
        (b"GET", f"{PODS}/p/status", True),
        (b"GET", f"{PODS}/p/log", False),
        (b"GET", "/apis/apps/v1/namespaces/ns/deployments", True),
        (b"GET", "/apis/apps/v1/namespaces/ns/replicasets", False),
        (b"GET", "/api/v1/nodes", False),
        (b"GET", "/readyz", False),
        (b"GET", "/swarmlet/faults", False),
    ],
)
def test_verbs_and_resources_choose(faulty: Faulty, method: bytes, path: str, hit: bool) -> None:
    faulty.begin("error chance=1 verbs=get,list resources=pods,pods/status,deployments.apps")
    faulty.ask(path, method)
    assert bool(faulty.reached) != hit


def test_a_chance_is_a_share_and_the_seed_says_which(faulty: Faulty) -> None:
    again = Faulty()
    seen = []
    for world in (faulty, again):
        world.begin("error chance=0.3")
        for _ in range(200):
            world.ask()
            if world.reached:
                world.reached.pop().respond(200, {})
        seen.append(next(iter(world.faults)).hits)
    assert seen[0] == seen[1]
    assert 40 <= seen[0] <= 80


def test_control_stays_reachable_whatever_is_active(faulty: Faulty) -> None:
    for text in ("error chance=1", "rst-stream chance=1", "slow median=100s", "goaway chance=1"):
        faulty.begin(text)
    faulty.ask("/swarmlet/faults")
    faulty.reached[0].respond(200, {})
    assert not any(isinstance(event, GoAway) for event in faulty.served.run())


@pytest.mark.parametrize(
    ("code", "sent"),
    [("internal-error", ErrorCode.INTERNAL_ERROR), ("refused-stream", ErrorCode.REFUSED_STREAM)],
)
def test_a_stream_is_reset_instead_of_answered(faulty: Faulty, code: str, sent: ErrorCode) -> None:
    faulty.begin(f"rst-stream chance=1 code={code}")
    assert faulty.ask() == [Reset(1, sent)]
    assert faulty.reached == []


def test_goaway_goes_out_with_the_answers_head_and_the_connection_closes_when_idle(faulty: Faulty) -> None:
    faulty.begin("goaway chance=1")
    assert faulty.ask("/readyz") == []
    watch = faulty.ask(f"{PODS}?watch=1")
    assert watch == []
    faulty.reached[0].respond(200, {}, b"{}")
    events = faulty.served.run()
    assert events[0] == GoAway(ErrorCode.NO_ERROR, 3, b"")
    assert status(events) == b"200"
    faulty.reached[1].start(200, {})
    faulty.reached[1].write(b"event\n")
    assert faulty.served.run()[-1] == Data(3, b"event\n", False)
    faulty.reached[1].finish()
    faulty.served.run()
    faulty.pass_time(1.0)
    assert faulty.served.transport.closed


def test_goaway_is_nothing_to_http_1_1() -> None:
    faulty = Faulty(http1=True)
    running = faulty.begin("goaway chance=1")
    faulty.served.send(GET)
    faulty.reached[0].respond(200, {})
    assert b"Connection: close" not in faulty.served.written()
    assert running.hits == 0


def test_a_slow_answer_waits_and_a_client_that_leaves_is_not_served(faulty: Faulty) -> None:
    faulty.begin("slow median=2s sigma=0")
    faulty.ask()
    faulty.ask()
    faulty.pass_time(1.9)
    faulty.served.client.reset(3)
    faulty.served.run()
    assert faulty.reached == []
    faulty.pass_time(0.2)
    assert [exchange.stream_id for exchange in faulty.reached] == [1]


# ---- watches -------------------------------------------------------------------------------------------------------
def watching(faulty: Faulty, path: str = f"{PODS}?watch=1") -> Any:
    faulty.ask(path)
    exchange = faulty.reached[-1]
    exchange.start(200, {})
    faulty.served.run()
    return exchange


@pytest.mark.parametrize("how", ["end", "reset"])
def test_a_watch_is_cut_in_the_middle_of_its_next_event(faulty: Faulty, how: str) -> None:
    gone: list[int] = []
    watch = watching(faulty)
    watch.on_gone(lambda: gone.append(1))
    running = faulty.begin(f"cut-watch chance=1 how={how}", 10.0)
    faulty.pass_time(0.1)
    assert running.hits == 0
    watch.write(b"0123456789")
    watch.write(b"never")
    events = faulty.served.run()
    if how == "end":
        assert events == [Data(1, b"01234", False), Data(1, b"", True)]
    else:
        assert events == [Data(1, b"01234", False), Reset(1, ErrorCode.INTERNAL_ERROR)]
    assert (gone, running.hits) == ([1], 1)
    watch.finish()
    assert faulty.served.run() == []


def test_watches_that_open_later_are_cut_too_and_others_are_left_alone(faulty: Faulty) -> None:
    running = faulty.begin("cut-watch chance=1 resources=pods", 10.0)
    faulty.pass_time(0.5)
    pods, nodes = watching(faulty), watching(faulty, "/api/v1/nodes?watch=1")
    faulty.pass_time(1.0)
    pods.write(b"ab")
    nodes.write(b"ab")
    faulty.served.run()
    assert (pods.state != nodes.state, running.hits) == (True, 1)
    faulty.pass_time(10)
    assert list(faulty.faults) == []


def test_a_watch_that_ends_before_its_next_event_ends_as_usual(faulty: Faulty) -> None:
    watch = watching(faulty)
    faulty.begin("cut-watch chance=1", 10.0)
    faulty.pass_time(0.1)
    watch.finish()
    assert faulty.served.run() == [Data(1, b"", True)]


def test_a_watch_over_http_1_1_is_cut_too() -> None:
    faulty = Faulty(http1=True)
    faulty.served.send(b"GET " + f"{PODS}?watch=1".encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    faulty.reached[0].start(200, {})
    faulty.served.written()
    faulty.begin("cut-watch chance=1 how=reset")
    faulty.clock.advance(0.1)
    faulty.reached[0].write(b"0123")
    assert faulty.served.written() == b"2\r\n01\r\n"
    assert faulty.served.transport.closed


# ---- connections ---------------------------------------------------------------------------------------------------
def test_a_connection_without_data_still_answers_pings_and_sends_heads(faulty: Faulty) -> None:
    watch = watching(faulty)
    running = faulty.begin("stall", 5.0)
    assert faulty.pass_time(0.1) == []
    watch.write(b"one")
    faulty.ask()
    faulty.reached[1].respond(200, {}, b"body")
    faulty.served.client.ping(b"12345678")
    events = faulty.served.run()
    assert [type(event).__name__ for event in events] == ["Headers", "PingAck"]
    assert watch.buffered == 3
    assert running.hits == 1
    events = faulty.pass_time(5)
    assert [event.data for event in events] == [b"one", b"body"]
    assert watch.buffered == 0


def test_a_connection_that_gets_nothing_gets_it_all_afterwards(faulty: Faulty) -> None:
    watch = watching(faulty)
    faulty.begin("stall what=all", 5.0)
    faulty.pass_time(0.1)
    watch.write(b"one")
    faulty.served.client.ping(b"12345678")
    assert faulty.ask() == []
    assert faulty.pass_time(4) == []
    watch.write(b"two")
    assert watch.buffered >= 6
    events = faulty.pass_time(1)
    assert [event.data for event in events if isinstance(event, Data)] == [b"one", b"two"]
    assert watch.buffered == 0
    watch.write(b"three")
    assert faulty.served.run() == [Data(1, b"three", False)]


def test_a_stalled_connection_may_be_lost_meanwhile(faulty: Faulty) -> None:
    watching(faulty)
    faulty.begin("stall what=all", 5.0)
    faulty.begin("stall", 5.0)
    faulty.clock.advance(0.1)
    faulty.served.session.connection_lost(None)
    faulty.clock.advance(10)
    assert list(faulty.faults) == []


def test_over_http_1_1_a_stall_holds_everything() -> None:
    faulty = Faulty(http1=True)
    faulty.begin("stall", 5.0)
    faulty.clock.advance(0.1)
    faulty.served.send(GET)
    faulty.reached[0].respond(200, {}, b"body")
    assert faulty.served.transport.take() == b""
    faulty.clock.advance(5)
    assert faulty.served.written().endswith(b"body")
    assert isinstance(faulty.served.session, Http1Session)


def test_connections_are_dropped_once_and_no_share_is_none_of_them(faulty: Faulty) -> None:
    faulty.begin("drop-connections share=0")
    faulty.clock.advance(1)
    assert not faulty.served.transport.closed
    running = faulty.begin("drop-connections")
    assert not faulty.served.transport.closed  # the order is answered first
    faulty.clock.advance(1)
    assert faulty.served.transport.closed
    assert running.hits == 1


def test_connections_are_refused_until_the_end(faulty: Faulty) -> None:
    faulty.begin("refuse-connections", 5.0)
    assert faulty.refusing
    faulty.clock.advance(5)
    assert not faulty.refusing
