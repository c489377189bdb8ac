"""Credential plugins: what they are told, what they may answer, and what becomes of those that do neither."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.transport.execplugin import REFRESH_BEFORE_S, ExecPlugin
from harness.transport.kubeconfig import load_kubeconfig
from harness.wire import rfc3339
from harness.wire.errors import ConfigError

V1 = "client.authentication.k8s.io/v1"


def script(folder: Path, text: str) -> list[str]:
    path = folder / "plugin.py"
    path.write_text(text)
    return [str(path)]


def printing(folder: Path, text: str, code: int = 0, said: str = "") -> ExecPlugin:
    lines = f"import sys\nprint({text!r})\nprint({said!r}, file=sys.stderr)\nsys.exit({code})\n"
    return ExecPlugin("config: user 'u'", folder, sys.executable, script(folder, lines))


def credential(version: str = V1, kind: str = "ExecCredential", **status: Any) -> str:
    return json.dumps({"apiVersion": version, "kind": kind, "status": status})


def test_a_token_or_a_certificate_with_its_key_is_taken(tmp_path):
    assert printing(tmp_path, credential(token="t")).fetch().token == "t"
    found = printing(tmp_path, credential(clientCertificateData="c", clientKeyData="k")).fetch()
    assert (found.token, found.certificate, found.key) == ("", b"c", b"k")
    assert "token='t'" not in repr(printing(tmp_path, credential(token="t")).fetch())


def test_fresh_ones_are_due_a_little_before_the_end(tmp_path):
    plugin = printing(tmp_path, credential(token="t", expirationTimestamp=rfc3339.seconds(1000.0)))
    assert not plugin.due(1e12), "never asked yet"
    assert plugin.fetch().expires == 1000.0
    assert not plugin.due(1000.0 - REFRESH_BEFORE_S - 1)
    assert plugin.due(1000.0 - REFRESH_BEFORE_S)


def test_one_without_an_end_is_never_due(tmp_path):
    plugin = printing(tmp_path, credential(token="t"))
    plugin.fetch()
    assert not plugin.due(1e12)


def test_the_plugin_is_told_what_is_wanted(tmp_path):
    """By a kubeconfig's section; its environment, its arguments and the cluster reach it."""
    text = (
        "import json, os, sys\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "seen = [info['spec'], info['apiVersion'], os.environ['REGION'], sys.argv[1:]]\n"
        f"print(json.dumps({{'apiVersion': '{V1}', 'kind': 'ExecCredential',"
        " 'status': {'token': json.dumps(seen)}}))\n"
    )
    section = {
        "apiVersion": V1,
        "command": sys.executable,
        "args": [*script(tmp_path, text), "a"],
        "env": [{"name": "REGION", "value": "r1"}],
        "provideClusterInfo": True,
    }
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://h"}}],
        "users": [{"name": "u", "user": {"exec": section}}],
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    access = load_kubeconfig(path)
    spec = {"interactive": False, "cluster": {"server": "https://h"}}
    assert json.loads(access.token) == [spec, V1, "r1", ["a"]]
    assert access.rotation is not None


def test_a_command_with_a_slash_is_looked_up_from_the_kubeconfig(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "get").symlink_to(sys.executable)
    arguments = script(tmp_path, f"print({credential(token='t')!r})")
    assert ExecPlugin("config", tmp_path, f"bin{os.sep}get", arguments).fetch().token == "t"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "printed no ExecCredential"),
        ("log in first", "printed no ExecCredential"),
        ("[]", "printed no ExecCredential"),
        (
            '{"kind": "ExecCredential"}',
            "printed no ExecCredential: Object missing required field `apiVersion`",
        ),
        (credential(kind="Pod"), f"printed a {V1} Pod, wanted is a {V1} ExecCredential"),
        (credential(version="v1"), "printed a v1 ExecCredential"),
        (credential(), "gave neither a token nor a client certificate with its key"),
        (credential(clientCertificateData="c"), "gave neither a token nor a client certificate with its key"),
        (credential(token="t", expirationTimestamp="soon"), "expirationTimestamp 'soon' is no time"),
    ],
)
def test_an_answer_that_is_none_is_said_in_one_line(tmp_path, text, said):
    with pytest.raises(ConfigError, match=said) as caught:
        printing(tmp_path, text).fetch()
    assert str(caught.value).startswith(f"config: user 'u': exec failed: {sys.executable}")
    assert "\n" not in str(caught.value)


def test_one_that_fails_is_quoted(tmp_path):
    with pytest.raises(ConfigError, match=r"ended with code 3: token has\s+expired, log in$"):
        printing(tmp_path, "", 3, "token has\n  expired, log in").fetch()
    with pytest.raises(ConfigError, match=r"ended with code 3: it said nothing$"):
        printing(tmp_path, "", 3).fetch()


def test_one_that_hangs_is_given_up_with_its_children(tmp_path):
    """The child holds the output open; what is left of it would fail this test's check for processes."""
    text = "import subprocess, time\nsubprocess.Popen(['sleep', '60'])\ntime.sleep(60)\n"
    plugin = ExecPlugin("config", tmp_path, sys.executable, script(tmp_path, text), within_s=0.3)
    with pytest.raises(ConfigError, match=r"exec failed: .* gave no answer within 0.3 s"):
        plugin.fetch()
