"""harness.transport over TLS and HTTP/2 under gevent, in a child: CPU and memory of the client's process."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from benchmarks.child import in_child
from benchmarks.listener import listening
from benchmarks.measure import grown_kb
from benchmarks.registry import FEW, Line, Plan, benchmark
from harness.bench.table import AIM_EVENT_US
from harness.wire.request import Request, TransportError

_STREAMS = 35
GET_US = 40.0
_HEADERS = {
    "User-Agent": "kubelet/v1.36.2 (linux/amd64) kubernetes/abcdef0",
    "Impersonate-User": "system:node:n1",
    "Impersonate-Group": "system:nodes",
    "Authorization": "Bearer " + "t" * 32,
}


@benchmark("transport", FEW)
def transport(plan: Plan) -> Iterator[Line]:
    """GETs one after another and 10 at a time; 200 nodes with 35 watches each; events to all nodes at once, one for
    each, and events that come singly, to a process that slept."""
    arguments = {"gets": plan.count(3000), "nodes": plan.count(200), "events": plan.count(1000)}
    found: list[dict[str, float]] = []
    for _ in range(plan.repeats):
        with listening() as address:
            found.append(in_child(client_costs, port=address.port, ca=address.ca.decode(), **arguments))
    for name, unit, aim in (
        ("get, serial", "us", None),
        ("get, 10 in flight", "us", GET_US),
        ("open a watch", "us", None),
        ("event, one a connection", "us", None),
        ("sparse event", "us", AIM_EVENT_US),  # what a whole kubelet may take for it
        (f"connection with {_STREAMS} watches", "KB", None),
    ):
        yield Line(f"transport/{name}", unit, [each[name] for each in found], aim=aim)


def client_costs(port: int, ca: str, gets: int, nodes: int, events: int) -> dict[str, float]:
    """All figures of one client process. Runs in a child, for it brings in gevent."""
    return _Load(port, ca).run(gets, nodes, events)


class _Load:
    def __init__(self, port: int, ca: str) -> None:
        from gevent.event import Event  # only ever in a child

        from harness.transport.endpoints import Endpoint, Endpoints
        from harness.transport.pool import Transport
        from harness.transport.timers import Timers
        from harness.transport.tls import client_context

        rng, timers, context = Random(1), Timers(), client_context(ca.encode(), http="h2")
        endpoints = Endpoints([Endpoint("127.0.0.1", port, "m")], rng)
        self._timers = timers
        self._event = Event
        self._make: Callable[[], Any] = lambda: Transport(
            endpoints, context, timers, server_name="localhost", http="h2", headers=_HEADERS, rng=rng
        )
        self._one = self._make()
        self._nodes: list[Any] = []

    def run(self, gets: int, nodes: int, events: int) -> dict[str, float]:
        self._gets(max(10, gets // 10), 10)
        found = {"get, serial": self._gets(gets, 1), "get, 10 in flight": self._gets(gets, 10)}
        sink = _Sink(self._event())
        begun = _cpu_s()
        found[f"connection with {_STREAMS} watches"] = grown_kb(lambda n: self._open(n, sink), nodes)
        found["open a watch"] = (_cpu_s() - begun) / (len(self._nodes) * _STREAMS) * 1e6
        found["event, one a connection"] = self._rounds(max(1, events // len(self._nodes)), sink)
        found["sparse event"] = self._events(events, sink)
        for transport in (*self._nodes, self._one):
            transport.close()
        self._timers.close()
        return found

    def _open(self, nodes: int, sink: _Sink) -> list[Any]:
        """So many connections with their watches, each with its first event."""
        opened = [self._make() for _ in range(nodes)]
        self._nodes += opened
        sink.expect(nodes * _STREAMS)
        for transport in opened:
            for number in range(_STREAMS):
                path = f"/watch/api/v1/namespaces/ns{number}/secrets?fieldSelector=metadata.name%3Ds"
                transport.send(Request("watch", "GET", path, "secrets"), sink)
        sink.wait()
        return opened

    def _gets(self, count: int, in_flight: int) -> float:
        """CPU microseconds of a GET; each answer brings the next one."""
        request = Request("get", "GET", "/nodes/n1?resourceVersion=0", "nodes", timeout_s=10.0)
        left, unsent, done = count, count - in_flight, self._event()

        def answered(answer: object) -> None:
            nonlocal left, unsent
            assert not isinstance(answer, TransportError), answer
            left -= 1
            if unsent > 0:
                unsent -= 1
                self._one.unary(request, answered)
            if not left:
                done.set()

        begun = _cpu_s()
        for _ in range(min(in_flight, count)):
            self._one.unary(request, answered)
        done.wait(60)
        assert not left, f"{left} GETs of {count} were not answered within a minute"
        return (_cpu_s() - begun) / count * 1e6

    def _rounds(self, rounds: int, sink: _Sink) -> float:
        """CPU microseconds of an event, as many at a time as there are nodes, to one watch of each."""
        begun = _cpu_s()
        for _ in range(rounds):
            sink.expect(len(self._nodes))
            self._one.unary(Request("get", "GET", f"/every/{_STREAMS}", "every"), lambda answer: None)
            sink.wait()
        return (_cpu_s() - begun) / (rounds * len(self._nodes)) * 1e6

    def _events(self, count: int, sink: _Sink) -> float:
        sink.expect(count)
        begun = _cpu_s()
        self._one.unary(Request("get", "GET", f"/trickle/{count}", "trickle"), lambda answer: None)
        sink.wait()
        return (_cpu_s() - begun) / count * 1e6


class _Sink:
    """Counts events until as many have come as were expected."""

    def __init__(self, done: Any) -> None:
        self._done = done
        self._left = 0

    def expect(self, events: int) -> None:
        self._done.clear()
        self._left = events

    def wait(self) -> None:
        assert self._done.wait(60), f"{self._left} events are missing after a minute"

    def on_head(self, status: int, headers: dict[str, str], member: str) -> None:
        assert status == 200

    def on_data(self, data: bytes) -> None:
        self._left -= 1
        if not self._left:
            self._done.set()

    def on_end(self, error: TransportError | None) -> None: ...


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
