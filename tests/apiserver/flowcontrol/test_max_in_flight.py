"""What is left without priority and fairness."""

from __future__ import annotations

import pytest

from harness.apiserver.clock import VirtualClock
from harness.apiserver.flowcontrol import MaxInFlight, Slot
from harness.apiserver.metrics.families import Metrics
from harness.wire.paths import parse_path
from tests.apiserver.flowcontrol.requests import ADMIN, CREATE_POD, GET_SECRET, LIST_PODS, node, rejection

WATCH_PODS = parse_path("/api/v1/pods?watch=true")


class Limited:
    def __init__(self, reads: int = 2, writes: int = 1) -> None:
        self.clock = VirtualClock()
        self.metrics = Metrics()
        self.flow = MaxInFlight(self.clock, self.metrics, reads, writes)

    def slot(self, info: object = GET_SECRET, who: object = None) -> Slot:
        slot = self.flow.admit(who or node("n1"), info).result()  # type: ignore[arg-type]
        assert isinstance(slot, Slot)
        return slot


def test_reads_and_writes_have_limits_of_their_own() -> None:
    server = Limited()
    first = server.slot(GET_SECRET)
    server.slot(LIST_PODS)
    server.slot(CREATE_POD)
    refused = rejection(server.flow.admit(node("n2"), GET_SECRET))
    assert (refused.retry_after_s, refused.headers) == (1, {})
    rejection(server.flow.admit(node("n2"), CREATE_POD))
    first.finish()
    first.finish()
    server.slot(GET_SECRET)
    rejection(server.flow.admit(node("n2"), GET_SECRET))


def test_a_client_that_goes_frees_its_slot() -> None:
    server = Limited(reads=1)
    server.flow.admit(node("n1"), GET_SECRET).cancel()
    server.slot()


def test_watches_do_not_count() -> None:
    server = Limited(reads=1)
    for _ in range(10):
        server.slot(WATCH_PODS)
    server.slot()


def test_masters_are_served_above_the_limit() -> None:
    server = Limited(reads=1)
    server.slot()
    extra = server.slot(who=ADMIN)
    extra.finish()
    rejection(server.flow.admit(node("n2"), GET_SECRET))


def test_what_is_in_flight_is_published_each_second() -> None:
    server = Limited(reads=5)
    server.flow.start()
    slots = [server.slot() for _ in range(4)]
    server.clock.advance(1)
    published = server.metrics.apiserver_current_inflight_requests.labels("readOnly")
    assert published.value == 4
    server.clock.advance(1)
    assert published.value == 0
    slots[0].finish()
    server.clock.advance(1)
    assert published.value == 3
    server.metrics.render()
    family = server.metrics.apiserver_flowcontrol_read_vs_write_current_requests
    assert family.labels("executing", "readOnly").total == pytest.approx(2e9 * 4 / 5 + 1e9 * 3 / 5)
    server.flow.stop()
    assert server.clock.next_at() is None


@pytest.mark.parametrize(("reads", "writes"), [(0, 1), (1, 0)])
def test_a_server_that_allows_nothing_is_a_mistake(reads: int, writes: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        Limited(reads, writes)
