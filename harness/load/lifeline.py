"""Processes that end when the process they belong to does.

Locust's ``--processes`` forks workers that notice a lost master only after 60 s without its heartbeat
(locust/runners.py, MASTER_HEARTBEAT_TIMEOUT), or after 5 minutes where they never reached it; all that time they load
the target. A fork that we were told of ends with its parent, whatever it is doing: a thread of its own looks once in a
while whether that parent is still there.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

from gevent.monkey import get_original

LOOK_EVERY_S = 0.5
WORKER_ENDS_WITHIN_S = 5.0
RUN_ENDS_WITHIN_S = 25.0
"""It has a pool to stop and a record to complete; an experiment waits 30 s for its end."""
PARENT_VARIABLE = "SWARMLET_PARENT"
"""The process id of a command that started Locust and whose end is to be ours."""

# A thread, and one that gevent knows nothing of: it must run whatever the event loop is doing, or before there is one.
_start_thread: Callable[..., Any] = get_original("_thread", "start_new_thread")
_sleep: Callable[[float], None] = get_original("time", "sleep")


class Lifeline:
    """From `tie` to `untie`, each fork of this process ends when this process is gone."""

    def __init__(self) -> None:
        self._tied = False
        self._parent = 0

    def tie(self) -> None:
        """Once in a process's life: what was registered with `os` cannot be taken back."""
        self._tied = True
        os.register_at_fork(before=self._before, after_in_child=self._in_child)

    def untie(self) -> None:
        """Before subprocesses are started: gevent forks for these too (gevent/subprocess.py, _execute_child)."""
        self._tied = False

    def _before(self) -> None:
        self._parent = os.getpid()

    def _in_child(self) -> None:
        if self._tied:
            end_with(self._parent, WORKER_ENDS_WITHIN_S)


def end_with(parent: int, within_s: float) -> None:
    """Have this process end (SIGTERM; SIGKILL `within_s` later) when `parent` is no longer its parent."""
    _start_thread(_watch, (parent, within_s))


def _watch(parent: int, within_s: float) -> None:
    while os.getppid() == parent:
        _sleep(LOOK_EVERY_S)
    os.kill(os.getpid(), signal.SIGTERM)
    _sleep(within_s)
    os.kill(os.getpid(), signal.SIGKILL)


def end_with_command() -> None:
    """Have this process end with the command that started it, where one said so in `PARENT_VARIABLE`."""
    parent = os.environ.get(PARENT_VARIABLE, "")
    if parent.isdigit() and int(parent) == os.getppid():
        end_with(int(parent), RUN_ENDS_WITHIN_S)
