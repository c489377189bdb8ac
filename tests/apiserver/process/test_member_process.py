"""A member's process: how it begins and ends, with a store that answers, one that never does, and one that goes."""

from __future__ import annotations

import http.client
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.apiserver.process.config import MemberConfig
from harness.pool.certificates import ServingFiles, make_serving_files
from tests.apiserver.store.test_store_contract import finish, first_line, launch

TOKEN = "secret-token"
QUICK_S = 5.0  # a process on a busy machine; what hangs takes 60 s


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> ServingFiles:
    return make_serving_files(tmp_path_factory.mktemp("tls"), ["localhost"], ["127.0.0.1"])


def start(folder: Path, files: ServingFiles, **more: Any) -> subprocess.Popen[bytes]:
    config = MemberConfig(
        name="m0",
        index=0,
        members=("m0",),
        store_socket=str(folder / "store.sock"),
        cert=files.cert,
        key=files.key,
        admin_token=TOKEN,
        token_key="a key of 16 bytes",
        **more,
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.apiserver.process.member"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(config) + b"\n")
    process.stdin.flush()
    return process


def end(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """(exit code, standard error)"""
    assert process.stderr is not None
    code = finish(process)
    with process.stderr:
        return code, process.stderr.read()


def ask(port: int, files: ServingFiles, path: str) -> tuple[int, str]:
    context = ssl.create_default_context(cafile=files.ca)
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.fixture
def mute_store(tmp_path: Path) -> Iterator[socket.socket]:
    """A store that takes connections and answers nothing."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "store.sock"))
        listener.listen()
        listener.settimeout(20)
        yield listener


def value(text: str, series: str) -> float:
    return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(series + " "))


def test_it_pays_for_connections_counts_bad_handshakes_and_outlives_its_store(
    tmp_path: Path, files: ServingFiles
) -> None:
    store = launch(tmp_path, ("m0",))
    first_line(store)
    # A connection costs so much that nothing else of these figures can be taken for it.
    member = start(tmp_path, files, cores=8.0, costs={"connect_us": 100_000.0})
    try:
        port = first_line(member)["port"]
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            stranger.recv(100)
        before = ask(port, files, "/metrics")[1]
        after = ask(port, files, "/metrics")[1]
        assert value(after, "apiserver_tls_handshake_errors_total") == 1
        used = value(after, "process_cpu_seconds_total") - value(before, "process_cpu_seconds_total")
        assert 0.1 <= used < 0.2
        assert finish(store) == 0
        until = time.monotonic() + QUICK_S
        while ask(port, files, "/readyz")[0] == 200:
            assert time.monotonic() < until, "still ready without its store"
        assert "[-]etcd failed" in ask(port, files, "/readyz?verbose")[1]
        assert member.poll() is None
        member.send_signal(signal.SIGTERM)
        assert member.wait(QUICK_S) == 0
    finally:
        finish(store)
        end(member)


def test_it_can_be_told_to_end_before_it_is_ready(
    tmp_path: Path, files: ServingFiles, mute_store: socket.socket
) -> None:
    member = start(tmp_path, files)
    try:
        with mute_store.accept()[0] as connection:
            connection.recv(1)
            member.send_signal(signal.SIGTERM)
            assert member.wait(QUICK_S) == 0
    finally:
        assert end(member) == (0, b"")


def test_it_says_so_when_its_store_goes_before_it_is_ready(
    tmp_path: Path, files: ServingFiles, mute_store: socket.socket
) -> None:
    member = start(tmp_path, files)
    try:
        mute_store.accept()[0].close()
        said = first_line(member)
        assert said["error"].startswith("m0: the store has gone: ")
        assert member.wait(QUICK_S) == 1
    finally:
        assert end(member) == (1, b"")


def test_without_a_store_it_is_one_line_and_exit_code_2(tmp_path: Path, files: ServingFiles) -> None:
    member = start(tmp_path, files)
    try:
        assert "cannot connect" in first_line(member)["error"]
    finally:
        assert end(member) == (2, b"")
