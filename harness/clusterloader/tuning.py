"""Tuning sets: when each operation of a phase starts.

Mirrors clusterloader2/pkg/tuningset, with one difference: upstream sleeps between starts, so that every late start
shifts all later ones; here each operation is due at an absolute time, and how late it started is measured.
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple

from harness.clusterloader.schema import (
    GlobalQPSLoad,
    Load,
    ParallelismLimitedLoad,
    PoissonLoad,
    QPSLoad,
    RandomizedLoad,
    RandomizedTimeLimitedLoad,
    SteppedLoad,
    TimeLimitedLoad,
)


class Schedule(NamedTuple):
    """`due_s[i]` is the start of operation i, in seconds after the phase's; `length_s` is how long the phase lasts
    at least (upstream sleeps after the last operation too)."""

    due_s: list[float]
    length_s: float


def schedule(load: Load, count: int, rng: random.Random) -> Schedule | None:
    """The open-loop plan for `count` operations; None where starts depend on the run (parallelismLimitedLoad's on
    operations that end, globalQPSLoad's on other phases)."""
    if isinstance(load, (GlobalQPSLoad, ParallelismLimitedLoad)):
        return None
    if isinstance(load, QPSLoad):
        return Schedule([i / load.qps for i in range(count)], count / load.qps)
    if isinstance(load, TimeLimitedLoad):
        due = [i * load.time_limit / count for i in range(count)]
        return Schedule(due, float(load.time_limit) if count else 0.0)
    if isinstance(load, SteppedLoad):
        due = [i // load.burst_size * load.step_delay for i in range(count)]
        return Schedule(due, count // load.burst_size * load.step_delay)
    if isinstance(load, RandomizedTimeLimitedLoad):
        return Schedule([rng.random() * load.time_limit for _ in range(count)], 0.0)
    if isinstance(load, RandomizedLoad):
        gaps = [2 * rng.random() / load.average_qps for _ in range(count)]
        return _after(gaps, math.fsum(gaps))
    if isinstance(load, PoissonLoad):
        gaps = [rng.expovariate(load.expected_actions_per_second) for _ in range(count)]
        return _after(gaps, 0.0)  # upstream sleeps before an operation, so not after the last
    raise TypeError(f"no such load: {load!r}")


def _after(gaps: list[float], length_s: float) -> Schedule:
    """The first at once, each other one its predecessor's gap later."""
    due, at = [], 0.0
    for gap in gaps:
        due.append(at)
        at += gap
    return Schedule(due, length_s)
