"""HAProxy before a pool: its configuration, its process, its statistics; by a program that stands in for it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.pool.balancer import haproxy as module
from harness.pool.balancer.haproxy import Behind, Haproxy, render
from harness.pool.balancer.options import BalancerOptions, find_haproxy
from harness.pool.balancer.stats import MemberStats, parse_stats
from harness.pool.network.config import Address
from harness.pool.ports import HOST, free_ports
from harness.pool.process import ProcessFailed
from harness.wire.errors import ConfigError
from tests.conftest import HANG_S
from tests.pool.balancer import standin

OPTIONS = BalancerOptions("haproxy")
MEMBERS = (Behind("member-0", "127.0.0.1", 7001), Behind("member-1", "::1", 7002))


def configuration(options: BalancerOptions = OPTIONS) -> str:
    return render(options, Address("127.0.0.1", 6443), MEMBERS, "/p/ca.crt", "/p/haproxy.sock")


# ---- configuration -------------------------------------------------------------------------------------------------
def test_members_are_reached_over_tcp_and_asked_whether_they_are_ready() -> None:
    text = configuration()
    lines = [line.strip() for line in text.splitlines()]
    assert "mode tcp" in lines
    assert "bind 127.0.0.1:6443" in lines
    assert "stats socket /p/haproxy.sock mode 600 level admin" in lines
    assert "balance roundrobin" in lines
    assert "option httpchk GET /readyz" in lines
    (default,) = (line for line in lines if line.startswith("default-server"))
    assert "check-ssl verify required ca-file /p/ca.crt" in default
    assert lines[-2:] == ["server member-0 127.0.0.1:7001", "server member-1 [::1]:7002"]


def test_watches_may_be_silent_for_longer_than_any_run() -> None:
    timeouts = dict(
        line.split()[1:] for line in configuration().splitlines() if " timeout " in f" {line.strip()}"
    )
    assert timeouts == {
        "connect": "5s",
        "check": "5s",
        "client": "86400s",
        "server": "86400s",
        "tunnel": "86400s",
    }


@pytest.mark.parametrize("policy", ["random", "random(1)", "leastconn", "source"])
def test_a_policy_is_haproxys_own_word(policy: str) -> None:
    options = BalancerOptions("haproxy", policy, "tcp")
    text = configuration(options)
    assert f"balance {policy}\n" in text
    assert ("hash-type consistent" in text) == (policy == "source")
    assert "httpchk" not in text
    assert "default-server check inter" in text


real = shutil.which("haproxy", path=f"{os.environ.get('PATH')}:/usr/sbin") or os.environ.get(
    "TEST_ASSET_HAPROXY"
)


@pytest.mark.skipif(real is None, reason="there is no haproxy here")
@pytest.mark.parametrize("check", ["tcp", "https"])
@pytest.mark.parametrize("policy", ["roundrobin", "random", "random(1)", "leastconn", "source"])
def test_haproxy_itself_takes_the_configuration(policy: str, check: str, tmp_path: Path) -> None:
    bundle = next(path for path in Path("/etc/ssl/certs").iterdir() if path.suffix == ".crt")
    options = BalancerOptions("haproxy", policy, check)
    path = tmp_path / "haproxy.cfg"
    path.write_text(
        render(options, Address("127.0.0.1", 6443), MEMBERS, str(bundle), str(tmp_path / "haproxy.sock"))
    )
    done = subprocess.run([str(real), "-c", "-f", str(path)], capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stderr


# ---- options -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (BalancerOptions("nginx"), "'nginx'.*haproxy"),
        (BalancerOptions("haproxy", "best"), "'best'.*roundrobin"),
        (BalancerOptions("haproxy", "random(0)"), "random"),
        (BalancerOptions("haproxy", check="ping"), "'ping'.*https, tcp"),
        (
            BalancerOptions("haproxy", binary="/nowhere/haproxy"),
            "/nowhere/haproxy, of the option, is no executable",
        ),
        (BalancerOptions(binary="/x"), "no --balancer haproxy"),
    ],
)
def test_what_cannot_be_is_one_line(options: BalancerOptions, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        options.validate()


def test_a_missing_program_is_said_with_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path: None)
    with pytest.raises(ConfigError, match="haproxy: there is no binary; apt-get install haproxy"):
        find_haproxy(environ={})
    program = standin.install(tmp_path)
    assert find_haproxy(program, {}) == program
    assert find_haproxy(environ={"TEST_ASSET_HAPROXY": program}) == program


def test_none_needs_nothing() -> None:
    BalancerOptions().validate()


# ---- statistics ----------------------------------------------------------------------------------------------------
def test_statistics_are_those_of_members_by_their_columns_names() -> None:
    text = (
        "# pxname,svname,scur,stot,status,x,\n"
        "clients,FRONTEND,3,9,OPEN,,\n"
        "members,member-0,2,5,UP,,\nmembers,member-1,1,4,DOWN 1/2,,\nmembers,BACKEND,3,9,UP,,\n\n"
    )
    assert parse_stats(text) == {
        "member-0": MemberStats("UP", 2, 5),
        "member-1": MemberStats("DOWN 1/2", 1, 4),
    }


@pytest.mark.parametrize("text", ["", "Unknown command", "# pxname\n"])
def test_what_is_no_statistics_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="no statistics"):
        parse_stats(text)


# ---- the process ---------------------------------------------------------------------------------------------------
@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that says each connection's first word back."""
    listener = socket.create_server((HOST, 0))

    def run() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(connection.recv(100))

    thread = threading.Thread(target=run)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def made(tmp_path: Path, behave: str) -> Haproxy:
    options = BalancerOptions("haproxy", binary=standin.install(tmp_path / "bin", behave))
    return Haproxy(options, Address(HOST, free_ports(1)[0]), tmp_path, tmp_path / "log")


def say(port: int, word: bytes) -> bytes:
    with socket.create_connection((HOST, port), HANG_S) as connection:
        connection.sendall(word)
        return connection.recv(100)


@pytest.mark.slow
def test_it_is_started_hands_connections_on_and_tells_of_them(tmp_path: Path, echo: int) -> None:
    balancer = made(tmp_path, "well")
    balancer.configure([Behind("member-0", HOST, echo), Behind("member-1", HOST, 1)], "")
    try:
        process = balancer.start()
        assert [say(balancer.listen.port, word) for word in (b"one", b"two", b"three")] == [
            b"one",
            b"two",
            b"three",
        ]
        told = balancer.members()
        assert told["member-0"].total == 3
        assert told["member-1"].total == 0
        assert balancer.describe()["policy"] == "roundrobin"
        assert process.kill() == 137
        assert balancer.start().alive, "at its address"
        assert say(balancer.listen.port, b"again") == b"again"
    finally:
        balancer.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behave", "words"), [("crash", r"ended; its log .* no good"), ("mute", "not ready within")]
)
def test_one_that_does_not_get_ready_is_told_with_its_last_words(
    tmp_path: Path, behave: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.01)
    balancer = made(tmp_path, behave)
    balancer.configure([], "")
    with pytest.raises(ProcessFailed, match=words):
        balancer.start(0.5 if behave == "mute" else HANG_S)
    assert balancer.process is not None
    assert not balancer.process.alive
