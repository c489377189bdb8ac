"""The reflector's watch-list, and what each of its failures leads to, at exact times."""

from __future__ import annotations

import pytest

from harness.client.reflectorstates import State
from harness.wire import status
from harness.wire.request import Failure
from harness.wire.status import Status

from .conftest import bookmark, obj
from .reflectors import Setup, list_path, watch_list


@pytest.fixture
def driver() -> Setup:
    return Setup()


def test_it_begins_with_a_watch_list_of_the_latest_state(driver: Setup) -> None:
    driver.start()
    assert driver.take() == [watch_list()]
    assert driver.state is State.WATCH_LISTING
    assert not driver.timers


def test_the_store_is_replaced_at_the_bookmark_that_ends_the_initial_events(driver: Setup) -> None:
    driver.start()
    driver.open("m2")
    driver.advance(0.25)
    driver.receive(("ADDED", obj("b", 7)), ("ADDED", obj("a", 5)))
    assert (driver.machine.synced, len(driver.machine.store), driver.take_changes()) == (False, 0, [])
    driver.receive(bookmark(9))  # a bookmark without the annotation, or with another value, is not the end
    driver.receive(("BOOKMARK", {"metadata": {"annotations": {"k8s.io/initial-events-end": "yes"}}}))
    assert not driver.machine.synced
    driver.receive(bookmark(10, end=True))
    assert driver.machine.synced
    assert driver.machine.last_resource_version == "10"
    assert driver.take_changes() == [("added", "b"), ("added", "a"), ("replaced", "")]
    assert driver.take_samples("reflector_sync_ms") == [(250.0, {"resource": "secrets", "how": "watch-list"})]
    assert driver.machine.member == "m2"


def test_initial_events_may_already_modify_and_delete(driver: Setup) -> None:
    driver.start()
    driver.open()
    driver.receive(
        ("ADDED", obj("a", 1)),
        ("ADDED", obj("b", 2)),
        ("MODIFIED", obj("a", 3)),
        ("DELETED", obj("b", 4)),
        ("DELETED", obj("c", 4)),
        bookmark(5, end=True),
    )
    assert driver.take_changes() == [("added", "a"), ("replaced", "")]
    assert driver.machine.store.get("ns/a").metadata.resource_version == "3"


def test_the_same_stream_goes_on_as_the_watch(driver: Setup) -> None:
    driver.start()
    driver.open()
    driver.receive(
        ("ADDED", obj("a", 5)), bookmark(10, end=True), ("MODIFIED", obj("a", 11)), ("ADDED", obj("b", 12))
    )
    assert driver.take() == [watch_list()]
    assert driver.state is State.WATCHING
    driver.receive(("DELETED", obj("a", 13)))
    assert driver.take_changes() == [
        ("added", "a"),
        ("replaced", ""),
        ("modified", "a"),
        ("added", "b"),
        ("deleted", "a"),
    ]
    assert driver.machine.last_resource_version == "13"
    driver.receive(bookmark(20))
    assert driver.machine.last_resource_version == "20"


def test_events_come_in_any_split(driver: Setup) -> None:
    driver.begin()
    line = b'{"type":"MODIFIED","object":{"metadata":{"name":"s","namespace":"ns","resourceVersion":"11","uid":"u"}}}\n'
    for at in range(len(line)):
        driver.receive(line[at : at + 1])
    assert driver.take_changes() == [("modified", "s")]


@pytest.mark.parametrize("body", [status.storage_initializing(1), Status(429, "", "x")])
def test_a_watch_list_that_meets_overload_waits_and_tries_again(driver: Setup, body: Status) -> None:
    driver.start()
    driver.take()
    driver.answer(body)
    assert driver.state is State.WATCH_LIST_DELAY
    assert driver.fire() == pytest.approx(1.2)
    assert driver.take() == [watch_list()]
    assert driver.take_samples("reflector_fallbacks") == []


