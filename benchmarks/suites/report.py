"""The three files of a report, charts included, from the records of six short runs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.child import in_child
from benchmarks.registry import FEW, Line, Plan, benchmark
from harness.compare.run import CREATE_BARRIER, Run
from harness.observe.histogram import bucket_of
from harness.observe.record import SERIES, Manifest, Parts, RunRecord, Status
from harness.report.render import render

_START = 1_000_000.0
_SCRAPE_S = 5.0
_MINUTES = 10
_RESOURCES = ("pods", "secrets", "configmaps", "nodes", "services", "leases", "events", "endpointslices")


@benchmark("report/render", FEW)
def report(plan: Plan) -> Iterator[Line]:
    """Two arms of three runs of 10 minutes with 1 and 3 members; a process that renders one report and ends."""
    minutes = plan.count(_MINUTES, least=1)
    found = [in_child(render_costs, minutes=minutes) for _ in range(plan.repeats)]
    yield Line("report/render/6 runs", "s", found)


def render_costs(minutes: int) -> float:
    """CPU seconds of one rendering. Runs in a child, for the charts' renderer keeps threads of its own."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [
            _record(Path(folder) / f"{members}-{sample}", members, sample, minutes)
            for members in (1, 3)
            for sample in (1, 2, 3)
        ]
        begun = time.process_time()
        render([Run(path) for path in paths], Path(folder), "One master or three?")
        return time.process_time() - begun


def _record(folder: Path, members: int, sample: int, minutes: int) -> Path:
    """A finished run with eight resources on each member."""
    name = "1 master" if members == 1 else f"{members} masters"
    manifest = Manifest(name=folder.name, started=_START, arm=name, sample=sample, nodes=100)
    names = [f"member-{index}" for index in range(members)]
    manifest.target = {"backend": "emulated", "members": [{"name": each} for each in names], "cores": 0.5}
    record = RunRecord(folder, manifest)
    end = _START + 60 * minutes
    record.event("scenario-started", {}, t=_START + 10)
    record.event("phase-started", {"step": 1}, t=_START + 20)
    record.event("step-finished", {"name": CREATE_BARRIER, "seconds": 30.0 / members + sample}, t=end - 5)
    record.event("scenario-finished", {"failures": []}, t=end)
    parts = Parts(folder / "series", SERIES)
    for step in range(round(60 * minutes / _SCRAPE_S)):
        for member in names:
            _scrape(parts, _START + _SCRAPE_S * step, member, step)
    parts.flush()
    record.requests(
        [
            (
                _START + second,
                "kubelet",
                "watch",
                resource,
                200,
                names[second % members],
                bucket_of(5000.0),
                9,
            )
            for second in range(20, 60 * minutes)
            for resource in _RESOURCES
        ]
    )
    record.samples(
        [(_START + second, "kubelet", "pod_startup_ms", "", bucket_of(1e6), 3) for second in range(20, 60)]
    )
    record.finish(Status.COMPLETED)
    return folder


def _scrape(parts: Parts, t: float, member: str, step: int) -> None:
    def add(series: str, value: float) -> None:
        parts.add((t, member, series, value))

    add("up", 1.0)
    add("process_resident_memory_bytes", 3e8 + 1e6 * step)
    add('apiserver_flowcontrol_nominal_limit_seats{priority_level="system"}', 74.0)
    for resource in _RESOURCES:
        labels = f'resource="{resource}"'
        add(f'apiserver_longrunning_requests{{verb="WATCH",{labels}}}', 10.0 * step)
        add(f"apiserver_watch_events_total{{{labels}}}", 100.0 * step)
        add(f'apiserver_request_total{{verb="GET",{labels},code="200"}}', 40.0 * step)
    for bound, count in (("0.01", 50), ("0.1", 99), ("+Inf", 100)):
        add(f'etcd_request_duration_seconds_bucket{{operation="get",le="{bound}"}}', count * step)
