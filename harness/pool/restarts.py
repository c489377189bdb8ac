"""Ending a process of a pool and starting it again, as a kubelet does with a static pod whose manifest goes and comes
back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import msgspec

from harness.pool.process import Process, ProcessFailed
from harness.wire.errors import ConfigError
from harness.wire.pace import REAL, Pace

GRACE_S = 30.0
"""From SIGTERM to SIGKILL: a pod's terminationGracePeriodSeconds."""

NOTICED_S = 1.0
"""How soon a kubelet sees that a container has ended: it looks each second."""
_FIRST_S, _LONGEST_S = 10.0, 300.0

Start = Callable[[float], Process | None]
"""Another process in the place of one that has ended, ready within so many seconds; None where the pool has been
stopped. Blocks. Raises ProcessFailed or ConfigError."""


class RestartOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="restart"):
    """Start the member again `down_s` after it was told to end, or when it has ended, if that takes longer; None: not
    before somebody says so. It has failed when it is not ready `ready_timeout_s` after its start."""

    member: str
    down_s: float | None
    ready_timeout_s: float


class Part(NamedTuple):
    """A process of a pool, and how there is another in its place; `start` None: nothing would be left."""

    process: Process
    start: Start | None


class CrashLoopBackOff:
    """How long processes that end unasked wait for their next start, as a kubelet has its containers wait
    (kk/pkg/kubelet/kuberuntime doBackOff): the first time not at all, then 10 s, twice as long each time up to 5
    minutes; one that ended more than 10 minutes after its last restart begins anew."""

    def __init__(self) -> None:
        self._next_s: dict[str, float] = {}
        self._restarted_at: dict[str, float] = {}

    def ended(self, process: str, now: float) -> float:
        """Seconds from this end of it to its restart."""
        delay_s = self._next_s.get(process, 0.0)
        if now - self._restarted_at.get(process, now) > 2 * _LONGEST_S:
            delay_s = 0.0
        self._next_s[process] = min(max(_FIRST_S, 2 * delay_s), _LONGEST_S)
        delay_s = max(NOTICED_S, delay_s)
        self._restarted_at[process] = now + delay_s
        return delay_s


class Over(Protocol):
    """As a threading.Event."""

    def wait(self, timeout: float | None = None) -> bool:
        """Whether nothing shall be started any more."""
        ...


def end_in_order(process: Process, grace_s: float) -> int:
    """As a kubelet ends a static pod; the exit code."""
    return process.end(grace_s)


def kill(process: Process, _grace_s: float) -> int:
    """Without a word before; the exit code."""
    return process.kill()


def restart(
    order: RestartOrder,
    process: Process,
    start: Start,
    over: Over,
    say: Callable[[dict[str, Any]], None],
    *,
    end: Callable[[Process, float], int] = end_in_order,
    pace: Pace = REAL,
) -> str:
    """Carry an order out; blocks. What becomes of the member is said as events: ``member-ended`` with its exit code,
    then ``member-restarted`` with its pid, or ``member-restart-failed``. Why it failed, "" where it did not. `end` is
    given the process and its seconds of grace; all other times are the model's, at `pace`."""
    clock = pace.seconds(time.monotonic)
    began = clock()

    def tell(kind: str, **fields: object) -> None:
        seconds = clock() - began
        say({"kind": kind, "member": order.member, "seconds": seconds, **fields})

    tell("member-ended", code=end(process, pace.real_s(GRACE_S)))
    if over.wait(None if order.down_s is None else max(0.0, pace.real_s(began + order.down_s - clock()))):
        return ""
    try:
        started = start(pace.real_s(order.ready_timeout_s))
    except (ProcessFailed, ConfigError) as error:
        tell("member-restart-failed", error=str(error))
        return str(error)
    if started is not None:
        tell("member-restarted", pid=started.program_pid)
    return ""
