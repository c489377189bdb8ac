"""``swarmlet plan`` as a command, and what of ``swarmlet bench --save`` needs no bench."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import app
from harness.sizing import commands
from harness.wire.errors import ConfigError


@pytest.fixture(autouse=True)
def _nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)


def swarmlet(*arguments: str) -> None:
    app(list(arguments), standalone_mode=False)


def test_a_plan_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    swarmlet("plan", "--nodes", "5000", "--watches-per-node", "35", "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["workers"]["count"] >= 1
    assert told["calibration"]["of_this_machine"] is False
    assert told["control_plane"]["watches_a_member"] == 58_333


def test_a_plan_for_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "console", console := commands.Console(record=True, width=160))
    swarmlet(
        "plan", "--nodes", "5000", "--cores", "1", "--memory", "100Gi", "--balancer", "--servers", "emulated"
    )
    shown = console.export_text()
    assert "107.4 GB" in shown
    assert "emulated members, here" in shown
    assert "swarmlet bench --save" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "--nodes", "0"), "--nodes 0: not within 1 to 100000"),
        (("plan", "--nodes", "9", "--memory", "much"), "--memory much: no quantity, as 16Gi or 500M"),
        (("plan", "--nodes", "9", "--memory", "0"), "--memory: must be above 0"),
        (("plan", "--nodes", "9", "--cores", "-1"), "--cores -1: not within 0 to 4096"),
        (("plan", "--nodes", "9", "--up-within", "soon"), "--up-within soon: invalid duration 'soon'"),
        (("plan", "--nodes", "9", "--http", "3"), "--http 3: allowed are h2, http/1.1"),
        (("plan", "--nodes", "9", "--servers", "kind"), "--servers kind: allowed are existing"),
        (("plan", "--nodes", "9", "--workers", "-1"), "--workers -1: not within 1 to 9"),
        (("plan", "--nodes", "9", "--calibration", "none"), "--calibration none: cannot be read"),
        (("bench", "--save", "--watches", "7"), "--watches 7: more than 7 are needed"),
        (("bench", "--save", "--duration", "x"), "--duration x: invalid duration 'x'"),
        (("bench", "kubelets", "--duration", "x"), "--duration x: invalid duration 'x'"),
    ],
)
def test_what_cannot_be_is_one_line(arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        swarmlet(*arguments)
    assert str(refused.value).startswith(words)
    assert refused.value.exit_code == 2
