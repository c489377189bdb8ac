"""A whole emulated member, called as its listener calls it, without sockets: the Python CPU of each operation.

Beside each stands what the operation costs a real kube-apiserver with its etcd (harness.apiserver.model.costs): where
ours is more, a modelled core of that member needs more than a core of the machine underneath. The store's work is
included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import msgspec

from benchmarks import objects
from benchmarks.registry import Line, Plan, benchmark
from harness.apiserver.clock import VirtualClock
from harness.apiserver.member import Member
from harness.apiserver.model.costs import Costs, operation_cost
from harness.apiserver.options import MemberOptions
from harness.apiserver.store.client import LocalStore
from harness.apiserver.store.core import StoreCore
from harness.apiserver.store.etcd import EtcdModel
from harness.apiserver.store.replicated import ReplicatedStore
from harness.wire.request import STRATEGIC_MERGE_PATCH

TOKEN = "benchmark"  # noqa: S105  # of a server that only this process can reach
CORES = 8.0
_BATCH = 20
_BATCH_S = 0.02  # of virtual time between batches: at most half of the cores are busy
_NODES = 100
_PODS = "/api/v1/namespaces/default/pods"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class Exchange:
    """A request that keeps its answer."""

    __slots__ = ("answer", "body", "headers", "method", "path", "status")
    peer = "127.0.0.1"
    http2 = True
    certificate = None
    buffered = 0

    def __init__(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        self.method, self.path, self.headers, self.body = method, path, headers, body
        self.status = 0
        self.answer = b""

    def respond(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.status, self.answer = status, body

    def start(self, status: int, headers: dict[str, str]) -> None:
        self.status = status

    def write(self, data: bytes) -> None:
        self.answer += data

    def finish(self) -> None: ...

    def abort(self) -> None: ...

    def on_drain(self, callback: Callable[[], None]) -> None: ...

    def on_gone(self, callback: Callable[[], None], *, instead: bool = False) -> None: ...


def exchange(method: str, path: str, body: Any = None, node: str = "", patch: bool = False) -> Exchange:
    """A request of an administrator, or of `node`'s kubelet as a fleet impersonates it."""
    headers = {
        "accept": "application/json",
        "authorization": f"Bearer {TOKEN}",
        "user-agent": "kubelet/v1.36.2",
    }
    if node:
        headers |= {"impersonate-user": f"system:node:{node}", "impersonate-group": "system:nodes"}
    if body is not None:
        headers["content-type"] = STRATEGIC_MERGE_PATCH if patch else "application/json"
    return Exchange(method, path, headers, b"" if body is None else objects.encode(body))


