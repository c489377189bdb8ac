"""A member that is ended and started again."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from harness.pool import restarts
from harness.pool.disturbances import Disturbances
from harness.pool.emulated import EmulatedPool, PoolOptions
from harness.pool.process import Process, ProcessFailed
from harness.pool.restarts import GRACE_S, CrashLoopBackOff, RestartOrder, restart
from harness.wire.pace import Pace

ORDER = RestartOrder("member-0", 0.0, 5.0)


class FakeProcess:
    """Ends with the given code when it is told to."""

    def __init__(self, code: int = 0) -> None:
        self.code = code
        self.grace_s = 0.0

    def end(self, within_s: float) -> int:
        self.grace_s = within_s
        return self.code


def carried_out(
    process: FakeProcess, start: Callable[[float], object], over: threading.Event | None = None
) -> list[dict[str, Any]]:
    """What is said, without the seconds."""
    said: list[dict[str, Any]] = []
    restart(ORDER, process, start, over or threading.Event(), said.append)  # type: ignore[arg-type]
    assert all(event.pop("seconds") >= 0 for event in said)
    return said


def test_a_member_ends_and_is_started_again() -> None:
    process, within = FakeProcess(-9), []

    def start(within_s: float) -> object:
        within.append(within_s)
        return SimpleNamespace(program_pid=77)

    assert carried_out(process, start) == [
        {"kind": "member-ended", "member": "member-0", "code": -9},
        {"kind": "member-restarted", "member": "member-0", "pid": 77},
    ]
    assert (process.grace_s, within) == (GRACE_S, [5.0])


def test_a_member_that_does_not_come_back_is_told() -> None:
    def start(_: float) -> object:
        raise ProcessFailed("member-0: not ready within 5 s")

    said = carried_out(FakeProcess(), start)
    assert said[-1] == {
        "kind": "member-restart-failed",
        "member": "member-0",
        "error": "member-0: not ready within 5 s",
    }


@pytest.mark.parametrize("stopped", ["while it is down", "as it would start"])
def test_a_pool_that_is_stopped_meanwhile_starts_nothing(stopped: str) -> None:
    over = threading.Event()
    started: list[float] = []
    if stopped == "while it is down":
        over.set()
    said = carried_out(FakeProcess(), lambda within_s: started.append(within_s), over)
    assert [event["kind"] for event in said] == ["member-ended"]
    assert started == ([] if over.is_set() else [5.0])


def test_at_a_pace_every_time_of_an_order_is_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [80.0]
    waited: list[float | None] = []
    within: list[float] = []
    said: list[dict[str, Any]] = []
    monkeypatch.setattr(restarts, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def wait(timeout: float | None = None) -> bool:
        waited.append(timeout)
        now[0] += timeout or 0.0
        return False

    def start(within_s: float) -> object:
        within.append(within_s)
        return SimpleNamespace(program_pid=77)

    process: Any = FakeProcess()
    over: Any = SimpleNamespace(wait=wait)
    restart(RestartOrder("member-0", 6.0, 5.0), process, start, over, said.append, pace=Pace(4.0))  # type: ignore[arg-type]
    assert (process.grace_s, waited, within) == (4 * GRACE_S, [24.0], [20.0])
    assert [event["seconds"] for event in said] == [0.0, 6.0]


# ---- real processes ------------------------------------------------------------------------------------------------
@pytest.fixture
def pool(tmp_path: Path) -> Iterator[EmulatedPool]:
    """One member; `said` has what it told."""
    said: list[dict[str, Any]] = []
    made = EmulatedPool(PoolOptions(members=1, cores="host", logs=str(tmp_path)), said.append)
    made.said = said  # type: ignore[attr-defined]
    try:
        made.start()
        yield made
    finally:
        made.stop()


def ask(pool: EmulatedPool, method: str, path: str, body: object = None) -> tuple[int, Any]:
    config = yaml.safe_load(pool.kubeconfig.read_text())
    token = config["users"][0]["user"]["token"]
    ca = ssl.create_default_context()
    ca.check_hostname, ca.verify_mode = False, ssl.CERT_NONE
    (member,) = pool.members
    connection = http.client.HTTPSConnection(member.host, member.port, timeout=20, context=ca)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request(method, path, json.dumps(body) if body else None, headers)
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


@pytest.mark.slow
def test_a_restarted_member_has_its_address_and_its_objects(pool: EmulatedPool) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}}
    assert ask(pool, "POST", "/api/v1/namespaces", namespace)[0] == 201
    before = pool.members[0]
    said: list[dict[str, Any]] = pool.said  # type: ignore[attr-defined]
    Disturbances(pool, said.append).restart(RestartOrder("member-0", 0.1, 60.0))
    assert [(event["kind"], event["member"]) for event in said] == [
        ("fault-started", "member-0"),
        ("member-ended", "member-0"),
        ("member-restarted", "member-0"),
        ("fault-ended", "member-0"),
    ]
    after = pool.members[0]
    assert (after.name, after.host, after.port) == (before.name, before.host, before.port)
    assert after.pid == said[2]["pid"] != before.pid
    assert not _alive(before.pid)
    assert ask(pool, "GET", "/api/v1/namespaces/kept")[0] == 200


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_ending_a_process_leaves_its_input_open_until_it_has_ended(tmp_path: Path) -> None:
    """A member whose input ends goes at once; one that gets SIGTERM takes its time, and is killed when that is over."""
    module = tmp_path / "stubborn.py"
    module.write_text(
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "sys.stdin.readline(); print('{\"ready\": true}', flush=True); sys.stdin.read()\n"
    )
    environ = {"PYTHONPATH": str(tmp_path)}
    process = Process("stubborn", "stubborn", {}, tmp_path / "log", environ=environ)
    process.wait_ready()
    assert process.end(0.2) == -9
    again = Process("stubborn", "stubborn", {}, tmp_path / "log", environ=environ)
    again.wait_ready()
    assert again.kill() == -9


def test_a_process_that_ends_again_and_again_waits_longer_each_time() -> None:
    back_off = CrashLoopBackOff()
    now, waits = 0.0, []
    for _ in range(8):
        waits.append(back_off.ended("kube-scheduler-0", now))
        now += waits[-1] + 5.0  # it ran for 5 s
    assert waits == [1.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]
    assert back_off.ended("kube-scheduler-1", now) == 1.0, "each has its own"


@pytest.mark.parametrize(("ran_s", "waits_s"), [(600.0, 20.0), (601.0, 1.0)])
def test_one_that_ran_for_long_begins_anew(ran_s: float, waits_s: float) -> None:
    back_off = CrashLoopBackOff()
    now = back_off.ended("store", 0.0) + 5.0
    now += back_off.ended("store", now)
    assert back_off.ended("store", now + ran_s) == waits_s
