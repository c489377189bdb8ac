"""The record of a run over virtual time: what clients saw, what machines noted, and each member's /metrics."""

from __future__ import annotations

from typing import Any

from harness.client.machine import Finished, Note, Sample, Seen
from harness.load.delivery import Deliveries
from harness.load.statistics import Statistics
from harness.observe.exposition import samples
from harness.observe.record import SERIES, Parts, RunRecord
from harness.virtual.observer import Call, Observer
from harness.virtual.world import World
from harness.wire.request import Response


class VirtualRecord(Observer):
    """Hears of a world and writes its record; times are the world's wall clock, so that equal runs have equal ones.
    `ended` has the ends of machines, by kind. `watch` begins to scrape, each `interval_s`."""

    def __init__(self, record: RunRecord, interval_s: float) -> None:
        self.ended: dict[str, Finished] = {}
        self._record = record
        self._interval_s = interval_s
        self._series = Parts(record.folder / "series", SERIES)
        self._last: dict[tuple[str, str], float] = {}

    def watch(self, world: World) -> None:
        """Raises nothing and is called once, before the first machine is added."""
        self._world = world
        self._statistics = Statistics(lambda **_: None, Deliveries(0, world.clock.now), world.clock.wall)
        self._scrape()

    def answered(self, call: Call, response: Response, seconds: float, error: str = "") -> None:
        size = len(response.body) + response.discarded_bytes
        self._statistics.request(
            call.kind, call.request, response.status, response.member, seconds, size, error
        )

    def sampled(self, kind: str, sample: Sample) -> None:
        self._statistics.sample(kind, sample)

    def seen(self, kind: str, seen: Seen) -> None:
        self._statistics.deliveries.seen(kind, seen)

    def noted(self, kind: str, note: Note) -> None:
        self.event(note.kind, {"user": kind, **note.fields})

    def finished(self, kind: str, end: Finished) -> None:
        self.ended[kind] = end

    def event(self, kind: str, fields: dict[str, Any]) -> None:
        self._record.event(kind, fields, t=self._world.clock.wall())

    def close(self) -> None:
        """The last scrape and what has been counted since the one before; the record itself is the caller's to end."""
        self._take()
        self._series.flush()

    def _scrape(self) -> None:
        self._take()
        self._world.at(self._world.now + self._interval_s, self._scrape)

    def _take(self) -> None:
        wall = self._world.clock.wall()
        for member in self._world.pool.members:
            name = member.options.name
            self._series.add((wall, name, "up", 1.0))
            for series, value in samples(member.metrics_text().decode()):
                if self._last.get((name, series)) != value:
                    self._last[name, series] = value
                    self._series.add((wall, name, series, value))
        self._record.requests(self._statistics.take())
        self._record.samples(self._statistics.take_samples())
