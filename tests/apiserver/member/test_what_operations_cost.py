"""Modelled CPU of whole operations, both classes: the cost table's figures, no more and no less, on every member."""

from collections.abc import Iterator
from typing import Any

import pytest
from fakemember import FakeExchange, Server

from harness.apiserver.model.capacity import ETCD, Class
from harness.apiserver.model.costs import Costs, operation_cost

COSTS = Costs()
NAMESPACE = "/api/v1/namespaces/ns"
PODS = f"{NAMESPACE}/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
STRATEGIC = {"content-type": "application/strategic-merge-patch+json"}
BOUND = {"target": {"name": "n"}}
RUNNING = {"status": {"phase": "Running"}}
REPLICA_US = COSTS.replica_etcd_us
CACHE_US = COSTS.cache_event_us
INFORMER_US = COSTS.watch_event_us  # the node authorizer's, of pods
GRAPH_US = COSTS.graph_update_us

Cost = tuple[float, float]


class Bill:
    """Members with a namespace, and what each operation costs each of them: (apiserver, etcd) in microseconds."""

    def __init__(self, members: int, **options: Any) -> None:
        self.server = Server(members, costs={"watch_idle_us": 0}, **options)
        self.server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "ns"}})
        self.server.ask("POST", f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}})
        self.server.settle(1.0)

    def of(self, method: str, path: str, body: Any = None, user: str = "", **more: Any) -> list[Cost]:
        before = self._busy()
        self.server.ask(method, path, body, user, **more)
        self.server.settle(1.0)
        return [
            (round(a - c, 3), round(b - d, 3)) for (a, b), (c, d) in zip(self._busy(), before, strict=True)
        ]

    def watch(self, query: str, http2: bool = True) -> tuple[FakeExchange, Cost]:
        """Open a watch of the first member, with what that cost it."""
        before = self._busy()[0]
        exchange = FakeExchange(
            "GET", query, {"authorization": "Bearer secret-token", "accept": "application/json"}, b""
        )
        exchange.http2 = http2
        self.server.member.handle(exchange)
        self.server.settle(0.5)
        after = self._busy()[0]
        return exchange, (round(after[0] - before[0], 3), round(after[1] - before[1], 3))

    def _busy(self) -> list[Cost]:
        hosts = [member.host for member in self.server.members]
        return [
            (sum(host.busy_of_s(cls) for cls in Class if cls is not ETCD) * 1e6, host.busy_of_s(ETCD) * 1e6)
            for host in hosts
        ]


@pytest.fixture(params=[1, 3], ids=["one member", "three members"])
def bill(request: pytest.FixtureRequest) -> Iterator[Bill]:
    bill = Bill(request.param)
    yield bill
    bill.server.close()


@pytest.fixture
def single() -> Iterator[Bill]:
    bill = Bill(1)
    yield bill
    bill.server.close()


def check(costs: list[Cost], own: Cost, other: Cost) -> None:
    """The first member took the request."""
    assert costs[0] == own
    assert costs[1:] == [other] * (len(costs) - 1)


def test_a_pod_s_life(bill: Bill) -> None:
    other = (CACHE_US + INFORMER_US, REPLICA_US)
    check(bill.of("POST", PODS, POD), (880, 220), other)
    bound = (CACHE_US + INFORMER_US + GRAPH_US, REPLICA_US)
    check(bill.of("POST", f"{PODS}/p/binding", BOUND), (755 + GRAPH_US, 210), bound)
    node = "system:node:n"
    check(bill.of("PATCH", f"{PODS}/p/status", RUNNING, node, headers=STRATEGIC), (1310, 255), other)
    # Marked, then removed: two writes.
    gone = bill.of("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    check(
        gone,
        (560 + INFORMER_US + GRAPH_US, 2 * 200),
        (2 * (CACHE_US + INFORMER_US) + GRAPH_US, 2 * REPLICA_US),
    )


def test_other_writes(bill: Bill) -> None:
    cached, uncached = (CACHE_US, REPLICA_US), (0, REPLICA_US)
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "ns"}}
    check(bill.of("POST", f"{NAMESPACE}/configmaps", {"metadata": {"name": "c"}}), (600, 180), cached)
    check(bill.of("DELETE", f"{NAMESPACE}/configmaps/c"), (560, 200), cached)
    check(bill.of("POST", f"{NAMESPACE}/events", event), (490, 170), uncached)
    # No cache has it: the store is read first.
    check(
        bill.of("PATCH", f"{NAMESPACE}/events/e", {"count": 2}, headers=STRATEGIC), (490, 127 + 170), uncached
    )
    check(bill.of("POST", LEASES, {"metadata": {"name": "n"}}), (550, 200), cached)
    lease = bill.server.ask("GET", f"{LEASES}/n").json
    check(bill.of("PUT", f"{LEASES}/n", {**lease, "spec": {"holderIdentity": "n"}}), (560, 137), cached)


