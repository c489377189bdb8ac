"""Kubeconfigs: what is read, and the one line that each fault gives."""

from __future__ import annotations

import base64
import random

import pytest
import yaml

from harness.transport.kubeconfig import load_kubeconfig
from harness.wire.errors import ConfigError

V1 = "client.authentication.k8s.io/v1"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def write(tmp_path):
    """Writes a kubeconfig with one cluster, user and context; keywords replace their content."""

    def make(cluster=None, user=None, context=None, name="config", **top):
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": "https://10.0.0.1:6443", **(cluster or {})}}],
            "users": [{"name": "u", "user": user or {"token": "secret-token"}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", **(context or {})}}],
            **top,
        }
        path = tmp_path / name
        path.write_text(yaml.safe_dump(content))
        return path

    return make


def test_server_token_and_namespace_are_read(write):
    access = load_kubeconfig(write(context={"namespace": "ns"}))
    assert (access.host, access.port, access.tls, access.namespace) == ("10.0.0.1", 6443, True, "ns")
    assert access.headers() == {"Authorization": "Bearer secret-token"}
    endpoint = access.endpoints(random.Random(1)).choose()
    assert (endpoint.authority, endpoint.member) == ("10.0.0.1:6443", "10.0.0.1:6443")
    assert "secret-token" not in repr(access)


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("https://h", (True, "h", 443, "")),
        ("http://h", (False, "h", 80, "")),
        ("https://[::1]:6443/", (True, "::1", 6443, "")),
        ("https://h/k8s/clusters/c-1/", (True, "h", 443, "/k8s/clusters/c-1")),
    ],
)
def test_the_forms_of_a_server(write, server, expected):
    access = load_kubeconfig(write(cluster={"server": server}))
    assert (access.tls, access.host, access.port, access.path_prefix) == expected


def test_a_server_without_tls_needs_no_context(write):
    assert load_kubeconfig(write(cluster={"server": "http://h"})).ssl_context() is None


def test_files_are_relative_to_the_kubeconfig_and_data_win(write, tmp_path):
    (tmp_path / "ca.crt").write_text("from file")
    (tmp_path / "token").write_text(" abc\n")
    user = {
        "tokenFile": "token",
        "client-certificate-data": encoded("cert"),
        "client-key-data": encoded("key"),
        "client-certificate": "not-there",
    }
    path = write(cluster={"certificate-authority": "ca.crt", "tls-server-name": "kubernetes"}, user=user)
    access = load_kubeconfig(path)
    assert (access.ca, access.certificate, access.key) == (b"from file", b"cert", b"key")
    assert (access.token, access.server_name) == ("abc", "kubernetes")


def test_an_insecure_cluster_gives_a_context_that_checks_nothing(write):
    access = load_kubeconfig(write(cluster={"insecure-skip-tls-verify": True}))
    assert access.ssl_context().check_hostname is False
    assert access.ssl_context() is access.ssl_context()


def test_impersonation_becomes_headers(write):
    user = {"token": "t", "as": "system:node:n", "as-groups": ["system:nodes", "x"]}
    headers = load_kubeconfig(write(user=user)).headers()
    assert headers["Impersonate-User"] == ("system:node:n",)
    assert headers["Impersonate-Group"] == ("system:nodes", "x")


def test_a_context_may_be_named(write):
    contexts = [{"name": "other", "context": {"cluster": "k", "namespace": "n"}}]
    access = load_kubeconfig(write(contexts=contexts), context="other")
    assert (access.context, access.token) == ("other", "")


