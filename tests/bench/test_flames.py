"""py-spy beside the processes of a bench, played by small programs, and itself where it is installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness.bench.flames import Flames, ProfileFailed, find_py_spy
from harness.wire.errors import ConfigError


def program(folder: Path, text: str) -> str:
    path = folder / "py-spy"
    path.write_text(f"#!{sys.executable}\nimport sys\n{text}\n")
    path.chmod(0o755)
    return str(path)


WRITES = """
options = dict(argument.lstrip("-").split("=", 1) for argument in sys.argv[2:])
open(options["output"], "w").write(f"{sys.argv[1]} {options['pid']} {options['duration']} {options['rate']}")
"""


def test_one_for_each_process_of_each_phase(tmp_path: Path) -> None:
    flames = Flames(tmp_path / "out", program(tmp_path, WRITES))
    flames.start("at rest", 30.5, {"load": 7, "member-0": 8})
    first = flames.finish()
    flames.start("events", 0.2, {"load": 7})
    assert [path.name for path in [*first, *flames.finish()]] == [
        "at-rest-load.svg",
        "at-rest-member-0.svg",
        "events-load.svg",
    ]
    assert first[1].read_text() == "record 8 30 100"
    assert (tmp_path / "out" / "events-load.svg").read_text() == "record 7 1 100"


def test_one_that_may_not_look_says_why(tmp_path: Path) -> None:
    flames = Flames(tmp_path, program(tmp_path, "sys.exit('Permission Denied: try sudo')"))
    flames.start("at rest", 1, {"load": 7})
    with pytest.raises(ProfileFailed, match=r"at-rest-load\.svg ended with exit code 1: Permission Denied"):
        flames.finish()


def test_what_still_looks_is_ended(tmp_path: Path) -> None:
    flames = Flames(tmp_path, program(tmp_path, "import time; time.sleep(60)"))
    flames.start("at rest", 60, {"load": 7})
    flames.stop()
    assert flames.finish() == []


def test_without_it_there_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(ConfigError, match=r"there is no py-spy; install swarmlet\[profile\]"):
        find_py_spy({"PATH": str(tmp_path)})
    assert find_py_spy({"PATH": str(Path(program(tmp_path, "")).parent)}) == str(tmp_path / "py-spy")


def test_a_folder_that_cannot_be_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--profile /proc/x: cannot be written"):
        Flames(Path("/proc/x"), program(tmp_path, ""))


def test_the_real_one_draws_this_process(tmp_path: Path) -> None:
    try:
        flames = Flames(tmp_path)
    except ConfigError as error:
        pytest.skip(str(error))
    flames.start("at rest", 1, {"self": os.getpid()})
    try:
        (path,) = flames.finish()
    except ProfileFailed as error:
        pytest.skip(str(error))  # a system that lets nobody look into processes
    assert "<svg" in path.read_text()
