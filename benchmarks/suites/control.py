"""What each request passes in the emulated apiserver: flow control, authorization, the modelled host, metrics."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from benchmarks.measure import Make, Work, calls, cpu_us
from benchmarks.objects import encode, stored_pod
from benchmarks.registry import Line, Plan, benchmark
from harness.apiserver.auth.authentication import UserInfo
from harness.apiserver.auth.nodeauthorizer import NodeAuthorizer
from harness.apiserver.clock import VirtualClock
from harness.apiserver.flowcontrol import FlowController, Ticket
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import Host
from harness.apiserver.model.costs import Costs
from harness.wire.paths import RequestInfo, parse_path

_NODES = 1000
_PODS_OF_NODE = 10
_PATH = "/api/v1/namespaces/default/secrets/s"


def _user(number: int) -> UserInfo:
    return UserInfo(f"system:node:n{number}", ("system:nodes", "system:authenticated"))


@benchmark("flowcontrol/admit")
def admit(plan: Plan) -> Iterator[Line]:
    """Admitted at once, executed, finished."""
    clock = VirtualClock()
    flow = FlowController(clock, Metrics())
    users = [_user(number) for number in range(_NODES)]
    for name, method, path in (
        ("get", "GET", _PATH + "1"),
        ("patch", "PATCH", "/api/v1/namespaces/default/pods/p/status"),
    ):
        info = parse_path(path, method)

        def make(n: int, info: RequestInfo = info) -> Work:
            def work() -> None:
                for number in range(n):
                    ticket = flow.admit(users[number % _NODES], info).result()
                    assert isinstance(ticket, Ticket)
                    ticket.finish()
                    if number % 50 == 49:  # a write holds its seat for some milliseconds
                        clock.advance(0.02)

            return work

        yield Line(f"flowcontrol/admit+finish/{name}", "us", cpu_us(plan, 4000, make))


@benchmark("nodeauthorizer/authorize")
def authorize(plan: Plan) -> Iterator[Line]:
    """GET of a secret by a node, with 10 pods on each of 1,000 nodes."""
    clock = VirtualClock()
    authorizer = NodeAuthorizer(clock, Host(clock, None, Costs()), Random(1), Metrics())
    nodes = plan.count(_NODES)
    for number in range(nodes * _PODS_OF_NODE):
        body = encode(stored_pod(f"p{number}", f"n{number % nodes}", mounts=f"s{number % 200}"))
        authorizer.informer.on_pod("ADDED", body)
    clock.advance(60.0)
    users = [_user(number) for number in range(nodes)]
    infos = [parse_path(f"{_PATH}{number % 200}") for number in range(nodes)]

    def make(shift: int) -> Make:
        def prepared(n: int) -> Work:
            def work() -> None:
                for number in range(n):
                    authorizer.authorize(users[(number + shift) % nodes], infos[number % nodes])

            return work

        return prepared

    assert authorizer.authorize(users[0], infos[0]) is None
    yield Line("nodeauthorizer/authorize/allowed", "us", cpu_us(plan, 20_000, make(0)))
    yield Line("nodeauthorizer/authorize/denied", "us", cpu_us(plan, 10_000, make(1)))


@benchmark("host/job")
def job(plan: Plan) -> Iterator[Line]:
    clock = VirtualClock()
    host = Host(clock, 8.0, Costs())

    def wait() -> None:
        host.work(100.0)
        clock.advance(0.0007)

    yield Line("host/job", "us", cpu_us(plan, 20_000, calls(wait)))


@benchmark("metrics")
def metrics(plan: Plan) -> Iterator[Line]:
    """Of a member that has seen 60 kinds of request; the render is what each scrape costs."""
    families = Metrics()
    labels = [("GET", "", "", "v1", f"r{number}", "", "namespace", "apiserver") for number in range(60)]
    counters = [families.apiserver_request_total.labels(*each, "200") for each in labels]
    histograms = [families.apiserver_request_duration_seconds.labels(*each) for each in labels]
    for counter, histogram in zip(counters, histograms, strict=True):
        counter.inc()
        histogram.observe(0.01)
    yield Line("metrics/inc", "us", cpu_us(plan, 100_000, calls(counters[0].inc)))
    observe = cpu_us(plan, 50_000, calls(lambda: histograms[0].observe(0.01)))
    yield Line("metrics/observe", "us", observe)
    rendered = cpu_us(plan, 50, calls(families.render))
    yield Line("metrics/render", "ms", [value / 1000 for value in rendered])
