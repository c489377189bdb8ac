"""What stands behind a pool's members: kept between pools, killed and found again, or a real etcd."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from harness.pool.emulated import EmulatedPool, PoolOptions
from harness.pool.etcd import EtcdCluster, find_etcd
from harness.pool.process import Process
from harness.pool.stores import EmbeddedStore, StoreOptions
from harness.wire.errors import ConfigError
from tests.apiserver.store.test_store_contract import a_real_etcd
from tests.conftest import HANG_S

pytestmark = pytest.mark.slow

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


class Client:
    """The administrator of a kubeconfig, at one member."""

    def __init__(self, kubeconfig: str, member: int = 0) -> None:
        config = yaml.safe_load(kubeconfig)
        self.token = config["users"][0]["user"]["token"]
        cluster = config["clusters"][member]["cluster"]
        self.ca = cluster["certificate-authority-data"]
        host, _, port = cluster["server"].removeprefix("https://").partition(":")
        context = ssl._create_unverified_context()
        self._connection = http.client.HTTPSConnection(host, int(port), timeout=HANG_S, context=context)

    def __call__(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        data = answer.read()
        return answer.status, json.loads(data) if data[:1] == b"{" else data

    def create(self, name: str) -> int:
        return self("POST", CONFIGMAPS, {"metadata": {"name": name}, "data": {"a": "b"}})[0]

    def names(self, query: str = "") -> list[str]:
        return [item["metadata"]["name"] for item in self("GET", CONFIGMAPS + query)[1]["items"]]

    @contextmanager
    def watching(self) -> Iterator[tuple[list[str], threading.Thread]]:
        """The names of the events of a watch from now on, as they come; the thread lives as long as the watch."""
        path = f"{CONFIGMAPS}?watch=1&timeoutSeconds=600"
        self._connection.request("GET", path, None, {"Authorization": f"Bearer {self.token}"})
        sock = self._connection.sock
        answer = self._connection.getresponse()
        seen: list[str] = []

        def read() -> None:
            with contextlib.suppress(OSError, ValueError):
                for line in answer:
                    seen.append(json.loads(line)["object"]["metadata"]["name"])

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            yield seen, thread
        finally:
            socket.socket.shutdown(sock, socket.SHUT_RDWR)
            thread.join()
            answer.close()
            self.close()

    def close(self) -> None:
        self._connection.close()


class Pool:
    def __init__(self, options: StoreOptions, members: int = 2) -> None:
        self.events: list[dict[str, Any]] = []
        self.pool = EmulatedPool(
            PoolOptions(members=members, cores="host", store=options), self.events.append
        )
        self.pool.start()
        self.kubeconfig = self.pool.kubeconfig.read_text()
        self.clients = [Client(self.kubeconfig, member) for member in range(members)]

    def wait_for(self, kind: str, process: str) -> None:
        until(lambda: any(event["kind"] == kind and event["process"] == process for event in self.events))

    def wait_ready(self) -> None:
        until(lambda: all(client("GET", "/readyz")[0] == 200 for client in self.clients))


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def running(options: StoreOptions, members: int = 2) -> Iterator[Pool]:
    pool = Pool(options, members)
    try:
        yield pool
    finally:
        for client in pool.clients:
            client.close()
        pool.pool.stop()


def test_a_pool_started_again_has_its_objects_and_knows_its_tokens(tmp_path: Path) -> None:
    options = StoreOptions(data_dir=str(tmp_path / "data"))
    with running(options) as first:
        assert first.clients[0].create("kept") == 201
        account = "/api/v1/namespaces/default/serviceaccounts"
        assert first.clients[0]("POST", account, {"metadata": {"name": "someone"}})[0] == 201
        request: dict[str, Any] = {"spec": {"audiences": []}}
        token = first.clients[0]("POST", f"{account}/someone/token", request)[1]["status"]["token"]
    assert oct((tmp_path / "data" / "keys").stat().st_mode)[-3:] == "700"
    for name in ("admin.token", "token.key", "ca.key", "apiserver.key"):
        assert oct((tmp_path / "data" / "keys" / name).stat().st_mode)[-3:] == "600", name
    with running(options) as second:
        for client in second.clients:
            assert "kept" in client.names()
        assert (second.clients[0].token, second.clients[0].ca) == (
            first.clients[0].token,
            first.clients[0].ca,
        )
        assert second.pool.describe()["store"]["recovered"]["keys"] > 1
        second.clients[0].token = token
        review: dict[str, Any] = {"spec": {}}
        status, answer = second.clients[0](
            "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review
        )
        if status == 201:
            assert answer["status"]["userInfo"]["username"] == "system:serviceaccount:default:someone"
        else:  # at least it is known: a stranger's token is 401
            assert status != 401
    (tmp_path / "data" / "store" / "FORMAT").unlink()
    with pytest.raises(ConfigError, match="FORMAT is missing"):
        Pool(options)


@pytest.fixture
def may_come_back(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Once it is set, a store that ended is started again, and not before."""
    allowed, again = threading.Event(), EmbeddedStore._again

    def await_it(store: EmbeddedStore) -> Process:
        allowed.wait(HANG_S)
        return again(store)

    monkeypatch.setattr(EmbeddedStore, "_again", await_it)
    return allowed


