"""A pool whose processes are killed and paused and whose network is cut, by commands and by orders."""

from __future__ import annotations

import http.client
import shutil
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from typer.testing import CliRunner

from harness.apiserver.faults.spec import parse_spec
from harness.pool.commands import app
from harness.pool.control import Control
from harness.pool.disturbances import Disturbances
from harness.pool.emulated import EmulatedPool, PoolOptions
from harness.pool.stores import StoreOptions
from harness.wire.errors import ConfigError, SwarmletError

pytestmark = pytest.mark.slow

WITHIN_S = 60.0


class Disturbed:
    """Two members over a store that keeps what is written; links before member-1 and behind member-0."""

    def __init__(self, folder: Path) -> None:
        self.told: list[dict[str, Any]] = []
        options = PoolOptions(
            members=2,
            cores="host",
            kubeconfig=str(folder / "kubeconfig"),
            logs=str(folder / "logs"),
            store=StoreOptions(data_dir=str(folder / "data")),
            links=("clients,member-1", "member-0,store"),
        )
        self.pool = EmulatedPool(options, self.told.append)
        self.pool.start()
        self.disturbances = Disturbances(self.pool, self.told.append)
        self.control = Control(self.pool.control, self.disturbances)

    def stop(self) -> None:
        self.control.close()
        self.disturbances.close()
        self.pool.stop()

    def begin(self, text: str) -> None:
        self.disturbances.begin(parse_spec(text))

    def command(self, *arguments: str, code: int = 0) -> str:
        done = CliRunner(env={"COLUMNS": "200"}).invoke(
            app, [*arguments, "--kubeconfig", str(self.pool.kubeconfig)]
        )
        if isinstance(done.exception, SwarmletError):
            raise done.exception
        assert done.exit_code == code, done.output
        return done.output

    def ask(
        self, context: str, path: str, *, timeout_s: float = WITHIN_S, method: str = "GET", body: str = ""
    ) -> int:
        """The status of an answer, by the kubeconfig's context of that name. Raises OSError."""
        config = yaml.safe_load(self.pool.kubeconfig.read_text())
        servers = {cluster["name"]: cluster["cluster"]["server"] for cluster in config["clusters"]}
        host, _, port = servers[context].removeprefix("https://").partition(":")
        token = config["users"][0]["user"]["token"]
        unverified = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(host, int(port), timeout=timeout_s, context=unverified)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, body or None, headers)
            return connection.getresponse().status
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()

    def create(self, context: str, name: str, timeout_s: float = WITHIN_S) -> int:
        body = f'{{"metadata":{{"name":"{name}"}}}}'
        path = "/api/v1/namespaces/default/configmaps"
        return self.ask(context, path, timeout_s=timeout_s, method="POST", body=body)


@contextmanager
def made() -> Iterator[Disturbed]:
    folder = Path(tempfile.mkdtemp(prefix="swt-"))
    disturbed = Disturbed(folder)
    try:
        yield disturbed
    finally:
        disturbed.stop()
        logs = "".join(path.read_text() for path in sorted((folder / "logs").iterdir()))
        shutil.rmtree(folder)
    assert "Traceback" not in logs, logs[-3000:]


@pytest.fixture(scope="module")
def shared() -> Iterator[Disturbed]:
    with made() as disturbed:
        yield disturbed


@pytest.fixture
def disturbed(shared: Disturbed) -> Iterator[Disturbed]:
    """One whose processes stay the same."""
    shared.told.clear()
    yield shared
    shared.disturbances.clear()


@pytest.fixture
def own() -> Iterator[Disturbed]:
    """One for a test that has processes started again: whatever these leave open is found."""
    with made() as disturbed:
        yield disturbed


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.02)


def test_clients_meet_links_and_observers_the_members_themselves(disturbed: Disturbed) -> None:
    described = disturbed.pool.describe()
    ports = {member["name"]: member["port"] for member in described["members"]}
    front = {entry["name"]: entry["port"] for entry in described["front"]}
    assert front["member-0"] == ports["member-0"]
    assert front["member-1"] != ports["member-1"]
    assert described["links"] == ["clients,member-1", "member-0,store"]
    assert {"network-store", "network-front"} <= set(described["processes"])
    config = yaml.safe_load(disturbed.pool.kubeconfig.read_text())
    assert config["current-context"] == "member-1-link"
    assert disturbed.ask("member-1-link", "/readyz") == 200