class Server:
    """One started member with its store, as in a pool: 8 modelled cores, all admission and authorization."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        store = ReplicatedStore(StoreCore(), EtcdModel(["m"], Random(1)), self.clock)
        options = MemberOptions(name="m", admin_token=TOKEN, cores=CORES)
        self.member = Member(options, self.clock, LocalStore(store, "m", self.clock))
        started = self.member.start()
        self.clock.advance(5.0)
        started.result()
        account = exchange(
            "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}}
        )
        self.run([account])

    def run(self, exchanges: Sequence[Exchange]) -> float:
        """Answer all; CPU microseconds for each. Fails where one is not answered by 2xx."""
        begun = time.process_time()
        for start in range(0, len(exchanges), _BATCH):
            for each in exchanges[start : start + _BATCH]:
                self.member.handle(each)  # type: ignore[arg-type]
            self.clock.advance(_BATCH_S)
        self.clock.advance(0.2)
        spent = time.process_time() - begun
        bad = [each for each in exchanges if not 200 <= each.status < 300]
        assert not bad, f"{bad[0].method} {bad[0].path}: {bad[0].status} {bad[0].answer[:300]!r}"
        return spent / len(exchanges) * 1e6

    def add_nodes(self) -> None:
        self.run([exchange("POST", "/api/v1/nodes", objects.node(f"n{number}")) for number in range(_NODES)])


def _real(verb: str, resource: str, subresource: str = "", **more: Any) -> float:
    """Microseconds of kube-apiserver and etcd together."""
    return sum(operation_cost(Costs(), verb, resource, subresource, **more))


def _node(number: int) -> str:
    return f"n{number % _NODES}"


def _binding(number: int) -> dict[str, Any]:
    target = {"apiVersion": "v1", "kind": "Node", "name": _node(number)}
    return {"metadata": {"name": f"p{number}"}, "target": target}


def _creations(numbers: range) -> list[Exchange]:
    return [exchange("POST", _PODS, objects.pod(f"p{n}", mounts=f"s{n % 500}")) for n in numbers]


def _bindings(numbers: range) -> list[Exchange]:
    return [exchange("POST", f"{_PODS}/p{n}/binding", _binding(n)) for n in numbers]


def _patches(numbers: range) -> list[Exchange]:
    body = objects.running_status()
    return [exchange("PATCH", f"{_PODS}/p{n}/status", body, _node(n), patch=True) for n in numbers]


@benchmark("member/pods")
def pods(plan: Plan) -> Iterator[Line]:
    """The life of a pod: created, bound, reported as running by its node."""
    server = Server()
    server.add_nodes()
    n = plan.count(400)
    created, bound, patched = [], [], []
    server.run(_creations(range(n)))
    for repeat in range(1, plan.repeats + 1):
        numbers = range(repeat * n, (repeat + 1) * n)
        created.append(server.run(_creations(numbers)))
        bound.append(server.run(_bindings(numbers)))
        patched.append(server.run(_patches(numbers)))
    yield Line("member/pod create", "us", created, real=_real("create", "pods"))
    yield Line("member/pod binding", "us", bound, real=_real("create", "pods", "binding"))
    yield Line("member/pod status patch", "us", patched, real=_real("patch", "pods", "status"))


@benchmark("member/leases")
def leases(plan: Plan) -> Iterator[Line]:
    """Each node renews its lease."""
    server = Server()
    server.add_nodes()
    made = [
        exchange("POST", _LEASES, objects.lease(_node(number)), _node(number)) for number in range(_NODES)
    ]
    server.run(made)
    held = [msgspec.json.decode(each.answer) for each in made]
    values = []
    rounds = max(1, round(plan.count(400) / _NODES))
    for repeat in range(plan.repeats):
        spent = 0.0
        for second in range(rounds):
            for each in held:
                each["spec"]["renewTime"] = f"2026-01-01T00:{repeat:02}:{second:02}.000000Z"
            renewals = [
                exchange("PUT", f"{_LEASES}/{_node(number)}", each, _node(number))
                for number, each in enumerate(held)
            ]
            spent += server.run(renewals)
            held = [msgspec.json.decode(each.answer) for each in renewals]
        values.append(spent / rounds)
    yield Line("member/lease put", "us", values, real=_real("update", "leases"))


@benchmark("member/reads")
def reads(plan: Plan) -> Iterator[Line]:
    """By nodes that have a pod with that secret; lists by an administrator."""
    server = Server()
    server.add_nodes()
    n = max(_NODES, plan.count(1000))
    secrets = "/api/v1/namespaces/default/secrets"
    server.run([exchange("POST", secrets, objects.secret(f"s{number}")) for number in range(500)])
    server.run(_creations(range(n)))
    server.run(_bindings(range(n)))
    get, listed, watched = [], [], []
    for _ in range(plan.repeats):
        numbers = range(plan.count(500))
        gets = [exchange("GET", f"{_PODS}/p{k}?resourceVersion=0", None, _node(k)) for k in numbers]
        get.append(server.run(gets))
        lists = [exchange("GET", "/api/v1/pods?resourceVersion=0") for _ in range(plan.count(10))]
        listed.append(server.run(lists) / n)
        watches = [exchange("GET", _watch_path(f"s{k % 500}"), None, _node(k)) for k in numbers]
        watched.append(server.run(watches))
        assert all(each.answer.count(b"\n") >= 2 for each in watches), (
            "a secret and a bookmark for each watch"
        )
    yield Line("member/get rv=0", "us", get, real=_real("get", "pods"))
    yield Line("member/list rv=0, for each pod", "us", listed, real=Costs().list_per_pod_us)
    real = _real("watch", "secrets", consistent=True)
    yield Line("member/watch-list of one secret", "us", watched, real=real)


def _watch_path(name: str) -> str:
    return (
        "/api/v1/namespaces/default/secrets?allowWatchBookmarks=true&"
        f"fieldSelector=metadata.name%3D{name}&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&"
        "timeoutSeconds=1832&watch=true"
    )
