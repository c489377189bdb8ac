"""Running a command of a config's, as ClusterLoader2's Exec does: in time or not at all, its output kept and shown.

The caller waits; under gevent it waits alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

_VARIABLE = re.compile(r"\$(?:\{([^}]*)\}|(\w+))")


def expand(text: str, environ: Mapping[str, str]) -> str:
    """$NAME and ${NAME} replaced, by nothing where there is no such variable (Go: os.ExpandEnv)."""
    return _VARIABLE.sub(lambda found: environ.get(found[1] or found[2] or "", ""), text)


class Command:
    """`words` are the command's, variables of our environment replaced; `log` is the file that keeps its output."""

    def __init__(self, words: tuple[str, ...], timeout_s: float, log: Path) -> None:
        self.words = tuple(expand(word, os.environ) for word in words)
        self.timeout_s = timeout_s
        self.log = log
        self.timed_out = False
        self._popen: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        """Raises OSError where there is no such program."""
        self._popen = subprocess.Popen(
            self.words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # so that what it has started ends with it
        )
        return self._popen

    def time_out(self) -> None:
        self.timed_out = True
        self.kill(signal.SIGKILL)

    def kill(self, number: signal.Signals) -> None:
        """End it and what it has started; nothing where it has ended."""
        if self._popen is not None and self._popen.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, number)


def run_command(command: Command, on_line: Callable[[str], None]) -> str:
    """Run it to its end; each line of its output goes to its log and to `on_line` when it comes. "" where it ended with
    exit code 0, else why not."""
    what = " ".join(command.words)[:200]
    try:
        popen = command.start()
    except OSError as error:
        return f"command {what!r} cannot be run: {error.strerror or error}"
    timer = threading.Timer(command.timeout_s, command.time_out)
    timer.daemon = True
    timer.start()
    try:
        with command.log.open("w") as log, popen:
            assert popen.stdout is not None
            for line in popen.stdout:
                log.write(line)
                log.flush()
                on_line(line.rstrip("\n")[:500])
    finally:
        timer.cancel()
    code = popen.returncode
    if command.timed_out:
        return f"command {what!r} was ended after {command.timeout_s:g} s, its timeout"
    if code:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"command {what!r} failed: {how}"
    return ""
