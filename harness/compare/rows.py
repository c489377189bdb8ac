"""The rows of a comparison: what each figure is, where it comes from, how members are taken together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

import pandas as pd

from harness.compare.run import CREATE_BARRIER, Run

OBJECTS = ("secrets", "configmaps")
WATCHES = {"verb": "WATCH"}
TOP_SPLITS = 8  # rows of the request rate by verb and resource; the others are in the series


GROUPS = (
    *("throughput", "load", "requests", "watches", "etcd", "cache and authorizer", "clients"),
    *("provisioners", "informers"),
)
"""The order of a report."""


class Taken(Enum):
    """How a figure over members was made one."""

    BUSIEST = "busiest"  # the member with the highest figure
    MEDIAN = "median"  # the member in the middle; of an even number the lower of the two
    SUM = "sum"  # all members added up, at one moment
    RUN = "run"  # of the run as a whole; members do not come into it


@dataclass(frozen=True)
class Row:
    """One row. `value` gives None where the target does not expose what it needs; `lower_is_better` is None where
    neither direction is good in itself. `series` gives what the row's chart shows: index seconds since the load phase
    began, values of the figure. `group` is one of `GROUPS`; a row that is not `shown` stands in report.json alone."""

    key: str
    title: str
    unit: str
    taken: Taken
    window: str
    source: str
    value: Callable[[Run], float | None]
    lower_is_better: bool | None = True
    series: Callable[[Run], pd.Series] | None = None
    group: str = ""
    shown: bool = True


def busiest(frame: pd.DataFrame) -> pd.Series:
    """At each scrape the member with the highest value."""
    return frame.max(axis=1)


def total(frame: pd.DataFrame) -> pd.Series:
    """At each scrape all members together; nothing where one of them did not answer."""
    return frame.sum(axis=1, min_count=max(1, len(frame.columns)))


def peak(series: pd.Series) -> float | None:
    value = series.max() if len(series) else float("nan")
    return None if pd.isna(value) else float(value)


def _gauge_pair(
    key: str, title: str, unit: str, metric: str, where: dict[str, str], window: str
) -> list[Row]:
    return [
        _gauge(f"{key}-{taken.value}", title, unit, metric, where, window, taken)
        for taken in (Taken.BUSIEST, Taken.SUM)
    ]


def _gauge(
    key: str,
    title: str,
    unit: str,
    metric: str,
    where: dict[str, str],
    window: str,
    taken: Taken,
    remark: str = "",
) -> Row:
    over = busiest if taken is Taken.BUSIEST else total

    def series(run: Run) -> pd.Series:
        return over(run.frame(metric, where))

    def value(run: Run) -> float | None:
        return (peak(series(run)) or 0.0) if run.exposes(metric) else None

    source = f"{metric}{_text(where)}, highest of all scrapes{remark}"
    return Row(key, title, unit, taken, window, source, value, series=series)


def _counter(
    key: str,
    title: str,
    metric: str,
    where: dict[str, str],
    taken: Taken,
    *,
    requires: str = "",
    lower_is_better: bool | None = True,
) -> Row:
    def value(run: Run) -> float | None:
        if not run.exposes(requires or metric):
            return None
        increase = run.increase(metric, where)
        if increase.empty:
            return 0.0
        return float(increase.max() if taken is Taken.BUSIEST else increase.sum())

    def series(run: Run) -> pd.Series:
        rates = run.rate(metric, where)
        return busiest(rates) if taken is Taken.BUSIEST else total(rates)

    source = f"increase of {metric}{_text(where)}"
    return Row(key, title, "", taken, "whole run", source, value, lower_is_better, series)


def _text(where: dict[str, str]) -> str:
    return "{" + ",".join(f'{key}="{value}"' for key, value in where.items()) + "}" if where else ""


def _watchlists(run: Run) -> float | None:
    return run.sent(user="kubelet", verb="watchlist", names=OBJECTS)


def _lists(run: Run) -> float | None:
    return run.sent(user="kubelet", verb="list", names=OBJECTS)


def _pod_startup_s(run: Run, q: float) -> float | None:
    value = run.sample_quantile_ms("kubelet", "pod_startup_ms", q)
    return None if value is None else value / 1e3


def _fallback_rate(run: Run) -> float | None:
    lists, watchlists = _lists(run) or 0.0, _watchlists(run) or 0.0
    return lists / (lists + watchlists) if lists + watchlists else None


def _several_members(run: Run) -> float | None:
    counts = run.manifest.results.get("nodes_by_members")
    return None if counts is None else float(sum(n for members, n in counts.items() if int(members) > 1))


def _denied(run: Run) -> pd.DataFrame:
    """Requests of kubelets that were answered 403. Any node may write events, so those were refused by admission."""
    frame = run.requests
    return frame[(frame["user"] == "kubelet") & (frame["code"] == 403) & (frame["name"] != "events")]


def _denials(run: Run) -> pd.Series:
    """403s a second that the kubelets got, by the time at which workers reported them."""
    frame, chosen = run.requests, _denied(run)
    counts = chosen.groupby((chosen["t"] // 5) * 5)["count"].sum()
    times = (
        pd.RangeIndex(int(frame["t"].min() // 5) * 5, int(frame["t"].max()) + 5, 5)
        if len(frame)
        else counts.index
    )
    return counts.reindex(times, fill_value=0) / 5.0


ROWS: tuple[Row, ...] = (
    Row(
        "barrier",
        "Barrier “Waiting for 'create objects'”",
        "s",
        Taken.RUN,
        "its step",
        f"duration of the step {CREATE_BARRIER!r}: from the last object's creation to every pod Running",
        lambda run: run.step_s(CREATE_BARRIER),
    ),
    Row(
        "wall-clock",
        "Job wall clock",
        "s",
        Taken.RUN,
        "whole scenario",
        "from the scenario's first step to the end of its last",
        lambda run: run.wall_clock_s,
    ),
    Row(
        "pod-startup-p50",
        "Pod startup p50",
        "s",
        Taken.RUN,
        "whole run",
        "kubelets: from first seeing a pod to its Running status being accepted",
        lambda run: _pod_startup_s(run, 0.5),
    ),
    Row(
        "pod-startup-p99",
        "Pod startup p99",
        "s",
        Taken.RUN,
        "whole run",
        "kubelets: from first seeing a pod to its Running status being accepted",
        lambda run: _pod_startup_s(run, 0.99),
    ),
    *_gauge_pair("watches", "Peak watches", "", "apiserver_longrunning_requests", WATCHES, "whole run"),
    _gauge(
        "memory",
        "Resident memory, peak",
        "bytes",
        "process_resident_memory_bytes",
        {},
        "whole run",
        Taken.BUSIEST,
        " (an emulated member's is modelled: docs/model.md)",
    ),
    _counter(
        "watch-events-busiest",
        "Watch events delivered",
        "apiserver_watch_events_total",
        {},
        Taken.BUSIEST,
        lower_is_better=None,
    ),
    _counter(
        "watch-events-sum",
        "Watch events delivered",
        "apiserver_watch_events_total",
        {},
        Taken.SUM,
        lower_is_better=None,
    ),
    Row(
        "request-rate",
        "Peak request rate",
        "/s",
        Taken.SUM,
        "scenario",
        "apiserver_request_total, growth a second between two scrapes, highest",
        lambda run: peak(total(run.rate("apiserver_request_total"))),
        lower_is_better=None,
        series=lambda run: total(run.rate("apiserver_request_total")),
    ),
    _counter(
        "rejects",
        "Flow-control rejects",
        "apiserver_flowcontrol_rejected_requests_total",
        {},
        Taken.SUM,
        requires="apiserver_flowcontrol_nominal_limit_seats",
    ),
    _gauge(
        "system-queue",
        "Queue of priority level system, peak",
        "",
        "apiserver_flowcontrol_current_inqueue_requests",
        {"priority_level": "system"},
        "whole run",
        Taken.BUSIEST,
    ),
    _counter(
        "terminated-watchers",
        "Terminated watchers",
        "apiserver_terminated_watchers_total",
        {},
        Taken.SUM,
        requires="apiserver_longrunning_requests",
    ),
    Row(
        "denials",
        "403s by the node authorizer",
        "",
        Taken.SUM,
        "whole run",
        "answers 403 to requests of kubelets, events aside, whose 403s are of namespaces that are terminating"
        " (apiserver_request_total leaves authorization failures out)",
        lambda run: int(_denied(run)["count"].sum()),
        series=_denials,
    ),
    Row(
        "watchlists",
        "Watch-lists of configmaps and secrets",
        "",
        Taken.SUM,
        "whole run",
        "requests of kubelets with sendInitialEvents=true",
        _watchlists,
        lower_is_better=None,
    ),
    Row(
        "lists",
        "LISTs of configmaps and secrets (fallbacks)",
        "",
        Taken.SUM,
        "whole run",
        "LIST requests of kubelets",
        _lists,
    ),
    Row(
        "fallback-rate",
        "Fallback rate",
        "share",
        Taken.SUM,
        "whole run",
        "LIST / (LIST + WATCHLIST)",
        _fallback_rate,
    ),
    Row(
        "several-members",
        "Nodes that talked to more than one member",
        "",
        Taken.RUN,
        "whole run",
        "kubelets whose connections went to more than one member",
        _several_members,
        lower_is_better=None,
    ),
)


def split_rows(runs: Iterable[Run]) -> list[Row]:
    """Rows that exist only for what runs contain: the request rate by verb and resource, etcd's latency by operation.

    The splits with the highest peaks over all runs are taken, the same for every arm.
    """
    rates: dict[tuple[str, str], float] = {}
    operations: set[str] = set()
    for run in runs:
        for key, value in _rates_by_kind(run).items():
            rates[key] = max(rates.get(key, 0.0), value)
        operations.update(run.quantile_s("etcd_request_duration_seconds", 0.99, {}, "operation"))
    top = sorted(rates, key=lambda key: -rates[key])[:TOP_SPLITS]
    return [_rate_row(verb, resource) for verb, resource in top] + [
        _etcd_row(op) for op in sorted(operations)
    ]


def _rates_by_kind(run: Run) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    verbs = run.frame("apiserver_request_total", by="verb")
    if verbs.empty:
        return found
    for verb in set(verbs.columns.get_level_values("verb")):
        rates = run.rate("apiserver_request_total", {"verb": verb}, by="resource")
        for resource, frame in rates.T.groupby(level="resource"):
            found[str(verb), str(resource)] = peak(frame.sum(axis=0)) or 0.0
    return found


def _rate_row(verb: str, resource: str) -> Row:
    where = {"verb": verb, "resource": resource}
    return Row(
        f"request-rate-{verb.lower()}-{resource or 'none'}",
        f"Peak request rate: {verb} {resource or '(no resource)'}",
        "/s",
        Taken.SUM,
        "scenario",
        f"apiserver_request_total{_text(where)}, growth a second between two scrapes, highest",
        lambda run: _peak_rate(run, where),
        lower_is_better=None,
    )


def _peak_rate(run: Run, where: dict[str, str]) -> float | None:
    """0 where a target that counts requests has counted none of these; None where it does not count."""
    if not run.exposes("apiserver_request_total"):
        return None
    return peak(total(run.rate("apiserver_request_total", where))) or 0.0


def _etcd_row(operation: str) -> Row:
    def value(run: Run) -> float | None:
        found = run.quantile_s("etcd_request_duration_seconds", 0.99, {"operation": operation}, "operation")
        seconds = found.get(operation)
        return None if seconds is None else seconds * 1e3

    return Row(
        f"etcd-p99-{operation}",
        f"Apiserver to etcd p99: {operation}",
        "ms",
        Taken.SUM,
        "whole run",
        f'histogram_quantile(0.99, etcd_request_duration_seconds{{operation="{operation}"}}), members\' buckets added',
        value,
    )
