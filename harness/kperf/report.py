"""kperf's report (kperf/api/types/metric.go), and beside its keys what it lacks.

Its percentiles are computed as there (kperf/metrics/utils.go: BuildPercentileLatencies) over other latencies: from the
time at which a request was due, not from when a client came to send it, and failures are among them. What kperf itself
would show is in `percentileServiceLatencies`.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from itertools import chain

import msgspec

from harness.kperf.failures import of_key
from harness.kperf.observations import Column, Key, Observations
from harness.wire import rfc3339
from harness.wire.gotext import duration

PERCENTILES = (0.0, 0.5, 0.9, 0.95, 0.99, 1.0)
Percentiles = list[tuple[float, float]]
Columns = Mapping[Key, Column]

NO_MEMBER = "no member"
"""Where no connection to any came about."""


class ResponseError(msgspec.Struct, frozen=True):
    """One failed request; as there, the message of one with a code is empty."""

    method: str
    url: str
    timestamp: str
    duration: float
    type: str
    code: int
    message: str


class MemberReport(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What one apiserver answered."""

    total: int
    failed: int
    error_stats: dict[str, int]
    total_received_bytes: int
    percentile_latencies: Percentiles
    percentile_latencies_by_url: dict[str, Percentiles] = msgspec.field(name="percentileLatenciesByURL")


class RunnerReport(msgspec.Struct, frozen=True, rename="camel"):
    """RunnerMetricReport; from `failed` on the keys are ours.

    `total` counts the requests that ended, `duration` is the time that they took. Latencies and lateness in seconds.
    `unfinished` are requests that were due, sent or not, and had no end when the run was ended.
    """

    total: int
    duration: str
    error_stats: dict[str, int]
    total_received_bytes: int
    percentile_latencies: Percentiles | None
    percentile_latencies_by_url: dict[str, Percentiles] = msgspec.field(name="percentileLatenciesByURL")
    failed: int = 0
    unfinished: int = 0
    percentile_service_latencies: Percentiles | None = None
    """From sent to answered, of successes alone: kperf's own figure."""
    percentile_failure_latencies: Percentiles | None = None
    percentile_lateness: Percentiles | None = None
    """From due to sent."""
    errors_by_url: dict[str, dict[str, int]] = msgspec.field(name="errorStatsByURL", default_factory=dict)
    members: dict[str, MemberReport] = {}
    latencies_by_url: dict[str, list[float]] | msgspec.UnsetType = msgspec.field(
        name="latenciesByURL", default=msgspec.UNSET
    )
    errors: list[ResponseError] | msgspec.UnsetType = msgspec.UNSET


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """MultiSpecRunnerMetricReport: what `kperf runner run` prints; of a runner group it is all runners together."""

    per_spec_results: list[RunnerReport]
    aggregated: RunnerReport


class Span(msgspec.Struct):
    """A spec's time: from its first runner's start to its last one's end, and what was left unfinished."""

    seconds: float = 0.0
    unfinished: int = 0


def build_report(seen: Observations, spans: list[Span], *, raw: bool = False) -> Report:
    """`spans` are the specs' in order; `raw` adds every latency and every error, as kperf's --raw-data does."""
    per_spec = [_runner(seen.of_spec(index), span, raw) for index, span in enumerate(spans)]
    whole = Span(sum(span.seconds for span in spans), sum(span.unfinished for span in spans))
    return Report(per_spec, _runner(seen.columns, whole, raw))


def percentiles(values: Iterable[float]) -> Percentiles | None:
    """(p, value) for each p, the value at or below which that part of all lies (nearest rank); None of nothing."""
    ordered = array("d", sorted(values))
    if not ordered:
        return None
    return [(p, ordered[max(math.ceil(len(ordered) * p) - 1, 0)]) for p in PERCENTILES]


def _runner(columns: Columns, span: Span, raw: bool) -> RunnerReport:
    failed = {key: column for key, column in columns.items() if key.failure}
    done = [column for key, column in columns.items() if not key.failure]
    members = sorted({key.member for key in columns})
    return RunnerReport(
        total=_count(columns),
        duration=duration(span.seconds),
        error_stats=_error_stats(failed),
        total_received_bytes=_bytes(columns),
        percentile_latencies=percentiles(_latencies(columns)),
        percentile_latencies_by_url=_by_url(columns),
        failed=_count(failed),
        unfinished=span.unfinished,
        percentile_service_latencies=percentiles(chain.from_iterable(column.service for column in done)),
        percentile_failure_latencies=percentiles(_latencies(failed)),
        percentile_lateness=percentiles(chain.from_iterable(column.lateness for column in columns.values())),
        errors_by_url={name: _error_stats(part) for name, part in _parts(failed).items()},
        members={
            member or NO_MEMBER: _member({key: c for key, c in columns.items() if key.member == member})
            for member in members
        },
        latencies_by_url={name: list(_latencies(part)) for name, part in _parts(columns).items()}
        if raw
        else msgspec.UNSET,
        errors=_errors(failed) if raw else msgspec.UNSET,
    )


def _member(columns: Columns) -> MemberReport:
    failed = {key: column for key, column in columns.items() if key.failure}
    return MemberReport(
        total=_count(columns),
        failed=_count(failed),
        error_stats=_error_stats(failed),
        total_received_bytes=_bytes(columns),
        percentile_latencies=percentiles(_latencies(columns)) or [],
        percentile_latencies_by_url=_by_url(columns),
    )


def _parts(columns: Columns) -> dict[str, dict[Key, Column]]:
    """By method and URL."""
    parts: dict[str, dict[Key, Column]] = {}
    for key in sorted(columns, key=lambda key: (key.name, key)):
        parts.setdefault(key.name, {})[key] = columns[key]
    return parts


def _by_url(columns: Columns) -> dict[str, Percentiles]:
    return {name: percentiles(_latencies(part)) or [] for name, part in _parts(columns).items()}


def _latencies(columns: Columns) -> Iterable[float]:
    return chain.from_iterable(column.latencies for column in columns.values())


def _count(columns: Columns) -> int:
    return sum(map(len, columns.values()))


def _bytes(columns: Columns) -> int:
    return sum(column.received_bytes for column in columns.values())


def _error_stats(failed: Columns) -> dict[str, int]:
    stats: dict[str, int] = {}
    for key in sorted(failed):
        stats[key.failure] = stats.get(key.failure, 0) + len(failed[key])
    return stats


def _errors(failed: Columns) -> list[ResponseError]:
    """Every failure, in the order of time."""
    found = [
        (ended, key, latency)
        for key, column in failed.items()
        for ended, latency in zip(column.ended, column.latencies, strict=True)
    ]
    return [_error(ended, key, latency) for ended, key, latency in sorted(found)]


def _error(ended: float, key: Key, latency_s: float) -> ResponseError:
    failure = of_key(key.failure)
    return ResponseError(
        method=key.method,
        url=key.url,
        timestamp=rfc3339.micro(ended),
        duration=latency_s,
        type=failure.type,
        code=failure.code,
        message=failure.message,
    )
