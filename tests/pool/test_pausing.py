"""A process that stands still, and goes on whatever becomes of whoever ordered it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

WITHIN_S = 60.0


@pytest.fixture
def sleeper() -> Iterator[psutil.Process]:
    process = subprocess.Popen(["sleep", "600"])
    yield psutil.Process(process.pid)
    process.kill()
    process.wait()


def pause(pid: int) -> subprocess.Popen[bytes]:
    pausing = subprocess.Popen(
        [sys.executable, "-m", "harness.pool.pausing"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert pausing.stdin is not None
    assert pausing.stdout is not None
    pausing.stdin.write(json.dumps({"pid": pid}).encode() + b"\n")
    pausing.stdin.flush()
    assert json.loads(pausing.stdout.readline() or b"{}") == {"ready": True}
    return pausing


def until_it_is(process: psutil.Process, stopped: bool) -> None:
    deadline = time.monotonic() + WITHIN_S
    while (process.status() == psutil.STATUS_STOPPED) != stopped:
        assert time.monotonic() < deadline, process.status()
        time.sleep(0.005)


def test_a_process_stands_still_until_the_pauses_input_ends(sleeper: psutil.Process) -> None:
    pausing = pause(sleeper.pid)
    until_it_is(sleeper, stopped=True)
    pausing.terminate()  # comes with the end of the input, and must not be its end
    assert pausing.stdin is not None
    pausing.stdin.close()  # as when whoever holds it is killed
    until_it_is(sleeper, stopped=False)
    with pausing:
        assert pausing.wait(WITHIN_S) == 0


def test_a_process_that_has_gone_is_no_error(sleeper: psutil.Process) -> None:
    pausing = pause(sleeper.pid)
    sleeper.kill()
    with pausing:
        assert pausing.stdin is not None
        pausing.stdin.close()
        assert pausing.wait(WITHIN_S) == 0
