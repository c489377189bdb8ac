"""A pool of stand-ins for the real binaries, over a real etcd: how it starts, what it says, how parts of it end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
import yaml
from cryptography import x509

from harness.pool.backend import Pool
from harness.pool.binaries.finding import Program
from harness.pool.binaries.options import BinariesOptions
from harness.pool.binaries.servers import tells_progress
from harness.pool.emulated import PoolOptions
from harness.pool.http import call
from harness.pool.process import ProcessFailed
from harness.pool.restarts import RestartOrder, restart
from harness.pool.stores import StoreOptions
from harness.pool.supervisor import make_pool
from harness.transport.kubeconfig import load_kubeconfig
from harness.wire.errors import ConfigError
from tests.apiserver.store.test_store_contract import a_real_etcd
from tests.pool.binaries.standin import install

pytestmark = pytest.mark.slow

WITHIN_S = 60.0
FLOW_SCHEMA = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "FlowSchema",
    "metadata": {"name": "ours"},
}
EVERYTHING = ("kube-apiserver", "kube-scheduler", "kube-controller-manager")


def until(condition: Callable[[], Any], what: str) -> Any:
    """What `condition()` gives, once it gives something: it waits for processes, which take the time they take."""
    deadline = time.monotonic() + WITHIN_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"did not happen within {WITHIN_S:g} s: {what}"
        time.sleep(0.02)
    return found


class Setup:
    """Programs in a folder, and a pool of them; `events` is what the pool said."""

    def __init__(
        self,
        folder: Path,
        *names: str,
        behave: dict[str, str] | None = None,
        flags: tuple[str, ...] = ("event-ttl=10m",),
        data_dir: str = "",
        **given: Any,
    ) -> None:
        self.programs = install(folder / "bin", *names, **(behave or {}))
        self.events: list[dict[str, Any]] = []
        self.options = PoolOptions(
            backend="binaries",
            logs=str(folder / "logs"),
            kubeconfig=str(folder / "kubeconfig"),
            binaries=BinariesOptions(str(self.programs), flags),
            store=StoreOptions(etcd_binary=a_real_etcd(), data_dir=data_dir),
            **given,
        )

    @cached_property
    def pool(self) -> Pool:
        return make_pool(self.options, self.events.append)

    def lines(self, file: str) -> list[Any]:
        path = self.programs / file
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def starts(self, name: str) -> list[tuple[int, dict[str, str]]]:
        """(pid, flags) of each start of a program."""
        return [(pid, flags) for started, pid, flags in self.lines("starts.jsonl") if started == name]

    def kinds(self) -> list[tuple[str, str]]:
        return [(event["kind"], event.get("process") or event["member"]) for event in self.events]

    def restart(self, name: str) -> None:
        """As a kubelet restarts a static pod; blocks."""
        process, start = self.pool.part(name)
        assert start is not None
        order = RestartOrder(name, down_s=0.0, ready_timeout_s=WITHIN_S)
        restart(order, process, start, threading.Event(), self.events.append)

    def ask(self, path: str, member: int = 0) -> int:
        """The status that the kubeconfig's user is answered."""
        access = load_kubeconfig(self.pool.kubeconfig, f"member-{member}")
        context = access.ssl_context("http/1.1")
        return call(access.host, access.port, context, access.token, "GET", path)[0]


@pytest.fixture(scope="module")
def setup() -> Iterator[Setup]:
    """Two members with all that belongs beside them, for tests that only look at them."""
    folder = Path(tempfile.mkdtemp(prefix="swt-"))
    made = Setup(folder, *EVERYTHING, members=2, objects=(FLOW_SCHEMA,))
    try:
        made.pool.start()
        yield made
    finally:
        made.pool.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def described(setup: Setup) -> dict[str, Any]:
    return setup.pool.describe()


def test_members_are_ready_at_their_own_ports_and_know_the_kubeconfig_s_user(setup: Setup) -> None:
    started = dict(setup.starts("kube-apiserver"))
    assert [member.name for member in setup.pool.members] == ["member-0", "member-1"]
    for index, member in enumerate(setup.pool.members):
        assert started[member.pid]["secure-port"] == str(member.port)
        assert setup.ask("/readyz", index) == 200
    access = load_kubeconfig(setup.pool.kubeconfig)
    subject = x509.load_pem_x509_certificate(access.certificate or b"").subject.rfc4514_string()
    assert subject == "CN=kubernetes-admin,O=system:masters"
    context = ssl.create_default_context(cadata=(access.ca or b"").decode())
    assert call(access.host, access.port, context, "", "GET", "/readyz")[0] == 403


