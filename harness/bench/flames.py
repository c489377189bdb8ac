"""Flame graphs of running processes, by py-spy from outside: where their CPU time goes.

py-spy stops a process for each of its samples, so figures of a run that is profiled are not for comparison.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from harness.wire.errors import ConfigError, SwarmletError

SAMPLES_A_SECOND = 100
_WRITTEN_WITHIN_S = 60.0
_HOW_TO_GET_IT = "install swarmlet[profile], or put py-spy on PATH"


class ProfileFailed(SwarmletError):
    """py-spy could not look into a process."""


def find_py_spy(environ: Mapping[str, str] = os.environ) -> str:
    """Beside this Python, or on PATH. Raises ConfigError that says how to get it."""
    places = os.pathsep.join((str(Path(sys.executable).parent), environ.get("PATH", "")))
    found = shutil.which("py-spy", path=places)
    if found is None:
        raise ConfigError(f"--profile: there is no py-spy; {_HOW_TO_GET_IT}")
    return found


class Flames:
    """One SVG for each process and phase in `folder`, ``<phase>-<process>.svg``. Raises ConfigError."""

    def __init__(self, folder: Path, binary: str | None = None) -> None:
        self._binary = binary or find_py_spy()
        self._folder = folder
        self._running: dict[Path, subprocess.Popen[str]] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"--profile {folder}: cannot be written: {error.strerror}") from None

    def start(self, phase: str, seconds: float, pids: Mapping[str, int]) -> None:
        """Begin to look at processes, by name, for so long."""
        for name, pid in pids.items():
            path = self._folder / f"{phase.replace(' ', '-')}-{name}.svg"
            options = {
                "pid": pid,
                "duration": max(1, int(seconds)),
                "rate": SAMPLES_A_SECOND,
                "format": "flamegraph",
                "output": path,
            }
            self._running[path] = subprocess.Popen(
                [self._binary, "record", *(f"--{key}={value}" for key, value in options.items())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )

    def finish(self) -> list[Path]:
        """Wait until all are written; where they are. Raises ProfileFailed."""
        written = []
        try:
            for path, process in self._running.items():
                _, said = process.communicate(timeout=_WRITTEN_WITHIN_S)
                if process.returncode:
                    last = (said.strip().splitlines() or ["(nothing)"])[-1]
                    raise ProfileFailed(
                        f"py-spy for {path.name} ended with exit code {process.returncode}: {last}"
                    )
                written.append(path)
        except subprocess.TimeoutExpired:
            raise ProfileFailed(f"py-spy did not end within {_WRITTEN_WITHIN_S:g} s") from None
        finally:
            self.stop()
        return written

    def stop(self) -> None:
        """End those that still look."""
        for process in self._running.values():
            if process.poll() is None:
                process.kill()
            process.communicate()
        self._running.clear()
