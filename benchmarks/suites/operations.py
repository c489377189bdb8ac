"""What a member's process pays for each operation, over TLS and HTTP/2 without a model, beside what a real one pays.

"real server" is a kube-apiserver v1.36.2 on a machine of the same kind, TLS and HTTP/1.1 (how it was measured stands
in `harness.apiserver.model.costs`), and lines with "(store)" set the store's process beside its etcd. The aim is half
of it for a write, a third for a GET, a tenth for an object of a LIST and for an event to a watcher, 3 KB for a watch
at rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import msgspec

from benchmarks import objects
from benchmarks.pool import NODES, Link, Pool, Request, Spent, pool, request
from benchmarks.registry import FEW, Line, Plan, benchmark
from harness.apiserver.model.costs import Costs
from harness.wire.request import STRATEGIC_MERGE_PATCH

WRITE, GET, EACH = 1 / 2, 1 / 3, 1 / 10
IDLE_WATCH_KB, IDLE_MS = 3.0, 3.0
REAL_IDLE_WATCH_KB, REAL_RESIDENT_MB = 93.0, 270.0
_REAL = Costs()
_REAL_GET_AS_ADMIN_US = 275.0
_DEFAULT = "/api/v1/namespaces/default"
_PODS = f"{_DEFAULT}/pods"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_STREAMS = 35
_WATCH = "&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true"


def _lines(
    name: str, spent: Spent, real: float, share: float | None, real_store: float = 0.0
) -> Iterator[Line]:
    aim = None if share is None else real * share
    yield Line(f"operations/{name}", "us", [spent.member], real=real, aim=aim)
    if real_store:
        yield Line(f"operations/{name} (store)", "us", [spent.store], real=real_store)


@benchmark("operations/writes", most=FEW)
def writes(plan: Plan) -> Iterator[Line]:
    """Each of them by four connections, one request at a time on each."""
    n = plan.count(500)
    with pool() as running:
        _prepare(running)
        _warm_up(running, plan)
        costs, admins, nodes = _REAL, running.admins, running.nodes
        spent = running.spent(admins, [_pod(f"p{k}", k) for k in range(n)])
        yield from _lines("create pod", spent, costs.create_pod_us, WRITE, costs.create_pod_etcd_us)
        spent = running.spent(admins, [_binding(f"p{k}", k) for k in range(n)])
        yield from _lines("bind pod", spent, costs.bind_pod_us, WRITE, costs.bind_pod_etcd_us)
        spent = running.spent(nodes, [_status(f"p{k}") for k in range(n)])
        name = "patch pod status, as its node"
        yield from _lines(name, spent, costs.patch_status_us, WRITE, costs.patch_status_etcd_us)
        spent = running.spent(admins, [_event(f"e{k}") for k in range(n)])
        yield from _lines("create event", spent, costs.create_event_us, WRITE, costs.create_event_etcd_us)
        spent = running.spent(admins, [_configmap(f"c{k}") for k in range(n)])
        name = "create configmap of 500 B"
        yield from _lines(name, spent, costs.create_object_us, WRITE, costs.create_object_etcd_us)
        yield from _lease_lines(running, n)


def _lease_lines(running: Pool, n: int) -> Iterator[Line]:
    held: list[bytes] = []

    def create() -> None:
        held.extend(
            running.run(running.admins, [request("POST", _LEASES, objects.lease(f"l{k}")) for k in range(n)])
        )

    yield from _lines(
        "create lease",
        running.measure(n, create),
        _REAL.create_lease_us,
        WRITE,
        _REAL.create_lease_etcd_us,
    )
    renewed = [msgspec.json.decode(each) for each in held]
    for each in renewed:
        each["spec"]["renewTime"] = "2026-01-01T00:00:10.000000Z"
    renewals = [request("PUT", f"{_LEASES}/l{k}", each) for k, each in enumerate(renewed)]
    spent = running.spent(running.admins, renewals)
    yield from _lines("update lease", spent, _REAL.update_lease_us, WRITE, _REAL.update_lease_etcd_us)


@benchmark("operations/reads", most=FEW)
def reads(plan: Plan) -> Iterator[Line]:
    """GETs by four connections, one request at a time on each; lists of 1,000 pods by one."""
    n, pods = plan.count(800), max(8, plan.count(1000))
    with pool() as running:
        _prepare(running)
        running.run(running.admins, [_pod(f"p{k}", k) for k in range(pods)])
        running.run(running.admins, [_binding(f"p{k}", k) for k in range(pods)])
        cached = [request("GET", f"{_PODS}/p{k % pods}?resourceVersion=0") for k in range(n)]
        running.run(running.admins, cached[: n // 8])
        running.run(running.nodes, cached[: n // 8])
        spent = running.spent(running.admins, cached)
        yield from _lines("get rv=0, as admin", spent, _REAL_GET_AS_ADMIN_US, GET)
        spent = running.spent(running.nodes, cached)
        yield from _lines("get rv=0, as node", spent, _REAL.get_cached_us, GET)
        consistent = [request("GET", f"{_PODS}/p{k % pods}") for k in range(n)]
        spent = running.spent(running.admins, consistent)
        yield from _lines(
            "get, consistent", spent, _REAL.get_consistent_us, GET, _REAL.get_consistent_etcd_us
        )
        named = [
            request("GET", f"{_PODS}?fieldSelector=metadata.name%3Dp{k % pods}&resourceVersion=0")
            for k in range(n)
        ]
        spent = running.spent(running.admins, named)
        yield from _lines("list by metadata.name, rv=0", spent, _REAL.list_us, GET)
        yield from _list_lines(running, plan, pods)
        yield from _connection_lines(running, plan)


def _list_lines(running: Pool, plan: Plan, pods: int) -> Iterator[Line]:
    lists = [request("GET", f"{_PODS}?resourceVersion=0")] * plan.count(8)
    spent = running.measure(len(lists) * pods, lambda: running.run([running.admin], lists))
    yield from _lines("list pods, for each pod", spent, _REAL.list_per_pod_us, EACH)
    first = running.admin.ask(request("GET", f"{_PODS}?limit=1"))
    version = msgspec.json.decode(first)["metadata"]["resourceVersion"]
    page = f"{_PODS}?limit={min(500, pods // 2)}"
    rounds = plan.count(8)

    def paged() -> None:
        for _ in range(rounds):
            answer = running.admin.ask(
                request("GET", f"{page}&resourceVersion={version}&resourceVersionMatch=Exact")
            )
            while token := _continue(answer):
                answer = running.admin.ask(request("GET", f"{page}&continue={token}"))

    spent = running.measure(rounds * pods, paged)
    name = "list pods, exact, pages of 500, for each pod"
    yield from _lines(name, spent, _REAL.list_per_pod_paged_us, EACH)


def _continue(answer: bytes) -> str:
    token: str = msgspec.json.decode(answer[:400].split(b',"items"')[0] + b"}")["metadata"].get(
        "continue", ""
    )
    return token


def _connection_lines(running: Pool, plan: Plan) -> Iterator[Line]:
    asked = request("GET", f"{_PODS}/p0?resourceVersion=0")
    n = plan.count(100)
    running.connect().ask(asked)

    def connect() -> None:
        for _ in range(n):
            link = running.connect()
            link.ask(asked)
            link.close()

    real = _REAL.connect_us + _REAL_GET_AS_ADMIN_US
    yield from _lines("new TLS connection and one request", running.measure(n, connect), real, None)


@benchmark("operations/watches", most=FEW)
def watches(plan: Plan) -> Iterator[Line]:
    """Watch-lists, and events to them: the CPU of writes that are watched, less that of the same writes before."""
    pods, n = max(8, plan.count(500)), plan.count(600)
    with pool() as running:
        _prepare(running)
        running.run(running.admins, [_pod(f"p{k}", k) for k in range(pods)])
        running.run(running.admins, [_configmap(f"c{k}") for k in range(20)])
        spent = _watch_pods(running, plan, pods)
        yield from _lines("watch-list of pods, for each pod", spent, _REAL.watch_list_per_pod_us, EACH)
        spent = _open(running, [running.connect() for _ in range(20)], "secrets", n)
        name = "watch-list of one secret"
        yield from _lines(name, spent, _REAL.watch_open_us, GET, _REAL.watch_open_etcd_us)
        yield from _event_lines(running, plan)


def _watch_pods(running: Pool, plan: Plan, pods: int) -> Spent:
    links = [running.connect() for _ in range(plan.count(6))]

    def work() -> None:
        for link in links:
            link.send(request("GET", f"{_PODS}?timeoutSeconds=1800{_WATCH}"))
            link.take(pods + 1)  # and the bookmark that ends the list

    return running.measure(len(links) * pods, work)


def _open(running: Pool, links: Sequence[Link], resource: str, count: int) -> Spent:
    """Watch-lists of one object each; some take their share of those before."""

    def work(numbers: range) -> None:
        for start in range(numbers.start, numbers.stop, len(links)):
            for link, _ in zip(links, range(start, numbers.stop), strict=False):
                link.send(_watch_one(resource, "s0"))
            for link, _ in zip(links, range(start, numbers.stop), strict=False):
                link.take(2)

    work(range(len(links)))
    return running.measure(count, lambda: work(range(count)))


def _watch_one(resource: str, name: str) -> Request:
    selected = f"fieldSelector=metadata.name%3D{name}&timeoutSeconds=1800"
    return request("GET", f"{_DEFAULT}/{resource}?{selected}{_WATCH}")


def _event_lines(running: Pool, plan: Plan) -> Iterator[Line]:
    real = _REAL.watch_event_http1_us
    each = _Updates(running, "c0")
    own = plan.count(10)
    for title, connections, streams in (
        ("1 watcher on its connection", own, 1),
        ("1,000 watchers, 35 on each", plan.count(29), _STREAMS),
    ):
        links = [running.connect() for _ in range(connections)]
        many = connections * streams
        each.drive(20, [], 0)
        writes_ = plan.count(100 if streams == 1 else 10)
        before = [each.drive(writes_, [], 0) for _ in range(3)]
        for link in links:
            link.send(*[_watch_one("configmaps", each.name)] * streams)
            link.take(2 * streams)
        found = [each.drive(writes_, links, streams) for _ in range(3)]
        delivered = max((median(found) - median(before)) / many, 0.01)
        yield Line(f"operations/event to {title}", "us", [delivered], real=real, aim=real * EACH)
        each = _Updates(running, "c1")


class _Updates:
    """Writes of one object, by one connection, each of which its watchers have seen before the next."""

    def __init__(self, running: Pool, name: str) -> None:
        self.name = name
        self._running = running
        self._count = 0

    def drive(self, writes: int, links: Sequence[Link], streams: int) -> float:
        """The member's CPU for each."""

        def work() -> None:
            for _ in range(writes):
                self._count += 1
                body = _configmap(self.name, str(self._count)).body
                self._running.admin.ask(Request("PUT", f"{_DEFAULT}/configmaps/{self.name}", body))
                for link in links:
                    link.take(streams)

        return self._running.measure(writes, work).member