def test_flow_control_s_plain_429_counts_as_overload(driver: Setup) -> None:
    driver.start()
    driver.answer(status.APF_REJECTED, 429)
    assert driver.state is State.WATCH_LIST_DELAY


def test_a_refused_connection_waits_longer_each_time(driver: Setup) -> None:
    driver.start()
    waits = []
    for _ in range(4):
        driver.fail(Failure.REFUSED)
        waits.append(driver.fire())
    assert waits == pytest.approx([1.2, 2.4, 4.8, 9.6])
    assert driver.take() == [watch_list()] * 5


@pytest.mark.parametrize("as_event", [False, True])
@pytest.mark.parametrize("body", [status.too_old(1, 5), status.too_large_resource_version(99, 5)])
def test_an_expired_version_is_dropped_and_the_watch_list_repeated_at_once(
    driver: Setup, body: Status, as_event: bool
) -> None:
    driver.begin("10")
    driver.back_off()
    driver.fire()
    assert driver.take() == [watch_list("10")]
    if as_event:
        driver.open()
        driver.receive(("ERROR", body.as_dict()))
    else:
        driver.answer(body)
    assert driver.take() == [watch_list()]
    driver.open()
    driver.receive(bookmark(30, end=True))
    assert driver.take_changes() == [("deleted", "s"), ("replaced", "")]
    driver.back_off()
    driver.fire()
    assert driver.take() == [watch_list("30")]


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (status.forbidden("", "secrets", "s", "no relationship found"), "403"),
        (status.invalid("meta.k8s.io", "ListOptions", "", []), "422"),
        (status.internal_error("x"), "500"),
        (status.unavailable("x"), "503"),
        (status.request_timeout(), "504"),
    ],
)
@pytest.mark.parametrize("as_event", [False, True])
def test_any_other_error_falls_back_to_a_list_at_once(
    driver: Setup, body: Status, cause: str, as_event: bool
) -> None:
    driver.start()
    driver.take()
    if as_event:
        driver.open()
        driver.receive(("ERROR", body.as_dict()))
        assert driver.cancelled == [("r", "watch")]
    else:
        driver.answer(body)
    assert driver.take() == [list_path("0")]
    assert driver.state is State.LISTING
    assert driver.take_samples("reflector_fallbacks") == [(1.0, {"resource": "secrets", "cause": cause})]
    assert not driver.timers


@pytest.mark.parametrize("failure", [Failure.TLS, Failure.PROTOCOL])
def test_a_broken_handshake_falls_back_too(driver: Setup, failure: Failure) -> None:
    driver.start()
    driver.fail(failure)
    assert driver.state is State.LISTING
    assert driver.take_samples("reflector_fallbacks")[0][1]["cause"] == failure.name.lower()


def test_a_stream_that_is_no_watch_falls_back(driver: Setup) -> None:
    driver.start()
    driver.open()
    driver.receive(b"<html>\n")
    assert (driver.state, driver.cancelled) == (State.LISTING, [("r", "watch")])


def test_a_watch_list_that_ends_within_a_second_without_events_falls_back(driver: Setup) -> None:
    driver.start()
    driver.open()
    driver.advance(0.999)
    driver.close()
    assert driver.state is State.LISTING


@pytest.mark.parametrize(("seconds", "events"), [(1.0, 0), (0.1, 1)])
def test_a_watch_list_that_ends_before_its_bookmark_is_repeated_at_once(
    driver: Setup, seconds: float, events: int
) -> None:
    driver.start()
    driver.open()
    for _ in range(events):
        driver.receive(("ADDED", obj("old", 1)))
    driver.advance(seconds)
    driver.close()
    assert driver.take() == [watch_list()] * 2
    driver.open()
    driver.receive(bookmark(2, end=True))
    assert driver.take_samples("reflector_unfinished_watch_lists") == [(1.0, {"resource": "secrets"})]
    assert driver.take_changes() == [("replaced", "")]  # nothing of the first stream is left
