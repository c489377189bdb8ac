"""From a fleet to what it needs: its workers, Locust's master, the control plane, the network.

Linear in the number of kubelets, apart from rounding. docs/plan.md has each formula with where its figures are from.
"""

from __future__ import annotations

import math

import msgspec

from harness.apiserver.metrics.families import MemoryModel
from harness.apiserver.model.costs import Costs
from harness.load.openfiles import SPARE
from harness.sizing import figures
from harness.sizing.calibration import Calibration
from harness.sizing.fleet import Fleet, Machine

_COSTS, _MEMORY = Costs(), MemoryModel()
_US = 1e-6


class Kubelet(msgspec.Struct, frozen=True):
    """What one more kubelet takes of its worker; `rest_cores` with its events, `opening_cpu_s` until all is open."""

    memory_bytes: float
    rest_cores: float
    opening_cpu_s: float


class Workers(msgspec.Struct, frozen=True):
    """`kubelets`, `memory_bytes`, `cores` (at rest) and `files` are of the fullest one. `limits` says how many
    kubelets one may have by each, `limited_by` names the least. `spawn_rate` is of all together: what they can do,
    each with a core to itself, and `opens_in_s` how long they take."""

    count: int
    kubelets: int
    memory_bytes: int
    cores: float
    files: int
    spawn_rate: float
    opens_in_s: float
    limits: dict[str, int]
    limited_by: str


class Master(msgspec.Struct, frozen=True):
    memory_bytes: int
    cores: float


class ControlPlane(msgspec.Struct, frozen=True):
    """All members together, where a member is not named. `cores` at rest, `opening_cpu_s` for the whole fleet's start,
    etcd's share in both; `idle_bytes`: of `memory_bytes` what is there without a node. `busiest_...`: of one member
    while another is down."""

    memory_bytes: int
    idle_bytes: int
    cores: float
    opening_cpu_s: float
    watches_a_member: int
    busiest_watches: int
    busiest_memory_bytes: int
    busiest_connections: int
    requests_a_second: float


class Network(msgspec.Struct, frozen=True):
    """Both directions together, of the whole fleet."""

    rest_bytes_s: float
    opening_bytes: float


def kubelet_of(fleet: Fleet, calibration: Calibration) -> Kubelet:
    rest_ms = calibration.rest_cpu_ms(fleet.watches)
    events_us = fleet.events_a_node_s * calibration.event_cpu_us
    return Kubelet(
        calibration.kubelet_bytes(fleet.watches),
        rest_ms / 1e3 + events_us * _US,
        calibration.opening_cpu_s(fleet.watches),
    )


def idle_bytes_of(calibration: Calibration) -> int:
    """A worker's memory before its first kubelet."""
    return calibration.baseline_bytes + figures.LOCUST_BYTES


def workers_of(fleet: Fleet, calibration: Calibration, machine: Machine) -> Workers:
    """As many as the fleet gives, or the fewest of which none is over a limit of a single process."""
    kubelet = kubelet_of(fleet, calibration)
    limits = {
        "CPU at rest": int(figures.WORKER_CORE / kubelet.rest_cores),
        "opening in time": int(fleet.up_within_s / kubelet.opening_cpu_s),
        "tried so far": max(figures.TRIED_KUBELETS, calibration.most_kubelets),
    }
    if machine.files is not None:
        limits["open files"] = (machine.files - SPARE) // fleet.connections_each
    limited_by = min(limits, key=lambda name: limits[name])
    most = max(1, limits[limited_by])
    count = fleet.workers or math.ceil(fleet.nodes / most)
    kubelets = math.ceil(fleet.nodes / count)
    return Workers(
        count=count,
        kubelets=kubelets,
        memory_bytes=int(idle_bytes_of(calibration) + kubelets * kubelet.memory_bytes),
        cores=kubelets * kubelet.rest_cores,
        files=kubelets * fleet.connections_each + SPARE,
        spawn_rate=count / kubelet.opening_cpu_s,
        opens_in_s=fleet.nodes * kubelet.opening_cpu_s / count,
        limits=limits,
        limited_by=limited_by,
    )


