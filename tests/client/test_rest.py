"""Below every machine: tokens, retries and their waits, as client-go's request does them."""

from __future__ import annotations

from typing import Any

import pytest

from harness.client.limiter import TokenBucket
from harness.client.machine import (
    Action,
    Answered,
    Arm,
    Cancel,
    Closed,
    Event,
    Failed,
    Fired,
    Key,
    Opened,
    Received,
    Send,
)
from harness.client.requests import LEASES, PODS, create_, get_, list_, update_, watch_
from harness.client.rest import MAX_RETRIES, Rest
from harness.wire import status
from harness.wire.request import Failure, Request

from .conftest import Driver

GET = get_(PODS, "a", "p")
WATCH = watch_(PODS)


class Recorder:
    """An inner machine that sends what it is told to and keeps what it hears."""

    def __init__(self, *first: Action) -> None:
        self.first = list(first)
        self.heard: list[Event] = []
        self.reply: list[Action] = []

    def start(self, now: float) -> list[Action]:
        return self.first

    def handle(self, event: Event, now: float) -> list[Action]:
        self.heard.append(event)
        reply, self.reply = self.reply, []
        return reply

    def stop(self, now: float) -> list[Action]:
        return []


def _driver(*requests: Request, bucket: TokenBucket | None = None, **limiters: TokenBucket | None) -> Driver:
    sends = [Send((at,), request) for at, request in enumerate(requests)]
    rest = Rest(Recorder(*sends), {"main": bucket, **limiters})
    driver = Driver(rest)
    driver.start()
    return driver


def _heard(driver: Driver) -> list[Any]:
    return driver.machine._inner.heard  # type: ignore[attr-defined]


def _keys(driver: Driver) -> list[Key]:
    keys = [key for key, _ in driver.sent]
    driver.sent.clear()
    return keys


# ---- tokens --------------------------------------------------------------------------------------------------------
def test_requests_wait_for_their_tokens_in_order() -> None:
    driver = _driver(*[GET] * 5, bucket=TokenBucket(10, 2))
    assert _keys(driver) == [(0,), (1,)]
    assert sorted(driver.timers.values()) == pytest.approx([100.1, 100.2, 100.3])
    assert driver.fire() == pytest.approx(0.1)
    assert _keys(driver) == [(2,)]
    driver.fire()
    driver.fire()
    assert _keys(driver) == [(3,), (4,)]
    assert driver.take_samples("client_throttled_ms") == [
        (pytest.approx(delay), {"verb": "get", "name": "pods"}) for delay in (100, 200, 300)
    ]


def test_each_client_has_its_own_bucket_and_none_means_no_limit() -> None:
    heartbeat = update_(LEASES, "kube-node-lease", "n", b"{}", client="heartbeat")
    events = create_(PODS, "a", b"{}", client="events")
    driver = _driver(
        GET,
        heartbeat,
        heartbeat,
        events,
        GET,
        bucket=TokenBucket(1, 1),
        heartbeat=None,
        events=TokenBucket(1, 1),
    )
    assert _keys(driver) == [(0,), (1,), (2,), (3,)]
    assert list(driver.timers) == [("rest", (4,))]


def test_a_client_without_a_bucket_of_its_name_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="other"):
        _driver(get_(PODS, "a", "p", client="other"))


def test_watches_take_no_token_but_lists_do() -> None:
    bucket = TokenBucket(10, 1)
    driver = _driver(WATCH, list_(PODS), WATCH, bucket=bucket)
    assert _keys(driver) == [(0,), (1,), (2,)]
    assert bucket.tokens(driver.now) == 0


def test_a_throttled_request_that_is_cancelled_gives_its_token_back() -> None:
    bucket = TokenBucket(10, 1)
    driver = _driver(GET, GET, bucket=bucket)
    driver.machine._inner.reply = [Cancel((1,))]  # type: ignore[attr-defined]
    driver.answer(b"{}")
    assert (driver.timers, driver.cancelled) == ({}, [])
    assert bucket.tokens(driver.now) == pytest.approx(0)
    driver.event(Fired(("rest", (1,))))
    assert len(_heard(driver)) == 1


# ---- retries -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("code", [429, 500, 503, 504])
@pytest.mark.parametrize("request_", [GET, create_(PODS, "a", b"{}"), list_(PODS), WATCH])
def test_an_answer_with_retry_after_is_asked_for_again_after_that_wait(code: int, request_: Request) -> None:
    driver = _driver(request_)
    driver.answer(b"", code, headers={"retry-after": "3"})
    assert _heard(driver) == []
    assert driver.fire() == 3.0
    assert _keys(driver) == [(0,), (0,)]
    driver.answer(b"{}", 201)
    assert [type(event) for event in _heard(driver)] == [Answered]


def test_after_ten_retries_the_answer_is_passed_on() -> None:
    driver = _driver(GET)
    for _ in range(MAX_RETRIES):
        driver.answer(status.APF_REJECTED, 429, headers={"retry-after": "1"})
        driver.fire()
    assert len(_keys(driver)) == 11
    driver.answer(status.APF_REJECTED, 429, headers={"retry-after": "1"})
    assert [event.response.status for event in _heard(driver)] == [429]
    assert not driver.timers


def test_a_timeout_covers_the_retries_and_their_waits() -> None:
    driver = _driver(update_(LEASES, "n", "l", b"{}", timeout_s=10.0))
    assert [request.timeout_s for _, request in driver.sent] == [10.0]
    for left_s in (6.0, 2.0):
        driver.answer(status.APF_REJECTED, 429, headers={"retry-after": "4"})
        assert driver.fire() == 4.0
        assert driver.in_flight[(0,)].timeout_s == left_s
    driver.answer(status.APF_REJECTED, 429, headers={"retry-after": "4"})
    assert driver.fire() == 2.0
    (event,) = _heard(driver)
    assert event.error.failure is Failure.TIMEOUT
    assert not driver.timers
    assert not driver.in_flight


