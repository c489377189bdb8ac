"""A crowd of informers that begin at once, against a member's process: over TLS and HTTP/2, without a model.

The client is what a run has (reflectors, checker, shell, transport under gevent) and competes with the member for this
machine's cores, so the time to sync is that of both. The member's CPU is its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from benchmarks.child import in_child
from benchmarks.pool import TOKEN, Pool, cpu_s, pool, request
from benchmarks.registry import Line, Plan, benchmark

INFORMERS, OBJECTS = 200, 10_000
_DATA_BYTES = 200
_NAMESPACE = "/api/v1/namespaces/crowd"
_WITHIN_S = 300.0
_SNAPSHOT_BYTES = 'swarmlet_watch_cache_snapshot_bytes{group="",resource="configmaps"}'


@benchmark("informers/sync", most=1)
def sync(plan: Plan) -> Iterator[Line]:
    """So many informers of so many configmaps, by watch-list and by list and watch, with snapshots and without."""
    informers, count = plan.count(INFORMERS), plan.count(OBJECTS)
    for snapshots in (True, False):
        gates = {"ListFromCacheSnapshot": snapshots}
        with pool(feature_gates=gates) as member:
            _fill(member, count)
            for mode in ("watch-list", "list"):
                found = _sync(member, mode, informers, count)
                how = f"informers/sync/{mode}, snapshots {'on' if snapshots else 'off'}"
                yield Line(f"{how}: median", "s", [found["median_s"]])
                yield Line(f"{how}: last", "s", [found["last_s"]])
                yield Line(f"{how}: member's CPU an object", "us", [found["member_us"]])
                yield Line(f"{how}: client's CPU an object", "us", [found["client_us"]])
                yield Line(f"{how}: member's memory", "MB", [found["member_mb"]])
            if snapshots:
                kept = _metric(member, _SNAPSHOT_BYTES) / 1e6
                yield Line("informers/sync/snapshots on: a real server's snapshots", "MB", [kept])


def _fill(member: Pool, count: int) -> None:
    member.admin.ask(request("POST", "/api/v1/namespaces", {"metadata": {"name": "crowd"}}))
    data = {"v": "x" * _DATA_BYTES}
    creations = [
        request("POST", f"{_NAMESPACE}/configmaps", {"metadata": {"name": f"o-{number:06d}"}, "data": data})
        for number in range(count)
    ]
    member.run(member.admins, creations)


def _sync(member: Pool, mode: str, informers: int, count: int) -> dict[str, float]:
    before = cpu_s(member.pid)
    found: dict[str, float] = in_child(
        client_costs, port=member.port, ca=member.ca.decode(), mode=mode, informers=informers, count=count
    )
    sent = informers * count
    found["member_us"] = (cpu_s(member.pid) - before) / sent * 1e6
    found["client_us"] = found.pop("client_s") / sent * 1e6
    found["member_mb"] = member.resident_bytes() / 1e6
    return found


def _metric(member: Pool, series: str) -> float:
    link = member.connect()  # the others may have been closed meanwhile, as idle ones are
    for line in link.ask(request("GET", "/metrics")).decode().splitlines():
        if line.startswith(series):
            return float(line.rpartition(" ")[2])
    return 0.0


def client_costs(port: int, ca: str, mode: str, informers: int, count: int) -> dict[str, float]:
    """One crowd, from its beginning to its last informer's whole state. Runs in a child, for it brings in gevent."""
    return _Crowd(port, ca, mode, informers).run(count)


class _Crowd:
    def __init__(self, port: int, ca: str, mode: str, informers: int) -> None:
        from random import Random

        from gevent.event import Event  # only ever in a child

        from harness.client.rest import Rest
        from harness.fleet.informers.checker import Checker
        from harness.fleet.informers.informer import Informer, informer_limiters
        from harness.fleet.informers.options import Crowd
        from harness.fleet.informers.tally import Tally
        from harness.load.shell import Shell
        from harness.load.statistics import Statistics
        from harness.transport.endpoints import Endpoint, Endpoints
        from harness.transport.pool import Transport
        from harness.transport.timers import Timers
        from harness.transport.tls import client_context

        rng, context = Random(1), client_context(ca.encode(), http="h2")
        endpoints = Endpoints([Endpoint("127.0.0.1", port, "m")], rng)
        crowd = Crowd(count=informers, mode=mode, namespace="crowd")  # type: ignore[arg-type]
        self._timers, self.checker, self._tally = Timers(), Checker(), Tally()
        self._informers, self._done = informers, Event()
        self._synced_ms: list[float] = []
        headers = {"Authorization": f"Bearer {TOKEN}", "User-Agent": "operator/v1"}

        def shell(number: int) -> Any:
            machine = Informer(f"i-{number}", crowd, self.checker, self._tally, Random(number))
            transport = Transport(
                endpoints, context, self._timers, server_name="localhost", http="h2", headers=headers, rng=rng
            )
            statistics = Statistics(lambda **_: None)
            rest = Rest(machine, informer_limiters(crowd))
            return Shell("i", rest, transport, self._timers, statistics, self._heard, print, self._failed)

        self._shells = [shell(number) for number in range(informers)]

    def _heard(self, item: Any) -> None:
        if getattr(item, "name", "") == "informer_sync_ms":
            self._synced_ms.append(item.value)
            if len(self._synced_ms) == self._informers:
                self._done.set()

    def _failed(self, error: Exception) -> None:
        raise error

    def run(self, count: int) -> dict[str, float]:
        begun, cpu = time.monotonic(), time.process_time()
        for shell in self._shells:
            shell.start()
        self._done.wait(_WITHIN_S)
        synced = sorted(self._synced_ms)
        assert len(synced) == self._informers, f"{len(synced)} of {self._informers} synced in {_WITHIN_S:g} s"
        assert self._tally.objects >= self._informers * count, f"only {self._tally.objects} objects"
        assert not self.checker.take()
        found = {
            "median_s": synced[len(synced) // 2] / 1e3,
            "last_s": time.monotonic() - begun,
            "client_s": time.process_time() - cpu,
        }
        for shell in self._shells:
            shell.stop()
        self._timers.close()
        return found
