"""Rows about informers and lists: how long they take, what they cost the members, and what snapshots of the watch cache
cost and buy.

They are there for runs that had informers (``results.informers`` of the manifest), and of runs with lists a group for
each kind of the mix.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import pandas as pd

from harness.compare.rows.builders import clients, counter, gauge
from harness.compare.rows.delivery import quantile_rows
from harness.compare.rows.row import Row, Taken, Value, busiest, peak
from harness.compare.run import Run

INFORMER, LISTER = "informer", "lister"
_LISTS = ("apiserver_cache_list", "apiserver_storage_list")
_SNAPSHOTS = "swarmlet_watch_cache_snapshot_bytes"
_MEMORY = "process_resident_memory_bytes"
_LEARNING = "names"
"""What a get sends where no object is known yet."""
_WHOLE = "whole run"


def informer_rows(runs: Iterable[Run]) -> list[Row]:
    """In the order of a report; none where no run had informers."""
    with_informers = [run for run in runs if _results(run)]
    if not with_informers:
        return []
    kinds = sorted({kind for run in with_informers for kind in _kinds(run)})
    delivered = quantile_rows(
        "informer-delivery",
        "Watch event delivery to informers",
        "watch_delivery_ms",
        "informers: from the answer to a write by one of ours to the receipt of its event, by member",
        user=INFORMER,
    )
    return [*_sync_rows(), *delivered, *(row for kind in kinds for row in _kind_rows(kind)), *_cost_rows()]


def _results(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = run.manifest.results.get("informers", {})
    return found


def _kinds(run: Run) -> set[str]:
    rows = run.samples[(run.samples["user"] == LISTER) & (run.samples["name"] == "list_ms")]
    return {labels.removeprefix("kind=") for labels in rows["labels"].astype(str).unique()} - {_LEARNING}


# ---- informers -------------------------------------------------------------------------------------------------------
def _sync_rows() -> list[Row]:
    source = "informers: from an informer's beginning to its whole state, whatever failed in between"
    rows = [
        clients(
            f"informer-sync-p{q * 100:.0f}", f"Informers: time to sync p{q * 100:.0f}", "s", source, value
        )
        for q in (0.5, 0.99)
        for value in (partial(_sync_s, q, "first"),)
    ]
    last = "informers: from the moment at which all may begin to the last one's whole state"
    again = f"{source}; those that restart storms made begin anew"
    return [
        *rows,
        clients("informer-sync-last", "Informers: last one synced", "s", last, _of_results("last_sync_s")),
        clients("informer-resync-p99", "Informers: time to sync after a restart p99", "s", again, _resync_s),
        clients(
            "informer-objects-rate",
            "Informers: objects received a second until the last synced",
            "/s",
            "objects of whole states, over the time to the last informer's sync",
            _until_synced("objects"),
            lower_is_better=False,
        ),
        clients(
            "informer-bytes",
            "Informers and lists: bytes received",
            "bytes",
            "bodies, as they come out of the transport",
            _of_results("bytes", 0.0),
            lower_is_better=None,
        ),
        clients(
            "informer-events",
            "Informers: events received",
            "",
            "ADDED, MODIFIED and DELETED behind the first state",
            _of_results("events", 0.0),
            lower_is_better=None,
        ),
        clients(
            "informer-fallbacks",
            "Informers: watch-lists that became LISTs",
            "",
            "reflectors of informers",
            lambda run: _counted(run, INFORMER, "reflector_fallbacks"),
        ),
        clients(
            "informer-expired",
            "410s to informers and lists",
            "",
            "lists and watches that were refused or ended as their revision was gone",
            _of_results("expired", 0.0),
        ),
        clients(
            "informer-violations",
            "Informers: told wrong",
            "",
            "lost, duplicated or reordered events, states and pages that are not one snapshot (docs/informers.md)",
            lambda run: float(_results(run)["checked"].get("violations", 0)) if _checked(run) else None,
        ),
    ]


def _checked(run: Run) -> bool:
    return bool(_results(run).get("checked"))


def _sync_s(q: float, start: str, run: Run) -> float | None:
    found = run.sample_quantiles_ms(INFORMER, "informer_sync_ms", q, "start", {"start": start})
    return found[start] / 1e3 if start in found else None


def _resync_s(run: Run) -> float | None:
    return _sync_s(0.99, "restart", run)


def _of_results(key: str, otherwise: float | None = None) -> Value:
    def value(run: Run) -> float | None:
        results = _results(run)
        found = results.get(key, otherwise) if results else None
        return None if found is None else float(found)

    return value


def _until_synced(key: str) -> Value:
    def value(run: Run) -> float | None:
        results = _results(run)
        seconds = results.get("last_sync_s")
        return results[f"{key}_until_then"] / seconds if seconds else None

    return value


def _counted(run: Run, user: str, sample: str) -> float | None:
    return float(run.sample_count(user, sample)) if _results(run) else None


# ---- lists -----------------------------------------------------------------------------------------------------------
def _kind_rows(kind: str) -> list[Row]:
    where = {"kind": kind}
    rows = [
        clients(
            f"list-{kind}-p{q * 100:.0f}",
            f"LIST {kind} p{q * 100:.0f}",
            "ms",
            "lists of this kind of the mix: from when one was due to its last page",
            partial(_list_ms, q, kind),
        )
        for q in (0.5, 0.99)
    ]
    return [
        *rows,
        clients(
            f"list-{kind}-objects",
            f"LIST {kind}: objects each",
            "",
            "mean over lists that were answered",
            partial(_mean, "list_objects", where),
            lower_is_better=None,
        ),
        clients(
            f"list-{kind}-bytes",
            f"LIST {kind}: bytes each",
            "bytes",
            "mean over lists that were answered, of all their pages, as they come out of the transport",
            partial(_mean, "list_bytes", where),
            lower_is_better=None,
        ),
        clients(
            f"list-{kind}-failed",
            f"LIST {kind}: failed",
            "",
            "lists that got another answer than 200, or none",
            lambda run: (
                float(run.sample_count(LISTER, "list_failed", where)) if kind in _kinds(run) else None
            ),
        ),
    ]


def _list_ms(q: float, kind: str, run: Run) -> float | None:
    return run.sample_quantiles_ms(LISTER, "list_ms", q, "kind", {"kind": kind}).get(kind)


def _mean(sample: str, where: dict[str, str], run: Run) -> float | None:
    count = run.sample_count(LISTER, sample, where)
    return run.sample_sum(LISTER, sample, where) / count if count else None


# ---- members ---------------------------------------------------------------------------------------------------------
def _cost_rows() -> list[Row]:
    cpu = "process_cpu_seconds_total"
    return [
        counter("informer-cpu-busiest", "CPU time of an apiserver", cpu, Taken.BUSIEST, unit="s"),
        counter("informer-cpu-sum", "CPU time of an apiserver", cpu, Taken.SUM, unit="s"),
        counter(
            "informer-etcd-cpu-sum",
            "CPU time of etcd (modelled)",
            "swarmlet_modelled_cpu_seconds_total",
            Taken.SUM,
            where={"class": "etcd"},
            unit="s",
        ),
        counter(
            "informer-host-cpu-sum",
            "CPU time of the emulator's processes",
            "swarmlet_host_cpu_seconds_total",
            Taken.SUM,
            unit="s",
        ),
        gauge(
            "informer-host-memory",
            "Resident memory of an emulator's process, peak",
            "bytes",
            "swarmlet_host_resident_memory_bytes",
            Taken.BUSIEST,
        ),
        gauge(
            "informer-snapshot-memory",
            "Memory of watch cache snapshots, peak",
            "bytes",
            _SNAPSHOTS,
            Taken.BUSIEST,
        ),
        Row(
            "informer-snapshot-share",
            "Watch cache snapshots' share of memory",
            "share",
            Taken.BUSIEST,
            _WHOLE,
            f"{_SNAPSHOTS} over the rest of {_MEMORY}, at each scrape, highest",
            lambda run: peak(_snapshot_share(run)),
            series=_snapshot_share,
        ),
        Row(
            "informer-evaluated",
            "Objects looked at for each that a LIST returned",
            "",
            Taken.SUM,
            _WHOLE,
            "of all members, from cache (fetched) and from etcd (evaluated): " + ", ".join(_LISTS),
            _evaluated,
        ),
        counter(
            "informer-lists-etcd",
            "LISTs that members passed on to etcd",
            "apiserver_storage_list_total",
            Taken.SUM,
        ),
    ]


def _snapshot_share(run: Run) -> pd.Series:
    if not run.exposes(_SNAPSHOTS):
        return pd.Series(dtype=float)
    snapshots, memory = run.frame(_SNAPSHOTS), run.frame(_MEMORY)
    return busiest(snapshots / (memory - snapshots))


def _evaluated(run: Run) -> float | None:
    looked_at = (_sum_of(run, f"{_LISTS[0]}_fetched_objects_total") or 0.0) + (
        _sum_of(run, f"{_LISTS[1]}_evaluated_objects_total") or 0.0
    )
    returned = sum(_sum_of(run, f"{name}_returned_objects_total") or 0.0 for name in _LISTS)
    return looked_at / returned if returned else None


def _sum_of(run: Run, metric: str) -> float | None:
    return float(run.increase(metric).sum()) if run.exposes(metric) else None
