"""What a scenario leaves in its run's record: ClusterLoader2's artifacts, and the SLOs from the members' histograms.

The SLO of API calls needs what the scraper kept, which is whole only once the run is over; so it is computed here, for
all members together as upstream does and beside it for each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from harness.clusterloader import Config
from harness.clusterloader.artifacts import Artifacts
from harness.clusterloader.slo import (
    REQUESTS,
    WATCH_LISTS,
    Limits,
    Series,
    figures,
    latencies,
    perf_data,
    violations,
)
from harness.load.lateness import lateness
from harness.observe.exposition import split
from harness.observe.record import read_table

FOLDER = "artifacts"
NOT_SCRAPED = "no member's /metrics was scraped"


class _Window(NamedTuple):
    identifier: str
    step: str
    since: float
    until: float
    limits: Limits


class ScenarioResults:
    """`take` is given what the scenario's user tells; `finish` writes the files of a run that is over."""

    def __init__(self, config: Config) -> None:
        self._artifacts = Artifacts(config)
        self._windows: list[_Window] = []

    def take(self, kind: str, fields: Mapping[str, Any]) -> None:
        self._artifacts.take(kind, fields)
        if kind == "slo-window":
            limits = msgspec.convert(fields["limits"], Limits)
            window = (fields["identifier"], fields["step"], fields["from_s"], fields["until_s"], limits)
            self._windows.append(_Window(*window))

    def finish(self, record: Path) -> SLOs:
        """Write the artifacts into `record`; what the SLOs came to. Raises OSError."""
        found = SLOs([], [], [])
        series = _histograms(record) if self._windows else {}
        for window in self._windows:
            if series:
                self._evaluate(window, series, found)
            else:
                found.skipped.append(f"APIResponsivenessPrometheus {window.identifier}")
                self._artifacts.skipped(f"APIResponsivenessPrometheus - {window.identifier}", NOT_SCRAPED)
        found.measurements.extend(lateness(record))
        folder = record / FOLDER
        folder.mkdir(exist_ok=True)
        for name, content in self._artifacts.files():
            (folder / name).write_bytes(content)
        return found

    def _evaluate(self, window: _Window, series: Mapping[str, list[Series]], found: SLOs) -> None:
        """One window over all members, and over each where there are several."""
        name = window.limits.name
        content = [item for items in series.values() for item in items]
        whole = latencies(content, window.since, window.until, simple=window.limits.simple)
        summary = perf_data(whole)
        values = dict(figures(whole))
        self._artifacts.summary(name, window.until, summary)
        for member, items in sorted(series.items()) if len(series) > 1 else ():
            own = latencies(items, window.since, window.until, simple=window.limits.simple)
            self._artifacts.summary(f"{name}_{member}", window.until, perf_data(own))
            values.update((f"{member}: {call}", figure) for call, figure in figures(own[:1]))
        found.measurements.append(
            {
                "name": f"{name}_{window.identifier}",
                "method": "APIResponsivenessPrometheus",
                "identifier": window.identifier,
                "step": window.step,
                "values": values,
                "summary": msgspec.to_builtins(summary),
            }
        )
        if window.limits.enforced:
            for text in violations(whole, window.limits):
                missed = f"APIResponsivenessPrometheus - {window.identifier}: {text}"
                found.violations.append(missed)
                self._artifacts.problem(missed)


class SLOs(NamedTuple):
    """`measurements` as the scenario's own notes have them; thresholds that were missed; what nothing is known of."""

    measurements: list[dict[str, Any]]
    violations: list[str]
    skipped: list[str]


def _histograms(record: Path) -> dict[str, list[Series]]:
    """The histograms' buckets by member, from the record's series."""
    table = read_table(record, "series")
    text = table["series"].cast("string")
    wanted = pc.or_(pc.starts_with(text, REQUESTS), pc.starts_with(text, WATCH_LISTS))
    points: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    rows: pa.Table = table.filter(wanted)
    columns = (rows[name].to_pylist() for name in ("member", "series", "t", "value"))
    for member, name, t, value in zip(*columns, strict=True):
        points[member, name].append((t, value))
    found: defaultdict[str, list[Series]] = defaultdict(list)
    for (member, name), kept in points.items():
        kept.sort()
        family, labels = split(name)
        times, values = zip(*kept, strict=True)
        found[member].append(Series({**labels, "__name__": family}, times, values))
    return found
