"""The families that observe at the end of every nanosecond."""

from __future__ import annotations

import pytest

from harness.apiserver.flowcontrol import WorkEstimate
from tests.apiserver.flowcontrol.requests import CREATE_POD, GET_SECRET, Server, node

NS = 10**9


def buckets(cell: object, bounds: tuple[float, ...]) -> dict[float, int]:
    """Nanoseconds by upper bound, those that have any."""
    counts = cell.counts  # type: ignore[attr-defined]
    return {bound: count for bound, count in zip((*bounds, float("inf")), counts, strict=True) if count}


def test_seats_in_use_are_observed_against_the_current_limit() -> None:
    server = Server()
    metrics = server.metrics
    limit = server.flow.levels["system"].queues.limit
    server.ticket(node("n1"), estimate=WorkEstimate(10))
    server.clock.advance(3)
    metrics.render()
    seats = metrics.apiserver_flowcontrol_priority_level_seat_utilization.labels("executing", "system")
    assert limit == 117
    assert seats.total == pytest.approx(3 * NS * 10 / 117)
    assert seats.count == 3 * NS
    requests = metrics.apiserver_flowcontrol_priority_level_request_utilization
    assert requests.labels("executing", "system").total == pytest.approx(3 * NS / 117)
    demand = metrics.apiserver_flowcontrol_demand_seats.labels("system")
    assert demand.counts[0] == 3 * NS  # 10 of 117 are at most a fifth


def test_waiting_requests_are_observed_against_what_the_queues_hold() -> None:
    server = Server()
    server.fill("system", node("n1"))
    server.clock.advance(1)
    for _ in range(32):
        server.flow.admit(node("n1"), GET_SECRET)
    server.clock.advance(2)
    server.metrics.render()
    waiting = server.metrics.apiserver_flowcontrol_priority_level_request_utilization.labels(
        "waiting", "system"
    )
    assert waiting.count == 3 * NS
    assert waiting.total == pytest.approx(2 * NS * 32 / (64 * 50))
    full = server.metrics.apiserver_flowcontrol_priority_level_seat_utilization.labels("executing", "system")
    bounds = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
    assert buckets(full, bounds) == {1: 3 * NS}
    demand = server.metrics.apiserver_flowcontrol_demand_seats.labels("system")
    assert demand.total == pytest.approx(NS + 2 * NS * (117 + 32) / 117)


def test_reads_and_writes_are_observed_apart() -> None:
    server = Server()
    server.ticket(node("n1"), GET_SECRET)
    server.ticket(node("n1"), CREATE_POD)
    server.ticket(node("n1"), CREATE_POD)
    server.clock.advance(5)
    server.metrics.render()
    family = server.metrics.apiserver_flowcontrol_read_vs_write_current_requests
    nominal = sum(level.nominal for level in server.flow.levels.values())
    assert nominal == 602  # 74 + 98 + 25 + 98 + 245 + 49 + 13
    assert family.labels("executing", "readOnly").total == pytest.approx(5 * NS / 602)
    assert family.labels("executing", "mutating").total == pytest.approx(5 * NS * 2 / 602)
    assert family.labels("waiting", "mutating").counts[0] == 5 * NS


def test_a_change_of_limits_does_not_change_what_has_been() -> None:
    server = Server()
    server.flow.start()
    server.ticket(node("n1"), estimate=WorkEstimate(10))
    server.clock.advance(10)
    limit = server.flow.levels["system"].queues.limit
    server.clock.advance(5)
    server.metrics.render()
    seats = server.metrics.apiserver_flowcontrol_priority_level_seat_utilization.labels("executing", "system")
    assert seats.total == pytest.approx(10 * NS * 10 / 117 + 5 * NS * 10 / limit)
    server.flow.stop()


def test_the_virtual_world_is_published() -> None:
    """One request of one seat for 2 s in one queue: R moves by 2; the next one starts there, as the queue's first one
    was charged 3 ms at its dispatch and 2 s at its end."""
    server = Server()
    server.ticket(node("n1")).finish()
    ticket = server.ticket(node("n1"))
    server.clock.advance(2)
    ticket.finish()
    server.ticket(node("n1"))
    server.metrics.render()
    metrics = server.metrics
    assert metrics.apiserver_flowcontrol_current_r.labels("system").value == pytest.approx(2)
    assert metrics.apiserver_flowcontrol_dispatch_r.labels("system").value == pytest.approx(2)
    assert metrics.apiserver_flowcontrol_latest_s.labels("system").value == pytest.approx(2)
    assert metrics.apiserver_flowcontrol_next_s_bounds.labels("system", "max").value == pytest.approx(2)


def test_the_bounds_of_waiting_heads_are_published() -> None:
    server = Server()
    tickets = server.fill("system", node("n1"))
    for i in range(20):
        server.flow.admit(node(f"n{i}"), GET_SECRET)
    server.clock.advance(1)
    tickets[0].finish()
    server.metrics.render()
    low = server.metrics.apiserver_flowcontrol_next_s_bounds.labels("system", "min").value
    high = server.metrics.apiserver_flowcontrol_next_s_bounds.labels("system", "max").value
    discounted = server.metrics.apiserver_flowcontrol_next_discounted_s_bounds.labels("system", "min").value
    assert discounted <= low < high


def test_a_request_that_does_not_wait_is_seen_waiting_for_a_moment() -> None:
    """Upstream enqueues everything (queueset.go, NoteQueued)."""
    server = Server()
    server.flow.start()
    server.ticket(node("n1"))
    server.clock.advance(1)
    assert server.metrics.apiserver_current_inqueue_requests.labels("readOnly").value == 1
    assert server.metrics.apiserver_current_inqueue_requests.labels("mutating").value == 0
    server.flow.stop()
