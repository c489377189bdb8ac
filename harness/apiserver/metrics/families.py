"""Everything that a member publishes at /metrics, and the model behind its process figures.

A family is an attribute that has exactly the Prometheus name. `metrics_*.py` state them; here are those that stand
for the process of a real kube-apiserver, computed rather than measured, and the emulator's own, which begin with
``swarmlet_`` and are measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.apiserver.featuregates import FeatureGates
from harness.apiserver.metrics.flowcontrol import FlowControlFamilies
from harness.apiserver.metrics.requests import IdentityFamilies, RequestFamilies
from harness.apiserver.metrics.storage import CacheFamilies, StorageFamilies
from harness.apiserver.metrics.text import Families, counter, gauge
from harness.apiserver.model.capacity import APISERVER, ETCD, WATCH, Host


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """What a real kube-apiserver holds, in bytes. Measured of v1.36.2 except where said."""

    idle_bytes: float = 270e6
    watch_bytes: float = 93e3  # resident for each open watch, over HTTP/2
    watch_heap_bytes: float = 41e3  # of these on the Go heap
    idle_heap_bytes: float = 120e6  # estimate: a fresh v1.36 server's heap in use
    cached_factor: float = 3.0  # estimate: a decoded object with its encodings and its event, over its JSON
    goroutines_per_watch: float = 2.05
    idle_goroutines: float = 1500.0  # estimate


@dataclass(slots=True)
class Load:
    """What the model is asked about; the member fills it in before each rendering."""

    open_watches: int = 0
    cached_bytes: int = 0
    open_connections: int = 0
    snapshot_bytes: int = 0  # of the watch caches' past states, modelled already


class ProcessFamilies(Families):
    """A real server's process, by model; and what the emulator itself used, measured."""

    process_resident_memory_bytes = gauge("Resident memory size in bytes (modelled).")
    process_cpu_seconds_total = counter("Total user and system CPU time spent in seconds (modelled).")
    process_open_fds = gauge("Number of open file descriptors (modelled).")
    process_start_time_seconds = gauge("Start time of the process since unix epoch in seconds.")
    go_goroutines = gauge("Number of goroutines that currently exist (modelled).")
    go_memstats_heap_inuse_bytes = gauge("Number of heap bytes that are in use (modelled).")
    go_memstats_alloc_bytes = gauge("Number of bytes allocated in heap and currently in use (modelled).")
    swarmlet_modelled_cores = gauge("Modelled cores of this member; absent without a capacity model.")
    swarmlet_modelled_cpu_seconds_total = counter(
        "Modelled CPU time delivered, by class (apiserver, etcd).", "class"
    )
    swarmlet_modelled_backlog_seconds = gauge(
        "Modelled CPU time given to the host and not yet delivered, by class.", "class"
    )
    swarmlet_modelled_jobs_total = counter("Jobs completed on the modelled host.")
    swarmlet_late_jobs_total = counter("Of these, completed more than 20 ms after their time.")
    swarmlet_faults_total = counter("Faults that were begun, by kind.", "kind")
    swarmlet_fault_hits_total = counter(
        "Requests, watches and connections that met a fault, by kind.", "kind"
    )
    swarmlet_faults_active = gauge("Faults that are active, by kind.", "kind")
    swarmlet_host_cpu_seconds_total = counter("CPU time that this emulator process used.")
    swarmlet_host_resident_memory_bytes = gauge("Resident memory of this emulator process.")


class BuildFamilies(Families):
    """What this server stands for."""

    version_info = gauge(
        "Provides the compatibility version info of the component.", "binary component emulation min_compat"
    )
    kubernetes_feature_enabled = gauge("The stage of a feature, and whether it is enabled.", "name stage")


class Metrics(
    RequestFamilies,
    IdentityFamilies,
    CacheFamilies,
    StorageFamilies,
    FlowControlFamilies,
    ProcessFamilies,
    BuildFamilies,
):
    """The families of one member; `render()` is the body of /metrics."""

    def describe_build(self, version: Mapping[str, str], gates: FeatureGates) -> None:
        """`version` is what /version answers."""
        binary = version["gitVersion"].removeprefix("v")
        emulation = f"{version['emulationMajor']}.{version['emulationMinor']}"
        min_compat = f"{version['minCompatibilityMajor']}.{version['minCompatibilityMinor']}"
        self.version_info.labels(binary, "kube", emulation, min_compat).set(1)
        for name, stage, enabled in gates.describe():
            self.kubernetes_feature_enabled.labels(name, stage).set(enabled)

    def model_process(
        self, host: Host, load: Callable[[], Load], started_wall_s: float, model: MemoryModel | None = None
    ) -> None:
        """Fill the process families before each rendering: from `host`, from `load()`, from this very process."""
        figures = model or MemoryModel()
        self.process_start_time_seconds.labels().set(started_wall_s)
        if host.cores is not None:
            self.swarmlet_modelled_cores.labels().set(host.cores)
        self.on_render(lambda: self._fill(host, load(), figures))

    def _fill(self, host: Host, load: Load, model: MemoryModel) -> None:
        cached = load.cached_bytes * model.cached_factor + load.snapshot_bytes
        heap = model.idle_heap_bytes + load.open_watches * model.watch_heap_bytes + cached
        resident = model.idle_bytes + load.open_watches * model.watch_bytes + cached
        self.process_resident_memory_bytes.labels().set(resident)
        self.go_memstats_heap_inuse_bytes.labels().set(heap)
        self.go_memstats_alloc_bytes.labels().set(heap)
        self.go_goroutines.labels().set(
            model.idle_goroutines + round(load.open_watches * model.goroutines_per_watch)
        )
        self.process_open_fds.labels().set(20 + load.open_connections)
        self.process_cpu_seconds_total.labels().value = host.busy_of_s(APISERVER) + host.busy_of_s(WATCH)
        for name, cls in (("apiserver", APISERVER), ("watch", WATCH), ("etcd", ETCD)):
            self.swarmlet_modelled_cpu_seconds_total.labels(name).value = host.busy_of_s(cls)
            self.swarmlet_modelled_backlog_seconds.labels(name).set(host.backlog_s(cls))
        self.swarmlet_modelled_jobs_total.labels().value = host.jobs
        self.swarmlet_late_jobs_total.labels().value = host.late
        used = os.times()
        self.swarmlet_host_cpu_seconds_total.labels().value = used.user + used.system
        self.swarmlet_host_resident_memory_bytes.labels().set(resident_bytes())


def resident_bytes() -> int:
    """Resident memory of this process; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
