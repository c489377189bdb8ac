"""harness.client: what a worker pays for each event and each request of a kubelet, transport aside."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from typing import Any

from benchmarks.child import in_child
from benchmarks.measure import Work, calls, cpu_us
from benchmarks.objects import encode, stored_pod
from benchmarks.registry import FEW, Line, Plan, benchmark
from harness.client.limiter import TokenBucket
from harness.client.machine import Action, Answered, Event, Opened, Received, Send
from harness.client.reflector import INITIAL_EVENTS_END, Reflector
from harness.client.requests import PODS, get_
from harness.client.rest import Rest
from harness.fleet.kubelet import Kubelet, kubelet_limiters
from harness.fleet.options import KubeletOptions
from harness.fleet.pods import decode_pod
from harness.wire.request import Request, Response
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


class _Kept:
    """A transport that keeps the sinks of what was sent."""

    def __init__(self) -> None:
        self.sinks: dict[str, Any] = {}

    def send(self, request: Request, sink: Any) -> _Kept:
        self.sinks[request.name] = sink
        return self

    def cancel(self) -> None: ...

    def close(self) -> None: ...


@benchmark("client/shell", FEW)
def shell(plan: Plan) -> Iterator[Line]:
    """A MODIFIED event of a node from the transport's hands through shell, rest layer and kubelet, each handling
    it as in a run; in a child, for the shell brings in gevent."""
    costs = [in_child(shell_event_us, events=plan.count(10_000)) for _ in range(plan.repeats)]
    yield Line("client/shell/event", "us", costs)


def shell_event_us(events: int) -> float:
    """CPU microseconds of an event. Runs in a child."""
    from harness.load.shell import Shell
    from harness.load.statistics import Statistics
    from harness.transport.timers import Timers

    transport, timers, options = _Kept(), Timers(), KubeletOptions(follow_one_of=25)
    rest = Rest(Kubelet("n1", options, Random(1), 1.8e9), kubelet_limiters(options))
    whole: Any = transport
    running = Shell("kubelet", rest, whole, timers, Statistics(_nobody), _nobody, _nobody, _raise)
    running.start()
    transport.sinks["nodes"].on_head(200, {}, "m")
    sink = transport.sinks["nodes"]
    end = {"metadata": {"resourceVersion": "10", "annotations": {INITIAL_EVENTS_END: "true"}}}
    node = {"metadata": {"name": "n1", "uid": "u", "resourceVersion": "9"}}
    sink.on_data(encode_event("ADDED", encode(node)) + encode_event("BOOKMARK", encode(end)))
    lines = []
    for revision in range(11, 61):
        padded = {
            "metadata": {**node["metadata"], "resourceVersion": str(revision)},
            "spec": {"x": "y" * 900},
        }
        lines.append(encode_event("MODIFIED", encode(padded)))
    begun = time.process_time()
    for number in range(events):
        sink.on_data(lines[number % 50])
    used = time.process_time() - begun
    timers.close()
    return used / events * 1e6


def _nobody(*_: object, **__: object) -> None: ...


def _raise(error: Exception) -> None:
    raise error


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
