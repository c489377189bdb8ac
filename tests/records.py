"""Run records made by hand, so that every figure taken from them is known beforehand."""

from __future__ import annotations

from pathlib import Path

from harness.compare.run import CREATE_BARRIER
from harness.observe.histogram import bucket_of
from harness.observe.record import SERIES, Manifest, Parts, RunRecord, Status

START = 1_000_000.0
LOAD = START + 20  # the load phase begins


def make_record(
    folder: Path,
    *,
    arm: str = "one",
    sample: int = 1,
    members: int = 1,
    barrier_s: float = 30.0,
    denials: int = 7,
    marks: tuple[tuple[str, bool], ...] = (),
    status: Status = Status.COMPLETED,
) -> Path:
    """A finished run: scrapes every 5 s over a minute. Member k of n holds 100 * (k + 1) watches at its peak, answers
    10 * (k + 1) requests a second, and has delivered 1,000 * (k + 1) watch events."""
    manifest = Manifest(name=folder.name, started=START, arm=arm, sample=sample, nodes=10)
    names = [f"member-{index}" for index in range(members)]
    manifest.target = {"backend": "emulated", "members": [{"name": name} for name in names], "cores": 0.5}
    manifest.results = {"nodes_by_members": {"1": 8, "2": 2}}
    record = RunRecord(folder, manifest)
    record.event("scenario-started", {}, t=START + 10)
    record.event("phase-started", {"step": 1}, t=LOAD)
    record.event("step-finished", {"name": CREATE_BARRIER, "seconds": barrier_s}, t=LOAD + 5 + barrier_s)
    record.event("scenario-finished", {"failures": []}, t=LOAD + 40)
    parts = Parts(folder / "series", SERIES)
    for step in range(13):
        t = START + 5 * step
        for index, name in enumerate(names):
            _scrape(parts, t, name, index + 1, step)
            parts.add((t, name, "swarmlet_process_resident_memory_bytes", 8e9))
        parts.add((t, "locust", "swarmlet_process_resident_memory_bytes", 9e9))
    parts.flush()
    record.requests(
        [
            (LOAD + 1, "kubelet", "watchlist", "secrets", 200, "member-0", bucket_of(5000), 60),
            (LOAD + 1, "kubelet", "watchlist", "configmaps", 403, "member-0", bucket_of(5000), denials),
            (LOAD + 2, "kubelet", "create", "events", 403, "member-0", bucket_of(7000), 50),
            (LOAD + 2, "kubelet", "list", "configmaps", 200, "member-0", bucket_of(7000), 20),
            (LOAD + 2, "scheduler", "list", "secrets", 403, "member-0", bucket_of(7000), 99),
        ]
    )
    record.samples([(LOAD + 5, "kubelet", "pod_startup_ms", "", bucket_of(1e6), 10)])
    record.samples([(LOAD + 5, "clusterloader", "pod_startup_ms", "", bucket_of(9e6), 99)])
    for text, invalid in marks:
        record.mark(text, invalid=invalid)
    record.finish(status)
    return folder


def _scrape(parts: Parts, t: float, member: str, factor: int, step: int) -> None:
    def series(name: str, value: float) -> None:
        parts.add((t, member, name, value))

    series("up", 1.0)
    series(
        'apiserver_longrunning_requests{verb="WATCH",resource="pods"}', 40.0 * factor if step == 6 else 10.0
    )
    series(
        'apiserver_longrunning_requests{verb="WATCH",resource="secrets"}',
        60.0 * factor if step == 6 else 10.0,
    )
    series('apiserver_longrunning_requests{verb="CONNECT",resource="pods"}', 1e6)
    series("process_resident_memory_bytes", 1e6 * factor * (step + 1))
    series('apiserver_watch_events_total{resource="pods"}', 1000.0 * factor * step / 12)
    series('apiserver_request_total{verb="GET",resource="pods",code="200"}', 40.0 * factor * step)
    series('apiserver_request_total{verb="LIST",resource="secrets",code="200"}', 10.0 * factor * step)
    series('apiserver_flowcontrol_nominal_limit_seats{priority_level="system"}', 74.0)
    series(
        'apiserver_flowcontrol_current_inqueue_requests{priority_level="system"}',
        3.0 * factor if step == 4 else 0.0,
    )
    for le, count in (("0.01", 50), ("0.1", 99), ("+Inf", 100)):
        series(f'etcd_request_duration_seconds_bucket{{operation="get",le="{le}"}}', count * step)