def master_of(workers: int) -> Master:
    return Master(figures.MASTER_BYTES, figures.MASTER_CORE + workers * figures.MASTER_CORE_A_WORKER)


# ---- the control plane -----------------------------------------------------------------------------------------------
def control_plane_of(fleet: Fleet) -> ControlPlane:
    """Of an existing one and of binaries what real servers pay, else what emulated members do."""
    emulated = fleet.servers == "emulated"
    idle = figures.EMULATED_BYTES if emulated else _MEMORY.idle_bytes
    objects = fleet.nodes * figures.NODE_BYTES * (1 if emulated else figures.REAL_FACTOR)
    watch_bytes = figures.EMULATED_WATCH_BYTES if emulated else _MEMORY.watch_bytes
    all_idle = fleet.members * idle + figures.ETCD_BYTES
    busiest = int(fleet.open_watches * fleet.busiest_share)
    rest, opening = _emulated_cpu(fleet) if emulated else _real_cpu(fleet)
    writes = fleet.nodes * (1 / figures.LEASE_EVERY_S + 1 / figures.STATUS_EVERY_S)
    return ControlPlane(
        memory_bytes=int(all_idle + fleet.members * objects + fleet.open_watches * watch_bytes),
        idle_bytes=int(all_idle),
        cores=rest,
        opening_cpu_s=opening,
        watches_a_member=fleet.open_watches // fleet.members,
        busiest_watches=busiest,
        busiest_memory_bytes=int(idle + objects + busiest * watch_bytes),
        busiest_connections=math.ceil(fleet.nodes * fleet.connections_each * fleet.busiest_share),
        requests_a_second=writes,
    )


def _real_cpu(fleet: Fleet) -> tuple[float, float]:
    """(cores at rest, CPU seconds of the fleet's start), apiservers and etcd."""
    others = (fleet.members - 1) * (_COSTS.cache_event_us + _COSTS.replica_etcd_us)
    lease = _COSTS.update_lease_us + _COSTS.update_lease_etcd_us + others
    status = _COSTS.patch_status_us + _COSTS.patch_status_etcd_us + others
    event = _COSTS.watch_event_us
    each = (
        lease / figures.LEASE_EVERY_S
        + (status + event) / figures.STATUS_EVERY_S
        + fleet.watches * _COSTS.watch_idle_us
        + fleet.events_a_node_s * event
    )
    start = (
        fleet.watches * (_COSTS.watch_open_us + _COSTS.watch_open_etcd_us)
        + _COSTS.connect_us
        + 2 * (_COSTS.create_object_us + _COSTS.create_object_etcd_us + others)  # node, CSINode
        + _COSTS.create_lease_us
        + _COSTS.create_lease_etcd_us
        + status
        + 3 * others
    )
    return fleet.nodes * each * _US, fleet.nodes * start * _US


def _emulated_cpu(fleet: Fleet) -> tuple[float, float]:
    """The same of emulated members without a capacity model, their store among it."""
    write = figures.EMULATED_LEASE_S
    bookmarks = fleet.watches / figures.BOOKMARK_EVERY_S
    each = (
        write * (1 / figures.LEASE_EVERY_S + 1 / figures.STATUS_EVERY_S)
        + (bookmarks + fleet.events_a_node_s) * figures.EMULATED_EVENT_S
    )
    start = fleet.watches * figures.EMULATED_OPEN_S + 5 * write
    return fleet.nodes * each, fleet.nodes * start


# ---- the network -----------------------------------------------------------------------------------------------------
def network_of(fleet: Fleet) -> Network:
    each_s = (
        figures.LEASE_BYTES / figures.LEASE_EVERY_S
        + figures.STATUS_BYTES / figures.STATUS_EVERY_S
        + fleet.watches * figures.BOOKMARK_BYTES / figures.BOOKMARK_EVERY_S
        + fleet.events_a_node_s * figures.EVENT_BYTES
    )
    opening = (
        figures.HANDSHAKE_BYTES * fleet.connections_each
        + fleet.watches * figures.OPEN_WATCH_BYTES
        + 2 * figures.STATUS_BYTES
    )
    return Network(fleet.nodes * each_s, fleet.nodes * opening)