def test_a_member_is_killed_by_command_and_comes_back_when_that_is_cleared(own: Disturbed) -> None:
    before = own.pool.members[1]
    assert own.create("member-0", "kept") == 201
    assert own.command("fault", "kill", "--member", "member-1") == "member-1: kill\n"
    until(lambda: not psutil.pid_exists(before.pid))
    with pytest.raises(OSError, match="refused"):
        own.ask("member-1", "/readyz")
    assert "member-1  kill" in own.command("fault", "list")
    assert own.ask("member-0", "/readyz") == 200
    assert "pool: 1 ended" in own.command("fault", "clear")
    after = own.pool.members[1]
    assert (after.port, after.pid == before.pid) == (before.port, False)
    assert own.ask("member-1", "/api/v1/namespaces/default/configmaps/kept") == 200
    assert own.command("fault", "list") == "no faults are active\n"
    assert [event["kind"] for event in own.told] == [
        "fault-started",
        "member-ended",
        "member-restarted",
        "fault-ended",
    ]


def test_a_paused_member_answers_when_it_goes_on(disturbed: Disturbed) -> None:
    process = psutil.Process(disturbed.pool.members[0].pid)
    disturbed.begin("pause member=member-0")
    until(lambda: process.status() == psutil.STATUS_STOPPED)
    with pytest.raises(OSError, match="timed out"):
        disturbed.ask("member-0", "/readyz", timeout_s=0.2)
    assert "member-0  pause" in disturbed.command("fault", "list"), "nobody waits for it"
    (row,) = (line for line in disturbed.command("status", code=1).splitlines() if "  no " in line)
    assert row.split()[0] == "member-0"
    assert row.rstrip().endswith("pause")
    disturbed.disturbances.clear()
    assert disturbed.ask("member-0", "/readyz") == 200


def test_a_cut_before_a_member_is_felt_by_clients_alone(disturbed: Disturbed) -> None:
    disturbed.command("fault", "cut", "between=clients,member-1", "how=reset")
    until(lambda: not reaches(disturbed, "member-1-link"))
    assert disturbed.ask("member-1", "/readyz") == 200
    assert "network  cut between=clients,member-1 how=reset" in disturbed.command("fault", "list")
    assert "cut" in disturbed.command("status")
    disturbed.command("fault", "clear", "--member", "network")
    until(lambda: reaches(disturbed, "member-1-link"))


def reaches(disturbed: Disturbed, context: str) -> bool:
    try:
        return disturbed.ask(context, "/readyz") == 200
    except OSError:
        return False


def test_a_member_that_is_cut_off_its_store_writes_when_it_is_back(disturbed: Disturbed) -> None:
    disturbed.begin("cut between=member-0,store")
    until(lambda: not writes(disturbed, "member-0", timeout_s=1.0))
    assert disturbed.create("member-1", "other") == 201
    disturbed.disturbances.clear()
    until(lambda: writes(disturbed, "member-0"))


def writes(disturbed: Disturbed, context: str, timeout_s: float = WITHIN_S) -> bool:
    try:
        return disturbed.create(context, f"w{time.monotonic_ns()}", timeout_s=timeout_s) == 201
    except OSError:
        return False


def test_a_store_that_is_killed_has_what_was_acknowledged(own: Disturbed) -> None:
    assert own.create("member-1", "acknowledged") == 201
    own.begin("kill member=store for=100ms")
    until(lambda: any(event["kind"] == "fault-ended" for event in own.told))
    until(lambda: reaches(own, "member-1"))
    assert own.ask("member-1", "/api/v1/namespaces/default/configmaps/acknowledged") == 200
    assert not any(event["kind"] == "process-exited" for event in own.told)


def test_what_a_pool_has_not_is_one_line(disturbed: Disturbed) -> None:
    with pytest.raises(ConfigError, match=r"--link clients,member-0"):
        disturbed.begin("cut between=clients,member-0")
    with pytest.raises(ConfigError, match=r"no member 'etcd-0'.*store"):
        disturbed.command("fault", "list", "--member", "etcd-0")
    with pytest.raises(ConfigError, match="no member 'balancer'"):
        disturbed.command("fault", "kill", "--member", "balancer")
