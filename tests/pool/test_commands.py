"""The commands for a pool that runs: fault, verify, status; and what they say where there is none."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from harness.apiserver.faults.spec import parse_spec
from harness.observe.record import Manifest, RunRecord, Status
from harness.pool.commands import app
from harness.pool.emulated import EmulatedPool
from harness.pool.faults import PATH, check_members, order, targets
from harness.wire.errors import ConfigError, SwarmletError
from tests.conftest import HANG_S

pytestmark = pytest.mark.slow

MEMBERS = ["member-0", "member-1", "member-2"]


class Command:
    def __init__(self, pool: EmulatedPool) -> None:
        self.pool = pool

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """What it prints."""
        done = CliRunner(env={"COLUMNS": "200"}).invoke(
            app, [*arguments, "--kubeconfig", str(self.pool.kubeconfig)]
        )
        if isinstance(done.exception, SwarmletError):
            raise done.exception
        assert done.exit_code == code, done.output
        return done.output

    def connect(self, member: int) -> http.client.HTTPSConnection:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        address = self.pool.members[member]
        return http.client.HTTPSConnection(address.host, address.port, timeout=HANG_S, context=context)

    def ask(self, member: int, path: str) -> int:
        with contextlib.closing(self.connect(member)) as connection:
            return self.ask_over(connection, "GET", path)

    def ask_over(self, connection: http.client.HTTPSConnection, method: str, path: str) -> int:
        token = yaml.safe_load(self.pool.kubeconfig.read_text())["users"][0]["user"]["token"]
        connection.request(method, path, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        return answer.status


@pytest.fixture
def command(pool: EmulatedPool) -> Iterator[Command]:
    command = Command(pool)
    yield command
    command("fault", "clear")


def test_a_corrupted_cache_is_found(command: Command) -> None:
    assert command("verify").count("as the store") == 3
    command("fault", "corrupt-cache", "resource=namespaces", "--member", "member-2")
    said = command("verify", code=1)
    assert "1 not as the store" in said
    assert "namespaces: failure" in said


def test_a_fault_of_one_member_is_begun_listed_and_ended(command: Command) -> None:
    said = command("fault", "error", "status=503", "chance=1", "--member", "member-1", "--for", "60s")
    assert said == "member-1: error chance=1 status=503 for 60 s\n"
    assert [command.ask(member, "/api/v1/nodes") for member in range(3)] == [200, 503, 200]
    listed = command("fault", "list")
    assert "member-1  error chance=1 status=503  60 s  1" in listed
    assert "member-0" not in listed
    assert "error chance=1" in command("status")
    assert command("fault", "clear", "--member", "member-1") == "member-1: 1 ended\n"
    assert command.ask(1, "/api/v1/nodes") == 200
    assert command("fault", "list") == "no faults are active\n"


def test_a_fault_of_all_is_begun_by_each_and_one_of_the_store_once(command: Command) -> None:
    assert command("fault", "slow").splitlines() == [f"{name}: slow" for name in MEMBERS]
    assert (
        command("fault", "slow-store", "write=1ms", "--for", "60s")
        == "member-0: slow-store write=0.001s for 60 s\n"
    )
    assert command("fault", "compact") == "member-0: compact\n"


def test_a_member_that_refuses_connections_is_said_and_the_others_do_it(command: Command) -> None:
    with contextlib.closing(command.connect(0)) as connection:
        assert command.ask_over(connection, "GET", "/readyz") == 200
        command("fault", "refuse-connections", "--member", "member-0")
        try:
            listed = command("fault", "list", code=1)
            assert "member-0: [Errno 111]" in listed
            assert "Errno 111" in command("status", code=1)
        finally:  # over the connection that was there before
            assert command.ask_over(connection, "DELETE", PATH) == 200
    until = time.monotonic() + HANG_S
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            if command.ask(0, "/readyz") == 200:
                break
    assert "Errno" not in command("status")


def test_each_kind_is_described(command: Command) -> None:
    said = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["fault", "kinds"]).output
    assert "goaway" in said
    assert "corrupt-cache" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("fault", "goawy"), "did you mean 'goaway'"),
        (("fault", "goaway", "chance=2"), "chance is 2"),
        (("fault", "goaway", "at=5s"), "begins now"),
        (("fault", "goaway", "--member", "member-9"), "no member 'member-9'"),
        (("fault", "list", "--member", "member-9"), "no member 'member-9'"),
        (("fault", "list", "chance=1"), "takes no options"),
        (("fault", "kill", "--member", "member-9"), "no member 'member-9'"),
        (("fault", "kill", "step=x"), "begins now"),
    ],
)
def test_what_cannot_be_is_one_line(command: Command, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        command(*arguments)


def invoke(*arguments: str) -> ConfigError:
    error = CliRunner().invoke(app, list(arguments)).exception
    assert isinstance(error, ConfigError)
    return error


def test_a_pool_is_found_by_its_kubeconfig_alone(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    assert "not there" in str(invoke("status", "--kubeconfig", str(path)))
    for text in ("", "[", "contexts: 5", "contexts: []\nusers: [{name: me}]"):
        path.write_text(text)
        assert "no pool wrote it" in str(invoke("verify", "--kubeconfig", str(path)))


def test_a_pool_is_found_by_the_run_that_owns_it(pool: EmulatedPool, tmp_path: Path) -> None:
    for backend in ("emulated", "existing"):
        target: dict[str, Any] = {"backend": backend, "kubeconfig": str(pool.kubeconfig)}
        RunRecord(tmp_path / backend, Manifest(name="r", started=1.0, target=target)).finish(Status.COMPLETED)
    done = CliRunner(env={"COLUMNS": "200"}).invoke(
        app, ["fault", "list", "--run", str(tmp_path / "emulated")]
    )
    assert done.output == "no faults are active\n"
    assert "no pool of its own" in str(invoke("status", "--run", str(tmp_path / "existing")))


def test_members_that_do_not_answer_or_refuse_are_told_apart_from_those_that_did() -> None:
    def call(member: str, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        if member == "member-0":
            raise OSError("gone")
        return (400, b"no\n") if member == "member-1" else (200, json.dumps({"path": path}).encode())

    said = order(call, parse_spec("goaway"), MEMBERS)
    assert said == {"member-0": "gone", "member-1": "HTTP 400: no", "member-2": {"path": "/swarmlet/faults"}}
    assert targets(parse_spec("compact"), MEMBERS) == ["member-0"]
    check_members([parse_spec("compact member=member-2")], MEMBERS)
    with pytest.raises(ConfigError, match="no member 'x'"):
        check_members([parse_spec("compact member=x")], MEMBERS)
