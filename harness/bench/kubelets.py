"""``swarmlet bench kubelets``: a fleet at rest and under a trickle of events, measured from outside.

In order: an emulated pool without a capacity model; secrets, configmaps and bound pods; a Locust process that spawns
the fleet; when every pod runs and every watch is open, the first half of the duration at rest, the second with events.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from harness.bench.flames import Flames
from harness.bench.objects import (
    OWN_WATCHES,
    SHARE,
    base_objects,
    bound_pods,
    check_watches,
    mounted_objects,
    object_of,
)
from harness.bench.usage import Usage, of_process
from harness.bench.writer import Change, WriteFailed, Writer, counters, create_all
from harness.load.delivery import DeliveryJoin, machine_id
from harness.load.fleetstatus import FleetConfig, FleetStatus
from harness.load.openfiles import require_files
from harness.load.plan import Plan
from harness.load.target import of_pool
from harness.observe.histogram import Histogram
from harness.pool import folders
from harness.pool.emulated import EmulatedPool, PoolOptions
from harness.pool.process import Process
from harness.transport.kubeconfig import ClusterAccess, load_kubeconfig
from harness.wire.errors import ConfigError, SwarmletError

EVENTS_A_KUBELET = 0.2
"""Events a second for each kubelet in the second half: one in 5 s, so that hardly two ever come together."""
HARMLESS = ("404", "409")
"""Answers that a kubelet gets as it registers (registration races with what is there already)."""
LOOK_S = 0.5
SETTLES_S = 5.0  # the last pods' events and patches


class BenchFailed(SwarmletError):
    """The fleet did not come up, or not in time."""


@dataclass(frozen=True)
class BenchOptions:
    """`duration_s` is measured time, setting up comes before it and takes at most `setup_s`."""

    nodes: int = 500
    watches: int = 35
    members: int = 3
    duration_s: float = 120.0
    spawn_rate: float = 20.0
    setup_s: float = 900.0
    seed: int = 1

    def validate(self) -> None:
        """Raises ConfigError."""
        check_watches(self.watches)
        if self.nodes < 1 or not self.duration_s >= 10 or not self.spawn_rate > 0:
            raise ConfigError("--nodes must be at least 1, --duration at least 10 s, --rate above 0")
        require_files(self.nodes, "h2", "--nodes")


@dataclass
class Phase:
    """What each process used while it lasted."""

    name: str
    seconds: float
    used: dict[str, Usage]
    events: dict[str, float]


@dataclass
class Result:
    """`baseline` is the load process before its first kubelet, `opening_cpu_s` what it used from then until every watch
    was open; figures of phases are by process name."""

    options: BenchOptions
    baseline_bytes: int = 0
    setup_s: float = 0.0
    spawn_s: float = 0.0
    spawn_blocked_ms: float = 0.0
    opening_cpu_s: float = 0.0
    watches: dict[str, float] = field(default_factory=dict)
    phases: list[Phase] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    delivery: Histogram = field(default_factory=Histogram)
    unmatched: int = 0

    @property
    def errors(self) -> dict[str, int]:
        """What was answered by an error, or not at all (0), by "CODE verb name"."""
        return bad_answers(self.answers)

    @property
    def memory_a_kubelet_kb(self) -> float:
        rss = max(phase.used["load"].rss_bytes for phase in self.phases)
        return (rss - self.baseline_bytes) / self.options.nodes / 1024

    @property
    def rest_cpu_ms(self) -> float:
        """Of the load process at rest, for each kubelet and second."""
        rest = self.phases[0]
        return rest.used["load"].cpu_s * 1e3 / rest.seconds / self.options.nodes

    @property
    def event_cpu_us(self) -> float | None:
        """What each event cost more than rest; None where there were too few."""
        rest, busy = self.phases
        events = sum(busy.events.values()) - sum(rest.events.values()) * busy.seconds / rest.seconds
        more_s = busy.used["load"].cpu_s - rest.used["load"].cpu_s * busy.seconds / rest.seconds
        return more_s / events * 1e6 if events > 100 else None


class Bench:
    """One run; `tell` hears in a line what is going on, `flames` draws what processes do while they are measured."""

    def __init__(
        self, options: BenchOptions, tell: Callable[[str], object], flames: Flames | None = None
    ) -> None:
        options.validate()
        self._flames = flames
        self._options = options
        self._tell = tell
        self._result = Result(options)
        self._status = FleetStatus()
        self._join = DeliveryJoin(time.monotonic)
        self._exited: list[str] = []
        self._generation = 0

    def run(self) -> Result:
        """Blocks; every process has ended when it returns. Raises SwarmletError where there is nothing to measure."""
        deadline = time.monotonic() + self._options.setup_s
        with TemporaryDirectory(prefix=folders.prefix()) as folder:
            pool = self._pool(Path(folder))
            pool.start()
            try:
                self._with_pool(pool, Path(folder), deadline)
            finally:
                pool.stop()
        return self._result

    def _pool(self, logs: Path) -> EmulatedPool:
        options = self._options
        pool = PoolOptions(
            members=options.members, nodes=options.nodes, cores="host", seed=options.seed, logs=str(logs)
        )
        return EmulatedPool(pool, lambda event: self._exited.append(f"{event.get('process')} ended unasked"))

    def _with_pool(self, pool: EmulatedPool, folder: Path, deadline: float) -> None:
        options, result = self._options, self._result
        described = pool.describe()
        self._writers = [self._writer(load_kubeconfig(pool.kubeconfig, name)) for name in pool.options.names]
        self._pids = {member.name: member.pid for member in pool.members}
        if described["store_pid"]:
            self._pids["store"] = described["store_pid"]
        began = time.monotonic()
        self._tell(f"creating the secrets, configmaps and pods of {options.nodes} nodes")
        self._create(pool, deadline)
        result.setup_s = time.monotonic() - began
        plan = Plan(
            seed=options.seed,
            kubelets=options.nodes,
            target=of_pool(described),
            http="h2",
            fleet={"events": False},
        )
        config = FleetConfig(plan, options.spawn_rate)
        process = Process(
            "load",
            "harness.load.fleetprocess",
            config,
            folder / "load.log",
            on_message=self._heard,
            on_exit=lambda _, code: self._exited.append(f"the load process ended with exit code {code}"),
        )
        try:
            process.wait_ready()
            self._pids["load"] = process.pid
            baseline = of_process(process.pid)
            result.baseline_bytes = baseline.rss_bytes
            process.send({"do": "spawn"})
            self._await_fleet(deadline)
            result.opening_cpu_s = (of_process(process.pid) - baseline).cpu_s
            process.send({"do": "settle"})
            time.sleep(SETTLES_S)
            self._measure("at rest", options.duration_s / 2, lambda: None)
            self._measure("events", options.duration_s / 2, self._change)
            self._close_books()
        finally:
            if self._flames is not None:
                self._flames.stop()
            process.stop()
            for writer in self._writers:
                writer.close()

    # ---- setting up ------------------------------------------------------------------------------------------------
    @staticmethod
    def _writer(access: ClusterAccess) -> Writer:
        return Writer(access.host, access.port, access.ssl_context("http/1.1"), access.token)

    def _create(self, pool: EmulatedPool, deadline: float) -> None:
        for path, body in base_objects():
            status, answer = self._writers[0].call("POST", path, body)
            if status not in (201, 409):
                raise WriteFailed(f"POST {path}: {status} {answer[:200].decode('utf-8', 'replace')}")
        accesses = [load_kubeconfig(pool.kubeconfig, name) for name in pool.options.names]

        def make(number: int) -> Writer:
            return self._writer(accesses[number % len(accesses)])

        nodes, watches = self._options.nodes, self._options.watches
        create_all(make, mounted_objects(nodes, watches), deadline)
        create_all(make, bound_pods(nodes, watches), deadline)

    def _await_fleet(self, deadline: float) -> None:
        """Until every pod runs and every watch is open."""
        nodes, began, told = self._options.nodes, time.monotonic(), 0.0
        pods = sum(1 for _ in bound_pods(1, self._options.watches)) * nodes
        while True:
            self._check()
            status, now = self._status, time.monotonic()
            if status.spawned == nodes and not self._result.spawn_s:
                self._result.spawn_s = now - began
            if status.ready >= nodes and status.running_pods >= pods:
                self._result.watches = self._count("watches")
                if sum(self._result.watches.values()) >= nodes * self._options.watches:
                    break
            if now > deadline:
                raise BenchFailed(
                    f"not up within {self._options.setup_s:g} s: {status.spawned} of {nodes} kubelets spawned, "
                    f"{status.ready} ready, {status.running_pods} of {pods} pods running, "
                    f"{sum(self._count('watches').values()):.0f} watches; errors: {self._errors()}"
                )
            if now - told > 10:
                told = now
                self._tell(
                    f"{status.spawned} kubelets spawned, {status.ready} ready, {status.running_pods} of {pods} pods run"
                )
            time.sleep(LOOK_S)
        self._result.spawn_blocked_ms = self._status.blocked_ms
        self._tell(f"all up: {sum(self._result.watches.values()):.0f} watches")

    # ---- measuring -------------------------------------------------------------------------------------------------
    def _measure(self, name: str, seconds: float, act: Callable[[], object]) -> None:
        self._tell(f"measuring {seconds:g} s: {name}")
        rng = random.Random(self._options.seed)
        before, events = self._usage(), self._count("events")
        if self._flames is not None:
            self._flames.start(name, seconds, self._pids)
        began = time.monotonic()
        every_s = SHARE / (EVENTS_A_KUBELET * max(self._options.nodes, SHARE))
        due = began
        while (now := time.monotonic()) < began + seconds:
            self._check()
            act()
            due = max(due + every_s * (0.5 + rng.random()), now)
            time.sleep(max(0.0, min(due, began + seconds) - time.monotonic()))
        took = time.monotonic() - began
        after = self._usage()
        used = {process: after[process] - before[process] for process in after}
        sent = {member: count - events[member] for member, count in self._count("events").items()}
        self._result.phases.append(Phase(name, took, used, sent))
        if self._flames is not None:
            for path in self._flames.finish():
                self._tell(f"wrote {path}")

    def _change(self) -> None:
        """One of the mounted objects changes: an event to each node of its group."""
        options = self._options
        self._generation += 1
        group = self._generation % -(-options.nodes // SHARE)
        number = self._generation // -(-options.nodes // SHARE) % max(1, options.watches - OWN_WATCHES)
        change = Change(
            self._writers[self._generation % len(self._writers)], self._generation, *object_of(group, number)
        )
        self._join.take(
            {"machine": machine_id(), "at": 0.0, "writes": [change.note], "seen": [], "dropped": 0}
        )

    def _close_books(self) -> None:
        time.sleep(2.5)  # the last two statuses
        self._check()
        for _, _, name, _, bucket, count in self._join.rows(time.time(), last=True):
            if name == "watch_delivery_ms":
                self._result.delivery.counts[bucket] = self._result.delivery.counts.get(bucket, 0) + count
        self._result.unmatched = self._join.counts().get("unmatched", 0)
        self._result.answers = dict(self._status.answers)
        self._result.failures = [*self._status.failures, *self._exited]

    def _usage(self) -> dict[str, Usage]:
        return {name: of_process(pid) for name, pid in self._pids.items()}

    def _count(self, what: str) -> dict[str, float]:
        names = [name for name in self._pids if name.startswith("member")]
        return {name: counters(writer)[what] for name, writer in zip(names, self._writers, strict=True)}

    def _heard(self, message: dict[str, Any]) -> None:
        self._status = msgspec.convert(message, FleetStatus)
        self._join.take(self._status.deliveries)

    def _check(self) -> None:
        if self._exited:
            raise BenchFailed("; ".join(self._exited))
        if self._status.failures:
            raise BenchFailed(f"a kubelet failed: {self._status.failures[0]}")

    def _errors(self) -> str:
        return (
            ", ".join(f"{count} x {what}" for what, count in bad_answers(self._status.answers).items())
            or "none"
        )


def bad_answers(answers: Mapping[str, int]) -> dict[str, int]:
    """Of counts by "CODE verb name" those that are no success, and not what registering always brings."""
    return {
        what: count
        for what, count in sorted(answers.items())
        if not what.startswith("2") and what.partition(" ")[0] not in HARMLESS
    }
