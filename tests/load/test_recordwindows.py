"""Measurements that the record of a run answers: whose series they are, and why there may be nothing to say."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.clusterloader import load_config
from harness.clusterloader.measurements.recorded import NOTE
from harness.load.recordwindows import EMBEDDED, NO_ANSWER, NOT_SCRAPED, NOT_SYNCED, UNKNOWN_ETCD
from harness.load.scenarioresults import FOLDER, ScenarioResults, SLOs
from harness.load.scraping import etcd_sources
from harness.observe.record import SERIES, Manifest, Parts, RunRecord, Status
from harness.observe.scraper import PROCESS_CPU, PROCESS_MEMORY, STORE_UNREAD, STORE_UP
from tests.load.plays import TINY

FSYNC = 'etcd_disk_wal_fsync_duration_seconds_bucket{le="+Inf"}'
FILES = {"etcd_cafile": "", "etcd_certfile": "", "etcd_keyfile": "", "data_dir": "kept"}
Row = tuple[float, str, str, float]


def target(backend: str = "emulated", store: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    members = [{"name": f"member-{index}"} for index in range(2)]
    options = {"store": FILES}
    return {"backend": backend, "members": members, "store": store or {}, "options": options, **more}


def own_etcd(count: int) -> dict[str, Any]:
    members = [{"name": f"etcd-{index}", "url": f"http://127.0.0.1:{index + 1}"} for index in range(count)]
    return {"kind": "etcd", "members": members}


def note(method: str, since: float, until: float, label: str = "", limits: str = "") -> dict[str, Any]:
    told = {"method": method, "label": label or method, "identifier": "id", "step": "s", "at_s": 1.0}
    return {**told, "from_s": since, "until_s": until, "limits": limits}


class Played:
    """What was found of a record that `rows` are all the series of."""

    def __init__(
        self, folder: Path, about: dict[str, Any], rows: Iterable[Row], *notes: dict[str, Any]
    ) -> None:
        self.folder = folder / "run"
        record = RunRecord(self.folder, Manifest(name="run", started=0.0, target=about))
        parts = Parts(self.folder / "series", SERIES)
        for row in sorted(rows):
            parts.add(row)
        parts.flush()
        results = ScenarioResults(load_config(TINY, 5))
        for fields in notes:
            results.take(NOTE, fields)
        self.slos: SLOs = results.finish(self.folder)
        record.finish(Status.COMPLETED)

    @property
    def skipped(self) -> dict[str, str]:
        return {item.method: item.reason for item in self.slos.skipped}

    @property
    def summaries(self) -> dict[str, Any]:
        found = (path for path in (self.folder / FOLDER).glob("*.json"))
        return {path.name.partition("_tiny_")[0]: json.loads(path.read_text()) for path in found}

    def values(self) -> dict[str, object]:
        (measurement,) = self.slos.measurements
        values: dict[str, object] = measurement["values"]
        return values


def etcd_rows(name: str, *counts: float) -> list[Row]:
    """One that answers every 10 s."""
    rows: list[Row] = []
    for index, count in enumerate(counts):
        t = 10.0 * index
        rows += [(t, name, STORE_UP, 1.0), (t, name, FSYNC, count)]
        rows.append((t, name, "etcd_mvcc_db_total_size_in_bytes", 1000.0 * count))
    return rows


def process_rows(name: str, cpu: str, memory: str, cores: float, up: str = "") -> list[Row]:
    rows: list[Row] = []
    for index in range(4):
        t = 5.0 * index
        rows += [(t, name, cpu, cores * t), (t, name, memory, 1e6)]
        rows += [(t, name, up, 1.0)] if up else []
    return rows


def member_rows(name: str, cores: float) -> list[Row]:
    return process_rows(name, "process_cpu_seconds_total", "process_resident_memory_bytes", cores, "up")


# ---- etcd ------------------------------------------------------------------------------------------------------------
def test_members_of_etcd_are_told_together_and_each_for_itself(tmp_path: Path) -> None:
    rows = [*etcd_rows("etcd-0", 5, 7, 9), *etcd_rows("etcd-1", 1, 1, 4)]
    played = Played(tmp_path, target(store=own_etcd(2)), rows, note("EtcdMetrics", 5.0, 25.0))
    found = {name: content["walFsyncDuration"][0]["buckets"] for name, content in played.summaries.items()}
    assert found == {
        "EtcdMetrics": {"+Inf": 7},
        "EtcdMetrics_etcd-0": {"+Inf": 4},
        "EtcdMetrics_etcd-1": {"+Inf": 3},
    }
    assert played.summaries["EtcdMetrics"]["maxDatabaseSize"] == 9000
    assert played.skipped == {}
    assert "etcd-1: largest database, MiB" in played.values()


def test_one_member_of_etcd_is_told_once(tmp_path: Path) -> None:
    about = target(store=own_etcd(1))
    played = Played(tmp_path, about, etcd_rows("etcd-0", 1, 2), note("EtcdMetrics", 0.0, 10.0))
    assert set(played.summaries) == {"EtcdMetrics"}


def test_an_etcd_that_spares_its_fsync_is_not_said_to_be_quick_at_it(tmp_path: Path) -> None:
    about = target(store=own_etcd(1))
    about["options"] = {"store": {**FILES, "data_dir": ""}}
    played = Played(tmp_path, about, etcd_rows("etcd-0", 1, 2), note("EtcdMetrics", 0.0, 10.0))
    assert played.skipped == {"EtcdMetrics of a disk": NOT_SYNCED}


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        (target(store={"kind": "embedded"}), EMBEDDED),
        (target("existing"), UNKNOWN_ETCD),
        ({}, EMBEDDED),
    ],
)
def test_without_an_etcd_it_is_skipped_aloud(tmp_path: Path, about: dict[str, Any], reason: str) -> None:
    window = note("EtcdMetrics", 0.0, 9.0, "TestMetrics EtcdMetrics")
    played = Played(tmp_path, about, member_rows("member-0", 1.0), window)
    assert played.skipped == {"TestMetrics EtcdMetrics": reason}
    assert (played.summaries, played.slos.measurements) == ({}, [])
    junit = (played.folder / FOLDER / "junit.xml").read_text()
    assert 'name="tiny: TestMetrics EtcdMetrics - id"' in junit


def test_a_member_of_etcd_that_cannot_be_read_is_skipped_with_the_reason(tmp_path: Path) -> None:
    rows = etcd_rows("etcd-0", 1, 2)
    for t in (0.0, 10.0):
        rows.append((t, "etcd-1", STORE_UP, 0.0))
        rows.append((t, "etcd-1", f'{STORE_UNREAD}{{why="[SSL] certificate required"}}', 1.0))
    played = Played(tmp_path, target(store=own_etcd(2)), rows, note("EtcdMetrics", 0.0, 10.0))
    assert played.skipped == {"EtcdMetrics etcd-1": "its /metrics cannot be read: [SSL] certificate required"}
    assert set(played.summaries) == {"EtcdMetrics", "EtcdMetrics_etcd-0"}


def test_the_addresses_of_an_etcd_that_runs_are_numbered_and_have_its_files() -> None:
    store = {"kind": "etcd", "servers": ["https://10.0.0.1:2379", "https://10.0.0.2:2379/"]}
    files = {"etcd_cafile": "ca.pem", "etcd_certfile": "c.pem", "etcd_keyfile": "k.pem"}
    first, second = etcd_sources({"store": store, "options": {"store": files}})
    assert (first.member, first.url, second.member) == ("etcd-0", "https://10.0.0.1:2379", "etcd-1")
    assert (second.url, second.ca_file, second.cert_file) == ("https://10.0.0.2:2379", "ca.pem", "c.pem")
    assert (second.key_file, second.token) == ("k.pem", "")
    assert etcd_sources({"store": {"kind": "embedded"}}) == etcd_sources({"backend": "existing"}) == []


# ---- CPU and memory --------------------------------------------------------------------------------------------------
USAGE = note("ResourceUsageSummary", 0.0, 15.0)


def test_members_etcd_and_components_are_containers_and_the_harness_is_none(tmp_path: Path) -> None:
    processes = {
        "etcd-0": 1,
        "kube-scheduler-0": 2,
        "kube-controller-manager-0": 3,
        "balancer": 4,
        "store": 5,
    }
    rows = [*member_rows("member-0", 0.5), *member_rows("member-1", 0.25), *etcd_rows("etcd-0", 1)]
    rows += process_rows(
        "etcd-0", "process_cpu_seconds_total", "process_resident_memory_bytes", 0.125, STORE_UP
    )
    for name in (*processes, "member-0", "locust"):
        rows += process_rows(name, PROCESS_CPU, PROCESS_MEMORY, 4.0)
    about = target("binaries", own_etcd(1), processes=processes)
    played = Played(tmp_path, about, rows, USAGE)
    found = {item["Name"]: item["CPU"] for item in played.summaries["ResourceUsageSummary"]["99"]}
    assert found == {
        "etcd-0/etcd": 0.125,
        "kube-controller-manager-0/kube-controller-manager": 4.0,
        "kube-scheduler-0/kube-scheduler": 4.0,
        "member-0/kube-apiserver": 0.5,
        "member-1/kube-apiserver": 0.25,
    }
    assert played.skipped == {}
    assert "kube-apiserver" not in played.values()


def test_figures_of_emulated_members_are_said_to_be_modelled(tmp_path: Path) -> None:
    rows = [*member_rows("member-0", 0.5), *member_rows("member-1", 0.5)]
    values = Played(tmp_path, target(), rows, USAGE).values()
    assert values["kube-apiserver"] == "modelled (docs/model.md)"
    assert values["member-0/kube-apiserver CPU perc99, cores"] == 0.5


def test_what_is_not_known_of_a_member_is_skipped_by_name(tmp_path: Path) -> None:
    about = target("existing")
    about["members"] += [{"name": "member-2"}, {"name": "member-3"}]
    rows = [*member_rows("member-0", 0.5), (0.0, "member-1", "up", 1.0), (5.0, "member-1", "up", 1.0)]
    rows += [(0.0, "member-2", "up", 0.0)]
    rows += [row for row in member_rows("member-3", 1.0) if row[0] == 0.0]
    played = Played(tmp_path, about, rows, USAGE)
    assert played.skipped == {
        "ResourceUsageSummary member-1": "its /metrics has no process_cpu_seconds_total",
        "ResourceUsageSummary member-2": NO_ANSWER,
        "ResourceUsageSummary member-3": "it was not looked at twice",
    }
    assert [item["Name"] for item in played.summaries["ResourceUsageSummary"]["50"]] == [
        "member-0/kube-apiserver"
    ]


def test_where_nothing_is_known_there_is_no_summary(tmp_path: Path) -> None:
    played = Played(tmp_path, target("existing"), [], USAGE)
    assert set(played.skipped) == {"ResourceUsageSummary member-0", "ResourceUsageSummary member-1"}
    assert played.summaries == {}


def test_a_limit_that_is_exceeded_is_a_violation_and_one_of_nothing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = tmp_path / "limits.yaml"
    limits.write_text("kube-apiserver: {cpuConstraint: 0.1}\nkubelet: {cpuConstraint: 1}\n")
    config = load_config(TINY, 5)
    monkeypatch.setattr(config.templates, "file", lambda path: limits)
    monkeypatch.setattr("tests.load.test_recordwindows.load_config", lambda *_: config)
    rows = [*member_rows("member-0", 0.5), *member_rows("member-1", 0.05)]
    window = note("ResourceUsageSummary", 0.0, 15.0, "TestMetrics ResourceUsageSummary", "limits.yaml")
    played = Played(tmp_path, target(), rows, window)
    (missed,) = played.slos.violations
    assert missed == (
        "TestMetrics ResourceUsageSummary - id: resource constraints: 1 constraints violated: "
        "[container member-0/kube-apiserver is using 0.5/0.1 CPU]"
    )
    assert missed in (played.folder / FOLDER / "junit.xml").read_text()
    assert played.skipped == {
        "TestMetrics ResourceUsageSummary limits of kubelet": "no container of that name is measured"
    }


# ---- /metrics --------------------------------------------------------------------------------------------------------
E2E = note("MetricsForE2E", 12.0, 12.0)


def test_every_series_has_the_value_of_the_last_scrape_before_the_call(tmp_path: Path) -> None:
    rows: list[Row] = [(t, "member-0", "up", 1.0) for t in (0.0, 10.0, 20.0)]
    rows += [(0.0, "member-0", 'a{x="1"}', 1.0), (10.0, "member-0", 'a{x="1"}', 2.0)]
    rows += [(20.0, "member-0", 'a{x="1"}', 3.0), (0.0, "member-0", "steady", 7.0)]
    rows += [(20.0, "member-0", "later", 1.0), (0.0, "member-0", PROCESS_CPU, 1.0), (0.0, "locust", "a", 9.0)]
    about = target()
    about["members"] = about["members"][:1]
    played = Played(tmp_path, about, rows, E2E)
    assert played.summaries["MetricsForE2E"]["APIServerMetrics"] == {
        "a": [{"metric": {"__name__": "a", "x": "1"}, "value": [0, "2"]}],
        "steady": [{"metric": {"__name__": "steady"}, "value": [0, "7"]}],
    }
    assert played.values() == {"member-0: series": 2}
    assert "summary" not in played.slos.measurements[0]  # it would make the manifest large


def test_a_member_that_does_not_answer_is_skipped_by_name(tmp_path: Path) -> None:
    rows = [*member_rows("member-0", 1.0), *member_rows("member-1", 1.0), (11.0, "member-1", "up", 0.0)]
    played = Played(tmp_path, target(), rows, E2E)
    assert played.skipped == {"MetricsForE2E member-1": NO_ANSWER}
    metrics = played.summaries["MetricsForE2E"]["APIServerMetrics"]
    assert [len(samples) for samples in metrics.values()] == [1, 1]


def test_without_any_scrape_it_is_skipped(tmp_path: Path) -> None:
    assert Played(tmp_path, target(), [], E2E).skipped == {"MetricsForE2E": NOT_SCRAPED}
