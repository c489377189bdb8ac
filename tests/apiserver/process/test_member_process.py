"""A member's process: how it begins and ends, with a store that answers, one that never does, and one that goes."""

from __future__ import annotations

import datetime
import http.client
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.apiserver.process.config import MemberConfig
from harness.apiserver.process.priority import NICENESS
from harness.pool.certificates import ServingFiles, make_serving_files
from harness.wire.pace import Pace
from tests.apiserver.store.test_store_contract import finish, first_line, launch
from tests.conftest import HANG_S

TOKEN = "secret-token"
QUICK_S = 45.0  # a process on a busy machine; what hangs takes 60 s


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


@pytest.fixture(scope="module")
def member_port(tmp_path_factory: pytest.TempPathFactory, files: ServingFiles) -> Iterator[int]:
    """Of a member that all tests may ask."""
    folder = tmp_path_factory.mktemp("m")
    store = launch(folder, ("m0",))
    first_line(store)
    member = start(folder, files)
    yield first_line(member)["port"]
    end(member)
    finish(store)


def ask(port: int, files: ServingFiles, path: str, token: str = TOKEN) -> tuple[int, str]:
    context = ssl.create_default_context(cafile=files.ca)
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=HANG_S, context=context)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
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
        listener.settimeout(HANG_S)
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


def test_it_has_to_wait_for_whoever_measures_it(tmp_path: Path, files: ServingFiles) -> None:
    store = launch(tmp_path, ("m0",))
    first_line(store)
    member = start(tmp_path, files)
    try:
        pid = first_line(member)["pid"]
        assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0) + NICENESS
    finally:
        end(member)
        finish(store)


def talk(port: int, files: ServingFiles, path: str) -> tuple[ssl.SSLSocket, bytes]:
    """A watch or a request on an HTTP/1.1 connection of its own, with the first bytes of its answer."""
    context = ssl.create_default_context(cafile=files.ca)
    connection = context.wrap_socket(
        socket.create_connection(("127.0.0.1", port), timeout=HANG_S), server_hostname="localhost"
    )
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
    return connection, connection.recv(1000)


def for_longer_and_longer(folder: Path, play: Callable[[Path, float], bool]) -> None:
    """`play` is given a folder and how long something of the member lasts, and gives False where this machine stood
    still for so long that it was over before it could be looked at."""
    for number, seconds in enumerate((0.5, 5.0, 40.0)):
        (folder / str(number)).mkdir()
        if play(folder / str(number), seconds):
            return
    pytest.fail("it was over at once")


def test_on_sigterm_it_is_not_ready_serves_on_for_the_delay_and_then_refuses(
    tmp_path: Path, files: ServingFiles
) -> None:
    for_longer_and_longer(tmp_path, lambda folder, delay_s: shut_down(folder, files, delay_s))


def shut_down(folder: Path, files: ServingFiles, delay_s: float) -> bool:
    store = launch(folder, ("m0",))
    first_line(store)
    member = start(folder, files, shutdown_delay_s=delay_s)
    try:
        port = first_line(member)["port"]
        watch, head = talk(port, files, "/api/v1/pods?watch=1")
        with watch:
            assert head.startswith(b"HTTP/1.1 200")
            member.send_signal(signal.SIGTERM)
            until = time.monotonic() + delay_s + QUICK_S
            try:
                while ask(port, files, "/readyz")[0] == 200:
                    assert time.monotonic() < until, "still ready after SIGTERM"
                verbose = ask(port, files, "/readyz?verbose")[1]
                alive = ask(port, files, "/livez")[0]
            except OSError:
                return False
            assert "[-]shutdown failed: reason withheld" in verbose
            assert alive == 200
            while True:  # within the delay
                assert time.monotonic() < until, "still taking connections"
                try:
                    ask(port, files, "/livez")
                except OSError:
                    break
            watch.settimeout(0.2)
            with pytest.raises(TimeoutError):  # open and silent
                watch.recv(1)
            assert member.poll() is None
        assert member.wait(QUICK_S) == 0  # its last connection has gone
        return True
    finally:
        finish(store)
        assert end(member) == (0, b"")


def test_faults_at_start_and_their_ends_are_lines_of_its_output(tmp_path: Path, files: ServingFiles) -> None:
    for_longer_and_longer(tmp_path, lambda folder, for_s: met_a_fault(folder, files, for_s))


def met_a_fault(folder: Path, files: ServingFiles, for_s: float) -> bool:
    store = launch(folder, ("m0",))
    first_line(store)
    error = f"error chance=1 resources=nodes for={for_s:g}s"
    member = start(folder, files, faults=(error, "clock-skew by=1h"))
    try:
        port = first_line(member)["port"]
        assert [first_line(member)[key] for key in ("kind",)] == ["fault-started"]
        assert first_line(member)["fault"] == "clock-skew by=3600s"
        status = ask(port, files, "/api/v1/nodes")[0]
        ended = first_line(member)
        assert (ended["kind"], ended["fault_kind"]) == ("fault-ended", "error")
        assert (status, ended["hits"]) in ((500, 1), (200, 0))
        assert ask(port, files, "/api/v1/nodes")[0] == 200
        return status == 500
    finally:
        finish(store)
        end(member)


def test_at_a_pace_watches_last_longer_and_stamps_are_of_the_models_time_of_day(
    tmp_path: Path, files: ServingFiles
) -> None:
    store = launch(tmp_path, ("m0",))
    first_line(store)
    origin_s = time.time() - 3000.0
    member = start(tmp_path, files, pace=Pace(3.0, origin_s))
    try:
        port = first_line(member)["port"]
        made = msgspec.json.decode(ask(port, files, "/api/v1/namespaces/default")[1])["metadata"]
        stamp = datetime.datetime.fromisoformat(made["creationTimestamp"]).timestamp()
        assert 999.0 <= stamp - origin_s <= 1000.0 + 60.0
        began = time.monotonic()
        assert ask(port, files, "/api/v1/pods?watch=1&timeoutSeconds=1")[0] == 200
        assert time.monotonic() - began >= 3.0
    finally:
        finish(store)
        end(member)


def test_a_fault_that_is_none_is_said_before_anything_is_served(tmp_path: Path, files: ServingFiles) -> None:
    store = launch(tmp_path, ("m0",))
    first_line(store)
    member = start(tmp_path, files, faults=("nosuch",))
    try:
        assert "unknown kind" in first_line(member)["error"]
    finally:
        finish(store)
        assert end(member)[0] == 2


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_strangers_learn_of_health_and_version_alone(
    member_port: int, files: ServingFiles, path: str
) -> None:
    assert ask(member_port, files, path, token="")[0] == 200


@pytest.mark.parametrize(
    "path", ["/", "/api", "/metrics", "/openapi/v2", "/api/v1/nodes", "/swarmlet/faults"]
)
def test_strangers_are_refused_the_rest(member_port: int, files: ServingFiles, path: str) -> None:
    assert ask(member_port, files, path, token="")[0] == 403
    assert ask(member_port, files, path, token="wrong")[0] == 401


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
