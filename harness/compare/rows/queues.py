"""Rows about queues at the clients: requests that wait for a client's rate limiter, keys that wait for a worker.

A queue that grows is work that comes faster than it is done; what it holds shows in no latency of the server's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd

from harness.compare.rows import families
from harness.compare.rows.builders import clients
from harness.compare.rows.row import Row
from harness.compare.run import Run, label
from harness.compare.series import Key
from harness.observe.histogram import bucket_middle_us

BIN_S = 5.0  # of a chart's points
TOP = 4
_KINDS = (
    ("client_queue_depth", "client", "Requests waiting for a client's rate limiter", "requests"),
    (
        "workqueue_depth",
        "queue",
        "Keys waiting in a work queue",
        "keys between informers and a controller's workers",
    ),
)


def queue_rows(runs: Sequence[Run]) -> list[Row]:
    """The longest queues over all arms; of a run whose clients never had to wait 0."""
    rows = []
    for sample, by, title, what in _KINDS:

        def make(
            key: Key, sample: str = sample, by: str = by, title: str = title, what: str = what
        ) -> list[Row]:
            user, name = key
            return [
                clients(
                    f"{sample.replace('_', '-')}-{families.slug(key)}",
                    f"{title}, most: {name or user}",
                    "",
                    f"{user}: {what}, of one client, highest (to 2 %)",
                    lambda run: _value(run, sample, by, key),
                    series=partial(_over_time, sample, by, key),
                )
            ]

        rows += families.chosen(runs, partial(_peaks, sample, by), make, TOP, "length")
    return rows


def _value(run: Run, sample: str, by: str, key: Key) -> float | None:
    return _peaks(sample, by, run).get(key, 0.0) if key[0] in run.users else None


def _peaks(sample: str, by: str, run: Run) -> Mapping[Key, float]:
    """By user and by the label that names the queue."""
    found: dict[Key, float] = {}
    for user in run.users:
        rows = run.samples_of(user, sample)
        buckets = rows.groupby(rows["labels"].map(lambda labels: label(labels, by)))["bucket"].max()
        found.update({(user, str(name)): _length(bucket) for name, bucket in buckets.items()})
    return found


def _over_time(sample: str, by: str, key: Key, run: Run) -> pd.Series:
    """The longest of each bin, 0 between."""
    user, name = key
    rows = run.samples_of(user, sample, {by: name} if name else {})
    longest = rows.groupby((rows["t"] // BIN_S) * BIN_S)["bucket"].max().map(_length)
    every = run.samples["t"]
    if not len(every):
        return longest
    first, last = (every.min() // BIN_S) * BIN_S, every.max()
    return longest.reindex(
        [first + BIN_S * k for k in range(int((last - first) // BIN_S) + 1)], fill_value=0.0
    )


def _length(bucket: int) -> float:
    return float(round(bucket_middle_us(int(bucket)) / 1e3))
