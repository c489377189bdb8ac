"""Throughput: how long the scenario's steps took, how fast pods came to run, what scheduling and startup took."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from harness.compare.rows.builders import clients, sample_quantile
from harness.compare.rows.row import Row, Taken
from harness.compare.run import CREATE_BARRIER, Run, Window

_STARTUP = "kubelets: from first seeing a pod to its Running status being accepted"
_SEEN = "ClusterLoader's PodStartupLatency: from a pod's creation to its being seen Running by a watch"
_SCHEDULED = "scheduler: from hearing of a pod to the answer to its binding; a target's own is not seen"


def throughput_rows(runs: Iterable[Run]) -> list[Row]:
    """In the order of a report; a row for each barrier that some run had."""
    rows = [
        _barrier("barrier", CREATE_BARRIER, "from the last object's creation to every pod Running"),
        clients(
            "wall-clock",
            "Job wall clock",
            "s",
            "from the scenario's first step to the end of its last",
            lambda run: run.wall_clock_s,
            window="whole scenario",
        ),
        clients(
            "load-phase",
            "Load phase",
            "s",
            f"from the first object's creation to the end of {CREATE_BARRIER!r}, or of the last step without one",
            _load_phase_s,
            window=Window.LOAD.value,
        ),
    ]
    others = dict.fromkeys(step for run in runs for step in run.barriers if step != CREATE_BARRIER)
    rows += [_barrier(f"barrier-{number}", step, "") for number, step in enumerate(others, 2)]
    rows.append(
        clients(
            "pods-rate",
            "Pods that came to run",
            "/s",
            "kubelets' accepted Running statuses, reported up to 1 s after the load phase, over its length",
            _pods_per_s,
            window=Window.LOAD.value,
            lower_is_better=False,
        )
    )
    for key, title, source, user, sample in (
        ("schedule", "Scheduling", _SCHEDULED, "scheduler", "schedule_ms"),
        ("pod-startup", "Pod startup", _STARTUP, "kubelet", "pod_startup_ms"),
        ("pod-startup-seen", "Pod startup as a watcher sees it", _SEEN, "clusterloader", "pod_startup_ms"),
    ):
        rows += [
            sample_quantile(f"{key}-p{q * 100:.0f}", f"{title} p{q * 100:.0f}", source, user, sample, q)
            for q in (0.5, 0.99)
        ]
    return rows


def _barrier(key: str, step: str, what: str) -> Row:
    return Row(
        key,
        f"Barrier “{step.removesuffix(' to be completed')}”",
        "s",
        Taken.RUN,
        "its step",
        f"duration of the step {step!r}{': ' * bool(what)}{what}; none where it did not pass",
        partial(_barrier_s, step),
    )


def _barrier_s(step: str, run: Run) -> float | None:
    return None if run.barriers.get(step) is False else run.step_s(step)


def _load_phase_s(run: Run) -> float | None:
    return run.load_ended if run.bounds(Window.LOAD) else None


def _pods_per_s(run: Run) -> float | None:
    ended = _load_phase_s(run)
    rows = run.samples_of("kubelet", "pod_startup_ms")
    if not ended or rows.empty:
        return None
    mine = run.reported(rows.assign(t=rows["t"] - run.load_began), Window.LOAD)
    return float(mine["count"].sum()) / ended
