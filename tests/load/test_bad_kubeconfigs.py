"""Kubeconfigs that cannot be used: a run says why in one line, and ends with exit code 2, before it starts anything."""

from __future__ import annotations

import base64
import datetime
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import configargparse  # type: ignore[import-untyped]
import pytest
import yaml

from harness.load import hooks
from harness.load.arguments import add_arguments
from harness.load.identity.authority import Authority
from harness.pool.certificates import make_client_files, make_serving_files
from harness.transport import execplugin

V1 = "client.authentication.k8s.io/v1"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Starts a session as Locust's init event does, with these arguments."""
    monkeypatch.setattr(hooks.atexit, "register", lambda _: None)
    monkeypatch.setattr(hooks, "_heed_signals", lambda *_: None)

    def start(*arguments: str) -> None:
        parser = configargparse.ArgumentParser()
        add_arguments(parser)
        for flag in ("host", "num_users", "spawn_rate", "run_time", "processes"):
            parser.add_argument(f"--{flag}")
        given = ["--scenario", "none", "--record", str(tmp_path / "record"), *arguments]
        parsed = parser.parse_args(given, namespace=SimpleNamespace(master=False, headless=True))
        hooks._start_session(
            SimpleNamespace(
                parsed_options=parsed, user_classes=[], runner=None, swarmlet_context=None, web_ui=None
            )
        )

    return start


