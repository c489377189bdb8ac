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
from harness.client.requests import PODS, SECRETS
from harness.client.store import ObjectMeta
from harness.wire import status
from harness.wire.request import Failure, Response, TransportError
from harness.wire.status import Status

from .conftest import Driver, FixedRandom, bookmark, obj

BASE = "/api/v1/namespaces/ns/secrets?"
SELECTOR = "fieldSelector=metadata.name%3Ds"


def watch_list(version: str = "") -> str:
    at = f"resourceVersion={version}&" if version else ""
    return (
        f"{BASE}allowWatchBookmarks=true&{SELECTOR}&{at}resourceVersionMatch=NotOlderThan&sendInitialEvents=true"
        "&timeout=7m30s&timeoutSeconds=450&watch=true"
    )


def watch(version: str) -> str:
    return (
        f"{BASE}allowWatchBookmarks=true&{SELECTOR}&resourceVersion={version}"
        "&timeout=7m30s&timeoutSeconds=450&watch=true"
    )


def list_path(version: str = "", limit: int = 500, token: str = "") -> str:
    parts = [f"continue={token}" if token else "", SELECTOR, f"limit={limit}" if limit else ""]
    parts.append(f"resourceVersion={version}" if version else "")
    return BASE + "&".join(part for part in parts if part)


def items(version: str, *objects: dict[str, Any], token: str = "") -> dict[str, Any]:
    metadata = {"resourceVersion": version, "continue": token} if token else {"resourceVersion": version}
    return {"kind": "SecretList", "metadata": metadata, "items": list(objects)}


class Setup(Driver):
    machine: Reflector

    def __init__(self, **options: Any) -> None:
        reflector = Reflector("r", SECRETS, "ns", "metadata.name=s", "", FixedRandom(0.5), **options)  # type: ignore[arg-type]
        super().__init__(reflector)

    @property
    def state(self) -> State:
        return self.machine.state

    def begin(self, version: str = "10") -> None:
        """Up to a watch that has its initial state: one object s."""
        self.start()
        self.open()
        self.receive(("ADDED", obj("s", 5)), bookmark(version, end=True))
        self.take()
        self.take_changes()
        self.take_samples("reflector_sync_ms")

    def back_off(self) -> None:
        """Ten seconds of a healthy watch, then an end that leads to the outer backoff."""
        self.advance(10)
        self.receive(("ERROR", status.too_old(1, 5).as_dict()))
        assert self.state is State.BACKOFF


@pytest.fixture
def driver() -> Setup:
    return Setup()


# ---- watch-list ----------------------------------------------------------------------------------------------------
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


# ---- lists ---------------------------------------------------------------------------------------------------------
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


# ---- watches -------------------------------------------------------------------------------------------------------
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


@pytest.mark.parametrize("failure", [Failure.TIMEOUT, Failure.PROTOCOL, Failure.TLS])
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
