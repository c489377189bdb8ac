"""Rows about what a watcher waits for: the delivery of events, and a pod's way to its secrets, configmaps and tokens.

Each member's clients have a distribution of their own. Busiest is the member whose quantile is highest, median the one
in the middle: one slow member of three is the busiest, and is not the median.
"""

from __future__ import annotations

import statistics
from functools import partial

import pandas as pd

from harness.compare.rows.row import NOTHING_OBSERVED, Row, Taken
from harness.compare.run import Run

USER = "kubelet"
KINDS = ("secrets", "configmaps", "tokens")
WINDOW_S = 10.0  # of a chart's points

_DELIVERY = "kubelets: from the answer to a write by one of ours to the receipt of its event, by member"
_HEARD = "kubelets: from the answer to the binding to hearing of the pod, by member"
_READ = "kubelets: from hearing of a pod to its first successful read of each of its {kind}, by member"
_BOUND_READ = (
    "kubelets: from the answer to the binding to the first successful read of each of the pod's {kind}"
)


def delivery_rows() -> list[Row]:
    """Of events, in the order of a report."""
    rows = quantile_rows("delivery", "Watch event delivery", "watch_delivery_ms", _DELIVERY)
    rows.append(
        _row(
            "delivery-bound-p99-busiest",
            "Watch event delivery p99, from the write's sending",
            "watch_delivery_since_sent_ms",
            f"{_DELIVERY}, but from the write's sending: the commit lies between",
            0.99,
            Taken.BUSIEST,
        )
    )
    return rows + quantile_rows("binding-heard", "Binding to kubelet", "binding_heard_ms", _HEARD)


def read_rows() -> list[Row]:
    """A pod's way to what it needs, in the order of a report."""
    rows: list[Row] = []
    for kind in KINDS:
        where, what = {"kind": kind}, f"First read of {kind}"
        rows += quantile_rows(f"first-read-{kind}", what, "first_read_ms", _READ.format(kind=kind), where)
        source = _BOUND_READ.format(kind=kind)
        key, title = f"bound-read-{kind}-p99-busiest", f"Binding to first read of {kind} p99"
        rows.append(_row(key, title, "binding_to_read_ms", source, 0.99, Taken.BUSIEST, where))
        rows.append(_refusals(kind))
    return rows


def quantile_rows(
    key: str, title: str, sample: str, source: str, where: dict[str, str] | None = None, user: str = USER
) -> list[Row]:
    """Median and p99 of a sample of one kind of user, of the busiest member and of the one in the middle."""
    return [
        _row(
            f"{key}-p{q * 100:.0f}-{taken.value}",
            f"{title} p{q * 100:.0f}",
            sample,
            source,
            q,
            taken,
            where,
            user,
        )
        for q in (0.5, 0.99)
        for taken in (Taken.BUSIEST, Taken.MEDIAN)
    ]


def _row(
    key: str,
    title: str,
    sample: str,
    source: str,
    q: float,
    taken: Taken,
    where: dict[str, str] | None = None,
    user: str = USER,
) -> Row:
    return Row(
        key,
        title,
        "ms",
        taken,
        "whole run",
        source,
        partial(_value, user, sample, q, taken, where or {}),
        series=partial(_series, user, sample, q, taken, where or {}),
        absent=NOTHING_OBSERVED,
    )


def _value(user: str, sample: str, q: float, taken: Taken, where: dict[str, str], run: Run) -> float | None:
    members = run.sample_quantiles_ms(user, sample, q, "member", where)
    return _over(list(members.values()), taken)


def _over(values: list[float], taken: Taken) -> float | None:
    if not values:
        return None
    return max(values) if taken is Taken.BUSIEST else statistics.median_low(values)


def _series(user: str, sample: str, q: float, taken: Taken, where: dict[str, str], run: Run) -> pd.Series:
    points = run.sample_quantiles_over_time(user, sample, q, "member", where, WINDOW_S)
    return pd.Series({t: _over(list(members.values()), taken) for t, members in points.items()}, dtype=float)


def _refusals(kind: str) -> Row:
    def value(run: Run) -> float | None:
        if not run.sample_count(USER, "first_read_ms", {"kind": kind}):
            return None
        return run.sample_count(USER, "first_read_403s", {"kind": kind})

    return Row(
        f"first-read-403s-{kind}",
        f"403s on the way to {kind}",
        "",
        Taken.SUM,
        "whole run",
        f"answers 403 to kubelets that had a pod's {kind} still to read",
        value,
        absent=NOTHING_OBSERVED,
    )
