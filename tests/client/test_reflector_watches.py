"""The reflector's watch once it has its state: ends, errors and waits."""

from __future__ import annotations

import pytest

from harness.client.reflectorstates import State
from harness.wire import status
from harness.wire.request import Failure
from harness.wire.status import Status

from .conftest import bookmark, obj
from .reflectors import Setup, watch, watch_list


@pytest.fixture
def driver() -> Setup:
    return Setup()


def test_a_watch_that_ends_cleanly_is_opened_again_at_once(driver: Setup) -> None:
    driver.begin("10")
    driver.receive(("MODIFIED", obj("s", 12)))
    driver.close()
    assert driver.take() == [watch("12")]
    assert not driver.timers
    driver.open()
    driver.advance(450)
    driver.close()
    assert driver.take() == [watch("12")]


@pytest.mark.parametrize("seconds", [1.0, 450.0])
def test_a_broken_connection_counts_as_a_clean_end(driver: Setup, seconds: float) -> None:
    driver.begin("10")
    driver.advance(seconds)
    driver.close(Failure.RESET)
    assert driver.take() == [watch("10")]


def test_a_very_short_watch_leads_to_backoff(driver: Setup) -> None:
    driver.begin("10")
    driver.advance(0.999)
    driver.close()
    assert driver.state is State.BACKOFF
    assert driver.fire() == pytest.approx(1.2)
    assert driver.take() == [watch_list("10")]


@pytest.mark.parametrize("failure", [Failure.LOST, Failure.PROTOCOL, Failure.TLS])
def test_a_watch_that_breaks_otherwise_leads_to_backoff(driver: Setup, failure: Failure) -> None:
    driver.begin("10")
    driver.advance(100)
    driver.close(failure)
    assert driver.state is State.BACKOFF


@pytest.mark.parametrize("as_event", [False, True])
@pytest.mark.parametrize(
    "body", [status.too_old(1, 5), status.too_large_resource_version(9, 5), status.internal_error("x")]
)
def test_a_watch_that_is_told_an_error_leads_to_backoff_and_a_watch_list_at_the_last_version(
    driver: Setup, body: Status, as_event: bool
) -> None:
    driver.begin("10")
    driver.receive(("MODIFIED", obj("s", 12)))
    if as_event:
        driver.receive(("ERROR", body.as_dict()), ("MODIFIED", obj("s", 99)))
        assert driver.cancelled == [("r", "watch")]
    else:
        driver.close()
        driver.answer(body)
    driver.take()
    assert driver.state is State.BACKOFF
    driver.fire()
    assert driver.take() == [watch_list("12")]  # what followed the error was not read


@pytest.mark.parametrize("as_event", [False, True])
def test_a_watch_that_meets_overload_waits_and_is_opened_again(driver: Setup, as_event: bool) -> None:
    driver.begin("10")
    if as_event:
        driver.receive(("ERROR", status.storage_initializing(1).as_dict()))
    else:
        driver.advance(2)
        driver.close()
        driver.take()
        driver.answer(status.APF_REJECTED, 429)
    assert driver.state is State.WATCH_DELAY
    assert driver.fire() == pytest.approx(1.2)
    assert driver.take() == [watch("10")]


def test_a_watch_that_is_refused_waits_and_is_opened_again(driver: Setup) -> None:
    driver.begin("10")
    driver.advance(2)
    driver.close()
    driver.fail(Failure.REFUSED)
    assert driver.state is State.WATCH_DELAY
    driver.fire()
    assert driver.take() == [watch("10")] * 2


@pytest.mark.parametrize(
    ("failure", "seconds", "state"),
    [
        (Failure.RESET, 0.5, State.BACKOFF),
        (Failure.RESET, 1.0, State.WATCHING),
        (Failure.TIMEOUT, 10.0, State.WATCHING),
        (Failure.LOST, 10.0, State.BACKOFF),
        (Failure.PROTOCOL, 10.0, State.BACKOFF),
    ],
)
def test_a_watch_that_is_never_answered_is_an_empty_watch(
    driver: Setup, failure: Failure, seconds: float, state: State
) -> None:
    driver.begin("10")
    driver.advance(2)
    driver.close()
    driver.advance(seconds)
    driver.fail(failure)
    assert driver.state is state


def test_the_end_of_a_long_healthy_watch_still_waits(driver: Setup) -> None:
    driver.begin("10")
    driver.advance(3600)
    driver.receive(("ERROR", status.too_old(1, 5).as_dict()))
    assert driver.fire() == pytest.approx(1.2)


def test_the_delay_of_all_waits_is_one_backoff_that_two_minutes_reset(driver: Setup) -> None:
    driver.start()
    driver.answer(status.APF_REJECTED, 429)
    assert driver.fire() == pytest.approx(1.2)
    driver.open()
    driver.receive(bookmark(10, end=True))
    driver.receive(("ERROR", status.storage_initializing(1).as_dict()))
    assert driver.fire() == pytest.approx(2.4)
    driver.open()
    driver.receive(("ERROR", status.too_old(1, 2).as_dict()))
    assert driver.fire() == pytest.approx(4.8)
    driver.open()
    driver.advance(120)
    driver.receive(bookmark(11, end=True), ("ERROR", status.too_old(1, 2).as_dict()))
    assert driver.fire() == pytest.approx(1.2)


def test_unknown_events_are_passed_over(driver: Setup) -> None:
    driver.begin("10")
    driver.receive(("SOMETHING", obj("x", 11)))
    assert driver.machine.last_resource_version == "10"
    assert driver.take_changes() == []


def test_an_object_that_does_not_decode_ends_the_watch(driver: Setup) -> None:
    driver.begin("10")
    driver.receive(("MODIFIED", {"metadata": 5}))
    assert (driver.state, driver.cancelled) == (State.BACKOFF, [("r", "watch")])
