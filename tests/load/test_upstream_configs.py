"""Two of ClusterLoader2's own configs from `swarmlet run` to Success, unmodified but for sizes: all of it together.

They need a pool, a fleet, a scheduler and controllers in processes of their own, and take their time by themselves (due
times, polls, namespaces that go); so they are run at the same time.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from harness.load.scenarioresults import FOLDER
from harness.observe.record import Manifest, read_events, read_manifest
from tests.conftest import DATA
from tests.load.plays import WHOLE_RUNS

pytestmark = WHOLE_RUNS

CONFIGS = {
    "batch": {"PODS_PER_NODE": 10, "CL2_JOB_RUNNING_TIME": "1s"},
    "pod-startup-latency": {"POD_COUNT": 4, "POD_THROUGHPUT": 4, "POD_STARTUP_LATENCY_THRESHOLD": "60s"},
}
WITHIN_S = 600
"""They take 20 s on a machine at rest."""


class Outcome(NamedTuple):
    code: int
    output: str
    record: Path

    @property
    def manifest(self) -> Manifest:
        return read_manifest(self.record)


def run(folder: Path, config: str) -> Outcome:
    overrides, record = folder / f"{config}.yaml", folder / config
    overrides.write_text(yaml.safe_dump(CONFIGS[config]))
    path = DATA / "clusterloader2" / config / "config.yaml"
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from harness.cli import main; main()"),
            *("run", str(path), "--nodes", "5", "--cores", "host"),
            *("--overrides", str(overrides), "--record", str(record)),
        ],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    return Outcome(done.returncode, done.stdout + done.stderr, record)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Outcome]:
    """Of each config; both are run before the first is looked at."""
    folder = tmp_path_factory.mktemp("upstream")
    with ThreadPoolExecutor(len(CONFIGS)) as executor:
        runs = {config: executor.submit(run, folder, config) for config in CONFIGS}
    return lambda config: runs[config].result()


@pytest.mark.parametrize("config", CONFIGS)
def test_a_config_of_upstream_ends_with_success(outcomes: Callable[[str], Outcome], config: str) -> None:
    outcome = outcomes(config)
    invalid = [mark.text for mark in outcome.manifest.marks if mark.invalid]
    busy = [text for text in invalid if text.startswith("invalid: host could not keep up")]
    assert (outcome.code == 0 and not invalid) or (outcome.code == 4 and invalid == busy), outcome.output
    assert outcome.manifest.results["scenario"] == "Success", outcome.output
    assert (outcome.record / FOLDER / "junit.xml").exists()


def test_the_jobs_of_batch_finished(outcomes: Callable[[str], Outcome]) -> None:
    """5 small jobs of 5 pods: half of the 50 pods of 5 nodes; the other sizes come to none."""
    finished = [event for event in read_events(outcomes("batch").record) if event["kind"] == "phase-finished"]
    assert [event["operations"] for event in finished] == [0, 0, 5]


def test_the_startup_of_every_pod_was_measured(outcomes: Callable[[str], Outcome]) -> None:
    names = {found["name"] for found in outcomes("pod-startup-latency").manifest.results["measurements"]}
    assert any(name.startswith("PodStartupLatency") for name in names), names
