"""What the users of a worker get: names, labels, connections, a way to ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from gevent.event import AsyncResult

from harness.client.requests import NODES, get_
from harness.clusterloader.objects import ObjectApi
from harness.clusterloader.tasks import Tasks
from harness.load import context as contexts
from harness.load.context import WorkerContext
from harness.load.plan import Identity, Plan, Target, TargetMember
from harness.transport.credentials import Credentials
from harness.transport.pool import Transport
from harness.wire.request import Response
from tests.conftest import HANG_S
from tests.load.cluster.conftest import Api

NODE, GROUPS = "system:node:n1", ("system:nodes",)


@pytest.fixture
def api() -> Iterator[Api]:
    made = Api()
    made.answer = lambda method, path, query, body: (401, {}) if path == "/401" else (200, {"path": path})
    yield made
    made.close()


class Worker:
    def __init__(self, api: Api, **plan: Any) -> None:
        target = Target((TargetMember("m", "127.0.0.1", api.port),), tls=False, token="admins")
        self.told: list[str] = []
        self.fired: list[dict[str, Any]] = []
        self.context = WorkerContext(
            Plan(seed=1, kubelets=5, target=target, run="r1", **plan),
            2,
            lambda **fields: self.fired.append(fields),
            lambda kind, fields: self.told.append(kind),
        )

    def send(self, transport: Transport, path: str = "/x") -> int:
        result: AsyncResult = AsyncResult()
        request = msgspec.structs.replace(get_(NODES, None, "n"), path=path, timeout_s=HANG_S)
        transport.unary(request, result.set)
        answer = result.get()
        assert isinstance(answer, Response), answer
        transport.close_connections()
        return answer.status


@pytest.fixture
def start(api: Api) -> Iterator[Any]:
    workers: list[Worker] = []

    def make(**plan: Any) -> Worker:
        workers.append(Worker(api, **plan))
        return workers[-1]

    yield make
    for worker in workers:
        worker.context.close()


def test_nodes_carry_the_runs_label(start: Any) -> None:
    worker = start()
    assert worker.context.kubelet_options.labels == (("swarmlet.io/run", "r1"),)
    own = start(fleet={"labels": [["zone", "a"], ["swarmlet.io/run", "mine"]]})  # as it comes out of a plan
    assert dict(own.context.kubelet_options.labels) == {"swarmlet.io/run": "r1", "zone": "a"}
    assert [worker.context.nodes.take(replaces=False) for _ in range(2)] == ["swarmlet-2-0", "swarmlet-2-1"]


def test_objects_of_a_scenario_carry_it_beside_their_own() -> None:
    tasks = Tasks()
    objects = ObjectApi(tasks, ("main",), (("swarmlet.io/run", "r1"),))
    for labels in ({}, {"labels": None}, {"labels": {"app": "x"}}):
        body = msgspec.json.encode({"metadata": {"name": "p", **labels}})
        tasks.spawn(objects.create(NODES, "", body))
    tasks.run()
    sent = [msgspec.json.decode(action.request.body)["metadata"]["labels"] for action in tasks.take()]
    assert sent == [
        {"swarmlet.io/run": "r1"},
        {"swarmlet.io/run": "r1"},
        {"app": "x", "swarmlet.io/run": "r1"},
    ]


def test_a_node_is_impersonated_with_the_runs_token(api: Api, start: Any) -> None:
    worker = start()
    transport = worker.context.transport("kubelet", NODE, GROUPS)
    worker.send(transport)
    headers = api.headers[0]
    assert (headers["impersonate-user"], headers["impersonate-group"]) == (NODE, "system:nodes")
    assert headers["authorization"] == "Bearer admins"
    assert headers["user-agent"] == "kubelet/v1.36.2 (linux/amd64) swarmlet"
    transport.close()


def test_a_nodes_own_token_takes_the_place_of_the_runs(api: Api, start: Any) -> None:
    worker = start(identity=Identity("token", {"n1": "own"}))
    transport = worker.context.transport("kubelet", NODE, GROUPS)
    worker.context.refresh(Credentials("fresh"))
    worker.send(transport)
    assert api.headers[0]["authorization"] == "Bearer own"
    assert api.headers[0]["impersonate-user"] is None
    transport.close()


def test_fresh_credentials_reach_connections_that_are_open(api: Api, start: Any) -> None:
    worker = start()
    transport = worker.context.transport("clusterloader")
    worker.send(transport)
    worker.context.refresh(Credentials("fresh"))
    worker.send(transport)
    assert [headers["authorization"] for headers in api.headers] == ["Bearer admins", "Bearer fresh"]
    transport.close()


def test_a_refusal_is_told_once_in_a_while(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "REFUSED_TOLD_EVERY_S", HANG_S)
    worker = start()
    transport = worker.context.transport("clusterloader")
    assert [worker.send(transport, "/401") for _ in range(3)] == [401, 401, 401]
    assert worker.told == ["credentials-refused"]
    transport.close()


def test_clients_of_one_name_draw_their_members_apart(start: Any) -> None:
    """All nodes' kube-proxies are one user; they must not all go to one member."""
    worker = start()
    transports = [worker.context.transport("kube-proxy", "system:kube-proxy") for _ in range(20)]
    draws = {transport._rng.random() for transport in transports}
    assert len(draws) == 20
    for transport in transports:
        transport.close()


def test_what_is_asked_on_the_runs_own_account_is_counted(api: Api, start: Any) -> None:
    worker = start()
    answer = worker.context.ask(get_(NODES, None, "n1"))
    assert answer.status == 200
    assert [row[1:5] for row in worker.context.report()["requests"]] == [("bootstrap", "get", "nodes", 200)]
    assert worker.fired[0]["name"] == "nodes"


def test_what_became_of_connections_is_reported_once(start: Any) -> None:
    worker = start()
    transport = worker.context.transport("clusterloader")
    worker.send(transport)
    assert worker.context.report()["connections"] == {"m": {"dialled": 1, "closed": 1}}
    assert worker.context.report()["connections"] == {}
    transport.close()
