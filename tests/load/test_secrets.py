"""No token, key or certificate in any file of a record or of its report, by whatever way a user gave it."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
import yaml

import tests.drawing  # noqa: F401
from harness.compare.run import Run
from harness.load import scraping
from harness.load import session as sessions
from harness.load.arguments import RunOptions
from harness.load.clusterarguments import ClusterOptions
from harness.load.session import Session
from harness.load.target import existing_target
from harness.pool.certificates import make_client_files, make_serving_files
from harness.pool.emulated import PoolOptions
from harness.report.render import render
from harness.transport.credentials import Credentials
from tests.load.fakes import FakeRunner
from tests.load.plays import TINY

TOKENS = {
    "kubeconfig": "kubeconfig-token-7f3a9c",
    "renewed": "renewed-token-51be02",
    "node": "node-token-c0ffee99",
}


class FakeProcess:
    """Stands in for the scraper's: what it is told goes no further than its standard input."""

    pid = 1

    def __init__(self, *_: Any, **__: Any) -> None:
        self.sent: list[Any] = []

    def send(self, message: Any) -> None:
        self.sent.append(message)

    def end_input(self, _: float) -> None:
        pass


class Master(FakeRunner):
    def send_message(self, *_: Any) -> None:
        """To workers, on other machines."""


@pytest.fixture
def pems(tmp_path: Path) -> dict[str, str]:
    """Certificates and keys, of the server's authority and of a client."""
    folder = tmp_path / "user"
    folder.mkdir()
    serving = make_serving_files(folder, ["localhost"], [])
    make_client_files(serving, folder, "admin", ["system:masters"])
    return {
        path.name: path.read_text() for path in folder.iterdir() if path.suffix in (".crt", ".key", ".pem")
    }


def needles(pems: dict[str, str]) -> dict[str, bytes]:
    """What to look for: tokens, and of each PEM a line of its own and a part of it in a kubeconfig's base64."""
    found = {name: token.encode() for name, token in TOKENS.items()}
    for name, text in pems.items():
        found[name] = text.splitlines()[1].encode()
        found[f"{name} in base64"] = base64.b64encode(text.encode())[40:100]
    return found


def kubeconfig(folder: Path, pems: dict[str, str]) -> Path:
    def data(name: str) -> str:
        return base64.b64encode(pems[name].encode()).decode()

    user = {
        "token": TOKENS["kubeconfig"],
        "client-certificate-data": data("client.crt"),
        "client-key-data": data("client.key"),
    }
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [
            {
                "name": "k",
                "cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": data("ca.crt")},
            }
        ],
        "users": [{"name": "u", "user": user}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


def test_what_a_user_gave_as_a_secret_stands_in_no_file(
    tmp_path: Path, pems: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = kubeconfig(tmp_path, pems)
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(f"{TOKENS['node']},system:node:node-0,1\n")
    argv = [
        "--kubeconfig",
        str(config),
        "--tokens",
        str(tokens),
        "--ca-key",
        str(tmp_path / "user" / "ca.key"),
    ]
    monkeypatch.setattr(sys, "argv", ["locust", *argv])
    monkeypatch.setattr(scraping, "Process", FakeProcess)
    monkeypatch.setattr(
        sessions,
        "prepare",
        lambda options, _, **__: existing_target(options.host, options.kubeconfig, options.endpoints, ""),
    )
    options = RunOptions(
        kubelets=1,
        spawn_rate=1.0,
        run_time_s=60.0,
        record=tmp_path / "record",
        seed=1,
        pool=PoolOptions(),
        scenario=TINY,
        overrides=(),
        kubeconfig=str(config),
        arm="existing",
        cluster=ClusterOptions(identity="token", tokens=str(tokens)),
    )
    environment = SimpleNamespace(
        runner=Master("w0"),
        swarmlet_context=None,
        user_classes=[],
        parsed_options=SimpleNamespace(),
        web_ui=None,
    )
    session = Session(environment, options, helpers=0)
    session.start()
    target = session._target
    assert (target.token, bool(target.cert), bool(target.key)) == (TOKENS["kubeconfig"], True, True)
    session.begin()
    session._share(Credentials(TOKENS["renewed"], target.cert.encode(), target.key.encode()))
    session.tell("user-failed", {"user": "kubelet", "error": "answered 401"})
    session.finish()
    gevent.sleep(0.01)  # a turn of its loop, in which the private folder is closed
    render([Run(tmp_path / "record")], tmp_path / "report", "secrets")

    files = [path for name in ("record", "report") for path in (tmp_path / name).rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"manifest.json", "events.jsonl", "report.html", "report.json"}
    found = [
        (path.name, name)
        for path in files
        for name, needle in needles(pems).items()
        if needle in path.read_bytes()
    ]
    assert not found
