"""The same with real binaries. They run by themselves where TEST_ASSET_KUBE_APISERVER or KUBEBUILDER_ASSETS is set."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.pool.binaries.servers import BinariesPool
from harness.pool.emulated import PoolOptions
from harness.pool.http import call
from harness.pool.restarts import RestartOrder, restart
from harness.transport.kubeconfig import load_kubeconfig

SET = bool(os.environ.get("TEST_ASSET_KUBE_APISERVER") or os.environ.get("KUBEBUILDER_ASSETS"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not SET, reason="no real kube-apiserver: TEST_ASSET_KUBE_APISERVER, KUBEBUILDER_ASSETS"
    ),
]
FLOW_SCHEMA = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "FlowSchema",
    "metadata": {"name": "ours"},
    "spec": {
        "priorityLevelConfiguration": {"name": "workload-low"},
        "matchingPrecedence": 5000,
        "rules": [
            {
                "subjects": [{"kind": "User", "user": {"name": "kubernetes-admin"}}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }
        ],
    },
}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BinariesPool]:
    logs = tmp_path_factory.mktemp("logs")
    options = PoolOptions(backend="binaries", members=2, logs=str(logs), objects=(FLOW_SCHEMA,))
    made = BinariesPool(options, lambda _: None)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def ask(
    pool: BinariesPool, path: str, member: int = 0, method: str = "GET", body: Any = None
) -> tuple[int, bytes]:
    access = load_kubeconfig(pool.kubeconfig, f"member-{member}")
    data = b"" if body is None else json.dumps(body).encode()
    return call(access.host, access.port, access.ssl_context("http/1.1"), "", method, path, data)


def test_members_are_ready_and_share_what_they_store(pool: BinariesPool) -> None:
    assert [ask(pool, "/readyz", member)[0] for member in (0, 1)] == [200, 200]
    made = {"metadata": {"name": "shared"}, "data": {"a": "b"}}
    assert ask(pool, "/api/v1/namespaces/default/configmaps", 0, "POST", made)[0] == 201
    assert ask(pool, "/api/v1/namespaces/default/configmaps/shared", 1)[0] == 200


def test_they_say_the_version_that_the_record_has(pool: BinariesPool) -> None:
    version = json.loads(ask(pool, "/version")[1])["gitVersion"]
    assert pool.describe()["binaries"]["kube-apiserver"]["version"] == version


def test_a_pod_is_admitted_with_the_default_account(pool: BinariesPool) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    status, answer = ask(pool, "/api/v1/namespaces/default/pods", 0, "POST", pod)
    assert status == 201, answer
    assert json.loads(answer)["spec"]["serviceAccountName"] == "default"


def test_flow_schemas_of_ours_are_there_on_each(pool: BinariesPool) -> None:
    path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/ours"
    assert [ask(pool, path, member)[0] for member in (0, 1)] == [200, 200]


def test_they_expose_what_only_a_real_one_has(pool: BinariesPool) -> None:
    metrics = ask(pool, "/metrics")[1].decode()
    assert "\ngo_goroutines " in metrics
    assert "\ngo_memstats_heap_inuse_bytes " in metrics


def test_a_member_comes_back_at_its_address(pool: BinariesPool) -> None:
    before = pool.members[1]
    process, start = pool.part("member-1")
    assert start is not None
    told: list[dict[str, Any]] = []
    restart(RestartOrder("member-1", 1.0, 60.0), process, start, threading.Event(), told.append)
    assert [event["kind"] for event in told] == ["member-ended", "member-restarted"]
    assert pool.members[1].port == before.port
    assert pool.members[1].pid != before.pid
    assert ask(pool, "/readyz", 1)[0] == 200
    assert Path(pool.options.logs, "member-1.log").exists()
