"""Asking a Prometheus over HTTP: answers, versions, credentials, and each way in which it may fail."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from harness.clusterloader import slo
from harness.clusterloader.measurements import sloqueries
from harness.load.prometheus import api as module
from harness.load.prometheus.access import access_of
from harness.load.prometheus.api import PrometheusApi
from harness.pool.certificates import make_client_files, make_serving_files
from harness.wire.errors import ConfigError
from harness.wire.promql import VectorSample, read_vector
from harness.wire.request import Failure, TransportError
from tests.clusterloader.histories import SINCE_S, UNTIL_S, histories
from tests.conftest import DATA
from tests.load.prometheus.conftest import Serve


def api_of(url: str, config: Path | None = None, text: str = "") -> PrometheusApi:
    if config is not None:
        config.write_text(text)
    return PrometheusApi(url, access_of(url, str(config) if config else ""))


def test_a_query_is_asked_at_a_time_and_answered(serve: Serve) -> None:
    server = serve({"up": [[{"job": "a"}, 1.0]]}, prefix="/prefix")
    answer = api_of(server.url).query("up", 1_800_000_000.0)
    assert read_vector(answer.status, answer.body) == [VectorSample({"job": "a"}, 1.0, 1.0)]
    ((path, headers),) = server.seen
    assert path == "/prefix/api/v1/query?query=up&time=1800000000.000"
    assert headers["user-agent"] == "swarmlet"
    assert "authorization" not in headers


def test_the_slo_over_http_is_what_we_compute_ourselves(serve: Serve) -> None:
    """Recorded answers of a real Prometheus, and our own figures of the same histories."""
    api = api_of(serve(json.loads((DATA / "prometheus" / "slo-answers.json").read_text())).url)

    class Asked:
        since_s, until_s, range = SINCE_S, UNTIL_S, "600s"

        async def vector(self, expression: str, at_s: float | None = None) -> list[VectorSample]:
            answer = api.query(expression, UNTIL_S)
            return read_vector(answer.status, answer.body)

    coroutine = sloqueries.latencies(Asked(), simple=True)  # type: ignore[arg-type]
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    theirs: list[slo.Latency] = ended.value.value
    series = [item for items in histories(0.0).values() for item in items]
    ours = slo.latencies(series, SINCE_S, UNTIL_S)
    assert [item.call for item in theirs] == [item.call for item in ours]
    assert [item.perc99_s for item in theirs] == pytest.approx([item.perc99_s for item in ours])


# ---- the check before a run ------------------------------------------------------------------------------------------
def test_a_check_gives_the_version(serve: Serve) -> None:
    server = serve()
    assert api_of(server.url).check() == "2.42.0"
    server.version = ""
    assert api_of(server.url).check() == ""


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"Unauthorized", "HTTP 401, not an answer of Prometheus: 'Unauthorized'"),
        (200, b"<html>Welcome</html>", "HTTP 200, not an answer of Prometheus"),
        (503, b'{"status":"error","errorType":"unavailable","error":"starting"}', "unavailable: starting"),
    ],
)
def test_what_is_no_prometheus_is_refused(serve: Serve, status: int, body: bytes, said: str) -> None:
    server = serve()
    server.status, server.body = status, body
    with pytest.raises(ConfigError) as caught:
        api_of(server.url).check()
    assert str(caught.value).startswith(f"Prometheus at {server.url}: {said}")


def test_nobody_there_is_refused_in_one_line() -> None:
    url = "http://127.0.0.1:1"
    with pytest.raises(ConfigError, match=f"Prometheus at {url}: connection refused") as caught:
        api_of(url).check()
    assert "\n" not in str(caught.value)


def test_expressions_are_looked_at_where_the_server_can(serve: Serve) -> None:
    server = serve({"up": []})
    api = api_of(server.url)
    assert api.parse_error("up") == ""
    assert api.parse_error("sum(") == "parse error"
    server.status, server.body = 404, b"404 page not found"
    assert api.parse_error("sum(") == ""


# ---- failures --------------------------------------------------------------------------------------------------------
def test_silence_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_WITHIN_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(TransportError) as caught:
        api_of(f"http://127.0.0.1:{listener.getsockname()[1]}").query("up", 0)
    assert caught.value.failure is Failure.TIMEOUT


def test_an_answer_may_not_be_endless(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 10)
    with pytest.raises(TransportError, match="an answer of more than"):
        api_of(serve({"up": []}).url).query("up", 0)


def test_a_cleartext_server_has_no_tls(serve: Serve) -> None:
    server = serve()
    with pytest.raises(TransportError) as caught:
        api_of(server.url.replace("http:", "https:")).query("up", 0)
    assert caught.value.failure is Failure.TLS


# ---- credentials -----------------------------------------------------------------------------------------------------
CREDENTIALS = [
    ("basic_auth: {username: u, password: p}", "Basic dTpw"),
    ("basic_auth: {username: u, password_file: secret}", "Basic dTpwcGFzcw=="),
    ("authorization: {credentials: t}", "Bearer t"),
    ("authorization: {type: Token, credentials_file: secret}", "Token ppass"),
    ("bearer_token: t", "Bearer t"),
    ("bearer_token_file: secret", "Bearer ppass"),
]


@pytest.mark.parametrize(("config", "header"), CREDENTIALS)
def test_credentials_of_the_config_are_shown(serve: Serve, tmp_path: Path, config: str, header: str) -> None:
    (tmp_path / "secret").write_text("ppass\n")
    server = serve()
    server.authorization = header
    assert api_of(server.url, tmp_path / "http.yml", config).check() == "2.42.0"


def test_a_secret_that_is_exchanged_is_read_anew(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("one")
    server = serve()
    api = api_of(server.url, tmp_path / "http.yml", "bearer_token_file: secret")
    api.check()
    (tmp_path / "secret").write_text("two")
    server.authorization = "Bearer two"
    api.check()


def test_a_secret_that_has_gone_fails_the_query(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("one")
    api = api_of(serve().url, tmp_path / "http.yml", "bearer_token_file: secret")
    (tmp_path / "secret").unlink()
    with pytest.raises(TransportError, match="No such file"):
        api.query("up", 0)


def test_headers_of_the_config_are_sent(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("b")
    server = serve()
    config = "http_headers: {X-Scope-OrgID: {values: [a]}, X-More: {files: [secret]}}"
    api_of(server.url, tmp_path / "http.yml", config).check()
    headers = server.seen[0][1]
    assert (headers["x-scope-orgid"], headers["x-more"]) == ("a", "b")


# ---- TLS -------------------------------------------------------------------------------------------------------------
def test_a_server_is_verified_by_the_configs_authority(serve: Serve, tmp_path: Path) -> None:
    files = make_serving_files(tmp_path, ["prometheus.example"], ["127.0.0.1"])
    server = serve(tls=files)
    config = tmp_path / "http.yml"
    with pytest.raises(ConfigError, match="TLS failure"):
        api_of(server.url).check()
    assert api_of(server.url, config, f"tls_config: {{ca_file: {Path(files.ca).name}}}").check() == "2.42.0"
    assert api_of(server.url, config, "tls_config: {insecure_skip_verify: true}").check() == "2.42.0"
    named = f"tls_config: {{ca_file: {files.ca}, server_name: prometheus.example}}"
    assert api_of(server.url, config, named).check() == "2.42.0"
    with pytest.raises(ConfigError, match="TLS failure"):
        api_of(server.url, config, f"tls_config: {{ca_file: {files.ca}, server_name: other.example}}").check()


@pytest.mark.parametrize("inline", [False, True])
def test_a_client_certificate_is_shown(serve: Serve, tmp_path: Path, inline: bool) -> None:
    files = make_serving_files(tmp_path, [], ["127.0.0.1"])
    client: Any = make_client_files(files, tmp_path, "reader", [])
    server = serve(tls=files, ask_certificate=True)
    shown = f"cert_file: {client.cert}, key_file: {client.key}"
    if inline:
        shown = f"cert: {json.dumps(Path(client.cert).read_text())}, key: {json.dumps(Path(client.key).read_text())}"
    config = f"tls_config: {{ca_file: {files.ca}, {shown}}}"
    assert api_of(server.url, tmp_path / "http.yml", config).check() == "2.42.0"


# ---- configs that are none -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("basic_auth: {user: u}", "Object contains unknown field `user`"),
        ("proxy_url: http://p", "Object contains unknown field `proxy_url`"),
        ("bearer_token: [a]", "Expected `str`, got `array`"),
        ("{", "http.yml"),
        (
            "{bearer_token: a, basic_auth: {username: u}}",
            "at most one of basic_auth and bearer_token is allowed",
        ),
        ("bearer_token_file: missing", "missing: No such file or directory"),
        ("tls_config: {ca_file: missing}", "No such file or directory"),
        ("tls_config: {cert_file: a}", "a certificate and its key need each other"),
        ("tls_config: {ca: nonsense}", "--prometheus-http-config"),
    ],
)
def test_a_config_that_is_none_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        api_of("https://127.0.0.1:1", tmp_path / "http.yml", text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_config_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        access_of("http://127.0.0.1:1", str(tmp_path / "nowhere.yml"))