def written(folder: Path, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> Path:
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:1", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {"token": "t"}}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))
    return path


def pair(folder: Path, days: float = 1) -> tuple[str, str]:
    """Certificate and key of a client, in base64."""
    serving = make_serving_files(folder, ["localhost"], [])
    files = make_client_files(serving, folder, "me", (), datetime.timedelta(days=days))
    cert, key = (base64.b64encode(Path(path).read_bytes()).decode() for path in (files.cert, files.key))
    return cert, key


def plugin(text: str) -> dict[str, Any]:
    return {"exec": {"apiVersion": V1, "command": sys.executable, "args": ["-c", text]}}


def missing(folder: Path) -> Path:
    return folder / "gone"


def a_folder(folder: Path) -> Path:
    return folder


def no_yaml(folder: Path) -> Path:
    path = folder / "config"
    path.write_text("clusters: [\n  {a: b\n")
    return path


def a_picture(folder: Path) -> Path:
    path = folder / "config"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    return path


def expired(folder: Path) -> Path:
    # An hour ago is when it began.
    cert, key = pair(folder, days=-1 / 48)
    return written(folder, user={"client-certificate-data": cert, "client-key-data": key})


def unreadable_key(folder: Path) -> Path:
    cert, _ = pair(folder)
    (folder / "key").mkdir()
    return written(folder, user={"client-certificate-data": cert, "client-key": "key"})


def key_of_another(folder: Path) -> Path:
    cert, _ = pair(folder)
    _, key = pair(folder)
    return written(folder, user={"client-certificate-data": cert, "client-key-data": key})


def key_that_is_none(folder: Path) -> Path:
    cert, _ = pair(folder)
    return written(folder, user={"client-certificate-data": cert, "client-key-data": "a2V5"})


def bad_authority(folder: Path) -> Path:
    return written(folder, {"certificate-authority-data": "bm9uZQ=="})


TABLE: list[tuple[Callable[[Path], Path], str]] = [
    (missing, "kubeconfig {folder}/gone cannot be read: No such file or directory"),
    (a_folder, "kubeconfig {folder} cannot be read: Is a directory"),
    (no_yaml, "kubeconfig {folder}/config is not YAML: while parsing a flow mapping"),
    (a_picture, "kubeconfig {folder}/config is not YAML: "),
    (expired, "{folder}/config: user 'u': client-certificate expired at 20"),
    (unreadable_key, "user 'u': client-key names {folder}/key, which cannot be read: Is a directory"),
    (key_of_another, "{folder}/config: client certificate and key cannot be used: key values mismatch"),
    (key_that_is_none, "{folder}/config: client certificate and key cannot be used: "),
    (bad_authority, "{folder}/config: the certificate authority is not PEM"),
    (
        lambda f: written(f, {"server": "127.0.0.1:6443"}),
        "server is '127.0.0.1:6443', expected is https://host:port",
    ),
    (lambda f: written(f, {"server": "h"}), "cluster 'k': server is 'h', expected is https://host:port"),
    (
        lambda f: written(f, {"proxy-url": "socks5://p:1080"}),
        "proxy-url: socks5:// proxies are not supported",
    ),
    (
        lambda f: written(f, user=plugin("import sys; sys.exit('log in first')")),
        "ended with code 1: log in first",
    ),
    (lambda f: written(f, user=plugin("print('<html>')")), "printed no ExecCredential: "),
    (lambda f: written(f, user=plugin("")), "printed no ExecCredential: "),
    (
        lambda f: written(f, user={"tokenFile": "gone"}),
        "tokenFile names a token file {folder}/gone cannot be read",
    ),
    (
        written,
        "target https://127.0.0.1:1: cannot be reached: cannot connect to 127.0.0.1:1: Connection refused",
    ),
]


def said_by(run: Callable[..., None], capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        run(*arguments)
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.parametrize(("make", "text"), TABLE, ids=[text.split(": ")[-1][:40] for _, text in TABLE])
def test_one_line_and_exit_code_2(
    run: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    make: Callable[[Path], Path],
    text: str,
) -> None:
    line = said_by(run, capsys, "--kubeconfig", str(make(tmp_path)))
    assert line.startswith("swarmlet: ")
    assert text.format(folder=tmp_path) in line


def test_a_plugin_that_does_not_answer_is_given_up(
    run: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(execplugin, "WITHIN_S", 0.2)
    path = written(tmp_path, user=plugin("import time; time.sleep(60)"))
    line = said_by(run, capsys, "--kubeconfig", str(path))
    assert line.startswith("swarmlet: ")
    assert "gave no answer within 0.2 s" in line


def test_a_wrong_context_is_told_from_those_there_are(
    run: Callable[..., None], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = said_by(run, capsys, "--kubeconfig", str(written(tmp_path)), "--context", "prod")
    assert line == f"swarmlet: {tmp_path}/config: context 'prod' is not there; contexts there: c"


def test_a_pod_is_needed_for_in_cluster(run: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    assert "this is no pod" in said_by(run, capsys, "--kubeconfig", "in-cluster")


BAD_ARGUMENTS = [
    (("--identity", "token"), "--identity token and --tokens FILE need each other"),
    (("--tokens", "x"), "--identity token and --tokens FILE need each other"),
    (("--ca-key", "x"), "--ca-cert and --ca-key need each other"),
    (
        ("--ca-key", "x", "--ca-cert", "y"),
        "--ca-key: signs certificates of nodes, but --identity is impersonate",
    ),
    (("--streams-per-connection", "-1"), "--streams-per-connection -1: at least 1, or 0 for no limit"),
]


@pytest.mark.parametrize(("arguments", "text"), BAD_ARGUMENTS)
def test_arguments_that_do_not_fit_together(
    run: Callable[..., None], capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], text: str
) -> None:
    assert text in said_by(run, capsys, *arguments)


def test_an_impersonating_user_cannot_impersonate_nodes(
    run: Callable[..., None], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = written(tmp_path, user={"token": "t", "as": "jane"})
    assert "its user impersonates somebody" in said_by(run, capsys, "--kubeconfig", str(path))


def test_an_authority_whose_key_does_not_fit_is_refused(tmp_path: Path) -> None:
    files = make_serving_files(tmp_path, ["localhost"], [])
    Authority(Path(files.ca).read_bytes(), Path(files.ca_key).read_bytes(), "here")
    for cert, key, text in (
        (files.ca, files.key, "here: the authority's key does not belong to its certificate"),
        (files.ca_key, files.ca_key, "here: the authority's certificate is not PEM"),
        (files.ca, files.ca, "here: the authority's key cannot be read"),
    ):
        with pytest.raises(Exception, match=text):
            Authority(Path(cert).read_bytes(), Path(key).read_bytes(), "here")
