"""The kubelet machines with their client layers, against answers that come at once; no transport.

The answers are part of the CPU time: a seventh at most, by the profiler.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from random import Random

import msgspec

from benchmarks.child import in_child
from benchmarks.measure import grown_kb
from benchmarks.objects import encode, stored_pod
from benchmarks.registry import FEW, Line, Plan, benchmark
from harness.client.machine import Action, Answered, Arm, Disarm, Event, Fired, Key, Opened, Received, Send
from harness.client.reflector import INITIAL_EVENTS_END
from harness.client.rest import Rest
from harness.fleet.kubelet import Kubelet, kubelet_limiters
from harness.fleet.options import KubeletOptions
from harness.wire.paths import parse_path
from harness.wire.request import Request, Response
from harness.wire.watching import encode_event

PODS = 30
OBJECTS = 10  # secrets and configmaps of a node's pods, ten each
_BOUND_SHARE = 10  # of the registered kubelets, one in ten gets pods
_POD_SECONDS = 4.0  # from binding to Running, in virtual time
_REGISTRATION_SECONDS = 4.0
_END = {"metadata": {"resourceVersion": "5", "annotations": {INITIAL_EVENTS_END: "true"}}}
_SYNCED = encode_event("BOOKMARK", encode(_END))
_BOOKMARK = encode_event("BOOKMARK", encode({"metadata": {"resourceVersion": "6"}}))
_REST_SECONDS = 120
_DONE = b'{"metadata":{"uid":"u","resourceVersion":"9"},"spec":{"expirationSeconds":3607}}'


class _Node:
    """A kubelet and a server that has everything it asks for."""

    def __init__(self, number: int, options: KubeletOptions) -> None:
        self.kubelet = Kubelet(f"node-{number}", options, Random(number), 1.8e9)
        self._machine = Rest(self.kubelet, kubelet_limiters(options))
        self._timers: dict[Key, float] = {}
        self._now = 0.0
        self.requests = 0
        self._watches: set[Key] = set()

    def start(self) -> None:
        self._act(self._machine.start(0.0), _REGISTRATION_SECONDS)
        assert self.kubelet.registered

    def bind(self, pods: bytes) -> None:
        """Events of the pods' watch, and what follows until the pods run."""
        self._act(self._machine.handle(Received(("pods", "watch"), pods), self._now), _POD_SECONDS)

    def rest(self, seconds: int) -> None:
        """Heartbeats, the minutely look at volumes, and a bookmark on every watch each minute."""
        for _ in range(0, seconds, 60):
            for key in self._watches:
                self._act(self._machine.handle(Received(key, _BOOKMARK), self._now), 0.0)
            self._act([], 60.0)

    def _act(self, actions: list[Action], seconds: float) -> None:
        """Carry out actions and what they lead to, timers of the next `seconds` included."""
        queue, until = deque(actions), self._now + seconds
        while True:
            while queue:
                queue.extend(self._carry_out(queue.popleft()))
            key = min(self._timers, key=self._timers.__getitem__, default=None)
            if key is None or self._timers[key] > until:
                self._now = until
                return
            self._now = max(self._now, self._timers.pop(key))
            queue.extend(self._machine.handle(Fired(key), self._now))

    def _carry_out(self, action: Action) -> list[Action]:
        if isinstance(action, Arm):
            self._timers[action.key] = action.at
        elif isinstance(action, Disarm):
            self._timers.pop(action.key, None)
        elif isinstance(action, Send):
            self.requests += 1
            if action.request.is_stream:
                self._watches.add(action.key)
            answers = _watch(action.key, action.request) if action.request.is_stream else [_answer(action)]
            return [more for each in answers for more in self._machine.handle(each, self._now)]
        return []


def _watch(key: Key, request: Request) -> list[Event]:
    """Opened, with the one object that a secret's or configmap's watch is for, and synced."""
    info = parse_path(request.path)
    first = b""
    if info.resource in ("secrets", "configmaps"):
        metadata = {
            "name": info.name,
            "namespace": info.namespace,
            "uid": f"u-{info.name}",
            "resourceVersion": "4",
        }
        first = encode_event("ADDED", encode({"metadata": metadata, "data": {"k": "v" * 100}}))
    return [Opened(key, "m"), Received(key, first + _SYNCED)]


def _answer(action: Send) -> Event:
    request = action.request
    status, body = 200, _DONE
    if request.name == "csinodes" and request.verb == "get":
        status = 404
    elif request.name == "pods" and request.verb == "get":
        name = parse_path(request.path).name
        body = encode({"metadata": {"uid": f"uid-{name}"}, "status": {"phase": "Pending"}})
    return Answered(action.key, Response(status, {}, body, "m"))


@benchmark("fleet/kubelet", FEW)
def kubelet(plan: Plan) -> Iterator[Line]:
    """A kubelet registers; then 30 pods of 10 secrets and 10 configmaps become its own and run."""
    found = [in_child(kubelet_costs, kubelets=plan.count(1000)) for _ in range(plan.repeats)]
    for name, unit in (
        ("registration", "us"),
        ("pod bound to running", "us"),
        ("pod bound to running, requests", ""),
        ("a second at rest", "us"),
        ("registered", "KB"),
        (f"with {PODS} pods", "KB"),
    ):
        yield Line(f"fleet/kubelet/{name}", unit, [each[name] for each in found])


def kubelet_costs(kubelets: int) -> dict[str, float]:
    """CPU and memory of so many kubelets. Runs in a child."""
    options = KubeletOptions()
    nodes: list[_Node] = []

    def register(n: int) -> list[_Node]:
        made = [_Node(len(nodes) + number, options) for number in range(n)]
        nodes.extend(made)
        for each in made:
            each.start()
        return made

    begun = time.process_time()
    registered_kb = grown_kb(register, kubelets)
    found = {"registration": (time.process_time() - begun) / len(nodes) * 1e6, "registered": registered_kb}
    spent_s, requests = 0.0, 0

    def bind(n: int) -> list[_Node]:
        nonlocal spent_s, requests
        for _ in range(n):
            number = len(bound)
            each, events = nodes[number], _pods(number)
            asked, begun = each.requests, time.process_time()
            each.bind(events)
            spent_s += time.process_time() - begun
            requests += each.requests - asked
            bound.append(each)
        return bound

    bound: list[_Node] = []
    with_pods_kb = grown_kb(bind, max(1, kubelets // _BOUND_SHARE))
    found["pod bound to running"] = spent_s / len(bound) / PODS * 1e6
    found["pod bound to running, requests"] = requests / len(bound) / PODS
    found[f"with {PODS} pods"] = registered_kb + with_pods_kb
    begun = time.process_time()
    for each in bound:
        each.rest(_REST_SECONDS)
    found["a second at rest"] = (time.process_time() - begun) / len(bound) / _REST_SECONDS * 1e6
    return found


def _pods(node: int) -> bytes:
    """ADDED events of all pods of a node."""
    lines = []
    for number in range(PODS):
        name, shared = f"d-{node}-{number}", number % OBJECTS
        pod = stored_pod(name, f"node-{node}", mounts=f"s{shared}", configmap=f"c{shared}")
        lines.append(encode_event("ADDED", msgspec.json.encode(pod)))
    return b"".join(lines)
