"""A Prometheus of the run's own: what it is given, when it is ready, how it ends. A program that stands in for it, and
the real one where it is there."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pytest
import yaml

from harness.observe.scraper import Source
from harness.pool import prometheus as module
from harness.pool.process import Process, ProcessFailed
from harness.pool.prometheus import PrometheusServer, find_prometheus, rules, scrape_config
from harness.wire.errors import ConfigError
from harness.wire.promql import query_path, read_vector
from tests.pool.standin import install as stand_in

WITHIN_S = 60.0
MEMBER = Source("member-0", "https://127.0.0.1:6443", "ca.crt", "secret-token")
Start = Callable[..., PrometheusServer]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Start]:
    """A server of a stand-in that behaves as told; ended with the test."""
    made: list[PrometheusServer] = []

    def _make(behave: str = "well", *sources: Source, **options: Any) -> PrometheusServer:
        for name in ("bin", "folder", "secrets"):
            (tmp_path / name).mkdir()
        binary = stand_in(tmp_path / "bin", behave)
        log = tmp_path / "prometheus.log"
        server = PrometheusServer(
            binary, sources or (MEMBER,), tmp_path / "folder", tmp_path / "secrets", log, **options
        )
        made.append(server)
        return server

    yield _make
    for server in made:
        server.stop()


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {WITHIN_S:g} s: {what}"
        time.sleep(0.02)


# ---- a program that stands in ----------------------------------------------------------------------------------------
def test_it_is_started_with_its_flags_and_awaited(make: Start, tmp_path: Path) -> None:
    server = make(interval_s=2.5)
    server.start()
    flags = json.loads((tmp_path / "folder" / "standin.json").read_text())
    assert flags == {
        "config.file": str(tmp_path / "folder" / "prometheus.yml"),
        "storage.tsdb.path": str(tmp_path / "folder" / "data"),
        "web.listen-address": server.url.removeprefix("http://"),
    }
    assert server.url.startswith("http://127.0.0.1:")
    assert urlopen(server.url + "/-/ready", timeout=WITHIN_S).status == 200
    assert psutil.pid_exists(server.pid)
    config = yaml.safe_load((tmp_path / "folder" / "prometheus.yml").read_text())
    assert config["global"] == {
        "scrape_interval": "2500ms", "scrape_timeout": "2500ms", "evaluation_interval": "30s"
    }  # fmt: skip
    assert config["rule_files"] == ["rules.yml"]


def test_no_secret_stands_in_what_it_is_given(make: Start, tmp_path: Path) -> None:
    make().start()
    for path in (tmp_path / "folder").iterdir():
        assert "secret-token" not in path.read_text(), path
    token = tmp_path / "secrets" / "token"
    assert token.read_text() == "secret-token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600


def test_a_fresh_token_replaces_the_file(make: Start, tmp_path: Path) -> None:
    server = make()
    server.start()
    server.use_token("another")
    assert (tmp_path / "secrets" / "token").read_text() == "another"
    server.use_token("")
    assert [path.name for path in (tmp_path / "secrets").iterdir()] == ["token"]


def test_it_ends_when_it_is_stopped(make: Start) -> None:
    server = make()
    server.start()
    pid = server.pid
    server.stop()
    assert not psutil.pid_exists(pid)
    server.stop()


@pytest.mark.parametrize(
    ("behave", "said"), [("crash", "error loading config"), ("refuse-flags", "unknown long flag")]
)
def test_one_that_ends_at_once_is_told_with_its_last_words(make: Start, behave: str, said: str) -> None:
    with pytest.raises(ProcessFailed) as caught:
        make(behave).start()
    assert said in str(caught.value)


def test_one_that_never_gets_ready_is_ended(make: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READY_WITHIN_S", 0.3)
    server = make("never-ready")
    with pytest.raises(ProcessFailed, match="not ready within"):
        server.start()
    until(lambda: not psutil.pid_exists(server.pid), "the stand-in has ended")


def test_one_that_is_no_program_is_told(tmp_path: Path) -> None:
    program = tmp_path / "prometheus"
    program.write_bytes(b"\x7fELFnot")
    program.chmod(0o755)
    server = PrometheusServer(str(program), (MEMBER,), tmp_path, tmp_path, tmp_path / "log")
    with pytest.raises(ConfigError, match="Exec format error"):
        server.start()
    server.stop()


def test_one_that_ends_unasked_is_heard_of(make: Start) -> None:
    ended: list[tuple[str, int]] = []

    def hear(process: Process, code: int) -> None:
        ended.append((process.name, code))

    server = make(on_exit=hear)
    server.start()
    os.kill(server.pid, signal.SIGKILL)
    until(lambda: bool(ended), "on_exit is called")
    assert ended == [("prometheus", 128 + 9)]


# ---- what it scrapes -------------------------------------------------------------------------------------------------
def test_members_are_told_apart_and_have_upstreams_labels() -> None:
    sources = [MEMBER, Source("member-1", "https://[::1]:6444", "ca.crt", "secret-token")]
    found = scrape_config(sources, Path("/private/token"))
    assert found["job_name"] == "master"
    assert found["static_configs"] == [
        {"targets": ["127.0.0.1:6443"], "labels": {"member": "member-0", "endpoint": "apiserver"}},
        {"targets": ["[::1]:6444"], "labels": {"member": "member-1", "endpoint": "apiserver"}},
    ]
    assert found["authorization"] == {"credentials_file": "/private/token"}
    assert found["tls_config"] == {"ca_file": str(Path("ca.crt").resolve())}


def test_a_target_with_a_certificate_a_prefix_a_name_and_a_proxy() -> None:
    source = Source(
        "m", "https://h:1/prefix/", cert_file="/c.pem", server_name="kubernetes", proxy="http://proxy:3128"
    )
    found = scrape_config([source], Path("/t"))
    assert found["metrics_path"] == "/prefix/metrics"
    assert found["tls_config"] == {
        "cert_file": "/c.pem", "key_file": "/c.pem", "server_name": "kubernetes", "insecure_skip_verify": True
    }  # fmt: skip
    assert found["proxy_url"] == "http://proxy:3128"
    assert "authorization" not in found


def test_a_cleartext_target_has_no_tls() -> None:
    found = scrape_config([Source("m", "http://127.0.0.1:8080")], Path("/t"))
    assert (found["scheme"], "tls_config" in found) == ("http", False)


def test_members_that_want_headers_cannot_be_scraped(tmp_path: Path) -> None:
    source = Source("m", "https://h:1", headers=[("Impersonate-User", "someone")])
    with pytest.raises(ConfigError, match="Impersonate-User"):
        PrometheusServer("prometheus", (source,), tmp_path, tmp_path, tmp_path / "log")


def test_upstreams_recording_rules() -> None:
    (group,) = rules()["groups"]
    assert [rule["labels"]["quantile"] for rule in group["rules"]] == ["0.99", "0.90", "0.50"]
    assert group["rules"][1]["expr"] == (
        "histogram_quantile(0.9, sum(rate(apiserver_request_sli_duration_seconds_bucket[1m])) "
        "by (resource,  subresource, verb, scope, le))"
    )


# ---- where the binary is ---------------------------------------------------------------------------------------------
def test_the_one_named_comes_first_then_the_variable_then_path(tmp_path: Path) -> None:
    (tmp_path / "path").mkdir()
    named, asset = stand_in(tmp_path, "well"), str(tmp_path / "path" / "prometheus")
    shutil.copy(named, asset)
    environ = {"TEST_ASSET_PROMETHEUS": named, "PATH": str(tmp_path / "path")}
    assert find_prometheus(asset, environ) == asset
    assert find_prometheus("", environ) == named
    assert find_prometheus("", {"PATH": str(tmp_path / "path")}) == asset
    assert find_prometheus("", {"PATH": str(tmp_path / "nowhere")}) == ""


@pytest.mark.parametrize("source", ["--prometheus", "TEST_ASSET_PROMETHEUS"])
def test_one_that_is_named_and_not_there_is_refused(tmp_path: Path, source: str) -> None:
    path = str(tmp_path / "missing")
    explicit, environ = (path, {}) if source == "--prometheus" else ("", {source: path})
    with pytest.raises(ConfigError, match=f"of {source}, is no executable file"):
        find_prometheus(explicit, environ)


# ---- the real one ----------------------------------------------------------------------------------------------------
class Member(BaseHTTPRequestHandler):
    """Counts one more with each scrape; lets in whoever shows the token."""

    scrapes = 0

    def do_GET(self) -> None:
        allowed = self.headers.get("Authorization") == "Bearer secret-token"
        Member.scrapes += allowed
        body = f"# TYPE standing counter\nstanding {Member.scrapes}\n".encode()
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def member() -> Iterator[Source]:
    Member.scrapes = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Member)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield Source("member-7", f"http://127.0.0.1:{server.server_address[1]}", token="secret-token")
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.slow
@pytest.mark.skipif(not find_prometheus(), reason="there is no prometheus binary")
def test_a_real_prometheus_scrapes_and_answers(tmp_path: Path, member: Source) -> None:
    server = PrometheusServer(
        find_prometheus(), (member,), tmp_path, tmp_path, tmp_path / "log", interval_s=0.2
    )
    try:
        server.start()

        def increase() -> list[Any]:
            path = query_path("increase(standing[1m]) > 0", time.time())
            with urlopen(server.url + path, timeout=WITHIN_S) as answer:
                return read_vector(answer.status, answer.read())

        until(lambda: bool(increase()), "two scrapes are seen")
        (sample,) = increase()
        assert sample.labels["member"] == "member-7"
        assert (sample.labels["job"], sample.labels["endpoint"]) == ("master", "apiserver")
        with urlopen(server.url + "/api/v1/rules", timeout=WITHIN_S) as answer:
            (group,) = json.load(answer)["data"]["groups"]
        assert [rule["labels"]["quantile"] for rule in group["rules"]] == ["0.99", "0.90", "0.50"]
        pid = server.pid
    finally:
        server.stop()
    assert not psutil.pid_exists(pid)
    assert (tmp_path / "data" / "wal").is_dir()
    with contextlib.suppress(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), 1).close()
        pytest.fail("somebody still listens")
