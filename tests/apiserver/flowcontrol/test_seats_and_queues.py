"""Seats, queues, waiting and rejection of one level."""

from __future__ import annotations

import pytest

from harness.apiserver.auth.authentication import UserInfo
from harness.apiserver.flowcontrol import Ticket, WorkEstimate
from harness.apiserver.flowcontrol.controller import wait_limit
from tests.apiserver.flowcontrol.requests import (
    ADMIN,
    GET_SECRET,
    LIST_PODS,
    PUT_LEASE,
    Server,
    node,
    rejection,
)

SYSTEM = "system"


def test_with_free_seats_nobody_waits() -> None:
    server = Server()
    ticket = server.ticket(node("n1"))
    assert (ticket.waited_s, server.flow.levels[SYSTEM].queues.seats_in_use) == (0, 1)
    ticket.finish()
    assert server.flow.levels[SYSTEM].queues.seats_in_use == 0


def test_finishing_twice_gives_seats_back_once() -> None:
    server = Server()
    one, other = server.ticket(node("n1")), server.ticket(node("n1"))
    one.finish()
    one.finish()
    assert server.flow.levels[SYSTEM].queues.seats_in_use == 1
    other.finish()
    server.flow.validate()


def test_a_request_waits_until_a_seat_is_free() -> None:
    server = Server()
    seats = server.fill(SYSTEM, node("n1"))
    waiting = server.flow.admit(node("n2"), GET_SECRET)
    server.clock.advance(3)
    assert not waiting.done
    seats[0].finish()
    ticket = waiting.result()
    assert isinstance(ticket, Ticket)
    assert ticket.waited_s == 3


def test_levels_do_not_wait_for_one_another() -> None:
    server = Server()
    server.fill(SYSTEM, node("n1"))
    assert server.ticket(node("n1"), PUT_LEASE).level.name == "node-high"
    assert server.ticket(ADMIN, LIST_PODS).level.name == "exempt"


def test_exempt_requests_are_never_held_up() -> None:
    server = Server(seats=1)
    tickets = [server.ticket(ADMIN, LIST_PODS) for _ in range(5000)]
    assert server.flow.levels["exempt"].queues.seats_in_use == 5000
    for ticket in tickets:
        ticket.finish()
    server.flow.validate()


def test_one_flow_fills_its_hand_of_six_queues_of_fifty_and_no_more() -> None:
    server = Server()
    server.fill(SYSTEM, node("n1"))
    waiting = [server.flow.admit(node("n1"), GET_SECRET) for _ in range(300)]
    assert not any(admission.done for admission in waiting)
    refused = rejection(server.flow.admit(node("n1"), GET_SECRET))
    assert (refused.reason, refused.retry_after_s) == ("queue-full", 1)
    assert (refused.schema, refused.level) == ("system-nodes", SYSTEM)
    server.flow.validate()


def test_a_full_flow_leaves_room_for_others() -> None:
    server = Server()
    server.fill(SYSTEM, node("n1"))
    for _ in range(400):
        server.flow.admit(node("n1"), GET_SECRET)
    admitted = [server.flow.admit(node(f"other{i}"), GET_SECRET) for i in range(100)]
    turned_away = sum(admission.done for admission in admitted)
    assert turned_away == 0


def test_after_the_wait_limit_a_request_is_turned_away() -> None:
    server = Server()
    server.fill(SYSTEM, node("n1"))
    waiting = server.flow.admit(node("n2"), GET_SECRET, wait_limit_s=2.5)
    server.clock.advance(2.499)
    assert not waiting.done
    server.clock.advance(0.001)
    assert rejection(waiting).reason == "time-out"
    server.flow.validate()


@pytest.mark.parametrize(("deadline_s", "limit_s"), [(None, 15), (60, 15), (10, 2.5), (400, 60)])
def test_the_wait_limit_is_a_quarter_of_the_deadline(deadline_s: float | None, limit_s: float) -> None:
    assert wait_limit(deadline_s) == limit_s


