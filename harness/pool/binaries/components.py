"""kube-scheduler and kube-controller-manager: one of each beside every member, as on every master; one of a kind leads.

One that ends, as they do when they lose their lease, is started again: a kubelet does so with a static pod.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from harness.pool.backend import MemberAddress, OnEvent, wait_until_ready
from harness.pool.binaries.finding import CONTROLLER_MANAGER, SCHEDULER
from harness.pool.binaries.flags import OF_CONTROLLER_MANAGER, OF_SCHEDULER, Component, command_line
from harness.pool.binaries.keys import Keys, component_kubeconfig
from harness.pool.binaries.options import BinariesOptions
from harness.pool.guardian import Guarded
from harness.pool.ports import HOST, free_ports
from harness.pool.process import Process, ProcessFailed, stop_all
from harness.pool.restarts import CrashLoopBackOff

READY_WITHIN_S = 30.0


class _Planned(msgspec.Struct, frozen=True):
    """One component: where it says how it is, and its command line."""

    name: str
    port: int
    argv: list[str]


class Components:
    """`binaries` are paths by the component's name, of those that there are. `on_event` hears ``component-ended`` with
    `process` and `code` of one that ends unasked, and ``component-restarted`` with `process` and `pid`."""

    def __init__(
        self,
        binaries: Mapping[str, str],
        options: BinariesOptions,
        signing_duration_s: float,
        feature_gates: Mapping[str, bool],
        on_event: OnEvent,
    ) -> None:
        self._binaries = binaries
        self._options = options
        self._signing_duration_s = signing_duration_s
        self._gates = feature_gates
        self._on_event = on_event
        self._logs = Path()
        self._planned: dict[str, _Planned] = {}
        self._processes: dict[str, Process] = {}
        self._ending = threading.Event()
        self._back_off = CrashLoopBackOff()
        self._lock = threading.Lock()  # between an end and a new beginning

    @property
    def pids(self) -> dict[str, int]:
        return {name: process.program_pid for name, process in self._processes.items()}

    @property
    def command_lines(self) -> dict[str, list[str]]:
        return {name: planned.argv for name, planned in self._planned.items()}

    def start(self, members: Sequence[MemberAddress], keys: Keys, folder: Path, logs: Path) -> None:
        """Blocks until each says that it is well. Raises ConfigError or ProcessFailed; `stop` is due even then."""
        self._logs = logs
        ports = iter(free_ports(len(members) * len(self._binaries)))
        for index, member in enumerate(members):
            for component, path in self._binaries.items():
                planned = self._plan(component, path, index, member, next(ports), keys, folder)
                self._planned[planned.name] = planned
        for planned in self._planned.values():
            self._launch(planned)
        for planned in self._planned.values():
            process = self._processes[planned.name]
            process.wait_ready()
            at = MemberAddress(planned.name, HOST, planned.port, process.program_pid)
            wait_until_ready(at, keys.serving.ca, READY_WITHIN_S, path="/healthz", ended=process.how_it_ended)

    def stop(self) -> None:
        """Safe to call twice."""
        self._ending.set()
        with self._lock:
            stop_all(list(self._processes.values()))

    def _plan(
        self,
        component: str,
        path: str,
        index: int,
        member: MemberAddress,
        port: int,
        keys: Keys,
        folder: Path,
    ) -> _Planned:
        own = folder / f"{component}-{index}"
        told = Component(
            host=HOST,
            port=port,
            kubeconfig=str(component_kubeconfig(keys, own, component, member.url)),
            files=keys.serving,
            account_key=keys.account_key,
            signing_duration_s=self._signing_duration_s,
            feature_gates=self._gates,
        )
        table, given = {
            SCHEDULER: (OF_SCHEDULER, self._options.scheduler_flags),
            CONTROLLER_MANAGER: (OF_CONTROLLER_MANAGER, self._options.controller_manager_flags),
        }[component]
        return _Planned(own.name, port, [path, *command_line(table, told, given)])

    def _launch(self, planned: _Planned) -> None:
        self._processes[planned.name] = Process(
            planned.name,
            "harness.pool.guardian",
            Guarded(planned.argv),
            self._logs / f"{planned.name}.log",
            on_exit=self._exited,
        )

    def _exited(self, process: Process, code: int) -> None:
        """From the process's own thread."""
        self._on_event({"kind": "component-ended", "process": process.name, "code": code})
        process.stop()  # what is left of it
        if self._ending.wait(self._back_off.ended(process.name, time.monotonic())):
            return
        with self._lock:
            if self._ending.is_set():
                return
            self._launch(self._planned[process.name])
            again = self._processes[process.name]
        try:
            again.wait_ready()
        except ProcessFailed:
            return  # that one's end is told too
        self._on_event({"kind": "component-restarted", "process": again.name, "pid": again.program_pid})
