"""One child process: its configuration, its ready line, its messages, its end; nothing outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.pool.process import Process, ProcessFailed, stop_all
from harness.wire.errors import ConfigError
from tests.conftest import HANG_S

CHILDREN = {
    "steady": """
        say(ready=config)
        for line in sys.stdin: say(echo=json.loads(line))
    """,
    "deaf": """
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say(ready=True)
        time.sleep(600)
    """,
    "short": """
        say(ready=True)
        sys.exit(7)
    """,
    "unable": """
        say(error="port 80 is taken")
        sys.exit(2)
    """,
    "broken": """
        print("starting", file=sys.stderr)
        print("no such file", file=sys.stderr)
        sys.exit(3)
    """,
    "silent": """
        time.sleep(600)
    """,
    "finishing": """
        say(ready=True)
        sys.stdin.read()
        sys.exit(5)
    """,
}
PREAMBLE = """
import json, signal, sys, time
def say(**message): print(json.dumps(message), flush=True)
config = json.loads(sys.stdin.readline())
"""


class Starter:
    """Starts children by name; `exits` and `messages` are what was heard of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[Process] = []
        self.messages: list[dict[str, Any]] = []
        self.exits: list[tuple[str, int]] = []
        self.heard = threading.Event()

    def __call__(self, name: str, config: Any = None) -> Process:
        body = "\n".join(line[8:] for line in CHILDREN[name].splitlines())
        (self.folder / f"child_{name}.py").write_text(PREAMBLE + body)
        process = Process(
            name,
            f"child_{name}",
            config,
            self.folder / f"{name}.log",
            on_exit=self._exit,
            on_message=self._message,
            environ={"PYTHONPATH": str(self.folder)},
        )
        self.started.append(process)
        return process

    def _exit(self, process: Process, code: int) -> None:
        self.exits.append((process.name, code))
        self.heard.set()

    def _message(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        self.heard.set()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    starter = Starter(tmp_path)
    yield starter
    stop_all(starter.started)
    for thread in threading.enumerate():
        if thread.name.startswith("follow-"):
            thread.join(HANG_S)


def test_a_child_is_configured_by_its_input_not_its_arguments(start: Starter) -> None:
    process = start("steady", {"token": "secret"})
    assert process.wait_ready() == {"ready": {"token": "secret"}}
    assert process.alive
    assert "secret" not in " ".join(psutil.Process(process.pid).cmdline())


def test_what_it_says_later_is_heard(start: Starter) -> None:
    process = start("steady")
    process.wait_ready()
    process.send({"more": 1})
    assert start.heard.wait(HANG_S)
    assert start.messages == [{"echo": {"more": 1}}]


def test_a_child_that_ends_unasked_is_told_with_its_code(start: Starter) -> None:
    start("short").wait_ready()
    assert start.heard.wait(HANG_S)
    assert start.exits == [("short", 7)]


def test_a_killed_child_is_told_with_its_signal(start: Starter) -> None:
    process = start("steady")
    process.wait_ready()
    os.kill(process.pid, signal.SIGKILL)
    assert start.heard.wait(HANG_S)
    assert start.exits == [("steady", -9)]
    process.send({"more": 1})  # to nobody


def test_a_child_that_is_stopped_is_no_news(start: Starter) -> None:
    process = start("steady")
    process.wait_ready()
    assert process.stop() == -signal.SIGTERM
    assert process.stop() == -signal.SIGTERM
    assert start.exits == []


def test_a_child_that_does_not_heed_sigterm_is_killed(start: Starter) -> None:
    process = start("deaf")
    process.wait_ready()
    process.ask_to_stop()
    assert process.wait_stopped(0.1) == -signal.SIGKILL


def test_the_end_of_input_lets_a_child_finish(start: Starter) -> None:
    process = start("finishing")
    process.wait_ready()
    assert process.end_input(HANG_S) == 5
    assert start.exits == []


def test_a_child_that_cannot_do_what_it_was_told_is_a_configuration_error(start: Starter) -> None:
    with pytest.raises(ConfigError, match="unable: port 80 is taken"):
        start("unable").wait_ready()


def test_a_child_that_ends_first_is_quoted(start: Starter) -> None:
    with pytest.raises(ProcessFailed, match=r"broken: ended with exit code 3; its log .* ends: no such file"):
        start("broken").wait_ready()


def test_a_child_that_says_nothing_is_given_up(start: Starter) -> None:
    with pytest.raises(ProcessFailed, match=r"silent: not ready within 0\.1 s; its log .* ends: \(empty\)"):
        start("silent").wait_ready(0.1)


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib, time\n"
        "from harness.apiserver.process.config import StoreConfig\n"
        "from harness.pool.process import Process\n"
        "config = StoreConfig(sys.argv[1] + '/s', ('member-0',))\n"
        "p = Process('store', 'harness.apiserver.process.store', config, pathlib.Path(sys.argv[1]) / 'log')\n"
        "p.wait_ready(); print(p.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    began = time.monotonic()
    psutil.wait_procs([child], timeout=HANG_S)
    assert not child.is_running(), f"still there after {time.monotonic() - began:.0f} s"
