"""Sessions for tests, with no process started: how they are made, what a worker reports, what a reader finds."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.load.arguments import RunOptions
from harness.load.plan import Target, TargetMember
from harness.load.session import Session
from harness.load.users import KubeletUser
from harness.observe.record import read_events, read_manifest
from harness.pool.emulated import PoolOptions
from tests.load.fakes import FakeRunner
from tests.load.plays import TINY

ROW = (1.0, "kubelet", "get", "nodes", 200, "member-0", 100, 3)


class Clock:
    """Stands in for the session's `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1_000_000.0 + self.now


class Kubelets(KubeletUser):
    abstract = True


class Makes:
    """Sessions with members of a given number; all are finished at the test's end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runner = FakeRunner("w0", "w1")
        self.made: list[Session] = []

    def __call__(self, *, members: int = 1, **options: Any) -> Session:
        environment = SimpleNamespace(
            runner=self.runner, swarmlet_context=None, user_classes=[Kubelets], web_ui=None
        )
        given = {"scenario": TINY, "run_time_s": 60.0, "record": self.folder / "run", **options}
        run = RunOptions(
            kubelets=5, spawn_rate=5.0, seed=1, pool=PoolOptions(members=members), overrides=(), **given
        )
        session = Session(environment, run, helpers=3)
        session._target = Target(
            tuple(TargetMember(f"member-{index}", "127.0.0.1", 1) for index in range(members))
        )
        session.begin()
        self.made.append(session)
        return session

    def runs(self, users: dict[str, dict[str, int]]) -> None:
        """The users of each worker, by the name of their class."""
        for worker, counts in users.items():
            self.runner.workers[worker].user_classes_count = counts


def report(number: int, *rows: Any, nodes: int = 0, last: bool = False, **more: Any) -> dict[str, Any]:
    """As a worker's context makes it."""
    counted = {"requests": list(rows), "samples": [], "counts": {}}
    return {"number": number, "last": last, "nodes": nodes, "sent": 1_001_000.0, **counted, **more}


def ended(session: Session) -> tuple[str, int, list[tuple[str, bool]]]:
    """Finish, and give status, exit code and marks as a reader of the record finds them."""
    code = session.finish()
    manifest = read_manifest(session.options.record)
    return manifest.status, code, [(mark.text, mark.invalid) for mark in manifest.marks]


def kinds(session: Session) -> list[str]:
    return [event["kind"] for event in read_events(session.options.record)]
