"""What a scenario leaves in its run's record: ClusterLoader2's artifacts, and what the scraped series come to.

The SLO of API calls needs what the scraper kept, which is whole only once the run is over; so it is computed here, for
all members together as upstream does and beside it for each. So are the measurements of `recordwindows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from harness.clusterloader import Config
from harness.clusterloader.artifacts import Artifacts
from harness.clusterloader.measurements.recorded import NOTE
from harness.clusterloader.resourceusage import read_constraints
from harness.clusterloader.series import Series
from harness.clusterloader.slo import (
    REQUESTS,
    WATCH_LISTS,
    Limits,
    figures,
    latencies,
    perf_data,
    violations,
)
from harness.load.lateness import lateness
from harness.load.recordseries import families
from harness.load.recordwindows import NOT_SCRAPED, Evaluator, RecordWindow, Skipped
from harness.observe.record import read_manifest, read_table

FOLDER = "artifacts"
_SLO = "APIResponsivenessPrometheus"


class _Window(NamedTuple):
    identifier: str
    step: str
    since: float
    until: float
    limits: Limits


class ScenarioResults:
    """`take` is given what the scenario's user tells; `finish` writes the files of a run that is over."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._artifacts = Artifacts(config)
        self._windows: list[_Window] = []
        self._recorded: list[RecordWindow] = []

    def take(self, kind: str, fields: Mapping[str, Any]) -> None:
        self._artifacts.take(kind, fields)
        if kind == "slo-window":
            limits = msgspec.convert(fields["limits"], Limits)
            window = (fields["identifier"], fields["step"], fields["from_s"], fields["until_s"], limits)
            self._windows.append(_Window(*window))
        elif kind == NOTE:
            self._recorded.append(msgspec.convert(fields, RecordWindow))

    def finish(self, record: Path) -> SLOs:
        """Write the artifacts into `record`; what the SLOs came to. Raises OSError."""
        found = SLOs([], [], [])
        if self._windows or self._recorded:
            self._look_into(record, read_table(record, "series"), found)
        found.measurements.extend(lateness(record))
        folder = record / FOLDER
        folder.mkdir(exist_ok=True)
        for name, content in self._artifacts.files():
            (folder / name).write_bytes(content)
        return found

    def _look_into(self, record: Path, table: pa.Table, found: SLOs) -> None:
        series = families(table, {REQUESTS, WATCH_LISTS}) if self._windows else {}
        for window in self._windows:
            if series:
                self._evaluate(window, series, found)
            else:
                self._skip(Skipped(_SLO, window.identifier, NOT_SCRAPED), found)
        if self._recorded:
            config = self._config
            limits = {
                window.limits: read_constraints(config.templates, window.limits, config.nodes)
                for window in self._recorded
                if window.limits
            }
            evaluator = Evaluator(table, read_manifest(record).target, limits)
            for recorded in self._recorded:
                self._compute(recorded, evaluator, found)

    def _skip(self, skipped: Skipped, found: SLOs) -> None:
        found.skipped.append(skipped)
        self._artifacts.skipped(f"{skipped.method} - {skipped.identifier}", skipped.reason)

    def _compute(self, window: RecordWindow, evaluator: Evaluator, found: SLOs) -> None:
        """One window of the record. What its summary is stands in its file alone: it may be megabytes."""
        evaluated = evaluator.evaluate(window)
        for skipped in evaluated.skipped:
            self._skip(skipped, found)
        for summary in evaluated.summaries:
            self._artifacts.summary(summary.name, window.until_s, summary.content)
        if evaluated.summaries:
            found.measurements.append(
                {
                    "name": window.method,
                    "method": window.label,
                    "identifier": window.identifier,
                    "step": window.step,
                    "values": evaluated.values,
                }
            )
        if evaluated.violation:
            self._miss(f"{window.label} - {window.identifier}: {evaluated.violation}", found)

    def _miss(self, text: str, found: SLOs) -> None:
        found.violations.append(text)
        self._artifacts.problem(text)

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
                "method": _SLO,
                "identifier": window.identifier,
                "step": window.step,
                "values": values,
                "summary": msgspec.to_builtins(summary),
            }
        )
        if window.limits.enforced:
            for text in violations(whole, window.limits):
                self._miss(f"{_SLO} - {window.identifier}: {text}", found)


class SLOs(NamedTuple):
    """`measurements` as the scenario's own notes have them; thresholds that were missed; what nothing is known of."""

    measurements: list[dict[str, Any]]
    violations: list[str]
    skipped: list[Skipped]
