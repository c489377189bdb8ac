"""Who is served first, and what always holds however requests come."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.apiserver.auth.authentication import UserInfo
from harness.apiserver.clock import VirtualClock
from harness.apiserver.flowcontrol import Admission, FlowController, Rejection, Ticket, WorkEstimate
from harness.apiserver.metrics.families import Metrics
from tests.apiserver.flowcontrol.requests import GET_SECRET, LIST_PODS, Server, node, user


class Client:
    """Keeps so many requests under way, each served for `service_s` once it has a seat."""

    def __init__(self, server: Server, who: UserInfo, at_once: int, service_s: float) -> None:
        self.server = server
        self.who = who
        self.at_once = at_once
        self.service_s = service_s
        self.served = 0
        self.rejected = 0

    def start(self) -> None:
        for _ in range(self.at_once):
            self._send()

    def _send(self) -> None:
        self.server.flow.admit(self.who, GET_SECRET).then(self._settled)

    def _settled(self, admission: object) -> None:
        outcome = admission.result()  # type: ignore[attr-defined]
        clock = self.server.clock
        if isinstance(outcome, Rejection):
            self.rejected += 1
            clock.call_at(clock.now() + 0.01, self._send)
        else:
            clock.call_at(clock.now() + self.service_s, self._finish, outcome)

    def _finish(self, ticket: Ticket) -> None:
        self.served += 1
        ticket.finish()
        self._send()


def test_an_elephant_does_not_starve_a_mouse() -> None:
    """100 seats' worth of requests of one node beside two of another: each gets what it asks for up to its share."""
    server = Server(seats=60)
    elephant = Client(server, node("elephant"), 250, 0.1)
    mouse = Client(server, node("mouse"), 2, 0.1)
    elephant.start()
    mouse.start()
    server.clock.advance(30)
    alone = 30 / 0.1 * 2
    assert mouse.served > 0.6 * alone
    assert elephant.served > 4 * mouse.served
    server.flow.validate()


def test_equal_clients_are_served_equally() -> None:
    server = Server(seats=60)
    clients = [Client(server, node(f"n{i}"), 20, 0.05) for i in range(10)]
    for client in clients:
        client.start()
    server.clock.advance(60)
    served = [client.served for client in clients]
    mean = sum(served) / len(served)
    assert min(served) > 0.6 * mean
    assert max(served) < 1.6 * mean


def test_within_a_queue_the_first_to_come_is_the_first_to_be_served() -> None:
    server = Server()
    seats = server.fill("system", node("n1"))
    order: list[int] = []
    for i in range(60):
        admission = server.flow.admit(node("n2"), GET_SECRET)
        admission.then(lambda _, i=i: order.append(i))  # type: ignore[misc]
        server.clock.advance(0.001)
    for seat in seats[:60]:
        seat.finish()
        server.clock.advance(0.001)
    assert sorted(order) == list(range(60))
    # Six queues are filled in turn, so order is kept among every sixth.
    for first in range(6):
        mine = [i for i in order if i % 6 == first]
        assert mine == sorted(mine)


