"""harness.client: what a worker pays for each event and each request of a kubelet, transport aside."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from benchmarks.measure import Work, calls, cpu_us
from benchmarks.objects import encode, stored_pod
from benchmarks.registry import Line, Plan, benchmark
from harness.client.limiter import TokenBucket
from harness.client.machine import Action, Answered, Event, Opened, Received, Send
from harness.client.reflector import INITIAL_EVENTS_END, Reflector
from harness.client.requests import PODS, get_
from harness.client.rest import Rest
from harness.fleet.pods import decode_pod
from harness.wire.request import Response
from harness.wire.watching import encode_event

_KEY = ("pods", "watch")


def _reflector() -> Reflector:
    """Of a node's pods, synced with one."""
    reflector = Reflector(
        "pods", PODS, None, "spec.nodeName=n1", "", Random(1), decode=decode_pod, generated_client=False
    )
    reflector.start(0.0)
    reflector.handle(Opened(_KEY, "member-0"), 0.0)
    end = {"metadata": {"resourceVersion": "10", "annotations": {INITIAL_EVENTS_END: "true"}}}
    first = encode_event("ADDED", encode(stored_pod("p1", "n1"))) + encode_event("BOOKMARK", encode(end))
    reflector.handle(Received(_KEY, first), 0.0)
    assert reflector.synced
    return reflector


@benchmark("client/reflector")
def reflector(plan: Plan) -> Iterator[Line]:
    """A MODIFIED event of a 2 KB pod that is in the store, decoded as a kubelet does."""

    def make(n: int) -> Work:
        mirror = _reflector()
        events = [
            Received(_KEY, encode_event("MODIFIED", encode(stored_pod("p1", "n1", 11 + number % 50))))
            for number in range(50)
        ]

        def work() -> None:
            for number in range(n):
                mirror.handle(events[number % 50], 1.0)

        return work

    yield Line("client/reflector/event", "us", cpu_us(plan, 10_000, make))


class _Still:
    """A machine that asks for one thing each time it has an answer."""

    def __init__(self) -> None:
        self.send = [Send(("p", "get"), get_(PODS, "default", "p1"))]

    def start(self, now: float) -> list[Action]:
        return list(self.send)

    def handle(self, event: Event, now: float) -> list[Action]:
        return list(self.send) if type(event) is Answered else []

    def stop(self, now: float) -> list[Action]:
        return []


@benchmark("client/rest")
def rest(plan: Plan) -> Iterator[Line]:
    """What `Rest` adds to a machine: for a request and its answer, and for a watch event that passes through it."""
    layer = Rest(_Still(), {"main": TokenBucket(1e9, 1_000_000)})
    layer.start(0.0)
    answered = Answered(("p", "get"), Response(200, {}, b"{}"))
    passed = Received(("p", "watch"), b"{}")
    request = cpu_us(plan, 30_000, calls(lambda: layer.handle(answered, 1.0)))
    yield Line("client/rest/request", "us", request)
    yield Line("client/rest/event", "us", cpu_us(plan, 50_000, calls(lambda: layer.handle(passed, 1.0))))
