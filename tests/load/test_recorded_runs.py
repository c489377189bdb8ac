"""Whole runs whose scenario has ClusterLoader2's bundle of measurements, over a real etcd and over the embedded store.

They need processes: what is summarized is what the run's scraper read of members and of etcd.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.load.recordwindows import EMBEDDED, NOT_SYNCED
from harness.load.scenarioresults import FOLDER
from tests.apiserver.store.test_store_contract import a_real_etcd
from tests.conftest import DATA
from tests.load.plays import AT_MOST, WHOLE_RUNS, Outcome, Outcomes, Play, put_on

pytestmark = WHOLE_RUNS

BUNDLE = ("--scenario", str(DATA / "scenarios" / "bundle.yaml"), "--cores", "host", *AT_MOST)


def over_a_real_etcd(folder: Path) -> Outcome:
    return Play(folder, *BUNDLE, "--etcd-servers", "binary", "--etcd-binary", a_real_etcd()).end()


def over_the_embedded_store(folder: Path) -> Outcome:
    """Its scenario runs on a worker, which knows no series."""
    return Play(folder, *BUNDLE, "--members", "2", workers=1).end()


PLAYS = [over_a_real_etcd, over_the_embedded_store]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return put_on(PLAYS, tmp_path_factory.mktemp("recorded"), len(PLAYS))


def summaries(outcome: Outcome) -> dict[str, Any]:
    found = (outcome.record / FOLDER).glob("*_bundle_*.json")
    return {path.name.partition("_bundle_")[0]: json.loads(path.read_text()) for path in found}


def test_etcd_is_read_beside_the_apiserver(outcomes: Outcomes) -> None:
    outcome = outcomes(over_a_real_etcd)
    found = summaries(outcome)
    assert {"EtcdMetrics", "MetricsForE2E", "ResourceUsageSummary"} <= found.keys(), outcome.output
    (commits,) = found["EtcdMetrics"]["backendCommitDuration"]
    assert commits["buckets"]["+Inf"] > 0
    assert found["EtcdMetrics"]["maxDatabaseSize"] > 0
    names = [item["Name"] for item in found["ResourceUsageSummary"]["99"]]
    assert names == ["etcd-0/etcd", "member-0/kube-apiserver"]
    assert f"TestMetrics EtcdMetrics of a disk TestMetrics ({NOT_SYNCED})" in outcome.marks


def test_a_worker_that_knows_no_series_has_them_summarized(outcomes: Outcomes) -> None:
    outcome = outcomes(over_the_embedded_store)
    found = summaries(outcome)
    assert {"MetricsForE2E", "ResourceUsageSummary"} <= found.keys(), outcome.output
    metrics = found["MetricsForE2E"]["APIServerMetrics"]
    members = {sample["metric"]["member"] for sample in metrics["apiserver_request_total"]}
    assert members == {"member-0", "member-1"}
    assert f"not measured: TestMetrics EtcdMetrics TestMetrics ({EMBEDDED})" in outcome.marks


def test_a_limit_that_is_exceeded_ends_a_run_with_3(outcomes: Outcomes) -> None:
    outcome = outcomes(over_the_embedded_store)
    (missed,) = outcome.manifest.results["violations"]
    assert missed.startswith(
        "TestMetrics ResourceUsageSummary - TestMetrics: resource constraints: 2 constraints"
    )
    assert outcome.code in (3, 4), outcome.output  # 4: this machine was too busy for the figures
    assert outcome.left == []
