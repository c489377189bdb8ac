"""Ending an apiserver of a pool and starting it again, as a kubelet does with a static pod whose manifest goes and
comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from harness.pool.process import Process, ProcessFailed

GRACE_S = 30.0
"""From SIGTERM to SIGKILL: a pod's terminationGracePeriodSeconds."""


class RestartOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Start the member again `down_s` after it was told to end, or when it has ended, if that takes longer. It has
    failed when it is not ready `ready_timeout_s` after its start."""

    member: str
    down_s: float
    ready_timeout_s: float


def restart(
    order: RestartOrder,
    process: Process,
    start: Callable[[float], Process | None],
    over: threading.Event,
    say: Callable[[dict[str, Any]], None],
) -> None:
    """Carry an order out; blocks. `start(within_s)` gives the new process when it is ready, None where the pool has
    been stopped, which `over` tells; it raises ProcessFailed. What becomes of the member is said as events:
    ``member-ended`` with its exit code, then ``member-restarted`` with its pid, or ``member-restart-failed``."""
    began = time.monotonic()

    def tell(kind: str, **fields: object) -> None:
        seconds = time.monotonic() - began
        say({"kind": kind, "member": order.member, "seconds": seconds, **fields})

    tell("member-ended", code=process.end(GRACE_S))
    if over.wait(max(0.0, began + order.down_s - time.monotonic())):
        return
    try:
        started = start(order.ready_timeout_s)
    except ProcessFailed as error:
        tell("member-restart-failed", error=str(error))
        return
    if started is not None:
        tell("member-restarted", pid=started.pid)
