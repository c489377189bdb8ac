"""Rows about client-side throttling: what clients' own rate limits made requests wait, before they were sent.

client-go logs it as "Waited before sending request"; no latency holds it, as that begins with the sending. The waits of
one second and more are those that client-go logs at its default verbosity (cg/rest/request.go, longThrottleLatency).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harness.compare.rows.row import Row, Taken
from harness.compare.run import Run
from harness.observe.histogram import Histogram, bucket_middle_us, bucket_of

USER = "kubelet"
SAMPLE = "client_throttled_ms"
LONG_S = 1.0


def throttle_rows(
    user: str = USER, whose: str = "kubelets", present: Callable[[Run], bool] = lambda run: True
) -> list[Row]:
    """In the order of a report, of one kind of user, in runs where that is `present`. Without a request that had to
    wait the quantiles are 0."""
    source = f"{whose}: seconds that requests waited for a token of their client before they were sent"
    key = "throttled" if user == USER else f"{user}-throttled"
    what = "" if user == USER else f" ({whose})"

    def row(part: str, title: str, unit: str, value: Callable[[Histogram], float]) -> Row:
        def of_run(run: Run) -> float | None:
            return value(_waits(run, user)) if present(run) else None

        return _row(f"{key}-{part}", title + what, unit, source, of_run)

    return [
        row("p50", "Waited before sending, p50", "s", partial(_quantile_s, q=0.5)),
        row("p99", "Waited before sending, p99", "s", partial(_quantile_s, q=0.99)),
        row("sum", "Waited before sending, in all", "s", _sum_s),
        row("long", "Requests that waited over 1 s before sending", "", _long),
    ]


def _row(key: str, title: str, unit: str, source: str, value: Callable[[Run], float | None]) -> Row:
    return Row(key, title, unit, Taken.RUN, "whole run", source, value)


def _waits(run: Run, user: str) -> Histogram:
    rows = run.samples[(run.samples["user"] == user) & (run.samples["name"] == SAMPLE)]
    histogram = Histogram()
    histogram.merge(zip(rows["bucket"], rows["count"], strict=True))
    return histogram


def _quantile_s(waits: Histogram, q: float) -> float:
    return (waits.quantile_us(q) or 0.0) / 1e6


def _sum_s(waits: Histogram) -> float:
    return sum(bucket_middle_us(bucket) * count for bucket, count in waits.counts.items()) / 1e6


def _long(waits: Histogram) -> float:
    first = bucket_of(LONG_S * 1e6)
    return float(sum(count for bucket, count in waits.counts.items() if bucket >= first))
