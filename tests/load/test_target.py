"""Where a run is sent to: -H, --endpoints and --kubeconfig, and whether whoever is there can be used."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.load.cluster.errands import Errands
from harness.load.plan import Target, TargetMember
from harness.load.probe import probe, with_components
from harness.load.target import existing_target
from harness.wire import rfc3339
from harness.wire.errors import ConfigError
from tests.conftest import HANG_S


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    cluster = {"server": "https://api.example:6443", "insecure-skip-tls-verify": True}
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/"


def where(target: Target) -> list[tuple[str, str, int]]:
    return [(member.name, member.host, member.port) for member in target.members]


def test_a_kubeconfig_alone_is_enough(kubeconfig: str) -> None:
    target, rotation, may_have_members, _ = existing_target("", kubeconfig, ())
    assert where(target) == [("apiserver", "api.example", 6443)]
    assert (target.tls, target.insecure, target.token) == (True, True, "secret")
    assert (target.context, target.rotates, rotation, may_have_members) == ("c", False, None, True)


def test_a_host_or_endpoints_replace_its_server(kubeconfig: str) -> None:
    assert where(existing_target("https://other", kubeconfig, ()).target) == [("apiserver", "other", 443)]
    target, _, may_have_members, _ = existing_target("", kubeconfig, ("10.0.0.1:6443", "[::1]:6444"))
    assert not may_have_members
    assert where(target) == [("member-0", "10.0.0.1", 6443), ("member-1", "::1", 6444)]


def test_the_proxy_of_the_environment_is_that_for_the_address_in_use(
    kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
    assert existing_target("", kubeconfig, ()).target.proxy == "http://proxy:3128"
    assert existing_target("https://10.0.0.1:6443", kubeconfig, ()).target.proxy == ""
    monkeypatch.setenv("HTTPS_PROXY", "socks5://proxy")
    with pytest.raises(ConfigError, match="HTTPS_PROXY: socks5:// proxies are not supported"):
        existing_target("", kubeconfig, ())


def test_a_pods_own_credentials_are_taken_where_they_are_named_or_all_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    for host, kubeconfig in (("", "in-cluster"), ("https://h", "")):
        with pytest.raises(
            ConfigError, match="in-cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT"
        ):
            existing_target(host, kubeconfig, ())


def test_a_plain_host_needs_no_credentials() -> None:
    target = existing_target("http://127.0.0.1:8001", "", ()).target
    assert where(target) == [("apiserver", "127.0.0.1", 8001)]
    assert (target.tls, target.token) == (False, "")


@pytest.mark.parametrize(
    "host", ["127.0.0.1:6443", "ftp://x", "https://", "https://h:99999", "https://h:port", "https://h:0", "x"]
)
def test_a_host_that_is_none_is_refused_with_what_is_expected(host: str, kubeconfig: str) -> None:
    with pytest.raises(ConfigError, match=r"expected https://HOST\[:PORT\]"):
        existing_target(host, kubeconfig, ())


def test_credentials_are_not_sent_in_the_clear(kubeconfig: str) -> None:
    with pytest.raises(ConfigError, match="-H http://h: a kubeconfig's credentials go to https:// only"):
        existing_target("http://h", kubeconfig, ())


@pytest.mark.parametrize("text", ["a", "a:", ":1", "a:b", "a:0", "a:65536"])
def test_an_endpoint_is_a_host_and_a_port(text: str, kubeconfig: str) -> None:
    with pytest.raises(ConfigError, match="expected HOST:PORT, separated by commas"):
        existing_target("", kubeconfig, (text,))


def test_a_host_without_credentials_says_where_they_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(
        ConfigError, match="-H https://h: its credentials come from --kubeconfig, KUBECONFIG or"
    ):
        existing_target("https://h", "", ())


# ---- is it well, and does it let us in -----------------------------------------------------------------------------
Answers = dict[str, tuple[int, str]]


@contextmanager
def serving(answers: Answers) -> Iterator[tuple[Target, list[tuple[str, str]]]]:
    """A target of one member that answers by path, and what it was asked: (path, Authorization)."""
    asked: list[tuple[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Authorization", "")))
            code, text = answers.get(self.path, (404, "not found"))
            self.send_response(code)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    member = TargetMember("apiserver", "127.0.0.1", server.server_address[1])
    try:
        yield Target((member,), tls=False, token="secret"), asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("answers", "paths"),
    [
        ({"/readyz": (200, "ok")}, ["/readyz"]),
        ({"/version": (200, "{}")}, ["/readyz", "/version"]),
        ({"/readyz": (403, "no"), "/version": (200, "{}")}, ["/readyz", "/version"]),
    ],
)
def test_a_target_that_is_well_is_accepted(answers: Answers, paths: list[str]) -> None:
    with serving(answers) as (target, asked):
        probe(target, HANG_S)
    assert asked == [(path, "Bearer secret") for path in paths]


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ({"/readyz": (503, "[-]etcd failed\n  readyz check failed")}, "HTTP 503: \\[-\\]etcd failed readyz"),
        ({"/readyz": (401, "who?")}, "refuses our credentials \\(401\\)"),
        ({}, "not ready: HTTP 404: not found"),
        ({"/readyz": (500, "x" * 1000)}, "HTTP 500: x{300}$"),
    ],
)
def test_a_target_that_is_not_is_refused_with_what_it_said(answers: Answers, text: str) -> None:
    with serving(answers) as (target, _), pytest.raises(ConfigError, match=text):
        probe(target, HANG_S)


def unused(_: socket.socket) -> int:
    return 1


def silent(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize(
    ("port", "within_s", "text"),
    [
        (unused, HANG_S, "cannot be reached: cannot connect to .*: Connection refused"),
        (silent, 0.2, "no answer within 0.2 s"),
    ],
)
def test_a_target_that_refuses_or_is_silent_is_given_up(
    tls: bool, port: Callable[[socket.socket], int], within_s: float, text: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = Target((TargetMember("apiserver", "127.0.0.1", port(listener)),), tls=tls, insecure=True)
        with pytest.raises(ConfigError, match=text) as caught:
            probe(target, within_s=within_s)
    assert f"{'https' if tls else 'http'}://127.0.0.1:" in str(caught.value)


def test_one_bad_member_of_several_is_named() -> None:
    with serving({"/readyz": (200, "ok")}) as (target, _):
        members = (*target.members, TargetMember("member-1", "127.0.0.1", 1))
        with pytest.raises(ConfigError, match=r"http://127\.0\.0\.1:1: cannot be reached"):
            probe(Target(members, tls=False), HANG_S)


def test_something_that_speaks_no_tls_is_said_not_to() -> None:
    with (
        serving({}) as (target, _),
        pytest.raises(ConfigError, match=r"cannot be reached: TLS handshake with .* wrong version number"),
    ):
        probe(Target(target.members, tls=True, insecure=True), HANG_S)


NOW = 1_795_000_000.0


def lease(age_s: float) -> tuple[int, str]:
    renewed = rfc3339.micro(NOW - age_s)
    return 200, f'{{"kind":"Lease","spec":{{"holderIdentity":"x","renewTime":"{renewed}"}}}}'


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({}, (False, False)),
        ({"kube-scheduler": lease(3.0)}, (True, False)),
        ({"kube-controller-manager": lease(59.0), "kube-scheduler": lease(61.0)}, (False, True)),
        ({"kube-scheduler": (403, "{}"), "kube-controller-manager": (200, "not json")}, (False, False)),
        ({"kube-scheduler": (200, '{"spec":{"renewTime":"then"}}')}, (False, False)),
    ],
)
def test_a_component_is_at_work_where_its_lease_was_renewed_lately(
    answers: Answers, found: tuple[bool, bool]
) -> None:
    served = {LEASES + name: answer for name, answer in answers.items()}
    with serving(served) as (target, _), Errands(target, HANG_S) as errands:
        target = with_components(errands, NOW)
    assert (target.has_scheduler, target.has_controllers) == found
