"""Whole runs whose scenario asks Prometheus: one that the run started, and one that nobody answers for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import DATA
from tests.load.plays import AT_MOST, WHOLE_RUNS, Play, assert_ended_well
from tests.pool.standin import install

pytestmark = WHOLE_RUNS

SCENARIO = """\
name: asks
tuningSets: [{name: ten, qpsLoad: {qps: 10}}]
steps:
- name: start
  measurements:
  - identifier: q
    method: GenericPrometheusQuery
    params: {action: start, metricName: Ones, metricVersion: v1, unit: ones, queries: [{name: one, query: "up[%v]"}]}
  - {identifier: t, method: TestMetrics, params: {action: start}}
- name: objects
  phases:
  - namespaceRange: {min: 1, max: 1}
    replicasPerNamespace: 5
    tuningSet: ten
    objectBundle: [{basename: pod, objectTemplatePath: pod.yaml}]
- name: gather
  measurements:
  - {identifier: q, method: GenericPrometheusQuery, params: {action: gather}}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    shutil.copy(DATA / "scenarios" / "pod.yaml", tmp_path)
    (tmp_path / "asks.yaml").write_text(SCENARIO)
    return str(tmp_path / "asks.yaml")


def test_a_workers_query_is_answered_by_the_prometheus_that_the_master_started(
    tmp_path: Path, scenario: str
) -> None:
    (tmp_path / "bin").mkdir()
    binary = install(tmp_path / "bin", "well")
    arguments = ("--scenario", scenario, "--cores", "host", *AT_MOST, "--prometheus", binary)
    outcome = Play(tmp_path / "run", *arguments, workers=1).end()
    assert_ended_well(outcome)
    found = outcome.manifest.prometheus
    assert (found["binary"], found["version"], found["interval_s"]) == (binary, "9.9.9", 1.0)
    (measured,) = [item for item in outcome.manifest.results["measurements"] if "Ones" in item["name"]]
    assert measured["values"] == {"unit": "ones", "one": 1.0}
    assert "not measured: TestMetrics SchedulingMetrics" in outcome.marks
    artifacts = outcome.record / "artifacts"
    (path,) = artifacts.glob("GenericPrometheusQuery Ones_asks_*.json")
    assert json.loads(path.read_text())["dataItems"][0]["data"] == {"one": 1.0}
    assert '<skipped message="reads a kube-scheduler' in (artifacts / "junit.xml").read_text()
    assert (outcome.record / "logs" / "prometheus.log").exists()


def test_a_url_that_nobody_answers_ends_the_run_before_it_begins(tmp_path: Path, scenario: str) -> None:
    url = "http://127.0.0.1:1"
    outcome = Play(tmp_path / "run", "--scenario", scenario, "--prometheus-url", url).end()
    assert outcome.code == 2
    assert f"swarmlet: Prometheus at {url}: connection refused\n" in outcome.output
    assert not list((outcome.record / "logs").iterdir()), "no pool was started"
