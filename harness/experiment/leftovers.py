"""Whether a host is fit for the next sample: nothing of the last one is left, and nothing else is at work."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.compare.guard import LOAD_PER_CORE
from harness.observe.record import Manifest
from harness.pool.folders import is_ours
from harness.wire.errors import SwarmletError

GONE_WITHIN_S = 30.0
"""As long as a run is given to end (`locustrun.ENDS_WITHIN_S`)."""
_STARTED_BEFORE_S = 60.0  # members are started before the record has their run's beginning
_POLL_S = 1.0


@dataclass(frozen=True)
class Host:
    """What is asked of this machine, so that tests can answer instead."""

    load_average: Callable[[], float] = lambda: os.getloadavg()[0]
    cores: int = os.cpu_count() or 1
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def await_true(self, fulfilled: Callable[[], bool], within_s: float) -> bool:
        """False where it was not fulfilled within `within_s`."""
        ends = self.clock() + within_s
        while not fulfilled():
            if self.clock() >= ends:
                return False
            self.sleep(min(_POLL_S, max(0.0, ends - self.clock())))
        return True

    def calm(self) -> bool:
        """Below what the guard takes for a busy host."""
        return self.load_average() / self.cores <= LOAD_PER_CORE


def await_fit(last: Manifest | None, cool_down_s: float, host: Host, tell: Callable[[str], None]) -> None:
    """Wait until nothing of the run `last` is left, and up to `cool_down_s` for the host to be calm; if it is not, go
    on: the guard will say so. Raises SwarmletError where something is left."""
    if last is not None:
        if not host.await_true(lambda: not list(leftovers(last)), GONE_WITHIN_S):
            raise SwarmletError(
                f"left of {last.name} after {GONE_WITHIN_S:g} s: {'; '.join(leftovers(last))}; end it first"
            )
        for folder in left_folders(last):
            tell(f"left of {last.name}, harmless: {folder}")
    if cool_down_s and not host.await_true(host.calm, cool_down_s):
        tell(
            f"load average {host.load_average():.2f} on {host.cores} cores after {cool_down_s:g} s; going on"
        )


def leftovers(last: Manifest) -> Iterator[str]:
    """Processes and ports of a run's own pool that are still there, in words."""
    processes = {"locust": last.pid}
    own = last.target.get("backend") in ("emulated", "binaries")
    if own:
        processes.update({str(m["name"]): m.get("pid", 0) for m in last.target.get("members", ())})
        processes["store"] = last.target.get("store_pid", 0)
        processes.update(last.target.get("processes", {}))
    for name, pid in processes.items():
        if pid and _of_run(pid, last):
            yield f"process {pid} ({name})"
    if own:
        for member in last.target.get("members", ()):
            if _listens(str(member.get("host", "")), int(member.get("port", 0))):
                yield f"port {member['port']} ({member['name']})"


def _of_run(pid: int, last: Manifest) -> bool:
    """Whether the process is the run's: numbers are used again, so it must have begun while the run went on."""
    try:
        process = psutil.Process(pid)
        began = process.create_time()
        alive = process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
    ended = time.time() if last.ended is None else last.pace.real_stamp(last.ended)
    return alive and last.started - _STARTED_BEFORE_S <= began <= ended


def _listens(host: str, port: int) -> bool:
    if not host or not port:
        return False
    try:
        socket.create_connection((host, port), 1.0).close()
    except OSError:
        return False
    return True


def left_folders(last: Manifest) -> Iterator[Path]:
    """The folder with a pool's sockets and keys, which is removed with it."""
    kubeconfig = Path(str(last.target.get("kubeconfig") or "/"))
    folder = kubeconfig.parent
    if is_ours(folder) and folder.exists():
        yield folder
