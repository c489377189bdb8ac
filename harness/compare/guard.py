"""Whether two arms were under equal conditions: whatever differs besides what the experiment declares.

A comparison is only as good as what was kept equal, and its reader cannot see what was not. So the manifests, events
and series of all runs are looked through, those of invalid runs too: a restart that happened in one arm alone is a
finding whether or not its run counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.compare.run import Run

OF_THE_SAMPLE = frozenset(
    {"record", "arm", "sample", "run", "seed", "kubeconfig", "prometheus.url", "pace.origin_s"}
    | {f"pool.{name}" for name in ("seed", "logs", "port", "kubeconfig")}
)
"""Options that name a run or its places; seeds are compared over all samples."""
FOLLOWS = {
    "kubelets": ("nodes", "pool.nodes", "scenario.resolved"),
    "pool.nodes": ("target.cores",),
    "pool.faults": ("faults",),
    "scenario": ("scenario.resolved",),
    "overrides": ("scenario.resolved",),
    **dict.fromkeys(("host", "kubeconfig", "endpoints", "cluster.context", "pool.backend"), ("target",)),
    "pool.binaries.folder": ("target.binaries",),
    **dict.fromkeys(
        ("pool.store.etcd_servers", "pool.store.etcd_binary"), ("target.store", "target.binaries.etcd")
    ),
    "pool.store.data_dir": ("target.store",),
    "pool.balancer.kind": ("target.balancer",),
}
"""What else in a record differs where such a setting does. Of two clusters `target` is what they say of themselves;
their versions are no part of it."""
LOAD_PER_CORE = 0.75
"""Load average at a run's start, a core, from which on something else was at work on the host."""
_OF_ONE_POOL = (
    "members",
    "options",
    "kubeconfig",
    "store_pid",
    "processes",
    "flags",
    "command_lines",
    "signs",
    "notes",
    "front",
    "links",
)
"""What a target says of its own processes, ports and files, and what follows from the record's arguments alone."""
_UNTOLD = "–"
_COUNTED = ("_total", "_bucket", "_sum", "_count")


@dataclass(frozen=True)
class Finding:
    """`what` differs: what each arm had, in words. `within` is the arm whose own samples differ, "" between arms."""

    what: str
    values: dict[str, str]
    why: str
    within: str = ""


Arms = Mapping[str, Collection[Run]]

HOST_LATE = "host could not keep up"  # in the mark of such a run (harness.load.verdict)


def guard(arms: Arms, declared: Collection[str] = ()) -> list[Finding]:
    """`declared` are settings that are meant to differ, as ``pool.members``; one names what lies below it too, and what
    the target says of a pool's setting."""
    declared = [
        *declared,
        *(f"target.{name.removeprefix('pool.')}" for name in declared if name.startswith("pool.")),
    ]
    arms = {name: runs for name, runs in arms.items() if runs}
    found = [*_without_consequences(list(_settings(arms, declared))), *_seeds(arms)]
    if not _declares("faults", declared):  # some of which restart them
        found += _counts(
            arms, "restarts of apiservers", _restarts, "caches, counters and open watches are lost with one"
        )
    found += _counts(
        arms, "processes that ended unasked", _exits, "without one, a run measures something else"
    )
    if not _declares("faults", declared):
        found += _counts(arms, "faults", _faults, "an arm with a fault is slower for that")
    return [*found, *_metrics(arms), *_hosts(arms)]


# ---- settings ------------------------------------------------------------------------------------------------------
def settings_of(run: Run) -> dict[str, str]:
    """Everything that was chosen or found before the run began, by dotted name."""
    manifest = run.manifest
    found = dict(flat("", manifest.arguments.get("options", {})))
    found.update(flat("version", manifest.versions))
    target = {key: value for key, value in manifest.target.items() if key not in _OF_ONE_POOL}
    found.update(flat("target", target))
    if "target.store.members" in found:  # of etcd, with their addresses
        found["target.store.members"] = str(len(manifest.target["store"]["members"]))
    found["target.members"] = str(len(manifest.target.get("members", ())))
    found.update(flat("host", {key: manifest.host.get(key) for key in ("system", "cores", "memory_bytes")}))
    found["nodes"] = str(manifest.nodes)
    found.pop("scenario", None)
    scenario = manifest.scenario
    found["scenario"] = Path(scenario.get("path", "none")).name
    resolved = msgspec.json.encode(scenario.get("resolved", ""), order="sorted")
    found["scenario.resolved"] = hashlib.sha256(resolved).hexdigest()[:12]
    return {key: value for key, value in found.items() if key not in OF_THE_SAMPLE}


