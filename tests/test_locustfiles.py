"""What a user sees of our locustfiles before anything runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOCUSTFILE = Path(__file__).parent.parent / "locustfiles" / "kubelets.py"


def locust(*arguments: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), *arguments],
        env={**os.environ, **(environ or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


@pytest.mark.slow
def test_the_users_of_the_fleet_are_listed() -> None:
    done = locust("--list")
    assert sorted(done.stdout.split()[2:]) == ["ClusterLoader", "Controllers", "Kubelet", "Scheduler"]


@pytest.mark.slow
def test_options_are_taken_from_the_environment(tmp_path: Path) -> None:
    record = str(tmp_path / "r")
    done = locust("--headless", environ={"SWARMLET_SCENARIO": "nosuch", "SWARMLET_RECORD": record})
    assert done.returncode == 2
    assert "swarmlet: scenario 'nosuch'" in done.stderr


def test_a_locustfile_is_read_in_a_minute() -> None:
    for path in LOCUSTFILE.parent.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 60, path
