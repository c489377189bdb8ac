"""Credentials that change while a run goes on, and those of a pod."""

from __future__ import annotations

import pytest

from harness.transport.credentials import TOKEN_FILE_AGE_S, Bearer, TokenFile
from harness.transport.incluster import load_in_cluster
from harness.wire.errors import ConfigError


def test_a_token_file_is_read_again_once_a_minute(tmp_path):
    path = tmp_path / "token"
    path.write_text(" one\n")
    file = TokenFile(path, clock=lambda: 100.0)
    assert file.fetch().token == "one"
    path.write_text("two")
    assert not file.due(100.0 + TOKEN_FILE_AGE_S - 0.1)
    assert file.due(100.0 + TOKEN_FILE_AGE_S)
    assert file.fetch().token == "two"


def test_a_token_file_that_went_or_is_empty_is_said(tmp_path):
    with pytest.raises(ConfigError, match=r"token file .*gone cannot be read: No such file"):
        TokenFile(tmp_path / "gone").fetch()
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ConfigError, match=r"token file .*empty is empty"):
        TokenFile(tmp_path / "empty").fetch()


def test_a_bearer_hides_its_token():
    bearer = Bearer("secret")
    assert bearer.field == (b"authorization", b"Bearer secret")
    assert "secret" not in repr(bearer)
    bearer.replace("")
    assert bearer.field is None


def test_a_pod_finds_its_apiserver(tmp_path):
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_text("PEM")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = load_in_cluster(environ, tmp_path)
    assert (access.server, access.host, access.port) == ("https://[fd00::1]:443", "fd00::1", 443)
    assert (access.token, access.ca, access.context) == ("t", b"PEM", "in-cluster")
    assert access.rotation is not None


def test_what_is_no_pod_or_lacks_something_is_said(tmp_path):
    with pytest.raises(ConfigError, match=r"in-cluster: KUBERNETES_SERVICE_HOST .* not set; this is no pod"):
        load_in_cluster({}, tmp_path)
    environ = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConfigError, match="token cannot be read"):
        load_in_cluster(environ, tmp_path)
    (tmp_path / "token").write_text("t")
    with pytest.raises(ConfigError, match=r"in-cluster: .*ca\.crt cannot be read"):
        load_in_cluster(environ, tmp_path)