def test_a_token_that_would_come_after_the_timeout_is_not_waited_for() -> None:
    bucket = TokenBucket(0.05, 1)
    driver = _driver(GET, update_(LEASES, "n", "l", b"{}", timeout_s=10.0), bucket=bucket)
    (event,) = _heard(driver)
    assert (event.key, event.error.failure) == ((1,), Failure.TIMEOUT)
    assert not driver.timers
    assert bucket.reserve(driver.now) == pytest.approx(20.0)  # its token was given back


@pytest.mark.parametrize(
    ("code", "headers"),
    [
        (429, {}),
        (503, {"retry-after": ""}),
        (503, {"retry-after": "soon"}),
        (503, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}),
        (409, {"retry-after": "1"}),
        (404, {"retry-after": "1"}),
        (200, {"retry-after": "1"}),
    ],
)
def test_anything_else_is_passed_on_at_once(code: int, headers: dict[str, str]) -> None:
    driver = _driver(GET)
    driver.answer(b"", code, headers=headers)
    assert len(_heard(driver)) == 1


def test_a_retry_takes_another_token_even_for_a_watch() -> None:
    bucket = TokenBucket(0.1, 1)
    driver = _driver(WATCH, bucket=bucket)
    driver.answer(b"", 429, headers={"retry-after": "1"})
    driver.fire()
    assert bucket.tokens(driver.now) == 0
    assert driver.take_samples("client_throttled_ms") == []
    driver.answer(b"", 429, headers={"retry-after": "1"})
    assert driver.fire() == 1.0
    assert driver.fire() == pytest.approx(9.0)
    assert driver.take_samples("client_throttled_ms") == [
        (pytest.approx(9000), {"verb": "watch", "name": "pods"})
    ]
    assert len(_keys(driver)) == 3


def test_a_retry_after_of_zero_is_asked_for_again_at_once() -> None:
    driver = _driver(GET)
    driver.answer(b"", 503, headers={"retry-after": "0"})
    assert driver.fire() == 0.0
    assert len(_keys(driver)) == 2


@pytest.mark.parametrize(
    ("request_", "failure", "again"),
    [
        (GET, Failure.RESET, True),
        (list_(PODS), Failure.RESET, True),
        (GET, Failure.REFUSED, False),
        (GET, Failure.TIMEOUT, False),
        (GET, Failure.LOST, True),
        (GET, Failure.PROTOCOL, False),
        (create_(PODS, "a", b"{}"), Failure.RESET, False),
        (create_(PODS, "a", b"{}"), Failure.LOST, False),
        (WATCH, Failure.RESET, True),
        (WATCH, Failure.TIMEOUT, True),
        (WATCH, Failure.LOST, False),
        (WATCH, Failure.REFUSED, False),
        (WATCH, Failure.TLS, False),
        (WATCH, Failure.CLOSED, True),
    ],
)
def test_reads_whose_connection_broke_are_sent_again_after_a_second(
    request_: Request, failure: Failure, again: bool
) -> None:
    driver = _driver(request_)
    driver.fail(failure)
    if again:
        assert driver.fire() == 1.0
        assert len(_keys(driver)) == 2
        assert _heard(driver) == []
    else:
        assert [type(event) for event in _heard(driver)] == [Failed]
        assert not driver.timers


def test_a_request_that_waits_for_its_retry_can_be_cancelled() -> None:
    driver = _driver(GET)
    driver.machine._inner.first = []  # type: ignore[attr-defined]
    driver.answer(b"", 503, headers={"retry-after": "5"})
    driver.machine._inner.reply = [Cancel((0,))]  # type: ignore[attr-defined]
    driver.event(Fired(("mine",)))
    assert (driver.timers, driver.cancelled, driver.machine.in_flight) == ({}, [], 0)  # type: ignore[attr-defined]


# ---- passing through -----------------------------------------------------------------------------------------------
def test_an_open_watch_is_left_alone() -> None:
    driver = _driver(WATCH)
    driver.open()
    assert driver.machine.in_flight == 0  # type: ignore[attr-defined]
    driver.receive(b"x\n")
    driver.close(Failure.RESET)
    assert [type(event) for event in _heard(driver)] == [Opened, Received, Closed]
    assert not driver.timers


def test_what_the_inner_machine_does_besides_passes_through() -> None:
    driver = _driver(GET)
    driver.machine._inner.reply = [Arm(("mine",), 200.0), Cancel((7,))]  # type: ignore[attr-defined]
    driver.answer(b"{}")
    assert driver.timers == {("mine",): 200.0}
    assert driver.cancelled == [(7,)]
    driver.fire()
    assert isinstance(_heard(driver)[-1], Fired)


def test_a_key_can_be_used_again_when_its_request_has_ended() -> None:
    driver = _driver(GET, bucket=TokenBucket(1, 1))
    driver.machine._inner.reply = [Send((0,), GET)]  # type: ignore[attr-defined]
    driver.answer(b"{}")
    assert driver.fire() == 1.0
    assert len(_keys(driver)) == 2


def test_stopping_cancels_what_flies_and_disarms_what_waits() -> None:
    driver = _driver(GET, GET, WATCH, bucket=TokenBucket(1, 1))
    driver.answer(b"", 503, key=(0,), headers={"retry-after": "5"})
    assert repr(driver.machine).endswith("calls=3, throttled=1)")
    driver.stop()
    assert (driver.timers, driver.in_flight, driver.cancelled) == ({}, {}, [(2,)])
