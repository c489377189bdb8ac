"""Caches and the node authorizer: refusals and what they made clients do, how far members are behind, consistent reads.

Any node may write events, so 403s on those are of admission (a namespace that is terminating), and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd

from harness.compare.rows.builders import counter, gauge, quantile
from harness.compare.rows.delivery import KINDS, read_rows
from harness.compare.rows.families import chosen
from harness.compare.rows.row import Row, Taken, Value
from harness.compare.rows.staleness import staleness_rows
from harness.compare.run import Run, Window

OBJECTS = ("secrets", "configmaps")
BIN_S = 5.0  # of a chart's points
_READS = "apiserver_watch_cache_consistent_read_total"
_WAITS = "apiserver_watch_cache_read_wait_seconds"
_CHECKS = "apiserver_storage_consistency_checks_total"
_CACHE = "apiserver_watch_cache_events_received_total"  # there on every target with watch caches
_GRAPH = "swarmlet_node_authorizer_staleness"


def cache_rows(runs: Sequence[Run]) -> list[Row]:
    """In the order of a report."""
    return [
        *_denial_rows(runs),
        *_allowed_rows(),
        *read_rows(),
        *_fallback_rows(),
        _row(
            "several-members",
            "Nodes that talked to more than one member",
            "kubelets whose connections went to more than one member",
            _several_members,
            taken=Taken.RUN,
        ),
        *staleness_rows(runs),
        *_graph_rows(),
        *_consistent_reads(),
    ]


def _row(
    key: str,
    title: str,
    source: str,
    value: Value,
    *,
    unit: str = "",
    taken: Taken = Taken.SUM,
    lower_is_better: bool | None = None,
) -> Row:
    return Row(key, title, unit, taken, Window.WHOLE.value, source, value, lower_is_better)


# ---- refusals ------------------------------------------------------------------------------------------------------
def _denied(run: Run) -> pd.DataFrame:
    frame = run.requests
    return frame[(frame["user"] == "kubelet") & (frame["code"] == 403) & (frame["name"] != "events")]


def _denial_rows(runs: Sequence[Run]) -> list[Row]:
    source = (
        "answers 403 to requests of kubelets, events aside, whose 403s are of namespaces that are terminating"
        " (apiserver_request_total leaves authorization failures out)"
    )
    return [
        Row(
            "denials",
            "403s by the node authorizer",
            "",
            Taken.SUM,
            Window.WHOLE.value,
            source,
            lambda run: float(_denied(run)["count"].sum()),
            series=_denials,
            series_unit="/s",
        ),
        *chosen(
            runs,
            _denied_by,
            lambda name: [
                _row(
                    f"denials-{name}",
                    f"403s by the node authorizer: {name}",
                    f"answers 403 to requests of kubelets for {name}",
                    lambda run: _denied_by(run).get(name, 0.0),
                    lower_is_better=True,
                )
            ],
            top=4,
        ),
    ]


def _denied_by(run: Run) -> dict[str, float]:
    counts = _denied(run).groupby("name", observed=True)["count"].sum()
    return {str(name): float(count) for name, count in counts.items()}


def _denials(run: Run) -> pd.Series:
    """403s a second, by the time at which workers reported them."""
    frame, denied = run.requests, _denied(run)
    counts = denied.groupby((denied["t"] // BIN_S) * BIN_S)["count"].sum()
    if len(frame):
        first, last = (frame["t"].min() // BIN_S) * BIN_S, frame["t"].max()
        counts = counts.reindex(
            [first + BIN_S * k for k in range(int((last - first) // BIN_S) + 1)], fill_value=0
        )
    return counts / BIN_S


def _allowed_rows() -> list[Row]:
    """Of pods whose way to an object was refused at least once."""
    rows = []
    for kind in KINDS:
        source = (
            f"kubelets: from hearing of a pod to its first successful read of each of its {kind}, of those that a 403"
            " delayed"
        )
        rows += [
            _row(
                f"until-allowed-{kind}-p{q * 100:.0f}",
                f"Time until allowed: {kind} p{q * 100:.0f}",
                source,
                partial(_until_allowed_ms, kind, q),
                unit="ms",
                taken=Taken.RUN,
                lower_is_better=True,
            )
            for q in (0.5, 0.99)
        ]
    return rows


def _until_allowed_ms(kind: str, q: float, run: Run) -> float | None:
    where = {"kind": kind, "refused": "yes"}
    return run.sample_quantiles_ms("kubelet", "first_read_ms", q, "kind", where).get(kind)


# ---- watch-lists and fallbacks -------------------------------------------------------------------------------------
def _fallback_rows() -> list[Row]:
    rows = [
        _row(
            "watchlists",
            "Watch-lists of configmaps and secrets",
            "requests of kubelets with sendInitialEvents=true",
            lambda run: float(run.sent(user="kubelet", verb="watchlist", names=OBJECTS)),
        ),
        _row(
            "lists",
            "LISTs of configmaps and secrets (fallbacks)",
            "LIST requests of kubelets",
            lambda run: float(run.sent(user="kubelet", verb="list", names=OBJECTS)),
            lower_is_better=True,
        ),
    ]
    for key, title, names in (
        ("fallback-rate", "Fallback rate", OBJECTS),
        *((f"fallback-rate-{name}", f"Fallback rate: {name}", (name,)) for name in OBJECTS),
    ):
        value = partial(_fallback_rate, names)
        source = f"requests of kubelets for {' and '.join(names)}: LIST / (LIST + WATCHLIST)"
        rows.append(_row(key, title, source, value, unit="share", lower_is_better=True))
    return rows


def _fallback_rate(names: tuple[str, ...], run: Run) -> float | None:
    lists = run.sent(user="kubelet", verb="list", names=names)
    both = lists + run.sent(user="kubelet", verb="watchlist", names=names)
    return lists / both if both else None


def _several_members(run: Run) -> float | None:
    counts = run.manifest.results.get("nodes_by_members")
    return None if counts is None else float(sum(n for members, n in counts.items() if int(members) > 1))


# ---- members -------------------------------------------------------------------------------------------------------
def _graph_rows() -> list[Row]:
    """The emulator's own figures: how far a member's authorizer is behind its caches."""
    remark = " (of the emulator alone)"
    title = "Node authorizer's graph behind its caches, highest"
    return [
        gauge(f"graph-{unit}", title, short, f"{_GRAPH}_{unit}", Taken.BUSIEST, remark=remark)
        for unit, short in (("revisions", ""), ("seconds", "s"))
    ]


def _consistent_reads() -> list[Row]:
    rows = [
        counter(
            "consistent-reads",
            "Consistent reads from the cache",
            _READS,
            Taken.SUM,
            requires=_CACHE,
            lower_is_better=None,
        ),
        counter(
            "consistent-reads-failed",
            "Consistent reads that the cache was too late for",
            _READS,
            Taken.SUM,
            where={"success": "false"},
            requires=_CACHE,
        ),
        counter(
            "consistent-reads-fallback",
            "Consistent reads that etcd answered",
            _READS,
            Taken.SUM,
            where={"fallback": "true"},
            requires=_CACHE,
        ),
        counter(
            "cache-waits",
            "Reads that waited for a fresh cache",
            f"{_WAITS}_count",
            Taken.SUM,
            requires=_CACHE,
        ),
    ]
    rows += [
        quantile(f"cache-wait-p{q * 100:.0f}", f"Wait for a fresh cache p{q * 100:.0f}", _WAITS, q)
        for q in (0.5, 0.99)
    ]
    for status, better in (("success", None), ("failure", True), ("error", True)):
        rows.append(
            counter(
                f"consistency-checks-{status}",
                f"Consistency checks of caches against etcd: {status}",
                _CHECKS,
                Taken.SUM,
                where={"status": status},
                lower_is_better=better,
            )
        )
    return rows
