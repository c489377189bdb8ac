"""Objects that a pool is given once it is ready: read from a file, applied where discovery says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.pool.emulated import EmulatedPool, PoolOptions
from harness.pool.http import call
from harness.pool.objects import apply_objects, read_objects
from harness.pool.process import ProcessFailed
from harness.transport.kubeconfig import load_kubeconfig
from harness.wire.errors import ConfigError

FLOW_SCHEMA = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "FlowSchema",
    "metadata": {"name": "ours"},
}
QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "n"}}
DISCOVERY = {
    "/apis/flowcontrol.apiserver.k8s.io/v1": [
        {"name": "flowschemas/status", "kind": "FlowSchema"},
        {"name": "flowschemas", "kind": "FlowSchema", "namespaced": False},
    ],
    "/api/v1": [{"name": "resourcequotas", "kind": "ResourceQuota", "namespaced": True}],
}


class Server:
    """Answers as its discovery says; the first `missing` applications are answered `early`."""

    def __init__(self, missing: int = 0, status: int = 200, early: int = 404) -> None:
        self.missing = missing
        self.early = early
        self.status = status
        self.applied: list[tuple[str, str, Any]] = []

    def __call__(self, method: str, path: str, body: bytes, content_type: str) -> tuple[int, bytes]:
        if method == "GET":
            found = DISCOVERY.get(path)
            return (404, b"404") if found is None else (200, json.dumps({"resources": found}).encode())
        if self.missing:
            self.missing -= 1
            return self.early, b'namespaces "n" not found'
        self.applied.append((path, content_type, json.loads(body)))
        return self.status, b"no such level"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.pool.objects._LOOK_EVERY_S", 0.0)


def test_each_is_applied_where_its_kind_is(tmp_path: Path) -> None:
    path = tmp_path / "objects.yaml"
    path.write_text(
        f"---\n{json.dumps(FLOW_SCHEMA)}\n---\n{json.dumps({'kind': 'List', 'items': [QUOTA]})}\n---\n"
    )
    server = Server()
    apply_objects(read_objects(str(path)), server)
    query = "?fieldManager=swarmlet&force=true"
    assert server.applied == [
        (
            f"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/ours{query}",
            "application/apply-patch+yaml",
            FLOW_SCHEMA,
        ),
        (f"/api/v1/namespaces/n/resourcequotas/q{query}", "application/apply-patch+yaml", QUOTA),
    ]


@pytest.mark.parametrize("early", [404, 429, 503])
def test_a_namespace_that_is_not_there_yet_and_a_server_that_is_busy_are_waited_for(early: int) -> None:
    server = Server(missing=2, early=early)
    apply_objects([QUOTA], server)
    assert len(server.applied) == 1


@pytest.mark.parametrize(
    ("made", "server", "message"),
    [
        (QUOTA, Server(missing=9), r'^objects: ResourceQuota q: HTTP 404: namespaces "n" not found$'),
        (QUOTA, Server(status=422), r"^objects: ResourceQuota q: HTTP 422: no such level$"),
        ({**QUOTA, "kind": "Quota"}, Server(), r"HTTP 404: v1 has no kind Quota$"),
        ({**QUOTA, "apiVersion": "a/v1"}, Server(), r"HTTP 404: 404$"),
    ],
)
def test_what_is_refused_is_said_with_the_answer(made: Any, server: Server, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        apply_objects([made], server, within_s=0.0)


def test_a_member_that_does_not_answer_is_the_pool_s_failure() -> None:
    def no_answer(*_: object) -> tuple[int, bytes]:
        raise ConnectionRefusedError("connection refused")

    with pytest.raises(ProcessFailed, match="objects: ResourceQuota q: no answer: connection refused"):
        apply_objects([QUOTA], no_answer)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: [", "is not YAML"),
        ("\x00", "is not YAML"),
        ("just words", "object 1 has no apiVersion"),
        (f"{json.dumps(QUOTA)}\n---\napiVersion: v1\nkind: Secret", "object 2 has no apiVersion"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: 5}", "object 1 has no"),
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: s}", "object 1 is a Secret"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "objects.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_objects(str(path))
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_objects(str(tmp_path / "none"))


@pytest.mark.slow
def test_an_emulated_pool_has_them_when_it_is_ready() -> None:
    spec = {"priorityLevelConfiguration": {"name": "workload-low"}, "matchingPrecedence": 5000}
    options = PoolOptions(cores="host", objects=({**FLOW_SCHEMA, "spec": spec},))
    pool = EmulatedPool(options, lambda _: None)
    try:
        pool.start()
        access = load_kubeconfig(pool.kubeconfig)
        path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/ours"
        context = access.ssl_context("http/1.1")
        status, body = call(access.host, access.port, context, access.token, "GET", path)
        assert (status, json.loads(body)["spec"]["matchingPrecedence"]) == (200, 5000)
    finally:
        pool.stop()
