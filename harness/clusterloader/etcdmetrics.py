"""EtcdMetrics: what etcd's disk and its peers took, and how large its database became, from what was scraped of it.

Mirrors cl2/pkg/measurement/common/etcd_metrics.go: the same four histograms, with all their labels, and the highest
size. Upstream's histograms are those of the one moment at which it gathers, so they count since etcd began; here they
are what came between start and gather, so that an etcd that has long been there says nothing of its past. The size is
looked at with each scrape and not each minute (`waitTime`). Members are summed, as upstream sums its hosts, by giving
`summarize` all their series together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from harness.clusterloader.perfdata import PERCENTS
from harness.clusterloader.series import Series
from harness.clusterloader.slo import histogram_quantile

METHOD = "EtcdMetrics"
HISTOGRAMS = {
    "etcd_disk_backend_commit_duration_seconds_bucket": "backend_commit_duration",
    "etcd_debugging_snap_save_total_duration_seconds_bucket": "snapshot_save_total_duration",
    "etcd_network_peer_round_trip_time_seconds_bucket": "peer_round_trip_time",
    "etcd_disk_wal_fsync_duration_seconds_bucket": "wal_fsync_duration",
}
"""By the metric, the field of a summary."""
SIZES = ("etcd_mvcc_db_total_size_in_bytes", "etcd_debugging_mvcc_db_total_size_in_bytes")
"""The second one is its name before etcd 3.4."""
_SHOWN = {"backend_commit_duration": "backend commit", "wal_fsync_duration": "WAL fsync"}
"""What the screen shows, in milliseconds."""


class Histogram(msgspec.Struct):
    """Cumulative counts by upper bound, as the metric writes it, of one combination of labels."""

    labels: dict[str, str]
    buckets: dict[str, int]


class EtcdSummary(msgspec.Struct, rename="camel"):
    """The file's content; the size is in bytes."""

    backend_commit_duration: list[Histogram]
    snapshot_save_total_duration: list[Histogram]
    peer_round_trip_time: list[Histogram]
    wal_fsync_duration: list[Histogram]
    max_database_size: int


def summarize(series: Iterable[Series], since: float, until: float) -> EtcdSummary:
    """What was counted between two times; of several members everything added, but the size, which is the largest."""
    vectors: dict[str, list[Histogram]] = {field: [] for field in HISTOGRAMS.values()}
    size = 0.0
    for item in series:
        if item.name in SIZES:
            size = max(size, item.highest(since, until) or 0.0)
        elif item.name in HISTOGRAMS:
            labels = {key: value for key, value in sorted(item.labels.items()) if key != "le"}
            buckets = _histogram(vectors[HISTOGRAMS[item.name]], labels).buckets
            bound = item.labels["le"]
            buckets[bound] = buckets.get(bound, 0) + round(item.increase(since, until))
    for vector in vectors.values():
        for histogram in vector:
            histogram.buckets = dict(sorted(histogram.buckets.items()))  # as Go writes a map
    return EtcdSummary(**vectors, max_database_size=int(size))


def _histogram(vector: list[Histogram], labels: dict[str, str]) -> Histogram:
    for histogram in vector:
        if histogram.labels == labels:
            return histogram
    vector.append(Histogram(labels, {}))
    return vector[-1]


def figures(summary: EtcdSummary) -> dict[str, object]:
    """A summary for a person."""
    values: dict[str, object] = {"largest database, MiB": summary.max_database_size / (1 << 20)}
    for field, words in _SHOWN.items():
        total: dict[float, float] = {}
        for histogram in getattr(summary, field):
            for bound, count in histogram.buckets.items():
                total[float(bound)] = total.get(float(bound), 0.0) + count
        if total.get(math.inf):
            found = {percent: histogram_quantile(percent / 100, total) for percent in PERCENTS}
            values.update((f"{words} perc{percent}, ms", s * 1000) for percent, s in found.items())
    return values
