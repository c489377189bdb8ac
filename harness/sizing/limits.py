"""Everything of a fleet on one machine: what is needed of each resource, how much of it there is, what ends first."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from harness.load.openfiles import SPARE
from harness.sizing import figures
from harness.sizing.calibration import Calibration
from harness.sizing.fleet import Fleet, Machine
from harness.sizing.need import (
    ControlPlane,
    Kubelet,
    Master,
    Network,
    Workers,
    control_plane_of,
    idle_bytes_of,
    kubelet_of,
    master_of,
    network_of,
    workers_of,
)


class Limit(msgspec.Struct, frozen=True):
    """One resource of the machine. `holds`: kubelets that it is enough for, with everything else as planned;
    `remedy`: what helps where it is not enough."""

    what: str
    needed: float
    available: float
    unit: str
    holds: int
    remedy: str

    @property
    def enough(self) -> bool:
        return self.needed <= self.available


class SizingPlan(msgspec.Struct, frozen=True):
    """`limits`: the scarcest first. `opens_in_s`: from the first kubelet to the last watch, with everything on this
    machine. `machines`: of this kind that a fleet needs whose servers are elsewhere; None where these
    are here, as a pool is on one machine."""

    fleet: Fleet
    machine: Machine
    kubelet: Kubelet
    workers: Workers
    master: Master
    control_plane: ControlPlane
    network: Network
    limits: tuple[Limit, ...]
    opens_in_s: float
    machines: int | None

    @property
    def first(self) -> Limit:
        return self.limits[0]

    @property
    def fits(self) -> bool:
        return all(limit.enough for limit in self.limits)


def plan_for(fleet: Fleet, calibration: Calibration, machine: Machine) -> SizingPlan:
    """Raises ConfigError for what is out of bounds."""
    fleet.validate()
    machine.validate()
    workers = workers_of(fleet, calibration, machine)
    control_plane, kubelet = control_plane_of(fleet), kubelet_of(fleet, calibration)
    master = master_of(workers.count)
    here = fleet.servers != "existing"
    total_s = fleet.nodes * kubelet.opening_cpu_s + (control_plane.opening_cpu_s if here else 0.0)
    opens_in_s = max(workers.opens_in_s, total_s / machine.cores)
    found = _Machine(fleet, calibration, machine, workers, master, control_plane, kubelet)
    limits = sorted(found.limits(opens_in_s), key=lambda limit: limit.holds)
    return SizingPlan(
        fleet=fleet,
        machine=machine,
        kubelet=kubelet,
        workers=workers,
        master=master,
        control_plane=control_plane,
        network=network_of(fleet),
        limits=tuple(limits),
        opens_in_s=opens_in_s,
        machines=None if here else max(1, math.ceil(fleet.nodes / max(1, limits[0].holds))),
    )


class _Machine:
    """The limits of one machine that has the whole fleet, and the servers where these are not elsewhere."""

    def __init__(
        self,
        fleet: Fleet,
        calibration: Calibration,
        machine: Machine,
        workers: Workers,
        master: Master,
        servers: ControlPlane,
        kubelet: Kubelet,
    ) -> None:
        self._fleet, self._machine = fleet, machine
        self._workers, self._master, self._kubelet = workers, master, kubelet
        self._servers = servers if fleet.servers != "existing" else None
        self._baseline = idle_bytes_of(calibration)

    def limits(self, opens_in_s: float) -> Iterator[Limit]:
        yield self._cores()
        yield self._opening(opens_in_s)
        yield self._memory()
        yield self._ports()
        yield from self._files()

    def _linear(self, fixed: float, needed: float, available: float) -> int:
        """Kubelets for which what is there is enough, where all but `fixed` grows with them."""
        each = (needed - fixed) / self._fleet.nodes
        return max(0, int((available - fixed) / each))

    def _cores(self) -> Limit:
        fixed = self._master.cores
        needed = self._fleet.nodes * self._kubelet.rest_cores + fixed
        needed += self._servers.cores if self._servers else 0.0
        available = self._machine.cores * figures.WORKER_CORE
        holds = self._linear(fixed, needed, available)
        return Limit("CPU at rest", needed, available, "cores", holds, "more cores, or more machines")

    def _opening(self, opens_in_s: float) -> Limit:
        within = self._fleet.up_within_s
        holds = int(self._fleet.nodes * within / opens_in_s)
        return Limit(
            "opening all watches", opens_in_s, within, "s", holds, "more workers and cores, or --up-within"
        )

    def _memory(self) -> Limit:
        baseline = self._workers.count * self._baseline
        fixed = float(baseline + self._master.memory_bytes)
        needed = fixed + self._fleet.nodes * self._kubelet.memory_bytes
        if self._servers:
            needed += self._servers.memory_bytes
            fixed += self._servers.idle_bytes
        available = float(self._machine.memory_bytes)
        return Limit(
            "memory", needed, available, "bytes", self._linear(fixed, needed, available), "more memory"
        )

    def _ports(self) -> Limit:
        needed = self._fleet.nodes * self._fleet.connections_each * self._fleet.busiest_share
        available = float(self._machine.ports)
        return Limit(
            "ports to one address",
            needed,
            available,
            "ports",
            self._linear(0, needed, available),
            "net.ipv4.ip_local_port_range, more machines, or addresses of the members instead of one",
        )

    def _files(self) -> Iterator[Limit]:
        files = self._machine.files
        if files is None:
            return
        needed = float(self._workers.files)
        each = self._fleet.connections_each
        holds = max(0, files - SPARE) // each * self._workers.count
        yield Limit(
            "open files of a worker", needed, float(files), "files", holds, "more workers, or ulimit -Hn"
        )
        if self._servers:
            # The members of a restarted pool may have all connections at one for a moment: harness.load.openfiles.
            needed = float(self._fleet.nodes * each + SPARE)
            holds = max(0, files - SPARE) // each
            yield Limit("open files of a member", needed, float(files), "files", holds, "ulimit -Hn")
