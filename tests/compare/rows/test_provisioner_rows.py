"""Rows of claims: from a record made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.compare.rows.provisioners import provisioner_rows
from harness.compare.run import Run
from harness.observe.histogram import bucket_of
from harness.observe.record import Manifest, RunRecord, Status
from tests.records import make_record

START = 1_000_000.0


def a_record(folder: Path) -> Run:
    record = RunRecord(folder, Manifest(name="r", started=START, arm="one"))
    record.event("phase-started", {"phase": "claims"}, t=START + 15)
    for t, bound in ((16, 0), (20, 40), (25, 100)):
        fields = {"created": 100, "bound": bound, "deleted": 0}
        record.event("claims-progress", fields, t=START + t)
    record.event("claims-bound", {"bound": 100, "seconds": 10.0, "last_s": 9.5}, t=START + 25)
    record.requests(
        [
            (START + 20, "provisioner", "create", "events", 201, "m", bucket_of(5000), 200),
            (START + 20, "provisioner", "create", "persistentvolumes", 201, "m", bucket_of(5000), 90),
            (START + 20, "provisioner", "create", "persistentvolumes", 409, "m", bucket_of(5000), 10),
            (START + 20, "kubelet", "create", "events", 429, "m", bucket_of(5000), 7),
        ]
    )
    record.samples(
        [
            (START + 20, "claims", "claim_bound_ms", "", bucket_of(4e6), 99),
            (START + 20, "claims", "claim_bound_ms", "", bucket_of(9.5e6), 1),
            (START + 20, "provisioner", "client_throttled_ms", "verb=create,name=events", bucket_of(2e6), 3),
            (START + 20, "provisioner", "client_throttled_ms", "verb=create,name=events", bucket_of(1e5), 5),
            (START + 20, "provisioner", "leader_changes", "", bucket_of(1e3), 2),
        ]
    )
    record.finish(Status.COMPLETED)
    return Run(folder)


def test_a_runs_claims_as_rows(tmp_path: Path) -> None:
    run = a_record(tmp_path / "r")
    rows = {row.key: row for row in provisioner_rows([run])}
    values = {key: row.value(run) for key, row in rows.items()}
    assert values["claims-bound"] == 100
    assert (values["claims-all-bound"], values["claim-bound-last"]) == (10.0, 9.5)
    assert values["claim-bound-p50"] == pytest.approx(4.0, rel=0.02)
    assert values["claim-bound-p99"] == pytest.approx(4.0, rel=0.02)
    assert values["claim-requests"] == 3.0
    assert values["claim-requests-create-events"] == 200
    assert (values["claim-conflicts"], values["claim-rejects"]) == (10, 0)
    assert values["claim-leader-changes"] == 2
    assert values["claims-deleted"] is None
    assert values["provisioner-throttled-long"] == 3
    assert values["provisioner-throttled-sum"] == pytest.approx(6.5, rel=0.02)
    chart = rows["claims-bound"].series
    assert chart is not None
    assert chart(run).to_dict() == {0.0: 0.0, 1.0: 0.0, 5.0: 40.0, 10.0: 100.0}


def a_run_with(folder: Path, counts: dict[str, int]) -> Run:
    """Requests of provisioners, by resource."""
    record = RunRecord(folder, Manifest(name="r", started=START, arm="one"))
    record.event("claims-progress", {"created": 1, "bound": 1, "deleted": 0}, t=START)
    record.requests(
        [
            (START, "provisioner", "get", name, 200, "m", bucket_of(5000), count)
            for name, count in counts.items()
        ]
    )
    record.finish(Status.COMPLETED)
    return Run(folder)


@pytest.mark.parametrize(("kinds", "own"), [(8, 8), (9, 9), (10, 8), (12, 8)])
def test_requests_by_verb_and_resource_add_up_to_all_that_were_sent(
    tmp_path: Path, kinds: int, own: int
) -> None:
    run = a_run_with(tmp_path / "r", {f"kind{index}": 100 - index for index in range(kinds)})
    other = a_run_with(tmp_path / "o", {"kind0": 5})
    rows = [row for row in provisioner_rows([run, other]) if row.key.startswith("claim-requests-")]
    assert [row.key for row in rows[:own]] == [f"claim-requests-get-kind{index}" for index in range(own)]
    assert [row.key for row in rows[own:]] == ["claim-requests-others"] * (kinds > own)
    assert sum(row.value(run) or 0 for row in rows) == run.sent(user="provisioner")
    assert sum(row.value(other) or 0 for row in rows) == 5
    if kinds == 10:
        assert rows[-1].source == "all replicas: get kind8, get kind9"


def test_a_run_without_claims_has_none(tmp_path: Path) -> None:
    run = Run(make_record(tmp_path / "k"))
    assert provisioner_rows([run]) == []
    assert {row.value(run) for row in provisioner_rows([a_record(tmp_path / "r")])} == {None}
