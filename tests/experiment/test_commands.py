"""``swarmlet experiment``, ``compare`` and ``report``, as they are typed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness import cli
from harness.compare.comparison import Comparison
from harness.experiment import commands
from harness.experiment.ledger import read_ledger
from harness.report.data import as_builtins, report_data
from tests.records import make_record

Swarmlet = Callable[..., int]

FILE = "title: One or two\nscenario: none\nkubelets: 1\nsamples: 1\ncool_down: 0\narms:\n- name: one\n"
TWO = "- name: two\n  target: {members: 2}\n"


@pytest.fixture
def swarmlet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Swarmlet:
    """Runs a command in an empty folder; the exit code."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["swarmlet", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return int(ended.value.code or 0)

    return run


@pytest.fixture
def data_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without pages and charts, which take most of the time."""

    def write(comparison: Comparison, folder: Path, title: str, *_: Any, **__: Any) -> list[Path]:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").write_bytes(
            msgspec.json.encode(as_builtins(report_data(comparison, title, [])))
        )
        return [folder / "report.json"]

    monkeypatch.setattr("harness.report.render.write_report", write)


def report_in(folder: Path) -> Any:
    return msgspec.json.decode((folder / "report.json").read_bytes())


def records(folder: Path, *names: str, members: int = 1) -> list[str]:
    """One record for each `arm-sample`."""
    for name in names:
        arm, _, sample = name.partition("-")
        make_record(folder / name, arm=arm, sample=int(sample), members=members)
    return list(names)


# ---- experiments ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kubeconfig", "x"), "--kubeconfig x: it goes with --backend existing"),
        (("--backend", "real"), "arm one: --backend 'real': none of emulated, binaries, existing"),
        (("--backend", "existing"), "arm two: --members: no pool is started for a cluster that is there"),
    ],
)
def test_a_backend_that_cannot_be_is_one_line(
    swarmlet: Swarmlet, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    Path("x.yaml").write_text(FILE + TWO)
    assert swarmlet("experiment", "run", "x.yaml", *words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.usefixtures("data_alone")
def test_an_experiment_is_run_and_reported(
    swarmlet: Swarmlet, tmp_path: Path, endings: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.yaml").write_text(FILE + TWO)
    assert swarmlet("experiment", "run", "x.yaml", "--name", "e", "--seed", "7") == 0
    told = report_in(tmp_path / "reports" / "runs" / "e")
    assert (told["title"], [arm["name"] for arm in told["arms"]], told["findings"]) == (
        "One or two",
        ["one", "two"],
        [],
    )
    ledger = read_ledger(tmp_path / "reports" / "runs" / "e")
    assert (ledger.plan.seed, ledger.plan.samples) == (7, 1)
    assert capsys.readouterr().out.startswith("One or two: reports/runs/e\n[1/2] one, sample 1 of 1\n")


def test_strict_refuses_and_still_writes_the_report(
    swarmlet: Swarmlet, tmp_path: Path, endings: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The second run of arm two does not begin, and is not tried again: seeds differ between the arms then."""
    (tmp_path / "x.yaml").write_text("retries: 0\n" + FILE + TWO)
    endings["two-2"] = "refused"
    given = ("experiment", "run", "x.yaml", "--name", "e", "--samples", "2", "--strict")
    assert swarmlet(*given, "--template", "nosuch") == 2
    assert not (tmp_path / "reports").exists()
    assert swarmlet(*given) == 4
    assert "swarmlet: refused: 1 difference between the arms" in capsys.readouterr().err
    folder = tmp_path / "reports" / "runs" / "e"
    assert [finding["what"] for finding in report_in(folder)["findings"]] == ["seeds"]
    assert "**Refused: the arms were not equal" in (folder / "report.md").read_text().split("\n\n")[1]
    assert "<b>Refused</b>" in (folder / "report.html").read_text()


