"""A pool as its users meet it: `swarmlet pool up`, its kubeconfig, and how all of it ends."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from tests.conftest import HANG_S
from tests.pool.balancer import standin

pytestmark = pytest.mark.slow

UP = [sys.executable, "-c", "from harness.cli import main; main()", "pool", "up", "--cores", "host"]


class Up:
    """`swarmlet pool up`, running in `folder`."""

    def __init__(self, folder: Path, *arguments: str, **environ: str) -> None:
        self.folder = folder
        self.kubeconfig = folder / "swarmlet.kubeconfig"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._output = folder / "out"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [*UP, *arguments],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "TMPDIR": str(self.temporary), "COLUMNS": "200", **environ},
            )
        self.children: list[psutil.Process] = []

    @property
    def output(self) -> str:
        return self._output.read_text()

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + HANG_S
        while text not in self.output:
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.05)
        self.children = psutil.Process(self.process.pid).children(recursive=True)

    def wait_for_children(self, count: int) -> None:
        deadline = time.monotonic() + HANG_S
        while len(self.children) < count:
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            self.children = psutil.Process(self.process.pid).children(recursive=True)
            time.sleep(0.02)

    def end(self, number: int, then: Callable[[], object] = lambda: None) -> int:
        """Send a signal, do something, and wait for the end; a child that is left fails the test."""
        self.process.send_signal(number)
        then()
        code = self.process.wait(HANG_S)
        _, left = psutil.wait_procs(self.children, timeout=HANG_S)
        for process in left:
            process.kill()
        assert left == []
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        psutil.wait_procs(self.children, timeout=HANG_S)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A short path: the store's socket lies in it."""
    path = Path(f"/tmp/swt-{os.getpid()}-{time.monotonic_ns() % 100000}")
    path.mkdir()
    yield path
    shutil.rmtree(path)


def test_a_pool_serves_kubectl_and_the_python_client_and_leaves_nothing(folder: Path) -> None:
    up = Up(folder, "--members", "3")
    try:
        up.wait_for("ready; ")
        assert len(up.children) == 4
        assert set(re.findall(r"member-\d", up.output)) == {"member-0", "member-1", "member-2"}
        assert stat.S_IMODE(up.kubeconfig.stat().st_mode) == 0o600
        contexts = yaml.safe_load(up.kubeconfig.read_text())["contexts"]
        assert [context["name"] for context in contexts] == ["member-0", "member-1", "member-2"]
        _use_python_client(up.kubeconfig)
        if kubectl := shutil.which("kubectl"):
            _use_kubectl(kubectl, up.kubeconfig)
        assert up.end(signal.SIGINT) == 0
        assert not up.kubeconfig.exists()
        assert list(up.temporary.iterdir()) == []
        assert "Traceback" not in up.output
    finally:
        up.close()


def _use_python_client(kubeconfig: Path) -> None:
    """In a process of its own: the client warns as it is imported."""
    script = """
import sys
from kubernetes import client, config, watch
config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()
print(sorted(item.metadata.name for item in core.list_namespace().items))
print(core.list_pod_for_all_namespaces().items)
meta = client.V1ObjectMeta(name="from-python")
core.create_namespaced_config_map("default", client.V1ConfigMap(metadata=meta, data={"a": "b"}))
stream = watch.Watch()
for event in stream.stream(core.list_namespaced_config_map, "default", timeout_seconds=60):
    print(event["type"], event["object"].metadata.name, event["object"].data)
    stream.stop()
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(kubeconfig)],
        capture_output=True,
        text=True,
        timeout=2 * HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['default', 'kube-node-lease', 'kube-public', 'kube-system']",
        "[]",
        "ADDED from-python {'a': 'b'}",
    ]


def _use_kubectl(kubectl: str, kubeconfig: Path) -> None:
    def run(*arguments: str) -> str:
        given = ["--kubeconfig", str(kubeconfig), "--cache-dir", str(kubeconfig.parent / "cache")]
        line = [kubectl, *given, *arguments]
        done = subprocess.run(line, capture_output=True, text=True, timeout=HANG_S, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert "No resources found" in run("get", "nodes")
    assert "created" in run("create", "configmap", "from-kubectl", "--from-literal", "a=b")
    assert "terminationGracePeriodSeconds" in run("explain", "pod.spec")
    for member in ("member-0", "member-1", "member-2"):  # one store behind all
        assert "from-kubectl" in run("--context", member, "get", "configmaps", "-o", "name")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_pool_ends_in_order_on_other_signals_too(folder: Path, number: int) -> None:
    up = Up(folder)
    try:
        up.wait_for("ready; ")
        assert up.end(number) == 0
        assert not up.kubeconfig.exists()
        assert list(up.temporary.iterdir()) == []
    finally:
        up.close()


WAITING = """
import os, sys, time
while "harness.apiserver.process.member" in sys.orig_argv and not os.path.exists(os.environ["MAY_GO_ON"]):
    time.sleep(0.01)
