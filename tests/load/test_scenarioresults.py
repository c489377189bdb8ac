"""What a scenario leaves in its record: artifacts, and the SLOs from what was scraped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.clusterloader import load_config
from harness.load.scenarioresults import FOLDER, ScenarioResults
from harness.observe.record import SERIES, Parts
from tests.load.plays import TINY

WINDOW: dict[str, Any] = {
    "identifier": "slo",
    "step": "s",
    "from_s": 5.0,
    "until_s": 60.0,
    "limits": {"name": "APIResponsivenessPrometheus_simple", "enforced": True, "simple": True},
}


def scraped(record: Path, slow: str = "") -> None:
    """Two members; the `slow` one answers in 2 to 4 s."""
    parts = Parts(record / "series", SERIES)
    for member in ("member-0", "member-1"):
        for bound, count in (
            ("1", 0 if member == slow else 100),
            ("2", 0 if member == slow else 100),
            ("4", 100),
            ("+Inf", 100),
        ):
            labels = f'verb="POST",resource="pods",scope="resource",subresource="",le="{bound}"'
            series = f"apiserver_request_sli_duration_seconds_bucket{{{labels}}}"
            parts.add((0.0, member, series, 0.0))
            parts.add((30.0, member, series, float(count)))
    parts.flush()


@pytest.fixture
def results() -> ScenarioResults:
    found = ScenarioResults(load_config(TINY, 5))
    found.take("slo-window", WINDOW)
    return found


def summaries(record: Path) -> dict[str, Any]:
    return {
        path.name.partition("_tiny_")[0]: json.loads(path.read_text())
        for path in (record / FOLDER).glob("API*.json")
    }


def test_an_slo_is_told_for_all_members_and_for_each(results: ScenarioResults, tmp_path: Path) -> None:
    scraped(tmp_path, slow="member-1")
    slos = results.finish(tmp_path)
    (measurement,) = slos.measurements
    values = measurement["values"]
    assert values["POST pods resource perc99, ms"] == pytest.approx(2000 + 2000 * 98 / 100)
    assert values["member-0: POST pods resource perc99, ms"] == pytest.approx(990)
    assert values["member-1: POST pods resource perc99, ms"] == pytest.approx(3980)
    (violation,) = slos.violations
    assert violation.startswith(
        "APIResponsivenessPrometheus - slo: POST pods (scope resource): perc99 3.960s of 200"
    )
    assert slos.skipped == []
    found = summaries(tmp_path)
    assert len(found) == 3
    assert all(data["version"] == "v1" for data in found.values())
    junit = (tmp_path / FOLDER / "junit.xml").read_text()
    assert "perc99 3.960s of 200 calls" in junit


def test_an_slo_that_holds_is_no_violation(results: ScenarioResults, tmp_path: Path) -> None:
    scraped(tmp_path)
    assert results.finish(tmp_path).violations == []


def test_without_histograms_it_is_skipped_aloud(results: ScenarioResults, tmp_path: Path) -> None:
    slos = results.finish(tmp_path)
    skipped = ("APIResponsivenessPrometheus", "slo", "no member's /metrics was scraped")
    assert (slos.measurements, slos.skipped) == ([], [skipped])
    assert {path.name for path in (tmp_path / FOLDER).iterdir()} == {"junit.xml", "generatedConfig_tiny.yaml"}
    junit = (tmp_path / FOLDER / "junit.xml").read_text()
    assert '<skipped message="no member\'s /metrics was scraped" />' in junit
