"""Rows of one metric: a gauge's peak, a counter's growth, a histogram's quantile, a client's sample.

A row says None, "not exposed", where the target has no such metric. Series with labels that nothing has happened to yet
may be missing from a target that has the metric; `requires` names a metric that is there in any case, and the figure
is 0 then.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from harness.compare.rows.row import NOTHING_OBSERVED, Row, Taken, Value, busiest, peak, total, uneven
from harness.compare.run import Run, Window
from harness.compare.series import Where

WHOLE = Window.WHOLE
_OVER = {Taken.BUSIEST: busiest, Taken.SUM: total, Taken.RATIO: uneven}


def text(metric: str, where: Where) -> str:
    """A selector as Prometheus writes it."""
    parts = [
        f'{key}=~"{"|".join(value)}"' if isinstance(value, tuple) else f'{key}="{value}"'
        for key, value in where.items()
    ]
    return metric + ("{" + ",".join(parts) + "}" if parts else "")


def gauge(
    key: str,
    title: str,
    unit: str,
    metric: str,
    taken: Taken,
    *,
    where: Where | None = None,
    window: Window = WHOLE,
    requires: str = "",
    remark: str = "",
    lower_is_better: bool | None = True,
) -> Row:
    """The highest value of all scrapes of a window; members are taken together at each scrape."""
    selected, over = where or {}, _OVER[taken]

    def series(run: Run) -> pd.Series:
        return over(run.frame(metric, selected))

    def value(run: Run) -> float | None:
        if not run.exposes(requires or metric):
            return None
        found = run.during(run.frame(metric, selected), window)
        highest = peak(over(found))
        nothing_yet = run.bounds(window) is not None and not found.columns.size
        return 0.0 if highest is None and nothing_yet else highest

    source = f"{text(metric, selected)}, highest of all scrapes{remark}"
    return Row(key, title, unit, taken, window.value, source, value, lower_is_better, series)


def busiest_and_sum(key: str, title: str, unit: str, metric: str, **options: object) -> list[Row]:
    """`gauge` of the busiest member and of all."""
    return [
        gauge(f"{key}-{taken.value}", title, unit, metric, taken, **options)  # type: ignore[arg-type]
        for taken in (Taken.BUSIEST, Taken.SUM)
    ]


def imbalance(key: str, title: str, metric: str, *, where: Where | None = None, remark: str = "") -> Row:
    """The busiest member over the mean of all, at the scrape at which all together had most. Of one member 1."""
    selected = where or {}

    def value(run: Run) -> float | None:
        frame = run.frame(metric, selected)
        sums = total(frame).fillna(0.0)
        return float(uneven(frame).iloc[int(sums.argmax())]) if len(sums) and sums.max() > 0 else None

    source = f"{text(metric, selected)}, at the scrape with the highest sum{remark}"
    return Row(
        f"{key}-imbalance",
        title,
        "",
        Taken.RATIO,
        WHOLE.value,
        source,
        value,
        series=lambda run: uneven(run.frame(metric, selected)),
    )


def counter(
    key: str,
    title: str,
    metric: str,
    taken: Taken,
    *,
    where: Where | None = None,
    unit: str = "",
    window: Window = WHOLE,
    requires: str = "",
    lower_is_better: bool | None = True,
) -> Row:
    """How much a counter grew in a window."""
    selected = where or {}

    def value(run: Run) -> float | None:
        if not run.exposes(requires or metric) or run.bounds(window) is None:
            return None
        grown = run.increase(metric, selected, window)
        if grown.empty:
            return 0.0
        return float(grown.max() if taken is Taken.BUSIEST else grown.sum())

    def series(run: Run) -> pd.Series:
        return _OVER[taken](run.rate(metric, selected))

    source = f"increase of {text(metric, selected)}"
    return Row(key, title, unit, taken, window.value, source, value, lower_is_better, series, f"{unit}/s")


def peak_rate(key: str, title: str, metric: str, taken: Taken, where: Where | None = None) -> Row:
    """The fastest growth between two scrapes, a second. 0 where a target that has the metric counted none of these."""
    selected = where or {}

    def series(run: Run) -> pd.Series:
        return _OVER[taken](run.rate(metric, selected))

    def value(run: Run) -> float | None:
        return (peak(series(run)) or 0.0) if run.exposes(metric) else None

    source = f"{text(metric, selected)}, growth a second between two scrapes, highest"
    return Row(key, title, "/s", taken, Window.SCENARIO.value, source, value, None, series)


def quantile(
    key: str,
    title: str,
    metric: str,
    q: float,
    *,
    where: Where | None = None,
    window: Window = WHOLE,
    charted: bool = True,
) -> Row:
    """A quantile of a histogram in seconds, told in ms; the buckets of all members are added."""
    selected = where or {}

    def value(run: Run) -> float | None:
        found = run.quantiles(metric, q, (), selected, window).get(())
        return None if found is None else found * 1e3

    def series(run: Run) -> pd.Series:
        return run.quantile_over_time(metric, q, selected) * 1e3

    return Row(
        key,
        title,
        "ms",
        Taken.SUM,
        window.value,
        quantile_source(metric, q, selected),
        value,
        series=series if charted else None,
        absent=NOTHING_OBSERVED,
    )


def quantile_source(metric: str, q: float, where: Where) -> str:
    return f"histogram_quantile({q:g}, {text(f'{metric}_bucket', where)}), members' buckets added"


def extreme(row: Row, metric: str, q: float, where: Where, *, highest: bool) -> Row:
    """Of a `quantile` of the load phase the highest or lowest between two scrapes with observations."""
    name = "highest" if highest else "lowest"

    def value(run: Run) -> float | None:
        points = run.quantile_over_time(metric, q, where, Window.LOAD)
        return None if points.empty else float(points.max() if highest else points.min()) * 1e3

    return Row(
        f"{row.key}-{name}",
        f"{row.title}, {name}",
        row.unit,
        row.taken,
        Window.LOAD.value,
        f"{row.source}, of what was observed between two scrapes, {name}",
        value,
        absent=NOTHING_OBSERVED,
    )


def clients(
    key: str,
    title: str,
    unit: str,
    source: str,
    value: Value,
    *,
    window: str = WHOLE.value,
    lower_is_better: bool | None = True,
    series: Callable[[Run], pd.Series] | None = None,
) -> Row:
    """What clients measured, members do not come into it."""
    return Row(
        key,
        title,
        unit,
        Taken.RUN,
        window,
        source,
        value,
        lower_is_better,
        series,
        absent=NOTHING_OBSERVED,
    )


def sample_quantile(
    key: str, title: str, source: str, user: str, sample: str, q: float, *, unit: str = "s"
) -> Row:
    """A quantile of what one kind of user measured, in milliseconds in the record."""

    def value(run: Run) -> float | None:
        found = run.sample_quantile_ms(user, sample, q)
        return found if found is None or unit == "ms" else found / 1e3

    return clients(key, title, unit, source, value)
