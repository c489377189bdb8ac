"""A node that asks before its member's graph knows of its pod: what it hears, by mode, and what is published of it."""

from __future__ import annotations

from typing import Any

import pytest
from fakemember import Server

from harness.apiserver.auth.nodeauthorizer import NodeAuthorizerOptions
from harness.apiserver.auth.nodelag import Lag
from harness.apiserver.auth.nodemisses import OnMiss
from harness.apiserver.clock import Promise
from harness.apiserver.store.core import StoreUnavailable

NS = "/api/v1/namespaces/na"
SECRET = f"{NS}/secrets/s1"
N1, N2 = "system:node:n1", "system:node:n2"


def serving(on_miss: OnMiss, lag_s: float, members: int = 1, **options: Any) -> Server:
    """A member whose graph is `lag_s` late, with a pod that has not been bound yet."""
    settings = NodeAuthorizerOptions(Lag("fixed", lag_s), on_miss)
    server = Server(members, node_authorizer=settings, **options)
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "na"}})
    server.ask("POST", f"{NS}/serviceaccounts", {"metadata": {"name": "default"}})
    server.ask("POST", f"{NS}/secrets", {"metadata": {"name": "s1"}})
    volumes = [{"name": "v", "secret": {"secretName": "s1"}}]
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    assert server.ask("POST", f"{NS}/pods", {"metadata": {"name": "p"}, "spec": spec}).status == 201
    server.settle(max(1.0, 2 * lag_s))
    return server


def bind(server: Server) -> None:
    target = {"target": {"kind": "Node", "name": "n1"}}
    exchange = server.send("POST", f"{NS}/pods/p/binding", target)
    while not exchange.finished:
        server.clock.advance(0.0001)
    assert exchange.status == 201, exchange.data


def misses(server: Server) -> dict[tuple[str, str], float]:
    children = server.member.metrics.swarmlet_node_authorizer_misses_total.children
    return {labels: child.value for labels, child in children.items() if child.value}


def denials(server: Server) -> float:
    return sum(
        child.value for child in server.member.metrics.swarmlet_authorizer_denials_total.children.values()
    )


def answered(server: Server, path: str = SECRET, user: str = N1) -> tuple[int, float]:
    """(status, seconds until the answer)."""
    began = server.clock.now()
    exchange = server.send("GET", path, user=user)
    while not exchange.finished:
        server.clock.advance(0.0001)
    return exchange.status, server.clock.now() - began


def test_deny_refuses_until_the_graph_has_the_binding() -> None:
    server = serving(OnMiss.DENY, 0.02)
    bind(server)
    assert answered(server)[0] == 403
    server.settle(0.03)
    assert answered(server)[0] == 200
    assert misses(server) == {("deny", "denied"): 1}
    assert denials(server) == 1
    server.close()


def test_wait_answers_once_the_graph_has_reached_the_store_s_revision() -> None:
    server = serving(OnMiss.WAIT, 0.02)
    bind(server)
    status, took_s = answered(server)
    assert (status, took_s < 0.03) == (200, True)
    assert misses(server) == {("wait", "allowed"): 1}
    assert denials(server) == 0
    assert server.member.metrics.swarmlet_node_authorizer_miss_wait_seconds.labels().count == 1
    server.close()


def test_wait_gives_up_after_a_tenth_of_a_second() -> None:
    server = serving(OnMiss.WAIT, 2.0)
    bind(server)
    status, took_s = answered(server)
    assert status == 403
    assert took_s == pytest.approx(0.1, abs=0.001)
    assert misses(server) == {("wait", "denied-behind"): 1}
    assert denials(server) == 1
    server.close()


def test_wait_does_not_keep_a_node_waiting_that_has_no_business_there() -> None:
    server = serving(OnMiss.WAIT, 0.0)
    bind(server)
    server.settle(1)
    status, took_s = answered(server, user=N2)
    assert (status, took_s < 0.02) == (403, True)
    assert misses(server) == {("wait", "denied"): 1}
    server.close()


def test_retry_tells_a_node_to_come_again_while_the_graph_is_behind() -> None:
    server = serving(OnMiss.RETRY, 0.5)
    bind(server)
    exchange = server.ask("GET", SECRET, user=N1)
    assert exchange.status == 429
    assert exchange.answer_headers["retry-after"] == "1"
    assert exchange.json["reason"] == "TooManyRequests"
    assert exchange.json["details"]["retryAfterSeconds"] == 1
    server.settle(1)
    assert answered(server)[0] == 200
    assert misses(server) == {("retry", "retry"): 1}
    server.close()


def test_retry_refuses_where_the_graph_has_everything() -> None:
    server = serving(OnMiss.RETRY, 0.0)
    bind(server)
    server.settle(1)
    assert answered(server, user=N2)[0] == 403
    assert misses(server) == {("retry", "denied"): 1}
    server.close()


def test_retry_allows_what_the_graph_has_learnt_while_the_store_was_asked() -> None:
    server = serving(OnMiss.RETRY, 0.0001, members=3)  # a majority must be asked: 0.2 ms and more
    bind(server)
    assert answered(server)[0] == 200
    assert misses(server) == {("retry", "allowed"): 1}
    server.close()


@pytest.mark.parametrize("mode", [OnMiss.WAIT, OnMiss.RETRY])
def test_what_the_graph_does_not_decide_is_refused_at_once(mode: OnMiss) -> None:
    server = serving(mode, 1.0)
    bind(server)
    status, took_s = answered(server, "/api/v1/nodes/n2")
    assert (status, took_s) == (403, 0)
    assert misses(server) == {}
    assert denials(server) == 1
    server.close()


