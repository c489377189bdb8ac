"""The reflector does what client-go's does, state by state, at exact times."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client.machine import Answered, Closed, Failed, Fired, Received
from harness.client.reflector import Reflector
from harness.client.reflectorstates import DELAYS, STREAMS, TRANSITIONS, InvalidTransition, Outcome, State
from harness.client.requests import PODS
from harness.client.store import ObjectMeta
from harness.wire import status
from harness.wire.request import Failure, Response, TransportError
from harness.wire.status import Status

from .conftest import Driver, FixedRandom, bookmark, obj
from .reflectors import Setup, items, list_path, watch, watch_list


@pytest.fixture
def driver() -> Setup:
    return Setup()


# ---- options -------------------------------------------------------------------------------------------------------
def test_an_old_client_lists_and_watches() -> None:
    driver = Setup(watch_list=False)
    driver.start()
    assert driver.take() == [list_path("0")]
    driver.answer(items("42", obj("a", 7)))
    assert driver.take() == [watch("42")]
    driver.open()
    driver.back_off()
    driver.fire()
    assert driver.take() == [list_path("42", limit=0)]
    assert driver.take_samples("reflector_fallbacks") == []


def test_a_kubelet_s_pods_have_no_timeout_beside_timeout_seconds_and_its_secrets_a_longer_one() -> None:
    pods = Driver(
        Reflector("p", PODS, None, "spec.nodeName=n1", "", FixedRandom(0.999), generated_client=False)
    )  # type: ignore[arg-type]
    pods.start()
    assert pods.take() == [
        (
            "/api/v1/pods?allowWatchBookmarks=true&fieldSelector=spec.nodeName%3Dn1&resourceVersionMatch=NotOlderThan"
            "&sendInitialEvents=true&timeoutSeconds=599&watch=true"
        )
    ]
    driver = Setup(timeout_range_s=(1800.0, 3600.0))
    driver.start()
    assert "&timeout=45m0s&timeoutSeconds=2700&" in driver.take()[0]


def test_objects_are_kept_as_the_owner_decodes_them() -> None:
    class Secret(msgspec.Struct):
        metadata: ObjectMeta
        data: dict[str, str] = {}

    driver = Setup(decode=msgspec.json.Decoder(Secret).decode)
    driver.start()
    driver.open()
    driver.receive(("ADDED", obj("s", 1, data={"k": "v"})), bookmark(2, end=True))
    assert driver.machine.store.get("ns/s").data == {"k": "v"}


def test_reflectors_of_one_kind_share_their_spec() -> None:
    assert Setup().machine.spec is Setup().machine.spec
    assert Setup(client="events").machine.spec is not Setup().machine.spec


# ---- stopping ------------------------------------------------------------------------------------------------------
def test_stopping_gives_up_what_is_under_way_and_starting_again_goes_on(driver: Setup) -> None:
    driver.begin("10")
    driver.stop()
    assert (driver.cancelled, driver.in_flight, driver.machine.synced) == ([("r", "watch")], {}, False)
    assert driver.machine.store.get("ns/s") is not None
    driver.advance(300)
    driver.start()
    assert driver.take() == [watch_list("10")]


def test_stopping_while_listing_or_waiting_leaves_nothing(driver: Setup) -> None:
    driver.start()
    driver.answer(status.forbidden("", "secrets", "s", "x"))
    driver.stop()
    assert driver.cancelled == [("r", "list")]
    driver.start()
    driver.fail(Failure.REFUSED)
    driver.stop()
    assert driver.timers == {}
    driver.stop()
    assert driver.state is State.STOPPED


def test_late_events_are_ignored(driver: Setup) -> None:
    driver.begin("10")
    error = TransportError(Failure.RESET, "late", "m0")
    driver.event(Fired(("r", "backoff")))
    driver.event(Answered(("r", "list"), Response(200, {}, b"{}")))
    assert driver.state is State.WATCHING
    driver.stop()
    for event in (
        Received(("r", "watch"), b"x"),
        Closed(("r", "watch"), None),
        Failed(("r", "watch"), error),
        Answered(("r", "watch"), Response(500, {}, b"")),
        Fired(("r", "backoff")),
    ):
        driver.event(event)
    assert (driver.state, driver.sent) == (State.STOPPED, [])


# ---- the table -----------------------------------------------------------------------------------------------------
def test_every_state_can_be_left_and_reached() -> None:
    left = {state for state, _ in TRANSITIONS}
    assert left == set(State)
    assert set(TRANSITIONS.values()) == set(State) - {State.IDLE, State.STOPPED}
    for state in STREAMS:
        known = {outcome for each, outcome in TRANSITIONS if each is state}
        assert known >= {Outcome.ENDED, Outcome.VERY_SHORT, Outcome.BUSY, Outcome.EXPIRED, Outcome.FAILED}
    assert not DELAYS & STREAMS


def test_an_outcome_that_the_state_does_not_know_tells_its_story(driver: Setup) -> None:
    driver.begin("10")
    with pytest.raises(
        InvalidTransition, match=r"LISTED in Reflector\('r', secrets, watching, synced=True, objects=1"
    ):
        driver.machine._move(Outcome.LISTED, 0.0, [])


_STEPS = st.lists(
    st.sampled_from(
        ["open", "events", "sync", "error 410", "error 403", "garbage", "close", "reset", "pass"]
        + [f"answer {code}" for code in (200, 403, 410, 429, 500, 504)]
        + [f"fail {failure.name}" for failure in Failure]
    ),
    max_size=40,
)


@given(_STEPS)
def test_whatever_a_server_does_the_reflector_always_has_one_thing_under_way(steps: list[str]) -> None:
    driver = Setup()
    driver.start()
    for step in steps:
        assert len(driver.in_flight) + len(driver.timers) == 1
        if driver.timers:
            driver.fire()
        _play(driver, step)
    driver.stop()
    assert not driver.in_flight
    assert not driver.timers


def _play(driver: Setup, step: str) -> None:
    streaming = driver.state in STREAMS
    kind, _, argument = step.partition(" ")
    if kind == "pass":
        driver.now += 1.5
    elif kind == "answer":
        if argument == "200" and not streaming:
            driver.answer(items("7", obj("a", 7)))
        elif argument != "200":
            driver.answer(Status(int(argument), "Expired" if argument == "410" else "", "x"))
    elif kind == "fail":
        driver.fail(Failure[argument])
    elif streaming and kind == "open":
        driver.open()
    elif streaming and kind in ("close", "reset"):
        driver.close(Failure.RESET if kind == "reset" else None)
    elif streaming:
        lines: dict[str, list[Any]] = {
            "events": [("ADDED", obj("a", 1)), ("DELETED", obj("b", 2))],
            "sync": [bookmark(3, end=True), ("MODIFIED", obj("a", 4))],
            "error": [
                ("ERROR", Status(int(argument or 0), "Expired" if argument == "410" else "", "x").as_dict())
            ],
            "garbage": [b"{\n"],
        }
        driver.receive(*lines[kind])
