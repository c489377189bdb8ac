"""Records of two members, made by hand: scrapes every 5 s from -10 to 60, load phase 0 to 30, scenario -5 to 50, in
seconds since the load phase began."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.compare.run import CREATE_BARRIER, Run
from harness.observe.histogram import bucket_of
from harness.observe.record import SAMPLES, SERIES, Manifest, Parts, RunRecord, Status

LOAD = 1_000_000.0
TIMES = tuple(float(t) for t in range(-10, 65, 5))
MEMBERS = ("m0", "m1")


class Planted:
    """Fill it, then take `run`. Series are given as what they show from a time on."""

    def __init__(
        self, folder: Path, *, members: tuple[str, ...] = MEMBERS, backend: str = "emulated"
    ) -> None:
        manifest = Manifest(name=folder.name, started=LOAD - 10, arm=folder.name)
        manifest.target = {"backend": backend, "members": [{"name": name} for name in members]}
        self.manifest = manifest
        self._record = RunRecord(folder, manifest)
        self._series = Parts(folder / "series", SERIES)
        self._samples = Parts(folder / "samples", SAMPLES)
        self._rows: list[tuple[float, str, str, float]] = []
        self._up = {(t, member): 1.0 for t in TIMES for member in members}

    def scenario(self, barrier_s: float = 12.0) -> Planted:
        self.event("scenario-started", -5)
        self.event("phase-started", 0)
        self.event("step-finished", 30, name=CREATE_BARRIER, seconds=barrier_s)
        self.event("scenario-finished", 50)
        return self

    def event(self, kind: str, t: float, **fields: Any) -> Planted:
        self._record.event(kind, fields, t=LOAD + t)
        return self

    def down(self, member: str, *times: float) -> Planted:
        self._up |= {(t, member): 0.0 for t in times}
        return self

    def series(self, member: str, text: str, values: Mapping[float, float]) -> Planted:
        self._rows += [(t, member, text, value) for t, value in values.items()]
        return self

    def histogram(
        self, member: str, metric: str, labels: str, values: Mapping[float, tuple[float, ...]]
    ) -> Planted:
        """`values`: cumulative counts of the buckets 0.01, 0.1 and +Inf from a time on."""
        for index, bound in enumerate(("0.01", "0.1", "+Inf")):
            shown = {t: counts[index] for t, counts in values.items()}
            self.series(member, f'{metric}_bucket{{{labels}{"," * bool(labels)}le="{bound}"}}', shown)
        return self

    def sample(
        self, user: str, name: str, labels: str, ms: float, count: int = 1, t: float = 10.0
    ) -> Planted:
        self._samples.add((LOAD + t, user, name, labels, bucket_of(ms * 1e3), count))
        return self

    def request(
        self, user: str, verb: str, name: str, code: int, count: int, ms: float = 5.0, t: float = 10.0
    ) -> Planted:
        self._record.requests([(LOAD + t, user, verb, name, code, "m0", bucket_of(ms * 1e3), count)])
        return self

    def run(self) -> Run:
        rows = [(t, member, "up", value) for (t, member), value in self._up.items()]
        for t, member, text, value in sorted([*rows, *self._rows]):
            self._series.add((LOAD + t, member, text, value))
        self._series.flush()
        self._samples.flush()
        self._record.finish(Status.COMPLETED, t=LOAD + 60)
        return Run(self._record.folder)