def flat(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    """What a tree of settings says, by dotted names."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from flat(f"{prefix}.{key}" if prefix else str(key), item)
    else:
        yield prefix, value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _settings(arms: Arms, declared: Collection[str]) -> Iterator[Finding]:
    chosen = {name: [settings_of(run) for run in runs] for name, runs in arms.items()}
    keys = sorted({key for runs in chosen.values() for settings in runs for key in settings})
    for key in keys:
        seen = {
            name: list(dict.fromkeys(settings.get(key, _UNTOLD) for settings in runs))
            for name, runs in chosen.items()
        }
        for name, values in seen.items():
            if len(values) > 1:
                yield Finding(
                    key, {name: " and ".join(values)}, "samples of one arm differ among themselves", name
                )
        if not _declares(key, declared) and len({tuple(sorted(values)) for values in seen.values()}) > 1:
            told = {name: " and ".join(map(_short, values)) for name, values in seen.items()}
            yield Finding(key, told, "the experiment does not declare it")


def _without_consequences(findings: list[Finding]) -> list[Finding]:
    """One finding for what differs, not one more for each thing that follows from it."""
    consequences: set[tuple[str, str]] = set()
    for finding in findings:
        causes = [finding.what]
        for cause in causes:  # it grows while it is walked
            causes += FOLLOWS.get(cause, ())
            if cause.startswith("pool."):
                causes.append(f"target.{cause.removeprefix('pool.')}")
        consequences.update((finding.within, cause) for cause in causes[1:])
    return [
        finding
        for finding in findings
        if not any(_declares(finding.what, [key]) for within, key in consequences if within == finding.within)
    ]


def _declares(key: str, declared: Collection[str]) -> bool:
    return any(key == name or key.startswith(f"{name}.") for name in declared)


def _short(value: str) -> str:
    return value if len(value) <= 60 else value[:57] + "..."


def _seeds(arms: Arms) -> Iterator[Finding]:
    seeds = {name: sorted({run.manifest.seed for run in runs}) for name, runs in arms.items()}
    if len({tuple(found) for found in seeds.values()}) > 1:
        values = {name: ", ".join(map(str, found)) for name, found in seeds.items()}
        yield Finding(
            "seeds", values, "arms met different draws; other samples are missing, or other seeds were given"
        )


# ---- what happened -------------------------------------------------------------------------------------------------
def _counts(arms: Arms, what: str, count: Callable[[Run], int], why: str) -> Iterator[Finding]:
    """A finding where one arm had more than another. Of a sample that was run again, the run that had most counts."""
    totals = {}
    for name, runs in arms.items():
        most: dict[tuple[Path, int], int] = {}
        for run in runs:
            place = run.folder if not run.manifest.sample else run.folder.parent
            key = (place, run.manifest.sample)
            most[key] = max(most.get(key, 0), count(run))
        totals[name] = sum(most.values())
    if len(set(totals.values())) > 1:
        yield Finding(what, {name: str(total) for name, total in totals.items()}, why)


def _restarts(run: Run) -> int:
    """By each member's own start time; by the pool's word where a member has none."""
    started = run.frame("process_start_time_seconds")
    seen = sum(max(0, len(set(column.dropna())) - 1) for _, column in started.items())
    told = sum(event["kind"] == "member-restarted" for event in run.events)
    return int(max(seen, told))


def _exits(run: Run) -> int:
    return sum(event["kind"] in ("process-exited", "component-ended", "worker-lost") for event in run.events)


def _faults(run: Run) -> int:
    return sum(event["kind"] == "fault-started" for event in run.events)


def _metrics(arms: Arms) -> Iterator[Finding]:
    """Families that every run of one arm has and no run of another. Not those of counters: many of them begin with a
    first event, which one arm's clients may never cause."""
    families = {name: [_standing(run) for run in runs] for name, runs in arms.items()}
    always = {name: set.intersection(*found) for name, found in families.items()}
    ever = {name: set().union(*found) for name, found in families.items()}
    for missing, there in ever.items():
        for other in arms:
            gone = sorted(always[other] - there)
            if other != missing and gone:
                shown = ", ".join(gone[:3]) + (f" and {len(gone) - 3} more" if len(gone) > 3 else "")
                values = {other: "exposed", missing: f"not exposed: {shown}"}
                yield Finding("metrics", values, "rows that need them cannot be compared")


def _standing(run: Run) -> set[str]:
    return {name for name in run.families if not name.endswith(_COUNTED)}


# ---- hosts ---------------------------------------------------------------------------------------------------------
def _hosts(arms: Arms) -> Iterator[Finding]:
    busy = {name: [run for run in runs if _load(run) > LOAD_PER_CORE] for name, runs in arms.items()}
    if any(busy.values()):
        yield Finding(
            "host's load at the start",
            {n: _busy(r, arms[n]) for n, r in busy.items()},
            "something else was at work",
        )
    late = {name: [run for run in runs if _excuses(run)] for name, runs in arms.items()}
    if any(late.values()):
        values = {
            name: f"{len(found)} of {len(arms[name])} samples: {'; '.join(_excuses(found[0]))}"
            if found
            else "kept up"
            for name, found in late.items()
        }
        yield Finding(
            "overloaded host", values, "figures of such samples are the host's, not the control plane's"
        )


def _load(run: Run) -> float:
    """Of each core, when the run began; 0 over virtual time, whose clock waits for the host."""
    if run.manifest.target.get("backend") == "virtual":
        return 0.0
    load, cores = run.manifest.host.get("load_average") or [0.0], run.manifest.host.get("cores") or 1
    return float(load[0]) / cores


def _busy(busy: Collection[Run], runs: Collection[Run]) -> str:
    if not busy:
        return "idle"
    return f"{len(busy)} of {len(runs)} samples, up to {max(map(_load, busy)):.1f} a core"


def _excuses(run: Run) -> list[str]:
    return [mark.text for mark in run.manifest.marks if HOST_LATE in mark.text]
