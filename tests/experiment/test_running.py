"""Samples in turn: what fails is named and run again, what was interrupted is gone on with."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from harness.experiment import runner
from harness.experiment.ledger import FILE, Ledger, read_ledger
from harness.experiment.plan import ArmPlan, ExperimentPlan
from harness.experiment.runner import Interrupted, run_experiment
from harness.wire.errors import ConfigError, SwarmletError
from tests.experiment.fakerun import CALM, ONE, PLAN, TWO, template


class Report:
    """Stands for writing the report, which other tests look at; keeps what it was given."""

    def __init__(self) -> None:
        self.records: list[str] = []
        self.declared: tuple[str, ...] = ()

    def __call__(self, runs: Any, folder: Path, title: str, declared: Any, **_: Any) -> None:
        self.records, self.declared = [run.folder.name for run in runs], declared


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Report:
    made = Report()
    monkeypatch.setattr(runner, "write_report", made)
    return made


def run(folder: Path, plan: ExperimentPlan = PLAN, **options: Any) -> list[str]:
    """What was shown, line by line."""
    console = Console(file=io.StringIO(), width=200)
    run_experiment(plan, folder, console, host=CALM, **options)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def attempts(folder: Path) -> list[tuple[str, str]]:
    return [(attempt.folder, attempt.why) for attempt in read_ledger(folder).attempts]


def changed(plan: ExperimentPlan, **fields: Any) -> ExperimentPlan:
    return msgspec.structs.replace(plan, **fields)


def test_all_samples_are_run_in_turn_and_handed_to_the_report(
    tmp_path: Path, endings: dict[str, str], report: Report
) -> None:
    shown = run(tmp_path / "e", text="title: t\n")
    assert [name for name, why in attempts(tmp_path / "e") if not why] == ["one-1", "two-1", "one-2", "two-2"]
    assert report.records == ["one-1", "one-2", "two-1", "two-2"]
    assert report.declared == ("pool.members",)
    assert (tmp_path / "e" / "experiment.yaml").read_text() == "title: t\n"
    assert shown[0] == "[1/4] one, sample 1 of 2"
    assert any(line.startswith("[2/4] two, sample 1 of 2, about ") for line in shown)


def test_what_failed_or_is_invalid_is_kept_named_and_run_again_at_the_end(
    tmp_path: Path, endings: dict[str, str], report: Report
) -> None:
    endings.update({"one-1": "failed", "two-1": "invalid"})
    shown = run(tmp_path / "e")
    assert attempts(tmp_path / "e") == [
        ("one-1", "the run was failed"),
        ("two-1", "a worker was lost"),
        ("one-2", ""),
        ("two-2", ""),
        ("one-1-try-2", ""),
        ("two-1-try-2", ""),
    ]
    assert report.records == ["one-1", "one-1-try-2", "one-2", "two-1", "two-1-try-2", "two-2"]
    assert "  not counted: two-1: a worker was lost" in shown
    assert any(line.startswith("[4/4] one, sample 1 of 2, try 2, about") for line in shown)
    assert not any(line.startswith("missing") for line in shown)


def test_it_is_run_again_only_so_often_and_then_named_as_missing(
    tmp_path: Path, endings: dict[str, str], report: Report
) -> None:
    endings.update({"one-1": "failed", "one-1-try-2": "refused", "one-1-try-3": "failed"})
    shown = run(tmp_path / "e", changed(PLAN, retries=2))
    assert [name for name, _ in attempts(tmp_path / "e")][4:] == ["one-1-try-2", "one-1-try-3"]
    assert "  not counted: one-1-try-2: it did not begin: port 80: taken" in shown
    assert "missing: one, sample 1: the run was failed" in shown
    assert report.records == ["one-1", "one-1-try-3", "one-2", "two-1", "two-2"]


def test_without_retries_it_is_run_once(tmp_path: Path, endings: dict[str, str], report: Report) -> None:
    endings["one-1"] = "failed"
    run(tmp_path / "e", changed(PLAN, retries=0))
    assert len(attempts(tmp_path / "e")) == 4


def test_an_arm_without_a_sample_that_counts_has_no_report(
    tmp_path: Path, endings: dict[str, str], report: Report
) -> None:
    endings.update({"two-1": "failed", "two-2": "invalid"})
    with pytest.raises(SwarmletError, match="no sample of arm two can be used"):
        run(tmp_path / "e", changed(PLAN, retries=0))
    assert report.records == []


def test_one_arm_is_run_alone_and_the_other_another_time(
    tmp_path: Path, endings: dict[str, str], report: Report
) -> None:
    shown = run(tmp_path / "e", arms=["two"])
    assert [name for name, _ in attempts(tmp_path / "e")] == report.records == ["two-1", "two-2"]
    assert shown[0] == "[1/2] two, sample 1 of 2"
    assert "missing: one, sample 2: not run; --resume runs it" in shown
    shown = run(tmp_path / "e", resume=True)
    assert report.records == ["one-1", "one-2", "two-1", "two-2"]
    assert shown[0] == "2 of 4 samples are there"
    assert not any(line.startswith("missing") for line in shown)


# ---- going on ------------------------------------------------------------------------------------------------------
KILLED = """
import sys
from pathlib import Path
from rich.console import Console
from harness.experiment import runner
from tests.experiment.fakerun import CALM, PLAN, command
runner.locust_command = command(Path(sys.argv[1]), {"one-2": "hanging"})
runner.run_experiment(PLAN, Path(sys.argv[2]), Console(), host=CALM)
"""


def await_hanging(folder: Path) -> None:
    deadline = time.monotonic() + 60
    manifest = folder / "samples" / "one-2" / "manifest.json"
    while not (manifest.exists() and '"status": "interrupted"' in manifest.read_text()):
        assert time.monotonic() < deadline, "sample one-2 never began"
        time.sleep(0.05)


@pytest.mark.slow
def test_an_experiment_that_was_killed_goes_on_with_the_samples_that_are_missing(
    tmp_path: Path, endings: dict[str, str], report: Report
) -> None:
    """A process of its own, as it is to be killed in the middle of a sample; the sample ends with it."""
    script = [sys.executable, "-c", KILLED, str(template(tmp_path / "t")), str(tmp_path / "e")]
    process = subprocess.Popen(script, stdout=subprocess.DEVNULL)
    try:
        await_hanging(tmp_path / "e")
    finally:
        process.kill()
        process.wait()
    assert [name for name, _ in attempts(tmp_path / "e")] == ["one-1", "two-1"]
    shown = run(tmp_path / "e", resume=True)
    assert shown[0] == "2 of 4 samples are there"
    assert shown[1].startswith("[3/4] one, sample 2 of 2, about ")
    assert [name for name, _ in attempts(tmp_path / "e")] == ["one-1", "two-1", "one-2-try-2", "two-2"]
    assert report.records == ["one-1", "one-2", "one-2-try-2", "two-1", "two-2"]


def test_an_interrupt_is_one_line_and_what_is_there_is_kept(
    tmp_path: Path, endings: dict[str, str], report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("not reached")

    monkeypatch.setattr(runner, "run_locust", interrupted)
    with pytest.raises(Interrupted, match=r"interrupted; .*/e keeps what is there") as caught:
        run(tmp_path / "e")
    assert caught.value.exit_code == 130
    assert attempts(tmp_path / "e") == []


def test_what_failed_before_is_not_run_more_often_for_being_resumed(
    tmp_path: Path, endings: dict[str, str], report: Report
) -> None:
    endings.update({"one-1": "failed", "one-1-try-2": "failed"})
    run(tmp_path / "e")
    before = attempts(tmp_path / "e")
    shown = run(tmp_path / "e", resume=True)
    assert attempts(tmp_path / "e") == before
    assert "nothing was left to run; writing the report" in shown
    run(tmp_path / "e", changed(PLAN, retries=2), resume=True)
    assert attempts(tmp_path / "e")[-1] == ("one-1-try-3", "")


def test_a_run_that_was_only_cut_off_is_no_failure_of_its_sample(
    tmp_path: Path, endings: dict[str, str], report: Report
) -> None:
    endings.update({"one-1": "failed", "one-1-try-2": "failed"})
    run(tmp_path / "e")
    path = tmp_path / "e" / "samples" / "one-1" / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"failed"', b'"interrupted"'))
    run(tmp_path / "e", resume=True)
    assert attempts(tmp_path / "e")[-1] == ("one-1-try-3", "")


def test_more_samples_may_be_asked_for_and_fewer_not(
    tmp_path: Path, endings: dict[str, str], report: Report
) -> None:
    run(tmp_path / "e")
    run(tmp_path / "e", changed(PLAN, samples=3), resume=True)
    assert [name for name, _ in attempts(tmp_path / "e")][4:] == ["one-3", "two-3"]
    with pytest.raises(ConfigError, match=r"experiment.json: samples: 2 is less than the 3 before"):
        run(tmp_path / "e", resume=True)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"seed": 2}, "seed changed since"),
        ({"arms": (ONE, ArmPlan("two", ("--members", "3")))}, "arms changed since"),
        ({"arms": (TWO, ONE), "title": "x"}, "title, arms changed since"),
    ],
)
def test_another_experiment_is_not_gone_on_with(
    tmp_path: Path, endings: dict[str, str], report: Report, fields: dict[str, Any], said: str
) -> None:
    run(tmp_path / "e", changed(PLAN, samples=1))
    with pytest.raises(ConfigError, match=rf"experiment.json: {said}") as caught:
        run(tmp_path / "e", changed(PLAN, **fields), resume=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "holds no experiment to go on with: it has no experiment.json"),
        (b"{", "experiment.json: no experiment's: "),
        (b'{"schema_version": 2}', "experiment.json: of a newer version .schema 2; this one reads 1."),
        (b'{"schema_version": 1}', "experiment.json: no experiment's: "),
    ],
)
def test_a_folder_that_holds_no_experiment_is_said_to(tmp_path: Path, data: bytes | None, said: str) -> None:
    if data is not None:
        (tmp_path / FILE).write_bytes(data)
    with pytest.raises(ConfigError, match=said):
        run(tmp_path, resume=True)


def test_the_ledger_is_read_as_it_was_written(tmp_path: Path) -> None:
    ledger = Ledger(digest="d", plan=PLAN, declared=("x",))
    ledger.save(tmp_path)
    assert read_ledger(tmp_path) == ledger
