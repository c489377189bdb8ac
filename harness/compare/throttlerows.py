"""Rows about client-side throttling: what the kubelets' own rate limits made requests wait, before they were sent.

client-go logs it as "Waited before sending request"; no latency holds it, as that begins with the sending. The waits of
one second and more are those that client-go logs at its default verbosity (cg/rest/request.go, longThrottleLatency).
"""

from __future__ import annotations

from collections.abc import Callable

from harness.compare.rows import Row, Taken
from harness.compare.run import Run
from harness.observe.histogram import Histogram, bucket_middle_us, bucket_of

USER = "kubelet"
SAMPLE = "client_throttled_ms"
LONG_S = 1.0


def throttle_rows() -> list[Row]:
    """In the order of a report. Without a request that had to wait the quantiles are 0."""
    source = "kubelets: seconds that requests waited for a token of their client before they were sent"
    rows = [
        _row(f"throttled-p{q * 100:.0f}", f"Waited before sending, p{q * 100:.0f}", "s", source, _quantile(q))
        for q in (0.5, 0.99)
    ]
    rows.append(_row("throttled-sum", "Waited before sending, in all", "s", source, _sum))
    rows.append(
        _row(
            "throttled-long", "Requests that waited over 1 s before sending", "", source, _longer_than(LONG_S)
        )
    )
    return rows


def _row(key: str, title: str, unit: str, source: str, value: Callable[[Run], float | None]) -> Row:
    return Row(key, title, unit, Taken.RUN, "whole run", source, value)


def _waits(run: Run) -> Histogram:
    rows = run.samples[(run.samples["user"] == USER) & (run.samples["name"] == SAMPLE)]
    histogram = Histogram()
    histogram.merge(zip(rows["bucket"], rows["count"], strict=True))
    return histogram


def _quantile(q: float) -> Callable[[Run], float | None]:
    def value(run: Run) -> float | None:
        return (_waits(run).quantile_us(q) or 0.0) / 1e6

    return value


def _sum(run: Run) -> float | None:
    counts = _waits(run).counts.items()
    return sum(bucket_middle_us(bucket) * count for bucket, count in counts) / 1e6


def _longer_than(seconds: float) -> Callable[[Run], float | None]:
    def value(run: Run) -> float | None:
        first = bucket_of(seconds * 1e6)
        return float(sum(count for bucket, count in _waits(run).counts.items() if bucket >= first))

    return value
