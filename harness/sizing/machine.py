"""What this machine has."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from harness.load.openfiles import hard_limit
from harness.sizing.fleet import Machine

PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
USUAL_PORTS = 28_232
"""Linux's range, 32768 to 60999."""


def this_machine(cores: float | None = None, memory_bytes: int | None = None) -> Machine:
    """Of what is given that, of the rest what is here: memory that is free now, cores that this process may use."""
    return Machine(
        cores=_cores() if cores is None else cores,
        memory_bytes=psutil.virtual_memory().available if memory_bytes is None else memory_bytes,
        files=hard_limit(),
        ports=port_range(PORT_RANGE),
    )


def port_range(path: Path) -> int:
    """How many ephemeral ports there are; Linux's usual number where that cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        low, high = map(int, path.read_text("ascii").split())
        return high - low + 1
    return USUAL_PORTS


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_a_pod() -> Machine:
    """What a worker's pod may be expected to have; its node is not known."""
    return Machine(cores=1, memory_bytes=1 << 40, files=None, ports=USUAL_PORTS)