def test_a_store_that_is_killed_comes_back_and_a_watch_goes_on(
    tmp_path: Path, may_come_back: threading.Event
) -> None:
    with (
        running(StoreOptions(data_dir=str(tmp_path / "data"))) as pool,
        Client(pool.kubeconfig, 1).watching() as (seen, thread),
    ):
        created = [f"before-{number}" for number in range(20)]
        for name in created:
            assert pool.clients[0].create(name) == 201
        pid = pool.pool.describe()["store_pid"]
        os.kill(pid, signal.SIGKILL)
        until(lambda: pool.clients[0]("GET", "/readyz")[0] == 500)
        status, answer = pool.clients[0]("POST", CONFIGMAPS, {"metadata": {"name": "lost"}})
        assert status == 500
        assert "code = Unavailable" in answer["message"]
        assert "before-0" in pool.clients[0].names("?resourceVersion=0"), "the cache goes on"
        may_come_back.set()
        pool.wait_for("process-restarted", "store")
        pool.wait_ready()
        assert pool.clients[0].create("after") == 201
        until(lambda: "after" in seen)
        assert [name for name in seen if name.startswith("before")] == created
        assert thread.is_alive(), "the watch has not ended"
        assert set(created) < set(pool.clients[1].names())
        assert pool.pool.describe()["store_pid"] != pid


def test_without_a_folder_a_store_that_is_killed_is_gone(tmp_path: Path) -> None:
    with running(StoreOptions(), 1) as pool:
        os.kill(pool.pool.describe()["store_pid"], signal.SIGKILL)
        pool.wait_for("process-exited", "store")
        until(lambda: pool.clients[0]("GET", "/readyz")[0] == 500)
        assert not any(event["kind"] == "process-restarted" for event in pool.events)


def test_a_pool_over_etcd_of_its_own_survives_the_loss_of_a_member(tmp_path: Path) -> None:
    binary = a_real_etcd()
    options = StoreOptions(etcd_servers="binary=3", etcd_binary=binary)
    with running(options, 3) as pool, Client(pool.kubeconfig, 1).watching() as (seen, _):
        assert pool.clients[0].create("before") == 201
        described = pool.pool.describe()["store"]
        assert described["model"].startswith("off")
        assert [member["name"] for member in described["members"]] == ["etcd-0", "etcd-1", "etcd-2"]
        os.kill(described["members"][1]["pid"], signal.SIGKILL)
        created = [f"during-{number}" for number in range(20)]
        for name in created:  # what a lost leader had not passed on fails after etcd's own timeout, 7 s
            until(lambda name=name: pool.clients[0].create(name) in (201, 409))  # type: ignore[misc]
        pool.wait_for("process-restarted", "etcd-1")
        pool.wait_ready()
        until(lambda: set(created) <= set(seen))
        for client in pool.clients:
            assert {"before", *created} <= set(client.names())
    assert not any(psutil.pid_exists(member["pid"]) for member in described["members"])


def test_without_a_quorum_nothing_is_acknowledged_and_caches_still_answer() -> None:
    options = StoreOptions(etcd_servers="binary=3", etcd_binary=a_real_etcd())
    with running(options, 2) as pool:
        assert pool.clients[0].create("before") == 201
        until(lambda: "before" in pool.clients[1].names("?resourceVersion=0"))
        pids = [member["pid"] for member in pool.pool.describe()["store"]["members"]]
        for pid in pids[:2]:
            os.kill(pid, signal.SIGSTOP)
        try:
            assert pool.clients[0].create("during") in (500, 504)
            assert "before" in pool.clients[0].names("?resourceVersion=0")
        finally:
            for pid in pids[:2]:
                os.kill(pid, signal.SIGCONT)
        pool.wait_ready()
        until(lambda: pool.clients[1].create("after") in (201, 409))
        of_each = [set(client.names()) for client in pool.clients]
        assert of_each[0] == of_each[1], "whether what failed was written is the same for all"
        assert {"before", "after"} <= of_each[0]


def test_a_pool_over_an_etcd_that_runs_leaves_it_running(tmp_path: Path) -> None:
    cluster = EtcdCluster(a_real_etcd(), 1, tmp_path / "etcd", tmp_path, durable=False)
    cluster.start()
    try:
        for round_ in range(2):
            with running(StoreOptions(etcd_servers=cluster.urls[0]), 1) as pool:
                assert pool.clients[0].create(f"round-{round_}") == 201
                names = [name for name in pool.clients[0].names() if name.startswith("round")]
                assert len(names) == round_ + 1
                assert pool.pool.describe()["store"]["servers"] == list(cluster.urls)
    finally:
        cluster.stop()


