"""How the operations of a test are divided among executors.

A replica of a bundle belongs to one executor for the whole test, by its namespace and index. (Not by basename: the
objects of a bundle are one operation, and a phase that names one of them alone meets the same executor.) What all
executors share is divided: clients' rate limits, the bucket of globalQPSLoad, the places of parallelismLimitedLoad.
"""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple
from zlib import crc32

import msgspec

from harness.client.limiter import TokenBucket
from harness.clusterloader.bundles import Bundle
from harness.clusterloader.config import Config
from harness.clusterloader.objects import CLIENT_BURST, CLIENT_QPS
from harness.clusterloader.plan import plan
from harness.clusterloader.schema import GlobalQPSLoad, Load, ParallelismLimitedLoad, Phase

REQUESTS_PER_EXECUTOR = 1000.0
"""Requests a second that one executor is given before another one is worth it. Each takes 0.2 to 0.3 ms of CPU
(benchmarks/suites/executor.py), so these are a quarter of a core: its worker has kubelets too, and a loop that is more
than half busy is late."""


class Share(NamedTuple):
    """Part `number` of `of`, from 0."""

    number: int = 0
    of: int = 1

    def has(self, bundle: Bundle) -> bool:
        return self.of == 1 or owner(bundle.namespace, bundle.replica, self.of) == self.number


def owner(namespace: str, replica: int, of: int) -> int:
    """Which of `of` executors does the operations on a replica's objects."""
    return crc32(f"{namespace}/{replica}".encode()) % of


def parts_of(load: Load, most: int) -> int:
    """How many executors a phase has use for: what a load shares among operations cannot be cut into nothings."""
    if isinstance(load, ParallelismLimitedLoad):
        return min(most, load.parallelism_limit)
    return min(most, load.burst) if isinstance(load, GlobalQPSLoad) else most


def part(load: Load, share: Share) -> Load:
    """The load of one share; those whose times are fixed beforehand are the same for all."""
    if isinstance(load, ParallelismLimitedLoad):
        return ParallelismLimitedLoad(parallelism_limit=_whole(load.parallelism_limit, share))
    if isinstance(load, GlobalQPSLoad):
        return GlobalQPSLoad(qps=load.qps / share.of, burst=_whole(load.burst, share))
    return load


def _whole(count: int, share: Share) -> int:
    return count // share.of + (share.number < count % share.of)


def limit_clients(limiters: dict[str, TokenBucket], of: int, now: float) -> None:
    """Give each client one executor's part of its rate limit."""
    for bucket in limiters.values():
        bucket.set_limit(CLIENT_QPS / of, max(1, CLIENT_BURST // of), now)


def executors_needed(config: Config) -> int:
    """So many that none has more than REQUESTS_PER_EXECUTOR in the busiest step, as the plan foresees it."""
    rates = [
        sum(phase.requests for phase in step.phases) / max(1.0, step.seconds) for step in plan(config).steps
    ]
    return max(1, math.ceil(max(rates, default=0.0) / REQUESTS_PER_EXECUTOR))


def seed_of(test_seed: int, step: int, phase: int) -> int:
    """What draws the schedule of a phase: the same for every executor, another for every phase."""
    return int.from_bytes(hashlib.sha256(f"{test_seed}/{step}/{phase}".encode()).digest()[:6], "big")


def digest(phase: Phase) -> str:
    """Two executors that read a phase alike have the same."""
    return hashlib.sha256(msgspec.json.encode(phase, enc_hook=str)).hexdigest()[:16]