def test_the_measured_overload_is_met() -> None:
    """A real v1.36.2 server with --max-requests-inflight=2 --max-mutating-requests-inflight=1: 400 clients of one
    user, six LISTs each, one after the other: of 2,400 requests 651 were turned away, all queue-full, Retry-After 1."""
    server = Server(seats=3)
    server.flow.start()
    assert server.flow.levels["global-default"].nominal == 1
    rejections: list[Rejection] = []
    served: list[Ticket] = []
    rng = random.Random(5)
    clock = server.clock
    someone = user("someone")

    def send(left: int) -> None:
        if left:
            server.flow.admit(someone, LIST_PODS, WorkEstimate(1)).then(
                lambda outcome: settled(outcome, left)
            )

    def settled(admission: object, left: int) -> None:
        outcome = admission.result()  # type: ignore[attr-defined]
        if isinstance(outcome, Rejection):
            rejections.append(outcome)
            clock.call_at(clock.now() + rng.uniform(0.001, 0.01), send, left - 1)
        else:
            served.append(outcome)
            clock.call_at(clock.now() + 0.02, finish, outcome, left)

    def finish(ticket: Ticket, left: int) -> None:
        ticket.finish()
        clock.call_at(clock.now() + rng.uniform(0.001, 0.01), send, left - 1)

    for _ in range(400):
        clock.call_at(rng.uniform(0, 0.2), send, 6)
    clock.advance(120)
    server.flow.stop()
    assert len(rejections) + len(served) == 2400
    assert 0.85 * 651 < len(rejections) < 1.15 * 651
    assert {rejected.reason for rejected in rejections} == {"queue-full"}
    assert {rejected.retry_after_s for rejected in rejections} == {1}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["admit", "admit", "admit", "finish", "finish", "cancel", "wait", "adjust"]),
        st.integers(0, 5),
        st.integers(1, 12),
        st.integers(0, 12),
    ),
    max_size=120,
)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.sampled_from([8, 40, 600]))
def test_every_request_is_settled_and_every_seat_comes_back(
    steps: list[tuple[str, int, int, int]], seats: int
) -> None:
    clock = VirtualClock()
    flow = FlowController(clock, Metrics(), seats)
    queues = flow.levels["system"].queues
    admissions: list[Admission] = []
    for action, who, initial, final in steps:
        if action == "admit":
            estimate = WorkEstimate(initial, final, 0.005 if final else 0.0)
            admissions.append(flow.admit(node(f"n{who}"), GET_SECRET, estimate, wait_limit_s=1.0))
        elif action == "cancel" and admissions:
            admissions[who % len(admissions)].cancel()
        elif action == "finish":
            running = [a.result() for a in admissions if a.done]
            for ticket in [t for t in running if isinstance(t, Ticket) and not t.finished][: who + 1]:
                ticket.finish()
        elif action == "wait":
            clock.advance(who * 0.2)
        elif action == "adjust":
            flow._adjust_limits()
        flow.validate()
        assert queues.waiting == sum(not a.done for a in admissions)
    clock.advance(1.1)
    assert all(a.done for a in admissions)
    for admission in admissions:
        admission.cancel()
    clock.advance(1)
    assert (queues.seats_in_use, queues.executing, queues.waiting) == (0, 0, 0)
    flow.validate()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 5)), min_size=1, max_size=150))
def test_with_a_constant_limit_seats_in_use_stay_within_it(requests: list[tuple[int, int]]) -> None:
    clock = VirtualClock()
    flow = FlowController(clock, Metrics(), 40)
    queues = flow.levels["system"].queues
    running: list[Ticket] = []

    def start(admission: object) -> None:
        outcome = admission.result()  # type: ignore[attr-defined]
        if isinstance(outcome, Ticket):
            running.append(outcome)

    for who, width in requests:
        flow.admit(node(f"n{who}"), GET_SECRET, WorkEstimate(width)).then(start)
        assert queues.seats_in_use <= queues.limit
        clock.advance(0.002)
        if len(running) > 6:
            running.pop(0).finish()
            assert queues.seats_in_use <= queues.limit
    while running:
        running.pop(0).finish()
        assert queues.seats_in_use <= queues.limit
    assert queues.seats_in_use == 0


@pytest.mark.parametrize("flows", [1, 5])
def test_work_is_conserved_while_requests_wait(flows: int) -> None:
    """As long as somebody waits, no seat of a level stays free."""
    server = Server(seats=40)
    queues = server.flow.levels["system"].queues
    for i in range(flows):
        Client(server, node(f"n{i}"), 40, 0.03).start()
    for _ in range(50):
        server.clock.advance(0.01)
        assert not queues.waiting or queues.seats_in_use == queues.limit
