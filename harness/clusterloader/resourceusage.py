"""ResourceUsageSummary: CPU and memory of the control plane's processes, and the limits that a test sets them.

Mirrors cl2/pkg/measurement/common/resource_usage.go and util/resource.go: samples of each container between start and
gather; of their CPU and of their memory, each sorted for itself, the 50th, 90th, 99th and 100th percentile; limits hold
for the 99th. Upstream reads kubelets' /stats/summary every 10 s on masters; no kubelet here runs a control plane, so
the samples are the run's scrapes. A sample of CPU is the growth of a counter between two looks at it.

A process is taken at its word where it has one: `process_cpu_seconds_total` and `process_resident_memory_bytes` of its
/metrics, which are what a real apiserver or etcd used, and of an emulated member what its model gives a real one
(docs/model.md) - what the emulation costs this machine says nothing about a control plane. Only what has no scraped
/metrics (kube-scheduler, kube-controller-manager of the pool's) is taken from the system.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from harness.clusterloader.series import Series
from harness.clusterloader.template import TemplateProvider
from harness.documents.decoding import decode_struct
from harness.wire.errors import ConfigError

METHOD = "ResourceUsageSummary"
CONSTRAINTS = "resourceConstraints"
"""The parameter that names a file of limits."""
PERCENTILES = (50, 90, 99, 100)
_LIMITED = 99
_MIB = 1 << 20


class Usage(msgspec.Struct, frozen=True, rename={"name": "Name", "cpu": "CPU", "memory": "Mem"}):
    """Of one container, ``<pod>/<container>``, at one percentile: cores and bytes."""

    name: str
    cpu: float
    memory: int


Summary = dict[str, list[Usage]]
"""The file's content: by percentile, every container by name."""


class Constraint(msgspec.Struct, frozen=True, rename="camel"):
    """Of every container of a name: cores and bytes; 0 is no limit."""

    cpu_constraint: float = 0.0
    memory_constraint: int = 0


class Looks(NamedTuple):
    """One process: when it was looked at, and the two series that it has."""

    times: tuple[float, ...]
    cpu: Series
    memory: Series


def read_constraints(templates: TemplateProvider, path: str, nodes: int) -> dict[str, Constraint]:
    """Limits by the container's name, from a template that knows the number of nodes. Raises ConfigError."""
    document = templates.config(path, {"Nodes": nodes})
    if not isinstance(document.value, dict):
        raise ConfigError(f"{templates.file(path)}: {CONSTRAINTS}: expected limits by the container's name")
    found = {}
    for name in map(str, document.value):

        def where(key: str, name: str = name) -> str:
            return document.where(f"{name}.{key}" if key else name)

        found[name] = decode_struct(document.value[name] or {}, Constraint, where)
    return found


def summarize(processes: Mapping[str, Looks], since: float, until: float) -> Summary:
    """Of every container that was looked at twice, the first time maybe before `since`; {} where none was."""
    samples = {name: _samples(looks, since, until) for name, looks in sorted(processes.items())}
    summary: Summary = {}
    for percentile in PERCENTILES if any(samples.values()) else ():
        summary[str(percentile)] = [
            Usage(
                name,
                _percentile([cpu for cpu, _ in found], percentile),
                int(_percentile([memory for _, memory in found], percentile)),
            )
            for name, found in samples.items()
            if found
        ]
    return summary


def _samples(looks: Looks, since: float, until: float) -> list[tuple[float, float]]:
    """Cores since the look before, and bytes, at each look after `since` and up to `until`."""
    found = []
    for before, now in zip(looks.times, looks.times[1:], strict=False):
        memory = looks.memory.at(now)
        if since < now <= until and looks.cpu.at(before) is not None and memory is not None:
            found.append((looks.cpu.increase(before, now) / (now - before), memory))
    return found


def _percentile(values: Iterable[float], percentile: int) -> float:
    """The smallest value that so many of a hundred do not exceed (util/resource.go: ComputePercentiles)."""
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) * percentile / 100) - 1]


def violation(summary: Summary, constraints: Mapping[str, Constraint]) -> str:
    """What uses more than its limit, in upstream's words; "" where nothing does."""
    found = []
    for usage in summary.get(str(_LIMITED), ()):
        limit = constraints.get(usage.name.partition("/")[2])
        if limit is None:
            continue
        if 0 < limit.cpu_constraint < usage.cpu:
            found.append(f"container {usage.name} is using {usage.cpu:g}/{limit.cpu_constraint:g} CPU")
        if 0 < limit.memory_constraint < usage.memory:
            used, most = usage.memory / _MIB, limit.memory_constraint / _MIB
            found.append(f"container {usage.name} is using {used:g}/{most:g} MB of memory")
    if not found:
        return ""
    return f"resource constraints: {len(found)} constraints violated: [{' '.join(found)}]"


def figures(summary: Summary) -> dict[str, object]:
    """The 99th percentile for a person."""
    values: dict[str, object] = {}
    for usage in summary.get(str(_LIMITED), ()):
        values[f"{usage.name} CPU perc{_LIMITED}, cores"] = usage.cpu
        values[f"{usage.name} memory perc{_LIMITED}, MiB"] = usage.memory / _MIB
    return values
