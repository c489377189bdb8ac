"""Runs of an experiment without Locust: each copies a record made beforehand and ends as it is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from harness.experiment.leftovers import Host
from harness.experiment.plan import ArmPlan, ExperimentPlan
from tests.records import make_record

ONE, TWO = ArmPlan("one", ("--members", "1")), ArmPlan("two", ("--members", "2"))
PLAN = ExperimentPlan("e", "One or two", (ONE, TWO), samples=2)
CALM = Host(load_average=lambda: 0.0)

SCRIPT = """
import json, os, pathlib, shutil, sys, time
parent = os.getppid()
template, endings = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
words = [part for word in sys.argv[3:] for part in (word.split("=", 1) if word.startswith("--") else [word])]
given = dict(zip(words[::2], words[1::2]))
record = pathlib.Path(given["--record"])
ending = endings.get(record.name, "completed")
if ending == "refused":
    print("swarmlet: port 80: taken"); sys.exit(1)
shutil.copytree(template, record)
manifest = json.loads((record / "manifest.json").read_text())
manifest.update(name=record.name, arm=given["--arm"], sample=int(given["--sample"]), seed=int(given["--seed"]))
manifest["arguments"] = {"options": {"pool": {"members": int(given.get("--members", 1))}}}
manifest["status"] = "interrupted" if ending == "hanging" else "failed" if ending == "failed" else "completed"
manifest["pid"] = 0
if ending == "invalid":
    manifest["marks"] = [{"text": "a worker was lost", "invalid": True}]
(record / "manifest.json").write_text(json.dumps(manifest))
while ending == "hanging" and os.getppid() == parent:
    time.sleep(0.05)
sys.exit(ending == "failed")
"""


def command(template: Path, endings: Mapping[str, str]) -> Callable[[Sequence[str], list[str]], list[str]]:
    """Stands for `locust_command`: `endings` says by the record's name how a run ends (completed, failed, invalid,
    refused, hanging); completed where it does not."""
    told = msgspec.json.encode(endings).decode()
    return lambda _, arguments: [sys.executable, "-S", "-c", SCRIPT, str(template), told, *arguments]


def template(folder: Path) -> Path:
    return make_record(folder / "template")


@pytest.fixture
def endings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """How runs end, to be filled by the test."""
    monkeypatch.setattr("harness.experiment.locustrun.POLL_S", 0.01)
    chosen: dict[str, str] = {}
    made = template(tmp_path)
    monkeypatch.setattr(
        "harness.experiment.runner.locust_command", lambda files, given: command(made, chosen)(files, given)
    )
    return chosen
