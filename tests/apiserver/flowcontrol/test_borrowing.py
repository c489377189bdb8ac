"""Seats after an adjustment, against values computed by hand from upstream's formulas (apf_controller.go:380-500)."""

from __future__ import annotations

import pytest

from harness.apiserver.flowcontrol import WorkEstimate
from harness.apiserver.flowcontrol.bootstrap import FLOW_SCHEMAS
from harness.apiserver.flowcontrol.config import (
    Distinguisher,
    FlowSchema,
    PriorityLevel,
    ResourceRule,
    Response,
    Rule,
)
from tests.apiserver.flowcontrol.requests import ADMIN, GET_SECRET, Server, user

EVERYTHING = (ResourceRule(("*",), ("*",), ("*",), cluster_scope=True),)
NO_CATCH_ALL = PriorityLevel("catch-all", 0, response=Response.REJECT)
NO_EXEMPT = PriorityLevel("exempt", 0, response=Response.EXEMPT)


def queueing(name: str, shares: int, lendable: int = 0, borrowing: int | None = None) -> PriorityLevel:
    return PriorityLevel(
        name, shares, lendable, queues=16, hand_size=4, queue_length=500, borrowing_percent=borrowing
    )


def serving(*levels: PriorityLevel, seats: int = 100) -> Server:
    """Each level serves the user of its name."""
    server = Server(seats)
    schemas = [
        FlowSchema(
            level.name, level.name, 10, Distinguisher.USER, (Rule((level.name,), resources=EVERYTHING),)
        )
        for level in levels
        if level.response is Response.QUEUE
    ]
    server.flow.configure(levels, [*schemas, FLOW_SCHEMAS[0]])
    server.flow.start()
    return server


def wants(server: Server, level: str, seats: int) -> None:
    """So many seats from now on."""
    for _ in range(seats):
        server.flow.admit(user(level), GET_SECRET, WorkEstimate(1), 1000)


def limits(server: Server) -> dict[str, int]:
    return {name: level.queues.limit for name, level in server.flow.levels.items()}


def test_a_lender_keeps_what_it_does_not_lend() -> None:
    """A 60, of which 30 are lent; B 40 wants 100: lower bounds 30 and 40, targets 30 and 100. 0.7 x 100 + 30 = 100."""
    server = serving(queueing("a", 60, 50), queueing("b", 40), NO_CATCH_ALL, NO_EXEMPT)
    server.clock.advance(10)
    wants(server, "b", 100)
    server.clock.advance(10)
    assert limits(server) == {"a": 30, "b": 70, "catch-all": 0, "exempt": 0}
    assert server.metrics.apiserver_flowcontrol_seat_fair_frac.labels().value == pytest.approx(0.7, abs=1e-4)
    assert server.metrics.apiserver_flowcontrol_target_seats.labels("b").value == pytest.approx(100)


def test_borrowing_ends_at_its_limit_and_the_rest_goes_back() -> None:
    """B may borrow a quarter of its 40: at most 50, although its target is 100. A, whose target is 30, gets 50."""
    server = serving(queueing("a", 60, 50), queueing("b", 40, borrowing=25), NO_CATCH_ALL, NO_EXEMPT)
    assert server.flow.levels["b"].most == 50
    server.clock.advance(10)
    wants(server, "b", 100)
    server.clock.advance(10)
    assert limits(server) == {"a": 50, "b": 50, "catch-all": 0, "exempt": 0}


def test_targets_decide_where_no_bound_does() -> None:
    """Both lend all: lower bounds are their high watermarks 20 and 60, targets 20 and 60. 100 / 80 = 1.25 of each."""
    server = serving(queueing("a", 50, 100), queueing("b", 50, 100), NO_CATCH_ALL, NO_EXEMPT)
    server.clock.advance(10)
    server.flow.levels["a"].queues.set_limit(100)
    server.flow.levels["b"].queues.set_limit(100)
    wants(server, "a", 20)
    wants(server, "b", 60)
    server.clock.advance(10)
    assert limits(server) == {"a": 25, "b": 75, "catch-all": 0, "exempt": 0}


