"""Limits of the levels, borrowing between them, Retry-After, and what is published of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.apiserver.flowcontrol import WorkEstimate
from harness.apiserver.flowcontrol.demand import Claim, DemandIntegrator, allocate
from harness.apiserver.flowcontrol.dropped import DroppedRequests
from tests.apiserver.flowcontrol.requests import GET_SECRET, PUT_LEASE, Server, node, rejection


@pytest.mark.parametrize(
    ("level", "nominal", "least", "max_seats"),
    [
        ("system", 74, 50, 12),
        ("node-high", 98, 73, 15),
        ("leader-election", 25, 25, 4),
        ("workload-high", 98, 49, 15),
        ("workload-low", 245, 24, 37),
        ("global-default", 49, 24, 8),
        ("catch-all", 13, 13, 0),
        ("exempt", 0, 0, 0),
    ],
)
def test_a_server_of_600_seats_splits_them_as_kubernetes_does(
    level: str, nominal: int, least: int, max_seats: int
) -> None:
    found = Server().flow.levels[level]
    assert (found.nominal, found.least, found.max_seats) == (nominal, least, max_seats)
    assert found.most == nominal + 600


def test_idle_levels_share_the_server_in_proportion_to_what_they_may_not_lend() -> None:
    server = Server()
    limits = {name: level.queues.limit for name, level in server.flow.levels.items()}
    assert sum(limits.values()) == pytest.approx(602, abs=4)
    assert limits["exempt"] == 0
    assert limits["node-high"] / limits["system"] == pytest.approx(73 / 50, rel=0.03)


def test_a_busy_level_borrows_what_others_do_not_use() -> None:
    server = Server()
    server.flow.start()
    before = server.flow.levels["system"].queues.limit
    for i in range(900):
        server.flow.admit(node(f"n{i}"), GET_SECRET)
    server.clock.advance(10)
    assert server.flow.levels["system"].queues.limit > 2 * before
    assert server.flow.levels["workload-low"].queues.limit >= 24
    server.flow.stop()


def test_what_was_lent_comes_back_when_its_owner_needs_it() -> None:
    server = Server()
    server.flow.start()
    for i in range(900):
        server.flow.admit(node(f"n{i}"), GET_SECRET)
    server.clock.advance(10)
    for i in range(300):
        server.flow.admit(node(f"n{i}"), PUT_LEASE)
    server.clock.advance(10)
    assert server.flow.levels["node-high"].queues.limit >= 98
    server.flow.stop()


def test_limits_and_demand_are_published() -> None:
    server = Server()
    server.flow.start()
    server.fill("system", node("n1"))
    server.clock.advance(10)
    text = server.metrics.render().decode()
    for line in (
        'apiserver_flowcontrol_nominal_limit_seats{priority_level="system"} 74',
        'apiserver_flowcontrol_lower_limit_seats{priority_level="system"} 50',
        'apiserver_flowcontrol_upper_limit_seats{priority_level="system"} 674',
        'apiserver_flowcontrol_demand_seats_high_watermark{priority_level="system"} 117',
        'apiserver_flowcontrol_current_executing_seats{priority_level="system",flow_schema="system-nodes"} 117',
        'apiserver_flowcontrol_dispatched_requests_total{priority_level="system",flow_schema="system-nodes"} 117',
    ):
        assert line in text
    server.flow.stop()


def test_a_watermark_is_the_most_at_any_change_within_the_last_second() -> None:
    server = Server()
    server.flow.start()
    published = server.metrics.apiserver_current_inflight_requests.labels("readOnly")
    tickets = server.fill("system", node("n1"))
    server.clock.advance(1)
    assert published.value == len(tickets)
    server.clock.advance(1)
    assert published.value == 0  # nothing changed, as upstream
    tickets.pop().finish()
    server.clock.advance(1)
    assert published.value == len(tickets)
    server.flow.stop()


def test_rejections_and_waits_are_published() -> None:
    server = Server()
    server.fill("system", node("n1"))
    server.flow.admit(node("n1"), GET_SECRET, wait_limit_s=1)
    for _ in range(300):
        server.flow.admit(node("n1"), GET_SECRET)
    server.clock.advance(2)
    flow = 'priority_level="system",flow_schema="system-nodes"'
    text = server.metrics.render().decode()
    for line in (
        f'apiserver_flowcontrol_rejected_requests_total{{{flow},reason="queue-full"}} 1',
        f'apiserver_flowcontrol_rejected_requests_total{{{flow},reason="time-out"}} 1',
        f"apiserver_flowcontrol_current_inqueue_requests{{{flow}}} 299",
        f'apiserver_flowcontrol_request_wait_duration_seconds_bucket{{{flow},execute="true",le="1"}} 118',
        f'apiserver_flowcontrol_request_wait_duration_seconds_count{{{flow},execute="false"}} 1',
        f'apiserver_flowcontrol_request_queue_length_after_enqueue_bucket{{{flow},le="50"}} 417',
    ):
        assert line in text


def test_execution_is_measured_and_watches_apart() -> None:
    server = Server()
    ticket = server.ticket(node("n1"), estimate=WorkEstimate(3))
    server.clock.advance(0.3)
    ticket.finish()
    text = server.metrics.render().decode()
    flow = 'priority_level="system",flow_schema="system-nodes"'
    assert f'request_execution_seconds_sum{{{flow},type="regular"}} 0.3' in text
    assert f'work_estimated_seats_bucket{{{flow},le="4"}} 1' in text


def test_stopping_leaves_no_timer() -> None:
    server = Server()
    server.flow.start()
    server.flow.stop()
    assert server.clock.next_at() is None


def drops(tracker: DroppedRequests, second: int, count: int) -> int:
    for _ in range(count):
        tracker.record(second + 0.5)
    return tracker.retry_after_s


def test_retry_after_doubles_while_drops_go_on_and_falls_by_one_when_they_cease() -> None:
    tracker = DroppedRequests()
    assert drops(tracker, 100, 50) == 1
    assert drops(tracker, 101, 50) == 2
    assert drops(tracker, 102, 50) == 2  # raised less than 2 s ago
    assert drops(tracker, 103, 50) == 4
    assert drops(tracker, 120, 1) == 3
    assert drops(tracker, 140, 1) == 2


def test_retry_after_never_exceeds_32_s() -> None:
    tracker = DroppedRequests()
    for second in range(100, 400):
        drops(tracker, second, 200)
    assert tracker.retry_after_s == 32


@pytest.mark.parametrize(("count", "retry_after_s"), [(2, 1), (3, 2)])
def test_three_drops_a_second_double_it(count: int, retry_after_s: int) -> None:
    tracker = DroppedRequests()
    drops(tracker, 100, count)
    assert drops(tracker, 101, 1) == retry_after_s


def test_a_rejection_says_how_long_to_stay_away() -> None:
    server = Server()
    server.fill("system", node("n1"))
    for _ in range(340):
        server.flow.admit(node("n1"), GET_SECRET)
    server.clock.advance(1)
    assert rejection(server.flow.admit(node("n1"), GET_SECRET)).retry_after_s == 2


CLAIMS = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 200), st.integers(0, 300)).map(
        lambda t: Claim(t[0], t[0] + t[1], max(t[0], t[2]))
    ),
    min_size=1,
    max_size=9,
)


@given(CLAIMS, st.floats(0, 1))
def test_an_allocation_uses_the_total_within_the_bounds_in_proportion(
    claims: list[Claim], where: float
) -> None:
    low, high = sum(c.lower for c in claims), sum(c.upper for c in claims)
    total = low + where * (high - low)
    seats, proportion = allocate(total, claims)
    assert sum(seats) == pytest.approx(total, abs=1e-6)
    for claim, share in zip(claims, seats, strict=True):
        assert claim.lower <= share <= claim.upper
        fair = proportion * max(claim.target, 0.001)
        assert share == pytest.approx(min(claim.upper, max(claim.lower, fair)), abs=1e-6)


@pytest.mark.parametrize("total", [9, 31])
def test_an_impossible_allocation_is_refused(total: float) -> None:
    with pytest.raises(ValueError, match="not between"):
        allocate(total, [Claim(10, 30, 20)])


def test_demand_is_weighted_by_time() -> None:
    demand = DemandIntegrator()
    demand.add(10, 1)
    demand.add(30, 3)
    seen = demand.reset(40)
    assert (seen.duration_s, seen.average, seen.maximum) == (4, 25, 40)
    assert seen.deviation == pytest.approx(75**0.5)
    assert demand.reset(0) == (0, 0, 0, 0)
