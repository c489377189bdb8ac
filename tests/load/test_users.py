"""What the users of a fleet run: a kubelet, and where asked for a kube-proxy beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.client.content import ACCEPT
from harness.fleet.settings import parse_settings
from harness.load.context import WorkerContext
from harness.load.plan import Plan, Target, TargetMember
from harness.load.users import KubeletUser, Running
from harness.wire.errors import ConfigError


class Kubelet(KubeletUser):
    """As a locustfile has it."""


@pytest.fixture
def contexts() -> Iterator[list[WorkerContext]]:
    made: list[WorkerContext] = []
    yield made
    for context in made:
        context.close()


def build(contexts: list[WorkerContext], **plan: Any) -> list[Running]:
    target = Target((TargetMember("m", "127.0.0.1", 1),), tls=False)
    context = WorkerContext(
        Plan(seed=1, kubelets=1, target=target, **plan), 0, lambda **_: None, lambda kind, fields: None
    )
    contexts.append(context)
    user = object.__new__(Kubelet)
    return user.build(context)


def headers(running: Running) -> dict[str, str]:
    request = running.machine.start(0.0)[0].request  # type: ignore[union-attr]
    head = running.transport.head_of(request, b"host")
    return {name.decode(): value.decode() for name, value in head}


def test_a_kubelet_speaks_as_a_kubelet(contexts: list[WorkerContext]) -> None:
    (kubelet,) = build(contexts)
    sent = headers(kubelet)
    assert sent["user-agent"].startswith("kubelet/v1.36.2 (linux/amd64) ")
    assert sent["accept"] == ACCEPT
    assert sent["impersonate-user"].startswith("system:node:")
    assert sent["impersonate-group"] == "system:nodes"


def test_a_kube_proxy_stands_beside_it_with_its_own_identity_and_connection(
    contexts: list[WorkerContext],
) -> None:
    kubelet, proxy = build(contexts, fleet={"kube_proxy": True})
    assert (kubelet.kind, proxy.kind) == ("", "kube-proxy")
    assert proxy.transport is not kubelet.transport
    sent = headers(proxy)
    assert sent["user-agent"].startswith("kube-proxy/v1.36.2 (linux/amd64) ")
    assert sent["impersonate-user"] == "system:kube-proxy"


def test_what_the_fleet_is_told_reaches_it(contexts: list[WorkerContext]) -> None:
    (kubelet,) = build(contexts, fleet={"content_type": "json"})
    assert headers(kubelet)["accept"] == "application/json"


@pytest.mark.parametrize(("http", "closes"), [("auto", False), ("http/1.1", True)])
def test_http_1_1_closes_connections_when_heartbeats_fail(
    contexts: list[WorkerContext], http: str, closes: bool
) -> None:
    build(contexts, http=http)
    assert contexts[0].kubelet_options.close_on_heartbeat_failure is closes


@pytest.mark.parametrize("has", [True, False])
def test_volumes_wait_for_a_controller_only_where_there_is_one(
    contexts: list[WorkerContext], has: bool
) -> None:
    target = Target((TargetMember("m", "127.0.0.1", 1),), tls=False, has_controllers=has)
    context = WorkerContext(
        Plan(seed=1, kubelets=1, target=target), 0, lambda **_: None, lambda kind, fields: None
    )
    contexts.append(context)
    assert context.kubelet_options.wait_for_attach is has


def test_where_only_some_nodes_have_a_kube_proxy_the_seed_says_which(contexts: list[WorkerContext]) -> None:
    def with_proxy(seed: int) -> list[int]:
        fleet = {"kube_proxy": True, "kube_proxy_one_of": 4}
        target = Target((TargetMember("m", "127.0.0.1", 1),), tls=False)
        plan = Plan(seed=seed, kubelets=40, target=target, fleet=fleet)
        context = WorkerContext(plan, 0, lambda **_: None, lambda kind, fields: None)
        contexts.append(context)
        return [node for node in range(40) if len(object.__new__(Kubelet).build(context)) == 2]

    drawn = with_proxy(1)
    assert 4 <= len(drawn) <= 18
    assert with_proxy(1) == drawn != with_proxy(2)


def test_one_kube_proxy_for_no_node_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="kube_proxy_one_of=0: at least 1"):
        parse_settings(["kube_proxy=true,kube_proxy_one_of=0"])
