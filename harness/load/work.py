"""What a run does: a scenario or a kperf profile, claims, informers, as the options and the locustfile's users say."""

from __future__ import annotations

import logging
import os
from typing import Any

import msgspec

from harness.clusterloader import Config, Files, describe, load_config
from harness.clusterloader.executor import step_name
from harness.clusterloader.measurements.exec import refuse_commands
from harness.load.arguments import RunOptions
from harness.load.informerrun import UNRECORDED as OF_INFORMERS
from harness.load.informerrun import InformerRun, informer_run
from harness.load.kperfresults import UNRECORDED as OF_KPERF
from harness.load.kperfresults import KperfResults, Tell, kperf_results
from harness.load.live.steps import PROGRESS
from harness.load.outcome import Outcome
from harness.load.scenarioresults import ScenarioResults
from harness.load.workers.nodes import NODES_WANTED
from harness.observe.record import RunRecord, Status

logger = logging.getLogger("swarmlet")

SCENARIO, CLAIMS = "scenario", "claims"


class Work:
    """`options` are the run's, fitted to what it does; `described` is what its manifest says of the scenario. Raises
    ConfigError for what cannot be run."""

    def __init__(self, environment: Any, options: RunOptions, tell: Tell) -> None:
        self.options = options
        self.files = Files()
        self.config: Config | None = None
        self.described: dict[str, Any] = {}
        self.informers: InformerRun | None = informer_run(environment, options, tell)
        raw, pace = options.raw_data, options.pace
        self.kperf = kperf_results(environment, options.scenario, self.files, tell, raw=raw, pace=pace)
        self._results: ScenarioResults | KperfResults | None = self.kperf
        self._awaited = {SCENARIO} if options.scenario else set()
        if options.provisioners is not None:
            self._awaited.add(CLAIMS)
        self.ends_by_itself = bool(self._awaited)
        if self.kperf is not None:
            self.options = msgspec.structs.replace(options, kubelets=0, http=self.kperf.http(options.http))
            self.described = {"path": options.scenario, "resolved": self.kperf.describe()}
        elif options.scenario:
            self.config = self._load(options)
            self._results = ScenarioResults(self.config)
            self.described = {"path": options.scenario, "resolved": describe(self.config)}

    def _load(self, options: RunOptions) -> Config:
        config = load_config(
            options.scenario, options.kubelets, options.overrides, os.environ, files=self.files
        )
        if not options.allow_exec:
            refuse_commands(config)
        return config

    @property
    def steps(self) -> list[str]:
        """The names of the scenario's steps, in order, each once."""
        steps = self.config.steps if self.config is not None else ()
        return list(dict.fromkeys(step_name(step) for step in steps))

    @property
    def ignored(self) -> tuple[str, ...]:
        """What stands in a profile and means nothing here."""
        return tuple(self.kperf.profile.ignored) if self.kperf is not None else ()

    def take(self, kind: str, fields: dict[str, Any]) -> None:
        """What a user told, or the session."""
        if self._results is not None:
            self._results.take(kind, fields)
        if self.informers is not None:
            self.informers.take(kind, fields)

    def all_ended_with(self, part: str) -> bool:
        """A part has ended; whether it was the last one."""
        self._awaited.discard(part)
        return not self._awaited

    def keep(self, record: RunRecord, outcome: Outcome) -> None:
        """Write what came out of it, once everything is counted."""
        if self._results is not None:
            self._keep_results(record, outcome)
        if self.informers is not None:
            _keep_informers(self.informers, record, outcome)

    def _keep_results(self, record: RunRecord, outcome: Outcome) -> None:
        """The scenario's artifacts, and the SLOs that only the whole record shows."""
        assert self._results is not None
        slos = self._results.finish(self.options.record)
        results = record.manifest.results
        results.setdefault("measurements", []).extend(slos.measurements)
        results.setdefault("violations", []).extend(slos.violations)
        outcome.miss(slos.violations)
        for skipped in slos.skipped:
            record.event("skipped-measurement", {**skipped._asdict(), "part": True})
            record.mark(f"not measured: {skipped.method} {skipped.identifier} ({skipped.reason})")


def is_recorded(kind: str) -> bool:
    """Some of what users tell is no event of the run: too much of it, or of no use afterwards."""
    return kind not in (PROGRESS, NODES_WANTED) and kind not in OF_KPERF and kind not in OF_INFORMERS


def _keep_informers(informers: InformerRun, record: RunRecord, outcome: Outcome) -> None:
    """What was found of informers; a violation fails the run."""
    failures, marks = informers.finish()
    record.manifest.results.setdefault("informers", {}).update(informers.results)
    for text in marks:
        record.mark(text)
    for text in failures:
        logger.error("%s", text)
        outcome.fail(text)
        outcome.status = Status.FAILED