def test_a_client_that_goes_leaves_its_queue() -> None:
    server = Server()
    seats = server.fill(SYSTEM, node("n1"))
    waiting = server.flow.admit(node("n2"), GET_SECRET)
    waiting.cancel()
    assert rejection(waiting).reason == "time-out"
    waiting.cancel()
    seats[0].finish()
    assert server.flow.levels[SYSTEM].queues.executing == len(seats) - 1
    server.flow.validate()


def test_a_client_that_goes_while_it_is_served_gives_its_seat_back() -> None:
    server = Server()
    admission = server.flow.admit(node("n2"), GET_SECRET)
    admission.cancel()
    assert server.flow.levels[SYSTEM].queues.seats_in_use == 0


def test_the_catch_all_level_has_no_queue() -> None:
    server = Server()
    nobody = UserInfo("nobody")  # in no group at all
    server.fill("catch-all", nobody, LIST_PODS)
    assert rejection(server.flow.admit(nobody, LIST_PODS)).reason == "concurrency-limit"


def test_a_wide_request_holds_all_its_seats() -> None:
    server = Server()
    ticket = server.ticket(node("n1"), estimate=WorkEstimate(10))
    assert server.flow.levels[SYSTEM].queues.seats_in_use == 10
    ticket.finish()
    assert server.flow.levels[SYSTEM].queues.seats_in_use == 0


def test_a_wide_request_at_the_head_holds_narrow_ones_up() -> None:
    server = Server()
    seats = server.fill(SYSTEM, node("n1"))
    wide = server.flow.admit(node("n2"), GET_SECRET, WorkEstimate(2))
    seats[0].finish()
    server.clock.advance(0.1)
    narrow = server.flow.admit(node("n2"), GET_SECRET)
    assert not wide.done
    assert not narrow.done
    seats[1].finish()
    assert wide.done
    server.flow.validate()


def test_a_request_wider_than_its_level_runs_alone() -> None:
    server = Server()
    limit = server.flow.levels[SYSTEM].queues.limit
    ticket = server.ticket(node("n1"))
    giant = server.flow.admit(node("n2"), GET_SECRET, WorkEstimate(limit + 1))
    assert not giant.done
    ticket.finish()
    assert giant.done


def test_a_write_keeps_its_seats_after_it_has_answered() -> None:
    server = Server()
    ticket = server.ticket(node("n1"), estimate=WorkEstimate(1, 4, 0.05))
    queues = server.flow.levels[SYSTEM].queues
    assert queues.seats_in_use == 4
    ticket.finish()
    assert (queues.executing, queues.seats_in_use) == (0, 4)
    server.clock.advance(0.049)
    assert queues.seats_in_use == 4
    server.clock.advance(0.001)
    assert queues.seats_in_use == 0
    server.flow.validate()


def test_seats_freed_after_the_extra_latency_go_to_who_waits() -> None:
    server = Server()
    limit = server.flow.levels[SYSTEM].queues.limit
    ticket = server.ticket(node("n1"), estimate=WorkEstimate(1, limit, 0.5))
    waiting = server.flow.admit(node("n2"), GET_SECRET)
    ticket.finish()
    assert not waiting.done
    server.clock.advance(0.5)
    assert waiting.done


def test_requests_that_finish_within_their_start_do_not_recurse() -> None:
    server = Server()
    seats = server.fill(SYSTEM, node("n1"))
    served = []

    def serve(admission: object) -> None:
        ticket = admission.result()  # type: ignore[attr-defined]
        served.append(ticket)
        ticket.finish()

    for i in range(2900):
        server.flow.admit(node(f"n{i}"), GET_SECRET).then(serve)
    seats[0].finish()
    assert len(served) == 2900
    server.flow.validate()


def test_fewer_than_one_seat_for_the_server_is_refused() -> None:
    with pytest.raises(ValueError, match="server_concurrency"):
        Server(seats=0)
