"""What a user sees of our locustfiles before anything runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import permutations
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
        timeout=200,
        check=False,
    )


@pytest.mark.slow
def test_the_users_of_the_fleet_are_listed() -> None:
    done = locust("--list")
    assert sorted(done.stdout.split()[2:]) == ["ClusterLoader", "Controllers", "Kubelet", "Scheduler"]


_LOAD = """
import json, sys
from locust.main import merge_locustfiles_content

def names(together):
    users, shapes, _, first = merge_locustfiles_content(together)
    return sorted(users), sorted(shapes), type(first).__name__

print(json.dumps([names(together) for together in json.loads(sys.argv[1])]))
"""
FLEETS = {
    "kubelets": ({"ClusterLoader", "Controllers", "Kubelet", "Scheduler"}, "FleetShape"),
    "informers": ({"Informer", "Lister", "Writer"}, "InformersShape"),
    "provisioners": ({"Claims", "Provisioner", "VolumeControllers"}, "ClaimsShape"),
}


@pytest.mark.slow
def test_any_of_the_fleets_go_into_one_run() -> None:
    together = [names for count in (1, 2, 3) for names in permutations(FLEETS, count)]
    paths = [[str(LOCUSTFILE.with_name(f"{name}.py")) for name in names] for names in together]
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, json.dumps(paths)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for names, (users, shapes, first) in zip(together, json.loads(done.stdout), strict=True):
        assert set(users) == set.union(*(FLEETS[name][0] for name in names)), names
        assert set(shapes) == {"ScenarioShape", *(FLEETS[name][1] for name in names)}, names
        assert first == "ScenarioShape", "what all of them are"


@pytest.mark.slow
def test_options_are_taken_from_the_environment(tmp_path: Path) -> None:
    record = str(tmp_path / "r")
    done = locust("--headless", environ={"SWARMLET_SCENARIO": "nosuch", "SWARMLET_RECORD": record})
    assert done.returncode == 2
    assert "swarmlet: scenario 'nosuch'" in done.stderr


def test_a_locustfile_is_read_in_a_minute() -> None:
    for path in LOCUSTFILE.parent.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 60, path