@benchmark("operations/idle", most=FEW)
def idle(plan: Plan) -> Iterator[Line]:
    """A member that nobody asks anything; then watch-lists of single secrets, 35 on each connection: resident memory,
    the connection's share included."""
    connections, seconds = plan.count(150), 2 * plan.size
    with pool() as running:
        _prepare(running)
        spent = running.measure(1, lambda: time.sleep(seconds))
        resident = running.resident_bytes() / (1 << 20)
        before = 0
        for number in range(connections + connections // 4):
            if number == connections // 4:  # those before have filled what the process had free
                before = running.resident_bytes()
            link = running.connect()
            link.send(*[_watch_one("secrets", "s0")] * _STREAMS)
            link.take(2 * _STREAMS)
        grown = max(running.resident_bytes() - before, 1) / (connections * _STREAMS) / 1024
    yield Line("operations/member at rest", "ms/s", [max(spent.member / 1000 / seconds, 0.001)], aim=IDLE_MS)
    yield Line("operations/member at rest, resident", "MB", [resident], real=REAL_RESIDENT_MB)
    yield Line("operations/watch at rest", "KB", [grown], real=REAL_IDLE_WATCH_KB, aim=IDLE_WATCH_KB)


# ---- what is sent ----------------------------------------------------------------------------------------------------
def _prepare(running: Pool) -> None:
    admin = running.admin
    admin.ask(request("POST", f"{_DEFAULT}/serviceaccounts", {"metadata": {"name": "default"}}))
    admin.ask(request("POST", f"{_DEFAULT}/secrets", objects.secret("s0")))
    for number in range(NODES):
        admin.ask(request("POST", "/api/v1/nodes", objects.node(f"n{number}")))


def _warm_up(running: Pool, plan: Plan) -> None:
    n = plan.count(60)
    admins = running.admins
    running.run(admins, [_pod(f"w{k}", k) for k in range(n)])
    running.run(admins, [_binding(f"w{k}", k) for k in range(n)])
    running.run(running.nodes, [_status(f"w{k}") for k in range(n)])
    running.run(admins, [_event(f"w{k}") for k in range(n)])
    running.run(admins, [_configmap(f"w{k}") for k in range(n)])


def _pod(name: str, number: int) -> Request:
    return request("POST", _PODS, objects.pod(name, mounts="s0"))


def _binding(name: str, number: int) -> Request:
    target = {"apiVersion": "v1", "kind": "Node", "name": f"n{number % NODES}"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    return request("POST", f"{_PODS}/{name}/binding", body)


def _status(name: str) -> Request:
    return request("PATCH", f"{_PODS}/{name}/status", objects.running_status(), STRATEGIC_MERGE_PATCH)


def _event(name: str) -> Request:
    return request("POST", f"{_DEFAULT}/events", objects.event(name))


def _configmap(name: str, more: str = "") -> Request:
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"v": "x" * 380, "more": more},
    }
    return request("POST", f"{_DEFAULT}/configmaps", body)
