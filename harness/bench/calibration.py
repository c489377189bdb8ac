"""``swarmlet bench --save``: what kubelets cost on this machine, for ``swarmlet plan``.

Two fleets of the same size, one whose kubelets hold the fewest watches that there can be and one with as many as are
asked for: what a watch costs is the difference.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from statistics import median

from harness.bench.kubelets import Bench, BenchOptions, Result
from harness.bench.objects import OWN_WATCHES
from harness.sizing.calibration import Calibration, Point
from harness.wire.errors import ConfigError, SwarmletError

SPAWN_RATE = 100.0
"""A fleet of some hundreds is there in seconds; what it costs does not depend on it."""

FEWEST = OWN_WATCHES + 1
"""One object is mounted, so that there is something that can change."""

BUSY = "429"
"""A member that is asked for everything at once turns some away, who come again: no fault of the fleet's."""


class NotCalibrated(SwarmletError):
    """The fleet was not one to measure by."""


def options_of(nodes: int, watches: int, duration_s: float) -> list[BenchOptions]:
    """Of both fleets. Raises ConfigError."""
    if watches <= FEWEST:
        raise ConfigError(f"--watches {watches}: more than {FEWEST} are needed to tell what a watch costs")
    both = [
        BenchOptions(nodes, held, members=1, duration_s=duration_s, spawn_rate=SPAWN_RATE)
        for held in (FEWEST, watches)
    ]
    for options in both:
        options.validate()
    return both


def calibrate(both: list[BenchOptions], tell: Callable[[str], object]) -> Calibration:
    """Blocks for two benchmarks. Raises SwarmletError where one had errors or did not come up."""
    results = []
    for options in both:
        tell(f"{options.nodes} kubelets with {options.watches} watches")
        results.append(Bench(options, tell).run())
    last = both[-1]
    return calibration_of(results, f"swarmlet bench --save --nodes {last.nodes} --watches {last.watches}")


def calibration_of(results: list[Result], origin: str) -> Calibration:
    """Of fleets with different numbers of watches, fewest first. Raises NotCalibrated where one had errors, or too few
    events to price one."""
    for result in results:
        problems = [f"{count} x {what}" for what, count in result.errors.items() if not what.startswith(BUSY)]
        problems += result.failures
        if problems:
            raise NotCalibrated(f"{result.options.watches} watches: not without errors: {problems[0]}")
    event_us = results[-1].event_cpu_us
    if event_us is None:
        raise NotCalibrated("too few events to tell what one costs; --duration or --nodes must be larger")
    return Calibration(
        date=time.strftime("%Y-%m-%d"),
        machine={
            "cores": os.cpu_count() or 1,
            "architecture": platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
        },
        origin=origin,
        baseline_bytes=int(median(result.baseline_bytes for result in results)),
        event_cpu_us=round(max(event_us, 1.0), 1),
        points=tuple(_point(result) for result in results),
    )


def _point(result: Result) -> Point:
    return Point(
        watches=result.options.watches,
        kubelets=result.options.nodes,
        kubelet_bytes=round(result.memory_a_kubelet_kb * 1024),
        rest_cpu_ms=round(result.rest_cpu_ms, 4),
        opening_cpu_s=round(result.opening_cpu_s / result.options.nodes, 4),
    )
