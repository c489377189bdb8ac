"""What an executor of a scenario pays for each operation: template, schedule, rate limiter, connection.

It is a child, over TLS and HTTP/2 to a whole member in another process. How late it starts operations on the real clock
is measured against a target that costs nothing: what is left is the executor's own, and the machine's.

`harness.clusterloader.shares.REQUESTS_PER_EXECUTOR` rests on these figures.
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import TYPE_CHECKING, Any

from benchmarks.child import in_child
from benchmarks.listener import listening
from benchmarks.registry import FEW, Line, Plan, benchmark
from benchmarks.suites.member import TOKEN
from harness.wire.request import Request

if TYPE_CHECKING:
    from harness.transport.pool import Transport
    from harness.transport.timers import Timers

_RATE = 400.0  # operations a second; a busier loop pays less for each
_CLIENTS = 100
_TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{.Name}}
  labels:
    group: {{.Group}}
data:
  color: {{.Color}}
  text: {{Concat .Group "/" .Name}}
"""


def _config(count: int) -> str:
    """Phases that create so many, patch them, delete them."""
    steps = "".join(
        f"- phases:\n  - {{namespaceRange: {{min: 1, max: 1, basename: ns}}, replicasPerNamespace: {replicas},\n"
        f"     tuningSet: pace, objectBundle: [{{basename: map, objectTemplatePath: map.yaml,\n"
        f"     templateFillMap: {{Group: g, Color: {color}}}}}]}}\n"
        for replicas, color in ((count, "red"), (count, "blue"), (0, "blue"))
    )
    return f"name: bench\ntuningSets: [{{name: pace, qpsLoad: {{qps: {_RATE}}}}}]\nsteps:\n{steps}"


@benchmark("executor/operations", FEW)
def operations(plan: Plan) -> Iterator[Line]:
    """Configmaps created, patched (a GET and a PATCH each) and deleted, 400 operations a second."""
    found: list[dict[str, float]] = []
    for _ in range(plan.repeats):
        with listening() as address:
            ca = address.ca.decode()
            found.append(in_child(executor_costs, port=address.port, ca=ca, count=plan.count(2000)))
    for name in ("create", "patch", "delete"):
        yield Line(f"executor/{name}", "us", [each[name] for each in found])


@benchmark("executor/lateness", FEW)
def late(plan: Plan) -> Iterator[Line]:
    """Configmaps created at 400 a second; the distance between each one's due time and its start."""
    found = [in_child(lateness, count=plan.count(1000)) for _ in range(plan.repeats)]
    for name in ("p50", "p99"):
        yield Line(f"executor/late {name}", "ms", [each[name] for each in found])


def lateness(count: int) -> dict[str, float]:
    """Quantiles of how late operations start, in ms. Runs in a child, for it brings in gevent."""
    with _config_of(count) as config:
        return _Executor(config, _free).late(count)


def executor_costs(port: int, ca: str, count: int) -> dict[str, float]:
    """CPU of this process for each operation. Runs in a child, for it brings in gevent."""
    with _config_of(count) as config:
        return _Executor(config, partial(_connected, port=port, ca=ca)).run(count)


@contextmanager
def _config_of(count: int) -> Iterator[Path]:
    """The file of a test whose phases create so many, patch them, delete them."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "map.yaml").write_text(_TEMPLATE)
        (Path(folder) / "config.yaml").write_text(_config(count))
        yield Path(folder) / "config.yaml"


def _connected(timers: Timers, port: int, ca: str) -> Transport:
    """To a member, over TLS and HTTP/2."""
    from harness.transport.endpoints import Endpoint, Endpoints
    from harness.transport.pool import Transport
    from harness.transport.tls import client_context

    rng, context = Random(1), client_context(ca.encode(), http="h2")
    endpoints = Endpoints([Endpoint("127.0.0.1", port, "m")], rng)
    headers = {"User-Agent": "clusterloader", "Authorization": f"Bearer {TOKEN}"}
    return Transport(endpoints, context, timers, server_name="localhost", http="h2", headers=headers, rng=rng)


class _Free:
    """A transport whose target answers at once, and takes nothing."""

    def send(self, _: Request, sink: Any) -> None:
        sink.on_head(201, {}, "m")
        sink.on_data(b"{}")
        sink.on_end(None)

    def close(self) -> None:
        pass


def _free(_: Timers) -> Any:
    return _Free()


class _Executor:
    """A follower under gevent, which is given its orders here."""

    def __init__(self, config: Path, connect: Callable[[Timers], Any]) -> None:
        from gevent.event import Event  # only ever in a child

        from harness.client.rest import Rest
        from harness.clusterloader import load_config
        from harness.clusterloader.follower import Follower
        from harness.load.shell import Shell
        from harness.load.statistics import Statistics
        from harness.transport.timers import Timers

        self._done = Event()
        self._timers = Timers()
        self._late_ms: list[float] = []
        self._config = load_config(config, 1)
        follower = Follower(self._config, _CLIENTS, (), Random(1), 0.0)
        statistics = Statistics(lambda **_: None)
        self._shell = Shell(
            "executor",
            Rest(follower, follower.limiters()),
            connect(self._timers),
            self._timers,
            statistics,
            self._noted,
            lambda _: None,
            self._failed,
        )
        self._error: Any = None

    def run(self, count: int) -> dict[str, float]:
        self._shell.start()
        namespace = b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns-1"}}'
        self._ask(namespace)
        found = {}
        for step, (name, there) in enumerate((("create", 0), ("patch", count), ("delete", count))):
            begun = _cpu_s()
            self._order(step, there, count)
            found[name] = (_cpu_s() - begun) / count * 1e6
        self._shell.stop()
        self._timers.close()
        return found

    def late(self, count: int) -> dict[str, float]:
        self._shell.start()
        self._order(0, 0, count)
        self._shell.stop()
        self._timers.close()
        assert len(self._late_ms) == count, len(self._late_ms)
        cuts = quantiles(self._late_ms, n=100, method="inclusive")
        return {"p50": cuts[49], "p99": cuts[98]}

    def _ask(self, body: bytes) -> None:
        from harness.wire.request import Request

        request = Request("create", "POST", "/api/v1/namespaces", "namespaces", body=body, timeout_s=10.0)
        self._done.clear()
        self._shell._transport.unary(request, lambda _: self._done.set())  # type: ignore[union-attr]
        self._done.wait(10)

    def _order(self, step: int, there: int, count: int) -> None:
        from harness.client.machine import Told
        from harness.clusterloader.messages import Order
        from harness.clusterloader.shares import digest

        order = Order(
            number=step,
            step=step,
            phase=0,
            digest=digest(self._config.steps[step].phases[0]),
            replicas=(("ns-1", there),),
            seed=1,
            start_s=self._timers.now(),
            share=0,
            of=1,
            executors=1,
        )
        self._done.clear()
        self._shell.feed(Told(("told",), "benchmark", order))
        self._done.wait(60 + count / _RATE)
        assert self._error is None, self._error
        assert self._done.is_set(), "the order did not end"

    def _noted(self, item: Any) -> None:
        from harness.client.machine import Sample, Tell

        if isinstance(item, Sample) and item.name == "operation_late_ms":
            self._late_ms.append(item.value)
        if isinstance(item, Tell) and item.message.ended:
            self._error = item.message.error or item.message.failures or None
            self._done.set()

    def _failed(self, error: Exception) -> None:
        self._error = error
        self._done.set()


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