def test_members_share_keys_and_etcd_and_keep_their_own_folders(setup: Setup) -> None:
    first, second = (flags for _, flags in setup.starts("kube-apiserver")[:2])
    own = {"secure-port", "cert-dir"}
    assert {name: flags for name, flags in first.items() if name not in own} == {
        name: flags for name, flags in second.items() if name not in own
    }
    assert first["event-ttl"] == "10m"
    assert Path(first["cert-dir"], "written").exists()
    assert Path(first["cert-dir"]).parent.stat().st_mode & 0o777 == 0o700
    for name in ("tls-private-key-file", "service-account-signing-key-file"):
        assert Path(first[name]).stat().st_mode & 0o777 == 0o600


def test_beside_each_member_are_a_scheduler_and_a_controller_manager_with_a_kubeconfig_to_it(
    setup: Setup, described: dict[str, Any]
) -> None:
    for component in EVERYTHING[1:]:
        kubeconfigs = [
            yaml.safe_load(Path(flags["kubeconfig"]).read_text()) for _, flags in setup.starts(component)
        ]
        servers = {each["clusters"][0]["cluster"]["server"] for each in kubeconfigs}
        assert servers == {member.url for member in setup.pool.members}
        access = load_kubeconfig(Path(setup.starts(component)[0][1]["kubeconfig"]))
        subject = x509.load_pem_x509_certificate(access.certificate or b"").subject.rfc4514_string()
        assert subject == f"CN=system:{component}"
    assert (described["has_scheduler"], described["has_controllers"]) == (True, True)
    assert all(psutil.pid_exists(pid) for pid in described["processes"].values())
    assert set(described["processes"]) == {
        *("etcd-0", "kube-scheduler-0", "kube-scheduler-1"),
        *("kube-controller-manager-0", "kube-controller-manager-1"),
    }


def test_objects_are_applied_and_with_a_controller_manager_nothing_else(setup: Setup) -> None:
    ((path, content_type, body),) = setup.lines("applied.jsonl")
    assert path.startswith("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/ours?")
    assert (content_type, body) == ("application/apply-patch+yaml", FLOW_SCHEMA)


def test_a_record_gets_versions_flags_pids_and_no_secret(setup: Setup, described: dict[str, Any]) -> None:
    assert described["backend"] == "binaries"
    assert described["binaries"]["kube-apiserver"] == {
        "path": str(setup.programs / "kube-apiserver"),
        "version": "v1.36.2",
    }
    assert described["binaries"]["etcd"]["version"].startswith("v3.")
    assert described["flags"]["event-ttl"] == "10m"
    assert [entry["pid"] for entry in described["members"]] == [m.pid for m in setup.pool.members]
    assert described["command_lines"]["member-1"][0] == str(setup.programs / "kube-apiserver")
    assert "PRIVATE KEY" not in msgspec.json.encode(described).decode()


def test_logs_are_a_file_for_each_process(setup: Setup) -> None:
    logs = {path.name for path in Path(setup.options.logs).iterdir()}
    assert {"member-0.log", "member-1.log", "etcd-0.log", "kube-scheduler-0.log"} <= logs


# ---- pools of their own ----------------------------------------------------------------------------------------------
@pytest.fixture
def own(tmp_path: Path) -> Iterator[Setup]:
    made = Setup(tmp_path, "kube-apiserver", "kube-scheduler")
    try:
        made.pool.start()
        yield made
    finally:
        made.pool.stop()


def test_a_member_is_started_again_at_its_address_when_told_and_a_scheduler_by_itself(own: Setup) -> None:
    (before,) = own.pool.members
    own.restart("member-0")
    (after,) = own.pool.members
    assert own.kinds() == [("member-ended", "member-0"), ("member-restarted", "member-0")]
    assert own.events[0]["code"] == 0
    assert own.events[1]["pid"] == after.pid != before.pid
    assert after.port == before.port
    assert not psutil.pid_exists(before.pid)
    assert own.ask("/readyz") == 200

    own.events.clear()
    os.kill(after.pid, signal.SIGKILL)
    until(lambda: own.events, "the pool says that a member has ended")  # and it may be started again then
    assert own.events == [{"kind": "process-exited", "process": "member-0", "code": 137}]
    own.restart("member-0")
    assert own.kinds()[1:] == [("member-ended", "member-0"), ("member-restarted", "member-0")]
    assert own.ask("/readyz") == 200

    own.events.clear()
    pid = own.pool.describe()["processes"]["kube-scheduler-0"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: len(own.events) == 2, "a scheduler ends and is started again")
    assert own.kinds() == [
        ("component-ended", "kube-scheduler-0"),
        ("component-restarted", "kube-scheduler-0"),
    ]
    again = own.pool.describe()["processes"]["kube-scheduler-0"]
    assert own.events[1]["pid"] == again != pid
    until(lambda: again in [pid for pid, _ in own.starts("kube-scheduler")], "the new one has begun")


