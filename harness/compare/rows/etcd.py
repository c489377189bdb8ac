"""Etcd as the apiserver sees it: latency by operation and resource, how it went over the load phase, errors, size."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.compare.rows import families
from harness.compare.rows.builders import counter, extreme, gauge, peak_rate, quantile, quantile_source
from harness.compare.rows.families import slug, words
from harness.compare.rows.row import NOTHING_OBSERVED, Row, Taken
from harness.compare.run import Run, Window
from harness.compare.series import Key

_DURATION = "etcd_request_duration_seconds"
_Q = 0.99


def etcd_rows(runs: Sequence[Run]) -> list[Row]:
    """In the order of a report."""
    return [
        peak_rate("etcd-rate", "Peak rate of requests to etcd", "etcd_requests_total", Taken.SUM),
        *_operations(runs),
        *_kinds(runs),
        counter(
            "etcd-errors",
            "Failed requests to etcd",
            "etcd_request_errors_total",
            Taken.SUM,
            requires="etcd_requests_total",
        ),
        gauge(
            "etcd-size", "Size of the database, peak", "bytes", "apiserver_storage_size_bytes", Taken.BUSIEST
        ),
    ]


def _operations(runs: Sequence[Run]) -> list[Row]:
    """p99 of each operation over the load phase, and its range between scrapes."""

    def make(labels: Key, _: Callable[[Run], float | None]) -> list[Row]:
        where = {"operation": labels[0]}
        title = f"Apiserver to etcd p99: {labels[0]}"
        row = quantile(f"etcd-p99-{labels[0]}", title, _DURATION, _Q, where=where, window=Window.LOAD)
        return [row, *(extreme(row, _DURATION, _Q, where, highest=highest) for highest in (False, True))]

    return families.quantiles(runs, _DURATION, ("operation",), make, q=_Q, window=Window.LOAD, top=8)


def _kinds(runs: Sequence[Run]) -> list[Row]:
    """p99 of each operation on each resource over the load phase, and its range between scrapes."""

    def make(labels: Key, value: Callable[[Run], float | None]) -> list[Row]:
        where = {"operation": labels[0], "resource": labels[1]}
        row = Row(
            f"etcd-p99-{slug(labels)}",
            f"Apiserver to etcd p99: {words(labels)}",
            "ms",
            Taken.SUM,
            Window.LOAD.value,
            quantile_source(_DURATION, _Q, where),
            value,
            absent=NOTHING_OBSERVED,
        )
        return [row, *(extreme(row, _DURATION, _Q, where, highest=highest) for highest in (False, True))]

    by = ("operation", "resource")
    return families.quantiles(runs, _DURATION, by, make, q=_Q, window=Window.LOAD, top=4)
