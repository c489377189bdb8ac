"""Each member by itself: small charts of the main gauges, one a member of an arm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pandas as pd

from harness.compare.comparison import Arm, Comparison
from harness.compare.run import Run
from harness.report.charts.chart import Chart
from harness.report.charts.lines import spread
from harness.report.charts.timeseries import line_chart, points_of_a_line, sample_names, says_something

MOST_PANELS = 12


@dataclass(frozen=True)
class _Gauge:
    """`take` gives a column a member; `rows` begin the keys of the rows that it shows."""

    key: str
    title: str
    group: str
    unit: str
    rows: str
    take: Callable[[Run], pd.DataFrame]


_GAUGES = (
    _Gauge(
        "members-watches",
        "Watches of each member",
        "load",
        "count",
        "watches-",
        lambda run: run.frame("apiserver_longrunning_requests", {"verb": "WATCH"}),
    ),
    _Gauge(
        "members-requests",
        "Request rate of each member",
        "requests",
        "/s",
        "request-rate",
        lambda run: run.rate("apiserver_request_total"),
    ),
    _Gauge(
        "members-memory",
        "Resident memory of each member",
        "load",
        "bytes",
        "memory",
        lambda run: run.frame("process_resident_memory_bytes"),
    ),
    _Gauge(
        "members-cpu",
        "CPU of each member",
        "load",
        "cores",
        "cpu",
        lambda run: run.rate("process_cpu_seconds_total"),
    ),
)


def member_charts(comparison: Comparison) -> list[Chart]:
    """None where no arm has a second member, and none of more members than fit a page."""
    limit = points_of_a_line(comparison, MOST_PANELS * len(_GAUGES))
    found = []
    for gauge in _GAUGES:
        panels = {
            name: points
            for arm in comparison.arms
            for name, points in _panels(gauge, arm, limit)
            if len(points)
        }
        members = sum(says_something(points) for points in panels.values())
        if len(comparison.arms) < members <= MOST_PANELS:
            rows = tuple(each.row.key for each in comparison.rows if each.row.key.startswith(gauge.rows))
            found.append(
                line_chart(gauge.key, gauge.title, gauge.group, panels, comparison.arms, gauge.unit, rows)
            )
    return found


def _panels(gauge: _Gauge, arm: Arm, limit: int) -> Iterator[tuple[str, pd.DataFrame]]:
    frames = [gauge.take(run) for run in arm.runs]
    members = sorted({str(name) for frame in frames for name in frame.columns})
    for member in members:
        series = [frame[member] if member in frame else pd.Series(dtype=float) for frame in frames]
        yield f"{arm.name}: {member}", spread({arm.name: series}, sample_names([arm]), limit)
