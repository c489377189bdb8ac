"""The Prometheus of one run, on Locust's master: found or started, asked, ended."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.clusterloader import Config
from harness.clusterloader.measurements import PROMETHEUS
from harness.clusterloader.measurements.base import Params
from harness.clusterloader.measurements.genericquery import METHOD, queries_of
from harness.clusterloader.messages import Queried, Query
from harness.load.prometheus.access import access_of
from harness.load.prometheus.api import PrometheusApi, words
from harness.load.prometheus.arguments import AUTO, NONE, PrometheusOptions
from harness.observe.scraper import Source
from harness.pool import folders
from harness.pool.process import Process
from harness.pool.prometheus import PrometheusServer, find_prometheus
from harness.wire.errors import ConfigError
from harness.wire.request import TransportError

FOLDER = "prometheus"
_ANY_RANGE = ("%v", "1m")


class RunPrometheus:
    """`record` is the run's folder; `on_exit` hears of one that was started and ends unasked. `choose`, `start` and
    `end` are called in this order, `ask` in between."""

    def __init__(
        self,
        options: PrometheusOptions,
        record: Path,
        interval_s: float,
        on_exit: Callable[[Process, int], None],
    ) -> None:
        self._options = options
        self._record = record
        self._interval_s = interval_s
        self._on_exit = on_exit
        self._binary = ""
        self._config: Config | None = None
        self._api: PrometheusApi | None = None
        self._server: PrometheusServer | None = None
        self._secrets: tempfile.TemporaryDirectory[str] | None = None
        self._version = ""

    @property
    def at_hand(self) -> bool:
        """Whether queries will be answered; known once it is chosen."""
        return bool(self._api or self._binary)

    @property
    def pid(self) -> int:
        """Of one that was started; 0 of none."""
        return 0 if self._server is None else self._server.pid

    def choose(self, config: Config | None) -> None:
        """Find the one that will answer the scenario's queries, before anything is started. Raises ConfigError."""
        options, self._config = self._options, config
        if options.url:
            self._api = PrometheusApi(options.url, access_of(options.url, options.http_config))
            self._version = self._api.check()
            check_queries(config, self._api)
        elif options.binary == AUTO:
            self._binary = find_prometheus() if config is not None and has_queries(config) else ""
        elif options.binary != NONE:
            self._binary = find_prometheus(options.binary)

    def start(self, sources: Sequence[Source]) -> None:
        """Start the chosen binary, where it is one, to scrape these. Raises ConfigError or ProcessFailed."""
        if not self._binary:
            return
        folder = self._record / FOLDER
        folder.mkdir(exist_ok=True)
        self._secrets = tempfile.TemporaryDirectory(prefix=folders.prefix())
        server = PrometheusServer(
            self._binary,
            sources,
            folder,
            Path(self._secrets.name),
            self._record / "logs" / "prometheus.log",
            interval_s=self._interval_s,
            on_exit=self._exited,
        )
        server.start()
        self._server = server
        self._api = PrometheusApi(server.url, access_of(server.url))
        self._version = self._api.check()
        check_queries(self._config, self._api)

    def use_token(self, token: str) -> None:
        """Scrape with this one from now on."""
        if self._server is not None:
            self._server.use_token(token)

    def describe(self) -> dict[str, Any]:
        """Which one it is, for the record; empty where there is none."""
        if self._api is None:
            return {}
        started = self._server.describe() if self._server is not None else {}
        return {"url": self._api.name, "version": self._version, **started}

    def ask(self, query: Query) -> Queried:
        """Blocks the calling greenlet until it is answered, or is not."""
        if self._api is None:
            return Queried(number=query.number, error="this run has no Prometheus")
        try:
            answer = self._api.query(query.expression, query.at_s)
        except TransportError as error:
            return Queried(number=query.number, error=words(error))
        return Queried(number=query.number, status=answer.status, body=answer.body)

    def end(self) -> None:
        """End the one that was started; safe to call twice."""
        if self._server is not None:
            self._server.stop()
        if self._secrets is not None:
            self._secrets.cleanup()

    def _exited(self, process: Process, code: int) -> None:
        if self._server is not None:  # else it never became ready, which is told by whoever waits for it
            self._on_exit(process, code)


def check_queries(config: Config | None, api: PrometheusApi) -> None:
    """That Prometheus understands the queries that stand in a scenario. Raises ConfigError."""
    for placed in config.placed if config is not None else ():
        for index, spec in enumerate(placed.step.measurements):
            for number, call in enumerate(spec.calls() if spec.method == METHOD else ()):
                if call.params.get("action") != "start":
                    continue
                place = "" if spec.identifier else f".instances[{number}]"
                key = f"{placed.key}.measurements[{index}]{place}.params.queries"
                for query in queries_of(Params(call.params)).queries:
                    why = api.parse_error(query.query.replace(*_ANY_RANGE))
                    if why:
                        where = placed.document.where(key)
                        raise ConfigError(f"{where}: {key} ({query.name}): {query.query!r:.80}: {why}")


def has_queries(config: Config) -> bool:
    """Whether a scenario has a measurement that only a Prometheus can answer."""
    return any(spec.method in PROMETHEUS for step in config.steps for spec in step.measurements)
