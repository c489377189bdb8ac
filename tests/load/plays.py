"""Whole Locust runs with something done to them, several at a time: they mostly wait.

A play starts Locust as a user would, waits for an event in the run's record, does something to a process of the run,
and waits for the end. What a test then looks at is the `Outcome`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from harness.observe.record import Manifest, read_events, read_manifest, read_table
from tests.conftest import DATA

ROOT = Path(__file__).parent.parent.parent
TINY = str(DATA / "scenarios" / "tiny.yaml")
DEPLOYED = str(DATA / "scenarios" / "deployed.yaml")
REST = ("--scenario", "none", "--cores", "host")
WITHIN_S = 240.0


@dataclass
class Outcome:
    """`left` are the processes of the run that were still there some seconds after its end."""

    code: int
    output: str
    record: Path
    left: list[str]
    seconds_to_end: float = 0.0
    worker_codes: list[int] = field(default_factory=list)

    @property
    def manifest(self) -> Manifest:
        return read_manifest(self.record)

    @property
    def marks(self) -> str:
        return "; ".join(f"{mark.text} (invalid: {mark.invalid})" for mark in self.manifest.marks)

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in read_events(self.record) if event["kind"] == kind]

    @property
    def requests(self) -> int:
        return sum(read_table(self.record, "requests")["count"].to_pylist())


def paths_of(locustfile: str) -> str:
    """As -f has them: one of ours, a path without its end, or several of these with commas."""
    return ",".join(str(ROOT / "locustfiles" / f"{name}.py") for name in locustfile.split(","))


def command(record: Path, *arguments: str, locustfile: str = "kubelets") -> list[str]:
    return [
        *(sys.executable, "-m", "locust", "--headless", "--only-summary"),
        *("-f", paths_of(locustfile), "-u", "5", "-r", "50"),
        *("--scrape-interval", "1", "--record", str(record), *arguments),
    ]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Play:
    """One run. The processes are told apart by a variable in their environment, which children inherit."""

    def __init__(self, record: Path, *arguments: str, workers: int = 0, locustfile: str = "kubelets") -> None:
        self.record = record
        self._environ = {**os.environ, "SWARMLET_TEST": str(record)}
        port = str(free_port())
        self._output = record.with_name(record.name + ".out")
        role = ("--master", "--expect-workers", str(workers)) if workers else ()
        self.master = self._start(
            command(
                record,
                *(*role, "--master-bind-port", port, "--master-port", port, *arguments),
                locustfile=locustfile,
            )
        )
        self._worker = [sys.executable, "-m", "locust", "-f", paths_of(locustfile)]
        self._worker += ["--worker", "--master-port", port]
        self.workers: list[subprocess.Popen[bytes]] = []
        for _ in range(workers):
            self.join()

    def join(self) -> None:
        """One more worker."""
        self.workers.append(self._start(self._worker))

    def _start(self, line: list[str]) -> subprocess.Popen[bytes]:
        with self._output.open("ab") as output:
            return subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environ,
                start_new_session=True,
            )

    def wait_for(self, condition: Callable[[], Any]) -> Any:
        """What `condition()` gives, once it gives something."""
        deadline = time.monotonic() + WITHIN_S
        while time.monotonic() < deadline:
            with contextlib.suppress(Exception):
                if found := condition():
                    return found
            if self.master.poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError(f"{self.record.name}: did not happen; {self._output.read_text()[-2000:]}")

    def wait_for_event(self, kind: str, count: int = 1) -> list[dict[str, Any]]:
        def happened() -> list[dict[str, Any]]:
            events = [event for event in read_events(self.record) if event["kind"] == kind]
            return events if len(events) >= count else []

        found: list[dict[str, Any]] = self.wait_for(happened)
        return found

    def pid_of(self, name: str) -> int:
        """The store's or a member's process."""
        target = read_manifest(self.record).target
        if name == "store":
            return int(target["store_pid"])
        return next(int(member["pid"]) for member in target["members"] if member["name"] == name)

    def end(self) -> Outcome:
        """Wait for the end of everything; whatever is then left is named, and killed."""
        began = time.monotonic()
        try:
            code = self.master.wait(WITHIN_S)
            worker_codes = [worker.wait(15) for worker in self.workers]
            seconds = time.monotonic() - began
            deadline = time.monotonic() + 8
            while (left := self.processes()) and time.monotonic() < deadline:
                time.sleep(0.1)
        finally:
            for process in self.processes():
                with contextlib.suppress(psutil.Error):
                    process.kill()
            for started in (self.master, *self.workers):
                started.wait()
        names = [" ".join(process.info["cmdline"] or [])[-80:] for process in left]
        return Outcome(code, self._output.read_text(), self.record, names, seconds, worker_codes)

    def processes(self) -> list[psutil.Process]:
        """All of the run that are still there, however they are related to us by now."""
        found = []
        for process in psutil.process_iter(["environ", "cmdline", "status"]):
            environ = process.info["environ"] or {}
            alive = process.info["status"] != psutil.STATUS_ZOMBIE
            if alive and environ.get("SWARMLET_TEST") == str(self.record):
                found.append(process)
        return found


Outcomes = Callable[[Callable[[Path], Outcome]], Outcome]
"""The outcome of a play that was put on."""


def put_on(plays: Sequence[Callable[[Path], Outcome]], folder: Path, at_once: int) -> Outcomes:
    """Play all, so many at a time, each in a folder of its name; blocks until all are over. One that failed raises when
    it is asked for."""
    with ThreadPoolExecutor(at_once) as executor:
        started = {play: executor.submit(play, folder / play.__name__) for play in plays}
    return lambda play: started[play].result()


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