def test_a_write_that_loses_pays_etcd_too(single: Bill) -> None:
    single.of("POST", LEASES, {"metadata": {"name": "n"}})
    assert single.of("POST", LEASES, {"metadata": {"name": "n"}}) == [(550, 200)]


def test_tokens(bill: Bill) -> None:
    bill.of("POST", PODS, POD)
    request = {"spec": {"boundObjectRef": {"kind": "Pod", "name": "p"}}}
    check(bill.of("POST", f"{NAMESPACE}/serviceaccounts/default/token", request), (700, 254), (0, 0))


def test_a_collection_is_paid_for_each_object(bill: Bill) -> None:
    for number in range(3):
        bill.of("POST", f"{NAMESPACE}/configmaps", {"metadata": {"name": f"c{number}"}})
    # The list asks etcd for its revision.
    costs = bill.of("DELETE", f"{NAMESPACE}/configmaps")
    check(costs, (3 * 560, 127 + 3 * 200), (3 * CACHE_US, 3 * REPLICA_US))
    check(bill.of("DELETE", f"{NAMESPACE}/configmaps"), (560, 127), (0, 0))


def test_reads(bill: Bill) -> None:
    for number in range(3):
        bill.of("POST", PODS, {**POD, "metadata": {"name": f"p{number}"}})
        bill.of(
            "POST",
            f"{NAMESPACE}/events",
            {"metadata": {"name": f"e{number}"}, "involvedObject": {"namespace": "ns"}},
        )
    nothing = (0, 0)
    check(bill.of("GET", f"{PODS}/p0?resourceVersion=0"), (238, 0), nothing)
    check(bill.of("GET", f"{PODS}/p0"), (360, 127), nothing)
    check(bill.of("GET", f"{PODS}?resourceVersion=0"), (273 + 3 * 25, 0), nothing)
    check(bill.of("GET", PODS), (358 + 3 * 25, 127), nothing)
    check(bill.of("GET", f"{PODS}?limit=2"), (358 + 2 * 25, 127), nothing)
    from_store = operation_cost(COSTS, "list", "events", objects=3, from_etcd=True)
    check(bill.of("GET", f"{NAMESPACE}/events"), (round(from_store[0], 3), from_store[1]), nothing)


def test_what_is_refused_or_is_no_resource(bill: Bill) -> None:
    nothing = (0, 0)
    node = "system:node:n"
    check(bill.of("GET", f"{NAMESPACE}/secrets/s", user=node), (COSTS.forbidden_us, 0), nothing)
    check(bill.of("GET", f"{PODS}/p?resourceVersion=0"), (COSTS.forbidden_us, 0), nothing)
    check(bill.of("GET", "/version"), (COSTS.discovery_us, 0), nothing)
    check(bill.of("GET", "/nowhere"), (COSTS.discovery_us, 0), nothing)


WATCH = "watch=true&allowWatchBookmarks=true"
INITIAL = f"{WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"


@pytest.mark.parametrize("cores", [None, 2.0], ids=["no model", "two cores"])
def test_opening_watches(cores: float | None) -> None:
    bill = Bill(1, cores=cores)
    secrets = f"{NAMESPACE}/secrets"
    bill.of("POST", secrets, {"metadata": {"name": "s"}})
    for number in range(5):
        bill.of("POST", PODS, {**POD, "metadata": {"name": f"p{number}"}})
    opened = COSTS.watch_open_us
    _, cost = bill.watch(f"{secrets}?{INITIAL}&fieldSelector=metadata.name%3Ds")
    assert cost == (opened, COSTS.watch_open_etcd_us)
    stream, cost = bill.watch(f"{PODS}?{INITIAL}")
    assert cost == (opened + 4 * COSTS.watch_list_per_pod_us, COSTS.watch_open_etcd_us)
    assert len(stream.events) == 6
    _, cost = bill.watch(f"{PODS}?{WATCH}&resourceVersion=0&fieldSelector=spec.nodeName%3Dn")
    assert cost == (opened + 5 * COSTS.scan_per_object_us, 0)  # all are looked at, none sent
    revision = bill.server.core.revision
    _, cost = bill.watch(f"{PODS}?{WATCH}&resourceVersion={revision}")
    assert cost == (opened, 0)
    bill.server.close()


@pytest.mark.parametrize(
    ("http2", "event_us"), [(True, COSTS.watch_event_us), (False, COSTS.watch_event_http1_us)]
)
def test_an_event_costs_what_its_watcher_s_protocol_costs(single: Bill, http2: bool, event_us: float) -> None:
    configmaps = f"{NAMESPACE}/configmaps"
    streams = [single.watch(f"{configmaps}?{WATCH}", http2)[0] for _ in range(3)]
    single.server.settle(2.0)  # past the first tick, which would bring a bookmark with what is new
    costs = single.of("POST", configmaps, {"metadata": {"name": "c"}})
    assert costs == [(600 + 3 * event_us, 180)]
    assert all(stream.events[-1]["type"] == "ADDED" for stream in streams)
