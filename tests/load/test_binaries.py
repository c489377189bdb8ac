"""Whole runs against a pool of binaries: stand-ins everywhere, real ones where a kube-apiserver is.

They are put on at the same time, since they mostly wait; each is one Locust run with five kubelets.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.observe.record import read_table
from tests.apiserver.store.test_store_contract import a_real_etcd
from tests.load.plays import AT_MOST, TINY, WHOLE_RUNS, Outcome, Play, assert_ended_well
from tests.pool.binaries.emulating import install

pytestmark = WHOLE_RUNS

REAL = bool(os.environ.get("TEST_ASSET_KUBE_APISERVER") or os.environ.get("KUBEBUILDER_ASSETS"))


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("binaries")
    programs = install(folder / "bin")
    return Play(
        folder / "run",
        *("--backend", "binaries", "--binaries-dir", str(programs), "--etcd-binary", a_real_etcd()),
        *("--members", "2", "--scenario", TINY, *AT_MOST, "--apiserver-flag", "v=2"),
    ).end()


def test_a_run_ends_well_and_leaves_nothing(outcome: Outcome) -> None:
    assert_ended_well(outcome)
    assert outcome.manifest.results["scenario"] == "Success"


def test_its_record_says_what_it_was_run_against(outcome: Outcome) -> None:
    target = outcome.manifest.target
    assert target["backend"] == "binaries"
    assert target["binaries"]["kube-apiserver"]["version"] == "v1.36.2"
    assert (target["flags"]["v"], target["flags"]["authorization-mode"]) == ("2", "Node,RBAC")
    assert [member["name"] for member in target["members"]] == ["member-0", "member-1"]
    assert (target["has_scheduler"], target["has_controllers"]) == (False, False)
    logs = {path.name for path in (outcome.record / "logs").iterdir()}
    assert {"member-0.log", "member-1.log", "etcd-0.log"} <= logs


def test_members_are_scraped_by_the_administrator_s_certificate_and_processes_by_their_pids(
    outcome: Outcome,
) -> None:
    rows = read_table(outcome.record, "series").to_pylist()
    up = {(row["member"], row["value"]) for row in rows if row["series"] == "up"}
    assert {("member-0", 1.0), ("member-1", 1.0)} <= up
    sampled = {row["member"] for row in rows if row["series"].startswith("swarmlet_process_resident")}
    assert {"member-0", "etcd-0", "pool"} <= sampled


def test_kubelets_are_known_to_the_members_as_nodes(outcome: Outcome) -> None:
    rows = read_table(outcome.record, "requests").to_pylist()
    created = [row for row in rows if (row["verb"], row["name"]) == ("create", "nodes")]
    assert sum(row["count"] for row in created if row["code"] == 201) == 5


@pytest.mark.skipif(not REAL, reason="no real kube-apiserver: TEST_ASSET_KUBE_APISERVER, KUBEBUILDER_ASSETS")
def test_a_burst_on_real_apiservers(tmp_path: Path) -> None:
    outcome = Play(
        tmp_path / "run", "--backend", "binaries", "--members", "3", "--scenario", "burst", *AT_MOST
    ).end()
    assert_ended_well(outcome)
    series = set(read_table(outcome.record, "series")["series"].to_pylist())
    assert {"go_goroutines", "go_memstats_heap_inuse_bytes"} <= series
