"""The plan as a reader sees it, and as a program does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from harness.sizing.calibration import Found
from harness.sizing.fleet import Fleet, Machine
from harness.sizing.limits import plan_for
from harness.sizing.machine import USUAL_PORTS, port_range, this_machine
from harness.sizing.show import as_json, duration, print_plan, size, verdict
from tests.sizing.figures import LARGE, ROUND, SMALL

MEASURED = Found(ROUND, Path("/state/calibration.json"), True)
SHIPPED = Found(ROUND, Path("2026-11-29-2core.json"), False)


def sentences(fleet: Fleet, machine: Machine = SMALL, found: Found = MEASURED) -> list[str]:
    return list(verdict(plan_for(fleet, ROUND, machine), found))


def test_a_plan_says_what_is_needed_and_what_ends_first() -> None:
    console = Console(record=True, width=160)
    print_plan(plan_for(Fleet(5000), ROUND, SMALL), MEASURED, console)
    text = console.export_text()
    for words in (
        "175,000 watches",
        "workers",
        "master",
        "network",
        "58,333 watches each",
        "CPU at rest",
        "28,232",
    ):
        assert words in text, words


def test_it_says_whose_figures_these_are() -> None:
    assert sentences(Fleet(1))[-1].startswith("by /state/calibration.json, measured on 2026-11-29 (2 cores")
    last = sentences(Fleet(1), found=SHIPPED)[-1]
    assert "come with swarmlet, of another machine" in last
    assert "swarmlet bench --save" in last


def test_it_says_whether_it_fits_and_how_many_machines_it_takes() -> None:
    assert sentences(Fleet(100))[0].startswith("fits on this machine; first to end, at ")
    assert sentences(Fleet(100_000))[0].startswith("needs ")
    assert "machines like this one" in sentences(Fleet(100_000))[0]
    alone = sentences(Fleet(100_000, servers="binaries"))[0]
    assert alone.startswith("does not fit on this machine: ")
    assert alone.endswith("of 100,000 kubelets")


def test_too_few_workers_are_named() -> None:
    assert any(
        "--workers 1: 20,000 kubelets in one" in line for line in sentences(Fleet(20_000, workers=1), LARGE)
    )
    assert not any("--workers" in line for line in sentences(Fleet(20_000), LARGE))


def test_json_has_the_plan_its_limits_and_its_calibration() -> None:
    told: dict[str, Any] = msgspec.json.decode(as_json(plan_for(Fleet(5000), ROUND, SMALL), SHIPPED))
    assert told["workers"]["count"] >= 1
    assert told["first_limit"] == told["limits"][0]["what"]
    assert told["fits"] is True
    assert told["calibration"]["of_this_machine"] is False
    assert told["calibration"]["points"][1]["watches"] == 35
    assert told["fleet"]["nodes"] == 5000


@pytest.mark.parametrize(
    ("value", "text"), [(1_500, "1.5 kB"), (999_999, "1,000.0 kB"), (1e6, "1.0 MB"), (17.28e9, "17.3 GB")]
)
def test_sizes_are_decimal(value: float, text: str) -> None:
    assert size(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2.0 h")])
def test_durations(value: float, text: str) -> None:
    assert duration(value) == text


def test_this_machine_has_something_of_everything(tmp_path: Path) -> None:
    machine = this_machine()
    machine.validate()
    assert machine.ports > 1000
    assert this_machine(3.5, 7) == Machine(3.5, 7, machine.files, machine.ports)
    path = tmp_path / "range"
    path.write_text("1024\t2023\n")
    assert port_range(path) == 1000
    path.write_text("?")
    assert port_range(path) == port_range(tmp_path / "none") == USUAL_PORTS