@pytest.mark.usefixtures("data_alone")
def test_an_arm_against_itself_says_how_many_rows_are_called_different(
    swarmlet: Swarmlet, tmp_path: Path, endings: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.yaml").write_text(FILE + TWO)
    assert swarmlet("experiment", "aa", "x.yaml", "--arm", "two") == 0
    (folder,) = (tmp_path / "reports" / "runs").iterdir()
    told = report_in(folder)
    assert folder.name.startswith("x-aa-")
    assert [arm["name"] for arm in told["arms"]] == ["two", "two again"]
    assert told["findings"] == []
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"0 of {len(told['rows'])} rows are called different, of an arm against itself"


@pytest.mark.usefixtures("data_alone")
def test_what_is_resumed_without_a_name_is_the_last_one_of_the_file(
    swarmlet: Swarmlet, tmp_path: Path, endings: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.yaml").write_text(FILE)
    assert swarmlet("experiment", "run", "x.yaml", "--resume") == 2
    assert "--resume: reports/runs has no experiment x; give its --name" in capsys.readouterr().err
    endings["one-1"] = "refused"
    for name in ("x-20260101-000000", "x-20260102-000000", "x-other"):
        swarmlet("experiment", "run", "x.yaml", "--name", name, "--samples", "0" if "other" in name else "1")
    (tmp_path / "x.yaml").write_text(FILE.replace("kubelets: 1", "kubelets: 2"))
    assert swarmlet("experiment", "run", "x.yaml", "--resume") == 2
    said = capsys.readouterr().err
    assert "reports/runs/x-20260102-000000/experiment.json: arms changed since" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("experiment", "run", "nosuch"), "swarmlet: experiment 'nosuch': no such file, nor one of ours"),
        (
            ("experiment", "run", "x.yaml", "--samples", "0"),
            "swarmlet: experiment x: samples: 0 is less than 1",
        ),
        (("experiment", "aa", "x.yaml", "--arm", "b"), "swarmlet: experiment x: no arm 'b'; there are one"),
        (("experiment", "run", "x.yaml", "--arm", "b"), "swarmlet: experiment x: no arm 'b'; there are one"),
        (("report", "nosuch"), "swarmlet: nosuch is no run record"),
        (
            ("compare", "nosuch", "--against", "x"),
            "swarmlet: --against: no record that can be compared: x is no",
        ),
    ],
)
def test_what_cannot_be_is_one_line(
    swarmlet: Swarmlet, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "x.yaml").write_text(FILE)
    assert swarmlet(*words) == 2
    error = capsys.readouterr().err
    assert error.startswith(said)
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.yaml"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_experiment_in_order_with_the_way_to_go_on(
    swarmlet: Swarmlet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
) -> None:
    def signalled(*_: Any) -> int:
        os.kill(os.getpid(), number)
        raise AssertionError("not reached")

    (tmp_path / "x.yaml").write_text(FILE)
    monkeypatch.setattr("harness.experiment.runner.run_locust", signalled)
    before = signal.getsignal(signal.SIGTERM)
    assert swarmlet("experiment", "run", "x.yaml", "--name", "e") == 130
    assert capsys.readouterr().err == (
        "swarmlet: interrupted; reports/runs/e keeps what is there; "
        "to go on, the same command with --resume --name e\n"
    )
    assert signal.getsignal(signal.SIGTERM) == before


# ---- records that are there ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("a --against b c", "a --against b --against c"),
        ("--against b c --title t a", "--against b --against c --title t a"),
        ("a --against b --against c", "a --against b --against c"),
        ("a --against=b", "a --against=b"),
        ("a --against", "a --against"),
        ("a --strict b", "a --strict b"),
    ],
)
def test_against_takes_every_word_up_to_the_next_option(words: str, found: str) -> None:
    assert commands.each_against(words.split()) == found.split()


@pytest.mark.usefixtures("data_alone")
def test_records_are_compared_with_others(swarmlet: Swarmlet, tmp_path: Path) -> None:
    one, ha = records(tmp_path, "one-1", "one-2"), records(tmp_path, "ha-1", "ha-2", members=3)
    assert swarmlet("compare", *ha, "--out", "out", "--against", *one) == 0
    told = report_in(tmp_path / "out")
    assert told["title"] == "ha against one"
    assert [arm["name"] for arm in told["arms"]] == ["one", "ha"]
    assert {finding["what"] for finding in told["findings"]} == {"target.members"}
    assert swarmlet("compare", *ha, "--strict", "--out", "out", "--against", *one) == 4
    declared = ("--declare", "pool.members", "--title", "T", "--strict")
    assert swarmlet("compare", *ha, "--out", "out", *declared, "--against", *one) == 0
    assert report_in(tmp_path / "out")["title"] == "T"


@pytest.mark.usefixtures("data_alone")
def test_what_cannot_be_read_is_left_out_of_a_comparison_by_name(
    swarmlet: Swarmlet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records(tmp_path, "one-1", "one-2", "ha-1", "ha-2")
    (tmp_path / "one-2" / "manifest.json").write_text("{")
    (tmp_path / "ha-1" / "manifest.json").write_text('{"schema_version": 9}')
    assert swarmlet("compare", "ha-1", "ha-2", "--out", "out", "--against", "one-1", "one-2") == 1
    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[:3] for line in said] == [
        ["swarmlet", " left out", " one-2/manifest.json"],
        ["swarmlet", " left out", " ha-1/manifest.json"],
    ]
    assert [arm["samples"][0]["record"] for arm in report_in(tmp_path / "out")["arms"]] == ["one-1", "ha-2"]


def test_one_run_has_a_report_of_its_own(swarmlet: Swarmlet, tmp_path: Path) -> None:
    records(tmp_path, "one-1")
    assert swarmlet("report", "one-1", "--out", "out") == 0
    told = report_in(tmp_path / "out")
    assert (told["title"], [arm["name"] for arm in told["arms"]]) == ("one-1", ["one"])


@pytest.mark.usefixtures("data_alone")
def test_an_experiments_folder_is_reported_with_its_title_and_what_it_declares(
    swarmlet: Swarmlet, tmp_path: Path, endings: dict[str, str]
) -> None:
    (tmp_path / "x.yaml").write_text(FILE + TWO)
    swarmlet("experiment", "run", "x.yaml", "--name", "e")
    assert swarmlet("report", "reports/runs/e", "--out", "out", "--strict") == 0
    assert report_in(tmp_path / "out")["title"] == "One or two"