def test_demand_is_smoothed_by_its_coefficient() -> None:
    """One wave: 40 seats for 10 s, then none. Smoothed 40, then 0.977 x 40 = 39.08, then 0.977 x 39.08."""
    server = serving(queueing("a", 100), NO_CATCH_ALL, NO_EXEMPT)
    server.clock.advance(10)
    tickets = [server.ticket(user("a")) for _ in range(40)]
    server.clock.advance(10)
    smoothed = server.metrics.apiserver_flowcontrol_demand_seats_smoothed.labels("a")
    assert smoothed.value == pytest.approx(40)
    for ticket in tickets:
        ticket.finish()
    server.clock.advance(10)
    assert smoothed.value == pytest.approx(39.08)
    server.clock.advance(10)
    assert smoothed.value == pytest.approx(39.08 * 0.977)
    high = server.metrics.apiserver_flowcontrol_demand_seats_high_watermark.labels("a")
    assert high.value == 0


def test_average_and_deviation_are_weighted_by_time() -> None:
    """10 seats for 4 of 10 s: average 4, deviation sqrt(40 - 16) = sqrt(24), envelope 8.899."""
    server = serving(queueing("a", 100), NO_CATCH_ALL, NO_EXEMPT)
    server.clock.advance(10)
    tickets = [server.ticket(user("a")) for _ in range(10)]
    server.clock.advance(4)
    for ticket in tickets:
        ticket.finish()
    server.clock.advance(6)
    metrics = server.metrics
    assert metrics.apiserver_flowcontrol_demand_seats_average.labels("a").value == pytest.approx(4)
    assert metrics.apiserver_flowcontrol_demand_seats_stdev.labels("a").value == pytest.approx(24**0.5)
    assert metrics.apiserver_flowcontrol_demand_seats_smoothed.labels("a").value == pytest.approx(4 + 24**0.5)


@pytest.mark.parametrize(
    ("exempt_requests", "lendable", "seats"),
    [
        (
            0,
            0,
            {"a": 100, "exempt": 10},
        ),  # the allocation is of all nominal seats, exempt ones included, as upstream
        (15, 0, {"a": 100, "exempt": 15}),
        (25, 0, {"a": 80, "exempt": 25}),  # 100 - 25 leave less than the 80 that A does not lend
        (40, 50, {"a": 60, "exempt": 40}),  # 60 remain, of A's lower bound 80 and its least 40: half way
    ],
)
def test_exempt_requests_take_what_they_need_from_the_rest(
    exempt_requests: int, lendable: int, seats: dict[str, int]
) -> None:
    """Exempt has 20 of 100 nominal seats and lends half of them; A has 80, of which it wants all."""
    exempt = PriorityLevel("exempt", 20, 50, Response.EXEMPT)
    server = serving(queueing("a", 80, lendable), exempt, NO_CATCH_ALL)
    assert {name: level.nominal for name, level in server.flow.levels.items()} == {
        "a": 80,
        "exempt": 20,
        "catch-all": 0,
    }
    server.clock.advance(10)
    wants(server, "a", 80)
    for _ in range(exempt_requests):
        server.ticket(ADMIN)
    server.clock.advance(10)
    assert limits(server) == {**seats, "catch-all": 0}


def test_where_bounds_cannot_be_met_all_keep_what_they_have() -> None:
    """Exempt's 50 nominal seats are to be given to levels that may borrow nothing: upper bounds 50 < 100."""
    exempt = PriorityLevel("exempt", 50, 100, Response.EXEMPT)
    server = serving(
        queueing("a", 50, borrowing=0), exempt, PriorityLevel("catch-all", 0, 0, Response.REJECT, 0, 0, 0, 0)
    )
    before = limits(server)
    server.clock.advance(10)
    wants(server, "a", 70)
    server.clock.advance(10)
    assert limits(server)["a"] == before["a"] == 50


def test_a_level_without_seats_serves_nobody() -> None:
    server = serving(queueing("a", 0, borrowing=0), queueing("b", 100), NO_CATCH_ALL, NO_EXEMPT)
    waiting = server.flow.admit(user("a"), GET_SECRET, WorkEstimate(1), 5)
    server.clock.advance(4)
    assert not waiting.done
    server.clock.advance(2)
    assert waiting.done