def test_without_components_the_default_account_is_made_and_nothing_outlives_stop(tmp_path: Path) -> None:
    made = Setup(tmp_path, "kube-apiserver")
    try:
        made.pool.start()
        described = made.pool.describe()
        assert (described["has_scheduler"], described["has_controllers"]) == (False, False)
        assert set(described["binaries"]) == {"kube-apiserver", "etcd"}
        assert [body["kind"] for _, _, body in made.lines("applied.jsonl")] == ["Namespace", "ServiceAccount"]
        folder = Path(described["signs"]["key"]).parent
    finally:
        made.pool.stop()
        made.pool.stop()
    pids = [made.starts("kube-apiserver")[0][0], *described["processes"].values()]
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert not folder.exists()
    assert not made.pool.kubeconfig.exists()


def test_a_folder_keeps_keys_and_objects_from_pool_to_pool(tmp_path: Path) -> None:
    signed = []
    for turn in ("first", "second"):
        made = Setup(tmp_path / turn, "kube-apiserver", data_dir=str(tmp_path / "data"))
        try:
            made.pool.start()
            ((_, flags),) = made.starts("kube-apiserver")
            names = ("service-account-signing-key-file", "service-account-key-file", "client-ca-file")
            signed.append([Path(flags[name]).read_bytes() for name in names])
        finally:
            made.pool.stop()
    assert signed[0] == signed[1]
    assert (tmp_path / "data" / "binaries" / "etcd" / "members.json").exists()


@pytest.mark.parametrize(
    ("behave", "given", "message"),
    [
        (
            {"kube_apiserver": "crash"},
            {},
            r"^member-0: ended with exit code 3; its log .*member-0.log ends: failed to initialize",
        ),
        ({}, {"feature_gates": {"A": True}, "port": 1}, "port: 1 is not within"),
        (
            {"kube_scheduler": "crash"},
            {},
            r"^kube-scheduler-0: ended with exit code 3; its log .* ends: failed to initialize",
        ),
        (
            {},
            {"objects": ({**FLOW_SCHEMA, "metadata": {"name": "refused"}},)},
            r"^objects: FlowSchema refused: HTTP 422: .*Required value",
        ),
    ],
)
def test_a_pool_that_cannot_start_says_why_and_leaves_nothing(
    tmp_path: Path, behave: dict[str, str], given: dict[str, Any], message: str
) -> None:
    with pytest.raises((ProcessFailed, ConfigError), match=message):
        Setup(tmp_path, "kube-apiserver", "kube-scheduler", behave=behave, **given).pool.start()
    assert not (tmp_path / "kubeconfig").exists()


def test_a_member_that_does_not_become_ready_is_waited_for_that_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.pool.binaries.servers.READY_WITHIN_S", 1.0)
    made = Setup(tmp_path, "kube-apiserver", behave={"kube_apiserver": "never-ready"})
    with pytest.raises(
        ProcessFailed, match=r"^member-0 at https://127.0.0.1:\d+ did not become ready within"
    ):
        made.pool.start()


def test_a_flag_that_the_binary_does_not_know_is_said_in_its_own_words(tmp_path: Path) -> None:
    made = Setup(tmp_path, "kube-apiserver", flags=("no-such-flag=1",))
    with pytest.raises(ProcessFailed, match="ends: Error: unknown flag: --no-such-flag"):
        made.pool.start()


def test_nothing_outlives_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    made = Setup(tmp_path, "kube-apiserver", "kube-scheduler")
    supervisor = subprocess.Popen(
        [sys.executable, "-m", "harness.pool.supervisor"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert supervisor.stdin is not None
    assert supervisor.stdout is not None
    with supervisor:
        supervisor.stdin.write(msgspec.json.encode(made.options) + b"\n")
        supervisor.stdin.flush()
        ready = json.loads(supervisor.stdout.readline())
        pids = [ready["members"][0]["pid"], *ready["processes"].values()]
        assert len(pids) == 3
        assert all(map(psutil.pid_exists, pids))
        supervisor.kill()
    until(lambda: not any(map(psutil.pid_exists, pids)), "everything has ended with the supervisor")
    shutil.rmtree(Path(ready["signs"]["key"]).parents[1])  # which nobody was left to remove


@pytest.mark.parametrize(
    ("version", "tells"),
    [
        ("v3.4.30", False),
        ("v3.4.31", True),
        ("v3.5.0", False),
        ("v3.5.12", False),
        ("v3.5.13", True),
        ("v3.6.0", True),
        ("of my own making", True),
    ],
)
def test_an_etcd_that_does_not_tell_progress_is_noted(version: str, tells: bool) -> None:
    assert tells_progress(Program("etcd", version)) is tells
