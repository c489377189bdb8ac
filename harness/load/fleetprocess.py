"""A fleet of kubelets in one Locust process without a master, told what to do by its parent: for `swarmlet bench`.

Locust runs as a library: its runner spawns the users as in any run, and its loop is the one whose lag is measured. The
first line of standard input is a `FleetConfig`; the second begins the spawning, the third says that it has ended, and
the end of the input ends the process. Each second a `FleetStatus` goes to standard output, the first when everything
is ready to spawn.
"""

from __future__ import annotations

import gc
import resource
import sys
from collections import Counter
from typing import Any

import gevent
import msgspec
from gevent import get_hub
from locust.env import Environment
from locust.runners import LocalRunner

from harness.client.machine import Note, Sample, Tell
from harness.load.context import WorkerContext
from harness.load.fleetstatus import FleetConfig, FleetStatus
from harness.load.looplag import LoopBlock
from harness.load.openfiles import raise_limit
from harness.load.users import KubeletUser

STATUS_EVERY_S = 1.0
GROW_EVERY_S = 0.2
AHEAD_S = 4.0  # of spawning: a kubelet has its node ready and its pod running 2 to 3 s after it began


class FleetKubelet(KubeletUser):
    """A node that counts what it says."""

    fleet: Fleet

    def noted(self, item: Note | Sample | Tell) -> None:
        if isinstance(item, Sample):
            self.fleet.running_pods += item.name == "pod_startup_ms"
        elif isinstance(item, Note):
            self.fleet.ready += item.kind == "kubelet-ready"
        super().noted(item)


class FleetRunner(LocalRunner):
    """Locust counts its users by class six times for each wave that it spawns, walking all of them: 10 ms of a block at
    5,000. Here they are of one class."""

    @property
    def user_classes_count(self) -> dict[str, int]:
        return {FleetKubelet.__name__: self.user_count}


class Fleet:
    """The process's Locust and what it counts."""

    def __init__(self, config: FleetConfig) -> None:
        self.ready = 0
        self.running_pods = 0
        self._answers: Counter[str] = Counter()
        self._failures: list[str] = []
        self._beats: Counter[str] = Counter()
        self._config = config
        FleetKubelet.fleet = self
        self._environment = _environment()
        self._runner = self._environment.runner = FleetRunner(self._environment)
        self._context = WorkerContext(config.plan, 0, self._environment.events.request.fire, self._tell)
        self._environment.swarmlet_context = self._context
        self._environment.events.spawning_complete.add_listener(lambda **_: self._context.heap.spawned())
        self._block = LoopBlock()

    def spawn(self) -> None:
        self._context.heap.begin()
        self._context.lag.start()
        gevent.spawn(self._block.run)
        gevent.spawn(self._grow)

    def _grow(self) -> None:
        """Spawn as fast as nodes come up, and at most at the rate: a machine that cannot keep up takes longer, and is
        not thrown into timeouts, retries and more of both."""
        rate, size, target = self._config.spawn_rate, self._config.plan.kubelets, 0
        ahead = max(10, round(AHEAD_S * rate))
        while target < size:
            wanted = min(size, min(self.ready, self.running_pods) + ahead)
            spawning = self._runner.spawning_greenlet
            if wanted > target and (spawning is None or spawning.ready()):
                target = wanted
                self._runner.start(target, rate)
            gevent.sleep(GROW_EVERY_S)

    def settled(self) -> None:
        """The whole fleet is there: the loop is no longer looked at."""
        self._block.over = True

    def status(self) -> FleetStatus:
        for row in self._context.statistics.take():
            _, _, verb, name, code, _, _, count = row
            self._answers[f"{code} {verb} {name}"] += count
        self._context.statistics.take_samples()
        self._beats.update(self._context.lag.take())
        return FleetStatus(
            spawned=self._runner.user_count,
            ready=self.ready,
            running_pods=self.running_pods,
            answers=dict(self._answers),
            failures=self._failures[:5],
            deliveries=self._context.statistics.deliveries.take(),
            blocked_ms=self._block.longest_s * 1e3,
            beats=self._beats["beats"],
            late=self._beats["late"],
            peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        )

    def _tell(self, kind: str, fields: dict[str, Any]) -> None:
        if kind == "user-failed":
            self._failures.append(str(fields["error"]))


def _environment() -> Any:
    """Locust annotates neither its events nor what others keep in it."""
    return Environment(user_classes=[FleetKubelet])


def main() -> None:
    raise_limit()
    config = msgspec.json.decode(sys.stdin.buffer.readline(), type=FleetConfig)
    fleet = Fleet(config)
    gc.collect()

    def report() -> None:
        while True:
            sys.stdout.buffer.write(msgspec.json.encode(fleet.status()) + b"\n")
            sys.stdout.buffer.flush()
            gevent.sleep(STATUS_EVERY_S)

    gevent.spawn(report)
    pool = get_hub().threadpool  # a thread: reading a pipe would block the loop
    if pool.apply(sys.stdin.buffer.readline):
        fleet.spawn()
        if pool.apply(sys.stdin.buffer.readline):
            fleet.settled()
        while pool.apply(sys.stdin.buffer.readline):
            pass


if __name__ == "__main__":
    main()
