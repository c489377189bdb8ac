"""One Locust run as a process, followed through its record."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.observe.environment import share
from harness.wire.errors import ConfigError, SwarmletError

POLL_S = 0.25
ENDS_WITHIN_S = 30.0
OURS = "swarmlet: "  # in front of a line that says why a command ends
PARENT_VARIABLE = "SWARMLET_PARENT"  # as harness.load.lifeline reads it; that package is not imported here


def locust_command(locustfiles: Sequence[str], arguments: list[str]) -> list[str]:
    """The command that a user would type, with this Python's own Locust. `locustfiles` are names of ours, or paths."""
    paths = [
        name if name.endswith(".py") else str(share("locustfiles") / f"{name}.py") for name in locustfiles
    ]
    return [sys.executable, "-m", "locust", "--headless", "--only-summary", "-f", ",".join(paths), *arguments]


def run_locust(
    command: list[str],
    record: Path,
    on_event: Callable[[dict[str, Any]], None],
    environ: Mapping[str, str] | None = None,
) -> int:
    """Run a command that writes `record`; its output goes to ``<record>.log``, its events to `on_event` as they come.

    Returns its exit code. When we are interrupted, so is it, and it is waited for: it closes its record. When we are
    killed it does so by itself.
    """
    record.parent.mkdir(parents=True, exist_ok=True)
    log = record.with_name(record.name + ".log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(environ or {}), PARENT_VARIABLE: str(os.getpid())},
            start_new_session=True,
        )
    try:
        for event in _follow(record / "events.jsonl", process):
            on_event(event)
        return process.wait()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(ENDS_WITHIN_S)
            process.kill()
            process.wait()


def refusal(record: Path, code: int) -> SwarmletError | None:
    """Why a run did not begin, None where it did: what its command said, and its exit code."""
    if code != ConfigError.exit_code and (record / "manifest.json").exists():
        return None
    log = record.with_name(record.name + ".log")
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    ours = [line.removeprefix(OURS) for line in lines if line.startswith(OURS)]
    error = SwarmletError([f"no output; see {log}", *lines[-1:], *ours[-1:]][-1])
    error.exit_code = code or SwarmletError.exit_code
    return error


def _follow(path: Path, process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    """Each event as soon as its line is whole, until the process has ended."""
    offset = 0
    while True:
        ended = process.poll() is not None
        with contextlib.suppress(FileNotFoundError), path.open("rb") as events:
            events.seek(offset)
            for line in events:
                if not line.endswith(b"\n"):
                    break
                offset += len(line)
                yield msgspec.json.decode(line)
        if ended:
            return
        time.sleep(POLL_S)
