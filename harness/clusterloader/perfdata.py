"""PerfData: the JSON that ClusterLoader2 writes for each summary and perf-dash reads.

Mirrors clusterloader2/pkg/measurement/util/perftype.go and the file names of pkg/test/simple_test_executor.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from harness.clusterloader.durations import quantile
from harness.wire import rfc3339

PERCENTS = (50, 90, 99)


class DataItem(msgspec.Struct, frozen=True):
    """One row: `data` by bucket (``Perc99``), all in `unit`."""

    data: dict[str, float]
    unit: str
    labels: dict[str, str]


class PerfData(msgspec.Struct, frozen=True, rename="camel"):
    version: str
    data_items: list[DataItem]


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """``Perc50``, ``Perc90`` and ``Perc99`` of values in any order."""
    ordered = sorted(values)
    return {f"Perc{percent}": quantile(ordered, percent) for percent in PERCENTS}


def latency_values(latencies_ms: Mapping[str, Sequence[float]]) -> dict[str, object]:
    """The same quantiles for people: ``pod_startup_perc99``, in milliseconds."""
    values: dict[str, object] = {"unit": "ms"}
    for name, found in latencies_ms.items():
        values.update((f"{name}_{bucket.lower()}", value) for bucket, value in quantiles(found).items())
    return values


def latency_data(latencies_ms: Mapping[str, Sequence[float]]) -> PerfData:
    """Latencies by metric name (``pod_startup``), as LatencyMapToPerfData gives them."""
    items = [DataItem(quantiles(values), "ms", {"Metric": name}) for name, values in latencies_ms.items()]
    return PerfData("1.0", items)


def file_name(summary: str, test: str, epoch_s: float) -> str:
    """``PodStartupLatency_<identifier>_<test>_<RFC 3339>.json``."""
    return f"{summary}_{test}_{rfc3339.seconds(epoch_s)}.json"


def encode(content: object) -> bytes:
    """A summary as its file holds it, indented by two spaces."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2)