def test_etcd_goes_when_the_process_that_started_it_is_killed(tmp_path: Path) -> None:
    binary = a_real_etcd()
    script = f"""
import sys, time
from pathlib import Path
from harness.pool.etcd import EtcdCluster
cluster = EtcdCluster({binary!r}, 1, Path({str(tmp_path)!r}) / "etcd", Path({str(tmp_path)!r}), durable=False)
cluster.start()
print(cluster.pid("etcd-0"), flush=True)
time.sleep(600)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    etcd = psutil.Process(int(parent.stdout.readline()))
    guardian = etcd.parent()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    _, left = psutil.wait_procs([etcd, *([guardian] if guardian else [])], timeout=HANG_S)
    assert left == []


def test_a_guardian_that_is_killed_takes_its_program_along(tmp_path: Path) -> None:
    exits: list[int] = []
    cluster = EtcdCluster(
        a_real_etcd(),
        1,
        tmp_path / "etcd",
        tmp_path,
        durable=False,
        on_exit=lambda process, code: exits.append(code),
    )
    cluster.start()
    try:
        etcd = psutil.Process(cluster.pid("etcd-0"))
        guardian = etcd.parent()
        assert guardian is not None
        guardian.kill()
        _, left = psutil.wait_procs([etcd], timeout=HANG_S)
        assert left == []
        until(lambda: exits == [-signal.SIGKILL])
    finally:
        cluster.stop()


def test_a_program_that_cannot_be_run_is_one_clear_line(tmp_path: Path) -> None:
    cluster = EtcdCluster(str(tmp_path / "none"), 1, tmp_path / "etcd", tmp_path)
    with pytest.raises(ConfigError, match="none"):
        cluster.start()


# ---- options ---------------------------------------------------------------------------------------------------------
def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_etcd_is_looked_for_where_kubernetes_test_tools_look(tmp_path: Path) -> None:
    named, asset = executable(tmp_path / "named"), executable(tmp_path / "asset")
    in_assets, on_path = executable(tmp_path / "assets" / "etcd"), executable(tmp_path / "bin" / "etcd")
    environ = {
        "TEST_ASSET_ETCD": str(asset),
        "KUBEBUILDER_ASSETS": str(in_assets.parent),
        "PATH": str(on_path.parent),
    }
    assert find_etcd(str(named), environ) == str(named)
    assert find_etcd("", environ) == str(asset)
    del environ["TEST_ASSET_ETCD"]
    assert find_etcd("", environ) == str(in_assets)
    environ["KUBEBUILDER_ASSETS"] = str(tmp_path)
    assert find_etcd("", environ) == str(on_path)
    with pytest.raises(ConfigError, match=r"of TEST_ASSET_ETCD, is no executable file; give its path"):
        find_etcd("", {"TEST_ASSET_ETCD": str(tmp_path / "none")})


def test_without_any_etcd_it_is_said_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.pool.etcd._of_the_extra", lambda: None)
    with pytest.raises(ConfigError, match=r"there is no binary; .*setup-envtest"):
        find_etcd("", {"PATH": str(tmp_path)})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (StoreOptions(etcd_servers="127.0.0.1:2379"), "is no address of the form"),
        (StoreOptions(etcd_servers="http://a:1,https://b:1"), "all must be http, or all https"),
        (StoreOptions(etcd_servers="http://a:1/path"), "is no address"),
        (StoreOptions(etcd_servers="binary=2"), "1 or 3 members"),
        (StoreOptions(etcd_servers="binary", etcd_binary="/nowhere/etcd"), "is no executable file"),
        (StoreOptions(etcd_servers="http://a:1", data_dir="/tmp/x"), "keeps its data itself"),
        (StoreOptions(etcd_servers="https://a:1", etcd_cafile="/nowhere/ca"), "certificates"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_is_started(options: StoreOptions, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PoolOptions(store=options).validate()


def test_figures_of_the_model_are_for_the_embedded_store() -> None:
    with pytest.raises(ConfigError, match="no figures of the model"):
        PoolOptions(etcd={"fsync_s": 0.1}, store=StoreOptions(etcd_servers="http://a:1")).validate()


def test_a_cluster_keeps_its_ports_with_its_data(tmp_path: Path) -> None:
    first = EtcdCluster("etcd", 3, tmp_path, tmp_path)
    assert EtcdCluster("etcd", 3, tmp_path, tmp_path).members == first.members
    assert len({port for member in first.members for port in (member.client_port, member.peer_port)}) == 6
    with pytest.raises(ConfigError, match="data of 3 members, not of 1"):
        EtcdCluster("etcd", 1, tmp_path, tmp_path)
    with pytest.raises(ConfigError, match="1 or 3"):
        EtcdCluster("etcd", 5, tmp_path, tmp_path)
