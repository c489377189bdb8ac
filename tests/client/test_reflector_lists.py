"""The reflector's LIST: the fall back from a watch-list, its pages and its failures."""

from __future__ import annotations

import pytest

from harness.client.reflectorstates import State
from harness.wire import status
from harness.wire.request import Failure
from harness.wire.status import Status

from .conftest import obj
from .reflectors import Setup, items, list_path, watch, watch_list


@pytest.fixture
def driver() -> Setup:
    return Setup()


def _fall_back(driver: Setup) -> None:
    driver.start()
    driver.answer(status.forbidden("", "secrets", "s", "x"))
    assert driver.take() == [watch_list(), list_path("0")]


def test_a_list_fills_the_store_and_a_plain_watch_follows(driver: Setup) -> None:
    _fall_back(driver)
    driver.advance(0.5)
    driver.answer(items("42", obj("a", 7), obj("b", 8)))
    assert driver.take() == [watch("42")]
    assert driver.take_changes() == [("added", "a"), ("added", "b"), ("replaced", "")]
    assert driver.take_samples("reflector_sync_ms") == [(500.0, {"resource": "secrets", "how": "list"})]
    assert driver.machine.synced
    driver.open()
    driver.receive(("MODIFIED", obj("a", 43)))
    assert driver.machine.last_resource_version == "43"


def test_a_list_without_items_is_an_empty_state(driver: Setup) -> None:
    _fall_back(driver)
    driver.answer({"metadata": {"resourceVersion": "42"}, "items": None})
    assert driver.take_changes() == [("replaced", "")]


def test_pages_are_walked_without_a_version(driver: Setup) -> None:
    _fall_back(driver)
    driver.answer(items("42", obj("a", 7), token="t1"))
    assert driver.take() == [list_path(token="t1")]
    driver.answer(items("42", obj("b", 8), token="t2"))
    assert driver.take() == [list_path(token="t2")]
    assert driver.take_changes() == []
    driver.answer(items("42", obj("c", 9)))
    assert driver.take() == [watch("42")]
    assert driver.take_changes() == [("added", "a"), ("added", "b"), ("added", "c"), ("replaced", "")]


def test_a_resource_that_pages_at_version_0_is_paged_from_then_on(driver: Setup) -> None:
    _fall_back(driver)
    driver.answer(items("42", obj("a", 7), token="t1"))
    driver.answer(items("42"))
    driver.open()
    driver.back_off()
    driver.fire()
    driver.answer(status.forbidden("", "secrets", "s", "x"))
    assert driver.take()[-1] == list_path("42", limit=500)


def test_a_relist_at_a_known_version_has_no_limit(driver: Setup) -> None:
    driver.begin("10")
    driver.back_off()
    driver.fire()
    driver.answer(status.forbidden("", "secrets", "s", "x"))
    assert driver.take() == [watch_list("10"), list_path("10", limit=0)]


def test_an_expired_page_becomes_one_full_list(driver: Setup) -> None:
    _fall_back(driver)
    driver.answer(items("42", obj("a", 7), token="t1"))
    driver.answer(status.continue_expired("x"))
    assert driver.take() == [list_path(token="t1"), list_path("0", limit=0)]
    driver.answer(items("50", obj("b", 7)))
    assert driver.take() == [watch("50")]
    assert driver.take_changes() == [("added", "b"), ("replaced", "")]


@pytest.mark.parametrize("body", [status.LIST_COMPACTED, status.too_large_resource_version(9, 5)])
def test_a_list_at_an_unusable_version_is_repeated_once_at_the_latest(driver: Setup, body: Status) -> None:
    _fall_back(driver)
    driver.answer(body)
    assert driver.take() == [list_path("")]
    driver.answer(body)
    assert driver.state is State.BACKOFF
    driver.fire()
    assert driver.take() == [watch_list()]


def test_the_repeated_list_keeps_the_page_size_of_the_first(driver: Setup) -> None:
    driver.begin("10")
    driver.back_off()
    driver.fire()
    driver.answer(status.forbidden("", "secrets", "s", "x"))
    driver.answer(status.LIST_COMPACTED)
    assert driver.take()[-1] == list_path("", limit=0)
    driver.answer(items("60"))
    assert driver.take() == [watch("60")]


@pytest.mark.parametrize("body", [status.forbidden("", "secrets", "s", "x"), status.storage_initializing(1)])
def test_a_list_that_fails_leads_to_backoff_and_another_watch_list(driver: Setup, body: Status) -> None:
    _fall_back(driver)
    driver.answer(body)
    assert driver.state is State.BACKOFF
    assert driver.fire() == pytest.approx(1.2)
    assert driver.take() == [watch_list()]


def test_a_persistent_403_costs_a_watch_and_a_list_every_cycle(driver: Setup) -> None:
    driver.start()
    waits = []
    for _ in range(7):
        driver.answer(status.forbidden("", "secrets", "s", "x"))
        driver.answer(status.forbidden("", "secrets", "s", "x"))
        waits.append(driver.fire())
    assert waits == pytest.approx([1.2, 2.4, 4.8, 9.6, 19.2, 38.4, 45.0])
    assert driver.take() == [watch_list(), list_path("0")] * 7 + [watch_list()]
    assert len(driver.take_samples("reflector_fallbacks")) == 7


@pytest.mark.parametrize("failure", list(Failure))
def test_a_list_whose_connection_fails_leads_to_backoff(driver: Setup, failure: Failure) -> None:
    _fall_back(driver)
    driver.fail(failure)
    assert driver.state is State.BACKOFF


@pytest.mark.parametrize("body", [b"{bad", b"[]", b'{"items":5}', b'{"items":[{"metadata":5}]}', b"\xff"])
def test_a_list_that_cannot_be_read_leads_to_backoff(driver: Setup, body: bytes) -> None:
    _fall_back(driver)
    driver.answer(body)
    assert driver.state is State.BACKOFF
