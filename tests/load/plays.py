"""Whole Locust runs with something done to them, several at a time: they mostly wait.

A play starts Locust as a user would, waits for an event in the run's record, does something to a process of the run,
and waits for the end. What a test then looks at is the `Outcome`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.observe.record import Manifest, read_events, read_manifest, read_table
from harness.pool.ports import free_ports
from tests.conftest import DATA

ROOT = Path(__file__).parent.parent.parent
TINY = str(DATA / "scenarios" / "tiny.yaml")
DEPLOYED = str(DATA / "scenarios" / "deployed.yaml")
REST = ("--scenario", "none", "--cores", "host")
AT_MOST = ("-t", "300s")
"""For a run that ends by itself, however slow the machine is; one that needs as long hangs."""
WITHIN_S = 400.0  # more than `AT_MOST` and the end of a run
ENDS_WITHIN_S = 60.0  # what should have ended with its master
WHOLE_RUNS = [pytest.mark.slow, pytest.mark.timeout(1200)]
"""Marks of a module of plays: its first test waits for all of them, and the words of one that hangs come before those
of the timeout."""


@dataclass
class Outcome:
    """`left` are the processes of the run that were still there when `ENDS_WITHIN_S` had passed after its end."""

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


class Play:
    """One run. The processes are told apart by a variable in their environment, which children inherit."""

    def __init__(self, record: Path, *arguments: str, workers: int = 0, locustfile: str = "kubelets") -> None:
        self.record = record
        self._environ = {**os.environ, "SWARMLET_TEST": str(record)}
        (port,) = map(str, free_ports(1))
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

    def end_at_rest(self) -> Outcome:
        """A fleet at rest that was given no time has no other end than a signal: it is complete then."""
        self.master.send_signal(signal.SIGINT)
        return self.end()

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
        self._kill_all()
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
            worker_codes = [worker.wait(ENDS_WITHIN_S) for worker in self.workers]
            seconds = time.monotonic() - began
            deadline = time.monotonic() + ENDS_WITHIN_S
            while (left := self.processes()) and time.monotonic() < deadline:
                time.sleep(0.1)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(
                f"{self.record.name}: no end in {error.timeout:g} s; {self._output.read_text()[-2000:]}"
            ) from None
        finally:
            self._kill_all()
        names = [" ".join(process.info["cmdline"] or [])[-80:] for process in left]
        return Outcome(code, self._output.read_text(), self.record, names, seconds, worker_codes)

    def _kill_all(self) -> None:
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()
        for started in (self.master, *self.workers):
            started.wait()

    def processes(self) -> list[psutil.Process]:
        """All of the run that are still there, however they are related to us by now."""
        found = []
        for process in psutil.process_iter(["environ", "cmdline", "status"]):
            environ = process.info["environ"] or {}
            alive = process.info["status"] != psutil.STATUS_ZOMBIE
            if alive and environ.get("SWARMLET_TEST") == str(self.record):
                found.append(process)
        return found


LATE_HOST = "invalid: host could not keep up"


def marks_but_for_the_host(outcome: Outcome) -> list[str]:
    """That this machine was too busy for the figures is no fault of what is tested."""
    late = (LATE_HOST, "the clock of worker")  # the latter where no report of a short run came at once
    return [mark.text for mark in outcome.manifest.marks if not mark.text.startswith(late)]


def assert_ended_well(outcome: Outcome, status: str = "completed") -> None:
    late = any(mark.text.startswith(LATE_HOST) for mark in outcome.manifest.marks)
    assert outcome.code == (4 if late else 0), outcome.output
    assert outcome.left == []
    assert outcome.manifest.status == status
    assert [text for text in outcome.manifest.invalid if not text.startswith(LATE_HOST)] == []
    assert "Traceback" not in outcome.output


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