@pytest.mark.parametrize("mode", [OnMiss.WAIT, OnMiss.RETRY])
def test_a_store_that_does_not_answer_leaves_a_refusal(mode: OnMiss, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*arguments: Any) -> Promise[int]:
        promise: Promise[int] = Promise()
        promise.fail(StoreUnavailable("etcdserver: request timed out"))
        return promise

    server = serving(mode, 1.0)
    bind(server)
    monkeypatch.setattr(server.member.storage, "current_revision", lost)
    status, took_s = answered(server)
    assert (status, took_s < 0.05) == (403, True)
    assert misses(server) == {(mode.value, "denied-blind"): 1}


def test_the_read_of_the_store_costs_both_sides() -> None:
    server = serving(OnMiss.RETRY, 0.0, cores=8.0)
    bind(server)
    server.settle(1)
    host = server.member.host
    server.settle(0.5)
    asked = sum(host.busy_of_s(cls) for cls in (0, 2))
    answered(server, user=N2)
    used_us = (sum(host.busy_of_s(cls) for cls in (0, 2)) - asked) * 1e6
    # filters to refusal 130, and 85 + 127 of reading the revision
    assert used_us == pytest.approx(130 + 85 + 127, abs=1)
    server.close()


def staleness(server: Server) -> tuple[float, float]:
    metrics = server.member.metrics
    metrics.render()
    return (
        metrics.swarmlet_node_authorizer_staleness_revisions.labels().value,
        metrics.swarmlet_node_authorizer_staleness_seconds.labels().value,
    )


def test_staleness_is_published_in_revisions_and_seconds() -> None:
    server = serving(OnMiss.DENY, 5.0)
    assert staleness(server) == (0, 0)
    bind(server)
    server.settle(2)
    for i in range(3):
        server.ask("POST", f"{NS}/configmaps", {"metadata": {"name": f"c{i}"}})
    server.settle(1)
    revisions, seconds = staleness(server)
    assert revisions == 4  # the binding, and whatever was written after it
    assert 3 < seconds < 3.2
    answered(server)
    at_miss = server.member.metrics.swarmlet_node_authorizer_miss_staleness_seconds.labels()
    assert at_miss.count == 1
    assert 3 < at_miss.total < 3.3
    server.settle(3)
    assert staleness(server) == (0, 0)
    server.close()


def test_a_stall_with_a_list_catches_up_with_what_has_come_and_gone() -> None:
    server = serving(OnMiss.DENY, 0.0)
    bind(server)
    server.settle(1)
    node = server.member.node_authorizer
    assert answered(server)[0] == 200
    node.stall(20, relist=True)
    assert server.ask("DELETE", f"{NS}/pods/p?gracePeriodSeconds=0").status == 200
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "nodeName": "n2",
        "volumes": [{"name": "v", "secret": {"secretName": "s1"}}],
    }
    assert server.ask("POST", f"{NS}/pods", {"metadata": {"name": "q"}, "spec": spec}).status == 201
    server.settle(10)
    assert answered(server)[0] == 200  # as it was when the watch broke
    assert answered(server, user=N2)[0] == 403
    revisions, seconds = staleness(server)
    assert revisions >= 2
    assert 9 < seconds < 11
    server.settle(11)
    assert answered(server)[0] == 403
    assert answered(server, user=N2)[0] == 200
    assert staleness(server) == (0, 0)
    node.graph.validate()
    server.close()


def test_a_broken_watch_can_be_mended_before_its_time() -> None:
    server = serving(OnMiss.DENY, 0.0)
    server.member.node_authorizer.stall(1000, relist=True)
    bind(server)
    server.settle(1)
    assert answered(server)[0] == 403
    server.member.node_authorizer.stall(0)
    server.settle(0.1)
    assert answered(server)[0] == 200
    server.close()


def test_lag_may_be_changed_while_it_runs_and_put_back() -> None:
    server = serving(OnMiss.DENY, 0.0)
    node = server.member.node_authorizer
    node.set_lag(Lag("fixed", 3.0))
    bind(server)
    server.settle(2)
    assert answered(server)[0] == 403
    server.settle(1.1)
    assert answered(server)[0] == 200
    node.set_lag(None)
    assert node.informer.lag == Lag("fixed", 0.0)
    server.close()


def test_members_differ_by_their_own_informers() -> None:
    server = serving(OnMiss.DENY, 0.0, members=3)
    server.members[1].node_authorizer.stall(10)
    bind(server)
    server.settle(1)
    statuses = [server.ask("GET", SECRET, user=N1, member=member).status for member in range(3)]
    assert statuses == [200, 403, 200]
    server.close()


def test_volumes_and_attachments_reach_the_graph_by_their_own_informers() -> None:
    server = serving(OnMiss.DENY, 0.0)
    attachment = {"metadata": {"name": "va"}, "spec": {"attacher": "d", "nodeName": "n1", "source": {}}}
    attachment["spec"]["source"] = {"persistentVolumeName": "pv"}  # type: ignore[index]
    path = "/apis/storage.k8s.io/v1/volumeattachments"
    assert server.ask("POST", path, attachment).status == 201
    server.settle(0.1)
    assert answered(server, f"{path}/va")[0] == 200
    assert answered(server, f"{path}/va", N2)[0] == 403
    server.ask("DELETE", f"{path}/va")
    server.settle(0.1)
    assert answered(server, f"{path}/va")[0] == 403
    server.close()
