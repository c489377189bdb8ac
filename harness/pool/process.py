"""A process that cannot outlive its parent, and whose readiness and end are known.

A child is given its configuration as the first line of its standard input (secrets never stand in an argument list),
answers one JSON line on standard output when it is ready, and ends when that input ends: the pipe is held by the parent
alone, so a parent that crashes or is killed takes its children along, whatever the platform.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import msgspec

from harness.wire.errors import ConfigError, SwarmletError

logger = logging.getLogger("swarmlet")

READY_WITHIN_S = 30.0
STOP_WITHIN_S = 5.0
LOG_TAIL_BYTES = 2000


class ProcessFailed(SwarmletError):
    """A process did not become ready; the message ends with what it last said."""


class Process:
    """One child. `ready` is its first line, decoded.

    From a thread of its own, `on_message` is called with each later line and `on_exit`, once, with the exit code of a
    child that was not asked to stop.
    """

    def __init__(
        self,
        name: str,
        module: str,
        config: Any,
        log: Path,
        *,
        on_exit: Callable[[Process, int], None] | None = None,
        on_message: Callable[[dict[str, Any]], None] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self.ready: dict[str, Any] = {}
        self.stopping = False
        self._on_exit = on_exit
        self._on_message = on_message
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env={**os.environ, **(environ or {})},
                start_new_session=True,  # a Ctrl-C at the terminal reaches the parent alone, which stops us in order
            )
        self._ready = threading.Event()
        self.send(config)
        threading.Thread(target=self._follow, name=f"follow-{name}", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def program_pid(self) -> int:
        """Of the program that a guardian runs; of the child itself where it is none."""
        return int(self.ready.get("pid", self.pid))

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    def send(self, message: Any) -> None:
        """One more JSON line to its standard input; ignored when it has gone."""
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._stdin.write(msgspec.json.encode(message) + b"\n")
            self._stdin.flush()

    def wait_ready(self, within_s: float = READY_WITHIN_S) -> dict[str, Any]:
        """Its ready line.

        Raises ProcessFailed when it ends first or says nothing in time, ConfigError when its first line is
        ``{"error": ...}``: it could not use what it was given.
        """
        self._ready.wait(within_s)
        if "error" in self.ready:
            raise ConfigError(f"{self.name}: {self.ready['error']}")
        if not self.ready:
            why = self.how_it_ended() or f"not ready within {within_s:g} s; {self._log_ends()}"
            raise ProcessFailed(f"{self.name}: {why}")
        return self.ready

    def how_it_ended(self) -> str:
        """Its exit code and what its log says last; "" while it runs."""
        code = self._popen.poll()
        return "" if code is None else f"ended with exit code {code}; {self._log_ends()}"

    def _log_ends(self) -> str:
        return f"its log {self.log} ends: {self.tail()}"

    def ask_to_stop(self) -> None:
        """SIGTERM and end of input; `wait_stopped` follows."""
        self.stopping = True
        if self.alive:
            self._popen.terminate()
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()

    def wait_stopped(self, within_s: float = STOP_WITHIN_S) -> int:
        """Its exit code; killed when it does not end in time."""
        try:
            return self._popen.wait(within_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.program_pid, signal.SIGKILL)  # before its guardian, which it must not outlive
            self._popen.kill()
            return self._popen.wait()

    def end(self, within_s: float) -> int:
        """SIGTERM alone, which a member takes its time to follow, then SIGKILL; its exit code."""
        self.stopping = True
        if self.alive:
            self._popen.terminate()
        code = self.wait_stopped(within_s)
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        return code

    def kill(self) -> int:
        """SIGKILL to the program, without a word before; its exit code, or its guardian's."""
        self.stopping = True
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.program_pid, signal.SIGKILL)
        code = self.wait_stopped()
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        return code

    def end_input(self, within_s: float) -> int:
        """End its standard input, which it takes as "finish what you have", and wait; stopped when it does not."""
        self.stopping = True
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        try:
            return self._popen.wait(within_s)
        except subprocess.TimeoutExpired:
            return self.stop()

    def stop(self) -> int:
        self.ask_to_stop()
        return self.wait_stopped()

    def tail(self) -> str:
        """The last line of its log."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, self.log.stat().st_size - LOG_TAIL_BYTES))
                lines = log.read().decode("utf-8", "replace").strip().splitlines()
        except OSError:
            return "(no log)"
        return lines[-1] if lines else "(empty)"

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._popen.stdin is not None
        return self._popen.stdin

    def _follow(self) -> None:
        output = self._popen.stdout
        assert output is not None
        with output:
            self.ready = _decoded(output.readline())
            if not self.ready:  # it has ended, or is about to: then its exit code is what there is to say
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._popen.wait(STOP_WITHIN_S)
            self._ready.set()
            for line in output:
                if (message := _decoded(line)) and self._on_message is not None:
                    self._tell(message)
        code = self._popen.wait()
        if self._on_exit is not None and not self.stopping:
            self._on_exit(self, code)

    def _tell(self, message: dict[str, Any]) -> None:
        assert self._on_message is not None
        try:
            self._on_message(message)
        except Exception:  # whoever listens is wrong; what the child says next must be heard all the same
            logger.exception("what %s said could not be handled: %r", self.name, message)


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}


def stop_all(processes: list[Process]) -> None:
    """Ask all at once, then wait for each: a pool stops in the time of its slowest process."""
    for process in processes:
        process.ask_to_stop()
    deadline = time.monotonic() + STOP_WITHIN_S
    for process in processes:
        process.wait_stopped(max(0.1, deadline - time.monotonic()))
