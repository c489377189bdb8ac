"""The Prometheus of a run: which one is chosen, started, asked and ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gevent
import psutil
import pytest

from harness.clusterloader import Config, load_config
from harness.clusterloader.messages import Queried, Query
from harness.load.prometheus.arguments import PrometheusOptions
from harness.load.prometheus.running import RunPrometheus, has_queries
from harness.observe.scraper import Source
from harness.pool.process import Process, ProcessFailed
from harness.wire.errors import ConfigError
from tests.conftest import HANG_S
from tests.load.plays import TINY
from tests.load.prometheus.conftest import Serve
from tests.pool.standin import install as stand_in

MEMBER = Source("member-0", "https://127.0.0.1:6443", token="secret")
QUERIES = """\
name: queries
steps:
- name: start
  measurements:
  - {identifier: none, method: Sleep, params: {duration: 1s}}
  - method: GenericPrometheusQuery
    instances:
    - identifier: a
      params: {action: start, metricName: a, metricVersion: v1, queries: [{name: q, query: "up[%v]"}]}
    - identifier: b
      params: {action: start, metricName: b, metricVersion: v1, queries: [{name: q, query: "sum("}]}
"""
Make = Callable[..., RunPrometheus]


@pytest.fixture
def queries(tmp_path: Path) -> Config:
    (tmp_path / "config.yaml").write_text(QUERIES)
    return load_config(tmp_path / "config.yaml", 1)


@pytest.fixture
def ended() -> list[str]:
    return []


@pytest.fixture
def make(tmp_path: Path, ended: list[str]) -> Iterator[Make]:
    (tmp_path / "run" / "logs").mkdir(parents=True)
    made: list[RunPrometheus] = []

    def hear(process: Process, code: int) -> None:
        ended.append(process.name)

    def _make(**options: Any) -> RunPrometheus:
        made.append(RunPrometheus(PrometheusOptions(**options), tmp_path / "run", 1.0, hear))
        return made[-1]

    yield _make
    for one in made:
        one.end()


@pytest.fixture
def binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The one that would be found."""
    (tmp_path / "bin").mkdir()
    path = stand_in(tmp_path / "bin", "well")
    monkeypatch.setenv("TEST_ASSET_PROMETHEUS", path)
    return path


# ---- one that is there -----------------------------------------------------------------------------------------------
def test_a_url_is_checked_before_anything_starts_and_asked(make: Make, serve: Serve) -> None:
    server = serve({"up": [[{}, 3.0]]})
    prometheus = make(url=server.url)
    prometheus.choose(None)
    assert prometheus.at_hand
    prometheus.start([MEMBER])
    assert prometheus.pid == 0
    assert prometheus.describe() == {"url": server.url, "version": "2.42.0"}
    answer = prometheus.ask(Query(number=7, expression="up", at_s=1.0))
    assert (answer.number, answer.status, answer.error) == (7, 200, "")
    assert b'"3.0"' in answer.body


def test_a_url_that_nobody_answers_is_refused(make: Make, serve: Serve) -> None:
    server = serve()
    server.status, server.body = 500, b"oh"
    with pytest.raises(ConfigError, match="HTTP 500"):
        make(url=server.url).choose(None)


def test_an_answer_that_does_not_come_is_told_in_words(make: Make, serve: Serve) -> None:
    server = serve()
    prometheus = make(url=server.url)
    prometheus.choose(None)
    prometheus._api._access = prometheus._api._access._replace(port=1)  # type: ignore[union-attr]
    assert prometheus.ask(Query(number=1, expression="up", at_s=0)) == Queried(
        number=1, error="connection refused"
    )


def test_queries_that_are_no_promql_are_refused_with_their_place(
    make: Make, serve: Serve, queries: Config
) -> None:
    server = serve({"up[1m]": []})
    with pytest.raises(ConfigError) as caught:
        make(url=server.url).choose(queries)
    place = "config.yaml:11: steps[0].measurements[1].instances[1].params.queries (q)"
    assert f"{place}: 'sum(': parse error" in str(caught.value)


# ---- none ------------------------------------------------------------------------------------------------------------
def test_none_is_none(make: Make, binary: str, queries: Config) -> None:
    prometheus = make(binary="none")
    prometheus.choose(queries)
    prometheus.start([MEMBER])
    assert not prometheus.at_hand
    assert prometheus.describe() == {}
    answer = prometheus.ask(Query(number=1, expression="up", at_s=0))
    assert answer.error == "this run has no Prometheus"


def test_where_no_binary_is_found_there_is_none(
    make: Make, queries: Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TEST_ASSET_PROMETHEUS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    prometheus = make()
    prometheus.choose(queries)
    assert not prometheus.at_hand


def test_a_scenario_without_queries_starts_none(make: Make, binary: str) -> None:
    config = load_config(TINY, 5)
    assert not has_queries(config)
    for given in (config, None):
        prometheus = make()
        prometheus.choose(given)
        assert not prometheus.at_hand


# ---- one that is started ---------------------------------------------------------------------------------------------
def test_one_that_is_found_is_started_for_a_scenario_with_queries(
    make: Make, binary: str, queries: Config, tmp_path: Path
) -> None:
    prometheus = make()
    prometheus.choose(queries)
    assert prometheus.at_hand
    prometheus.start([MEMBER])
    found = prometheus.describe()
    assert (found["binary"], found["version"], found["interval_s"]) == (binary, "9.9.9", 1.0)
    assert found["data"] == str(tmp_path / "run" / "prometheus" / "data")
    assert (tmp_path / "run" / "logs" / "prometheus.log").exists()
    answer = prometheus.ask(Query(number=1, expression="up", at_s=0))
    assert answer.status == 200
    pid = prometheus.pid
    prometheus.end()
    assert not psutil.pid_exists(pid)


def test_one_that_is_named_is_started_whatever_the_scenario(make: Make, binary: str) -> None:
    prometheus = make(binary=binary)
    prometheus.choose(None)
    prometheus.start([MEMBER])
    assert prometheus.pid


def test_one_that_does_not_start_ends_the_run_and_is_told_once(
    make: Make, tmp_path: Path, ended: list[str]
) -> None:
    (tmp_path / "bin").mkdir()
    prometheus = make(binary=stand_in(tmp_path / "bin", "crash"))
    prometheus.choose(None)
    with pytest.raises(ProcessFailed, match="error loading config"):
        prometheus.start([MEMBER])
    prometheus.end()
    assert ended == []


def test_one_that_ends_unasked_is_told(make: Make, binary: str, ended: list[str]) -> None:
    prometheus = make(binary=binary)
    prometheus.choose(None)
    prometheus.start([MEMBER])
    os.kill(prometheus.pid, signal.SIGKILL)
    with gevent.Timeout(HANG_S):
        while not ended:
            gevent.sleep(0.02)
    assert ended == ["prometheus"]
    answer = prometheus.ask(Query(number=1, expression="up", at_s=0))
    assert answer.error == "connection refused"


def test_it_shows_fresh_tokens(make: Make, binary: str) -> None:
    prometheus = make(binary=binary)
    prometheus.use_token("before it runs")
    prometheus.choose(None)
    prometheus.start([MEMBER])
    prometheus.use_token("fresh")
    assert prometheus._secrets is not None
    assert (Path(prometheus._secrets.name) / "token").read_text() == "fresh"