def test_several_files_are_merged_and_the_first_wins(write, monkeypatch, tmp_path):
    first = write(name="a", clusters=[])
    second = write(
        name="b", cluster={"server": "https://second"}, user={"token": "lost"}, **{"current-context": "z"}
    )
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'missing'}:{second}")
    access = load_kubeconfig()
    assert (access.context, access.host, access.token) == ("c", "second", "secret-token")


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"current-context": ""}, "current-context is not set and no context was named; contexts there: c"),
        ({"current-context": "x"}, "context 'x' is not there; contexts there: c"),
        ({"clusters": []}, r"context 'c' names a cluster that is not there \('k'\); clusters there: none"),
        ({"users": []}, r"names a user that is not there \('u'\); users there: none"),
        ({"contexts": {}}, "current-context|context 'c' is not there"),
        ({"contexts": {"a": 1}}, "contexts is not a list"),
        ({"contexts": [{"name": "c"}]}, "context 'c' has no 'context' mapping"),
        ({"contexts": [{"name": "c", "context": {"user": "u"}}]}, "context 'c': cluster is missing"),
        ({"cluster": {"server": ""}}, "cluster 'k': server is missing"),
        ({"cluster": {"server": "ftp://h"}}, "server is 'ftp://h', expected is https://host:port"),
        ({"cluster": {"server": "https://h:99999"}}, "expected is https://host:port"),
        ({"cluster": {"server": "https://:1"}}, "expected is https://host:port"),
        ({"cluster": {"server": 5}}, "server is 5, a text is expected"),
        ({"cluster": {"server": "h:8443"}}, "server is 'h:8443', expected is https://host:port"),
        ({"cluster": {"server": "10.0.0.1"}}, "server is '10.0.0.1', expected is https://host:port"),
        (
            {"cluster": {"proxy-url": "socks5://p:1080"}},
            "proxy-url: socks5:// proxies are not supported, only http",
        ),
        ({"cluster": {"proxy-url": "https://p"}}, "proxy-url: https:// proxies are not supported, only http"),
        ({"cluster": {"proxy-url": "http://:1"}}, "proxy-url: not a proxy's URL"),
        ({"cluster": {"proxy-url": "http://p:x"}}, "proxy-url: not a proxy's URL"),
        (
            {"cluster": {"server": "http://h", "proxy-url": "http://p"}},
            "proxy-url is set for an http:// server; only https:// is tunnelled",
        ),
        ({"cluster": {"certificate-authority-data": "*"}}, "certificate-authority-data is not base64"),
        (
            {"cluster": {"certificate-authority": "gone"}},
            "certificate-authority names .*gone, which cannot be read",
        ),
        ({"cluster": {"insecure-skip-tls-verify": "yes"}}, "is 'yes', allowed are true and false"),
        (
            {"cluster": {"insecure-skip-tls-verify": True, "certificate-authority-data": "eA=="}},
            "insecure-skip-tls-verify is true although a certificate authority is given",
        ),
        ({"user": {"tokenFile": "gone"}}, "user 'u': tokenFile names .*gone"),
        ({"user": {"client-key-data": "eA=="}}, "client-certificate is missing"),
        ({"user": {"client-certificate-data": "eA=="}}, "client-key is missing"),
        ({"user": {"username": "a", "password": "b"}}, "username is not supported: basic authentication"),
        ({"user": {"auth-provider": {"name": "gcp"}}}, "auth-provider is not supported"),
        ({"user": {"token": "t", "as-groups": ["g"]}}, "as is missing although groups"),
        ({"user": {"exec": {"command": "x"}}}, "user 'u': exec: apiVersion is missing"),
        ({"user": {"exec": "x"}}, "exec is 'x', a mapping with a command is expected"),
        (
            {"user": {"exec": {"command": "x", "apiVersion": "v1"}}},
            "apiVersion is 'v1', allowed are client.auth",
        ),
        ({"user": {"exec": {"apiVersion": V1}}}, "exec: command is missing"),
        (
            {"user": {"exec": {"command": "x", "apiVersion": V1, "interactiveMode": "Always"}}},
            "a plugin that asks questions cannot be used here",
        ),
        ({"user": {"exec": {"command": "x", "apiVersion": V1, "env": ["A=1"]}}}, "env is no list of names"),
        (
            {"user": {"exec": {"command": "/no/such", "apiVersion": V1, "installHint": "Get\nit."}}},
            "exec failed: /no/such cannot be run: No such file or directory; Get it.",
        ),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_key(write, parts, said):
    path = write(**parts)
    with pytest.raises(ConfigError, match=said) as caught:
        load_kubeconfig(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_file_that_is_missing_or_not_yaml_is_said(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_kubeconfig(tmp_path / "gone")
    broken = tmp_path / "broken"
    broken.write_text("a: [")
    with pytest.raises(ConfigError, match="is not YAML"):
        load_kubeconfig(broken)
    broken.write_text("- a")
    with pytest.raises(ConfigError, match="is not a mapping"):
        load_kubeconfig(broken)