"""


def test_a_signal_during_start_leaves_nothing(folder: Path) -> None:
    """Members come no further than their interpreter's start before the signal, however late that is."""
    (folder / "sitecustomize.py").write_text(WAITING)
    go = folder / "go"
    up = Up(folder, "--members", "2", PYTHONPATH=str(folder), MAY_GO_ON=str(go))
    try:
        up.wait_for_children(3)
        assert up.end(signal.SIGINT, go.touch) == 0
        assert "ready" not in up.output
        assert "Traceback" not in up.output
        assert not up.kubeconfig.exists()
        assert list(up.temporary.iterdir()) == []
    finally:
        up.close()


def test_a_killed_pool_takes_its_processes_along_and_its_kubeconfig_may_be_overwritten(folder: Path) -> None:
    up = Up(folder)
    try:
        up.wait_for("ready; ")
        assert up.end(signal.SIGKILL) == -signal.SIGKILL
        assert up.kubeconfig.exists()
    finally:
        up.close()
    shutil.rmtree(up.temporary)
    again = Up(folder)
    try:
        again.wait_for("ready; ")
        again.end(signal.SIGTERM)
    finally:
        again.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_members_that_stand_still_links_and_a_balancer_end_with_the_pool(folder: Path, number: int) -> None:
    balancer = ("--balancer", "haproxy", "--balancer-binary", standin.install(folder / "bin"))
    links = ("--link", "clients,balancer", "--link", "member-0,store")
    up = Up(folder, "--members", "2", *balancer, *links, "--fault", "pause member=member-1")
    try:
        up.wait_for("member-1: fault pause")
        deadline = time.monotonic() + HANG_S
        pid = int(re.search(r"member-1\s+\S+\s+(\d+)", up.output)[1])  # type: ignore[index]
        while psutil.Process(pid).status() != psutil.STATUS_STOPPED:
            assert time.monotonic() < deadline, "the member goes on"
            time.sleep(0.02)
        assert "clients reach balancer at https://127.0.0.1:" in up.output
        up.children = psutil.Process(up.process.pid).children(recursive=True)
        assert (
            len(up.children) == 8
        )  # the store, two members, two of links, HAProxy and its guardian, the pause
        assert up.end(number) == (0 if number == signal.SIGTERM else -number)
    finally:
        up.close()


def test_a_lost_member_is_said_and_the_others_go_on(folder: Path) -> None:
    up = Up(folder, "--members", "2")
    try:
        up.wait_for("ready; ")
        pid = int(re.search(r"member-1\s+\S+\s+(\d+)", up.output)[1])  # type: ignore[index]
        os.kill(pid, signal.SIGKILL)
        up.wait_for("member-1 ended unasked with code -9")
        assert up.process.poll() is None
        assert up.end(signal.SIGTERM) == 0
    finally:
        up.close()


def test_a_port_that_is_taken_is_one_line(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        up = Up(folder, "--port", str(port))
        try:
            assert up.process.wait(HANG_S) == 2
        finally:
            up.close()
    assert up.output.startswith(f"swarmlet: member-0: cannot listen on 127.0.0.1:{port}: ")
    assert up.output.count("\n") == 1
    assert list(up.temporary.iterdir()) == []
