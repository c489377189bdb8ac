"""Commands of a config's: their output, their end, their time."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import pytest

from harness.load.running import Command, expand, run_command
from tests.conftest import HANG_S


def ran(folder: Path, *words: str, timeout_s: float = HANG_S) -> tuple[str, list[str], str]:
    """Why it failed, the lines that were shown, what its log holds."""
    lines: list[str] = []
    command = Command(words, timeout_s, folder / "exec.log")
    error = run_command(command, lines.append)
    return error, lines, (folder / "exec.log").read_text() if (folder / "exec.log").exists() else ""


def test_output_is_shown_and_kept(tmp_path: Path) -> None:
    code = "import sys; print('out'); sys.stdout.flush(); print('err', file=sys.stderr)"
    assert ran(tmp_path, sys.executable, "-c", code) == ("", ["out", "err"], "out\nerr\n")


def test_a_line_is_shown_when_it_comes(tmp_path: Path) -> None:
    """The command waits for a file that only its first line's reader makes."""
    go = tmp_path / "go"
    code = f"import os, time; print('ready', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    command = Command((sys.executable, "-c", code), HANG_S, tmp_path / "log")
    assert run_command(command, lambda line: go.touch()) == ""


@pytest.mark.parametrize(
    ("code", "how"),
    [("raise SystemExit(3)", "exit code 3"), ("import os; os.kill(os.getpid(), 15)", "signal 15")],
)
def test_another_end_than_0_says_how(tmp_path: Path, code: str, how: str) -> None:
    error, _, _ = ran(tmp_path, sys.executable, "-c", code)
    assert error.endswith(f" failed: {how}")


def test_there_is_no_such_program(tmp_path: Path) -> None:
    error, _, _ = ran(tmp_path, "/nowhere/at-all", "x")
    assert error == "command '/nowhere/at-all x' cannot be run: No such file or directory"


def test_a_timeout_ends_the_command_and_what_it_started(tmp_path: Path) -> None:
    for timeout_s in (0.5, 5.0, 50.0):
        words = ("sh", "-c", "echo began; sleep 600 & sleep 600")
        error, lines, _ = ran(tmp_path, *words, timeout_s=timeout_s)
        assert error.endswith(f"was ended after {timeout_s:g} s, its timeout")
        if lines:
            break  # else this machine stood still for that long
    assert lines == ["began"]


def test_a_run_that_ends_takes_its_commands_along(tmp_path: Path) -> None:
    command = Command(("sh", "-c", "echo began; sleep 600"), 600.0, tmp_path / "log")
    command.kill(signal.SIGKILL)  # not begun: nothing to do
    errors: list[str] = []
    began = threading.Event()
    runs = threading.Thread(target=lambda: errors.append(run_command(command, lambda line: began.set())))
    runs.start()
    assert began.wait(HANG_S)
    command.kill(signal.SIGKILL)
    runs.join(HANG_S)
    assert errors[0].endswith("failed: signal 9")


def test_variables_are_the_masters() -> None:
    environ = {"HOME": "/root", "N": "5"}
    assert expand("$HOME/${N}x$N ${NO}$NO.", environ) == "/root/5x5 ."
    assert expand("a$ $$ 100% \\$", environ) == "a$ $$ 100% \\$"
