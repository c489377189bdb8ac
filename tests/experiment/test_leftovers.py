"""What is left of a run, and waiting for a host that is fit for the next one."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.experiment.leftovers import Host, await_fit, left_folders, leftovers
from harness.observe.record import Manifest
from harness.pool.folders import prefix
from harness.wire.errors import SwarmletError
from harness.wire.pace import Pace
from tests.conftest import HANG_S


class Machine:
    """A host in virtual time, whose load average falls by `falls` each second from `load`."""

    def __init__(self, load: float = 0.0, falls: float = 0.0) -> None:
        self.now = 0.0
        self.host = Host(
            load_average=lambda: max(0.0, load - falls * self.now),
            cores=2,
            clock=lambda: self.now,
            sleep=self._sleep,
        )

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


def manifest(**target: object) -> Manifest:
    made = Manifest(name="one-1", started=time.time() - 5, ended=time.time() + 5)
    made.target = {"backend": "emulated", **target}
    return made


@pytest.fixture
def sleeper() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate(b"\n", timeout=HANG_S)


def test_nothing_is_left_where_there_was_no_run() -> None:
    machine = Machine()
    await_fit(None, 0.0, machine.host, pytest.fail)
    assert machine.now == 0.0


def test_a_process_of_the_run_is_found_by_its_number_and_its_time(sleeper: int) -> None:
    left = manifest(members=[{"name": "member-0", "pid": sleeper}], store_pid=0)
    assert list(leftovers(left)) == [f"process {sleeper} (member-0)"]
    left.ended = left.started - 100  # the number is another process's now
    assert list(leftovers(left)) == []
    assert list(leftovers(manifest(members=[{"name": "member-0", "pid": 2**22 + 1}]))) == []


def test_the_end_of_a_run_whose_clock_went_slower_was_later_than_it_says(sleeper: int) -> None:
    left = manifest(members=[{"name": "member-0", "pid": sleeper}])
    left.started = psutil.Process(sleeper).create_time() - 5.0
    left.ended = left.started + 2.0
    assert list(leftovers(left)) == []
    left.pace = Pace(4.0, left.started)
    assert list(leftovers(left)) == [f"process {sleeper} (member-0)"]


def test_processes_beside_the_members_of_a_pool_of_binaries_are_looked_for(sleeper: int) -> None:
    left = manifest(backend="binaries", processes={"etcd-0": sleeper})
    assert list(leftovers(left)) == [f"process {sleeper} (etcd-0)"]


def test_a_port_that_is_still_served_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        members = [{"name": "member-0", "host": "127.0.0.1", "port": port}]
        assert list(leftovers(manifest(members=members))) == [f"port {port} (member-0)"]
        assert list(leftovers(manifest(members=members, backend="existing"))) == []
    assert list(leftovers(manifest(members=members))) == []


def test_what_stays_ends_the_wait_with_its_name(sleeper: int) -> None:
    machine = Machine()
    with pytest.raises(
        SwarmletError, match=rf"left of one-1 after 30 s: process {sleeper} \(store\); end it first"
    ):
        await_fit(manifest(store_pid=sleeper), 0.0, machine.host, pytest.fail)
    assert machine.now == 30.0


def test_a_folder_of_a_pool_that_was_killed_is_named_and_does_no_harm() -> None:
    with tempfile.TemporaryDirectory(prefix=prefix()) as folder:
        left = manifest(kubeconfig=f"{folder}/kubeconfig")
        said: list[str] = []
        await_fit(left, 0.0, Machine().host, said.append)
        assert said == [f"left of one-1, harmless: {folder}"]
    assert list(left_folders(left)) == []
    assert list(left_folders(manifest(kubeconfig=str(Path.home() / "config")))) == []


@pytest.mark.parametrize(
    ("load", "falls", "waited", "told"),
    [
        (1.5, 0.0, 0.0, []),  # at the limit: calm
        (1.6, 0.01, 10.0, []),
        (1.6, 0.0, 60.0, ["load average 1.60 on 2 cores after 60 s; going on"]),
    ],
)
def test_the_host_may_become_calm_as_long_as_the_cool_down(
    load: float, falls: float, waited: float, told: list[str]
) -> None:
    machine = Machine(load, falls)
    said: list[str] = []
    await_fit(None, 60.0, machine.host, said.append)
    assert machine.now == pytest.approx(waited, abs=1.0)
    assert said == told


def test_without_a_cool_down_nothing_is_waited_for() -> None:
    machine = Machine(99.0)
    await_fit(None, 0.0, machine.host, pytest.fail)
    assert machine.now == 0.0
