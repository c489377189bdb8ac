"""WindowsResourceUsagePrometheus: what Windows nodes use, as their exporter tells.

Mirrors cl2/pkg/measurement/common/slos/windows_node_resource_usage.go: seven summaries, each of one query at the end.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.clusterloader.measurements.base import Call, Outcome, Params, Result
from harness.clusterloader.measurements.prometheus import Window
from harness.clusterloader.perfdata import DataItem, PerfData

METHOD = "WindowsResourceUsagePrometheus"


class _Usage(NamedTuple):
    """A summary: its query, the bucket of its rows, their unit and what a unit is of the metric's, and the label that
    tells them apart, by its name in the file and in Prometheus."""

    name: str
    query: str
    bucket: str
    unit: str
    one: float
    label: str
    source: str


_PROCESSES = '{process!~"Idle|Total|System"}'
_USAGES = (
    _Usage(
        "WindowsCPUUsagePrometheus",
        f"topk(10, sum by (process) (irate(windows_process_cpu_time_total{_PROCESSES}[5m]) / on(job) group_left "
        "windows_cs_logical_processors) * 100)",
        "CPU_Usage",
        "%",
        1,
        "Process",
        "process",
    ),
    _Usage(
        "WindowsMemoryUsagePrometheus",
        f"topk(10, sum(windows_process_working_set_bytes{_PROCESSES}) by (process))",
        "Memory_Usage",
        "MB",
        1 << 20,
        "Process",
        "process",
    ),
    _Usage(
        "WindowsNodeStorage",
        "sum(windows_logical_disk_size_bytes) by (volume)",
        "Storage_Used",
        "GB",
        1 << 30,
        "Volume",
        "volume",
    ),
    _Usage(
        "WindowsOpenFiles",
        'sum(process_open_fds{service="windows-exporter"})',
        "Open File Handles",
        "Handles",
        1,
        "Job",
        "job",
    ),
    _Usage(
        "WindowsProcesses",
        f"topk(10, sum by (process) (windows_process_io_bytes_total{_PROCESSES}))",
        "Process Handles",
        "Handles",
        1,
        "Process",
        "process",
    ),
    _Usage(
        "WindowsNetwork",
        "topk(10, sum by (nic) (windows_net_bytes_total))",
        "Network_Bytes_Total",
        "MB",
        1 << 20,
        "NIC",
        "nic",
    ),
    _Usage(
        "WindowsContainers",
        "topk(10, sum by (instance) (windows_container_count))",
        "Windows Container Count",
        "Containers",
        1 << 20,  # as upstream divides it
        "Instance",
        "instance",
    ),
)


class WindowsResourceUsage:
    def configure(self, params: Params) -> None:
        """Its one parameter, summaryName, is read when it gathers."""

    async def gather(self, window: Window, call: Call) -> Outcome:
        results = []
        for usage in _USAGES:
            samples = await window.vector(usage.query)
            rows = [(s.labels.get(usage.source, ""), round(s.value / usage.one, 2)) for s in samples]
            items = [DataItem({usage.bucket: value}, usage.unit, {usage.label: name}) for name, value in rows]
            name = call.params.text("summaryName", usage.name)
            results.append(Result(name, {"unit": usage.unit, **dict(rows)}, PerfData("v1", items)))
        found = any(len(result.values) > 1 for result in results)
        return Outcome(tuple(results), skipped="" if found else "Prometheus scrapes no Windows node")
