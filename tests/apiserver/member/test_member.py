"""The member itself: start, system objects, metrics, deadlines, and what happens when something breaks."""

from typing import Any

import pytest
from fakemember import Server

from harness.apiserver.clock import Promise, spawn
from harness.apiserver.store.core import StoreUnavailable
from harness.apiserver.systemobjects import publish_client_ca


def test_the_first_member_makes_the_system_objects_and_the_others_find_them() -> None:
    server = Server(members=3)
    for member in range(3):
        names = [
            item["metadata"]["name"]
            for item in server.ask("GET", "/api/v1/namespaces", member=member).json["items"]
        ]
        assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
        service = server.ask("GET", "/api/v1/namespaces/default/services/kubernetes", member=member).json
        assert service["spec"]["clusterIP"] == "10.0.0.1"
    server.close()


def test_whose_clients_it_takes_is_published_as_upstream_does_without_a_front_proxy() -> None:
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    server = Server(members=2, client_ca=b"ours")
    found = server.ask("GET", path, member=1).json
    assert found["data"] == {"client-ca-file": "ours"}
    for pem in ("theirs", "ours"):
        spawn(publish_client_ca(server.members[1]._registries, pem))
        server.settle()
    assert server.ask("GET", path).json["data"] == {"client-ca-file": "ourstheirs"}
    server.close()
    bare = Server()
    assert bare.ask("GET", path).status == 404
    bare.close()


def test_services_get_addresses_of_their_own(server: Server) -> None:
    addresses = set()
    for index in range(20):
        body = {"metadata": {"name": f"s{index}"}, "spec": {"ports": [{"port": 80}]}}
        created = server.ask("POST", "/api/v1/namespaces/ns/services", body).json
        addresses.add(created["spec"]["clusterIP"])
    assert len(addresses) == 20
    assert all(address.startswith("10.0.") for address in addresses)


def test_node_ports_are_allocated_and_kept(server: Server) -> None:
    services = "/api/v1/namespaces/ns/services"
    body = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    created = server.ask("POST", services, body).json
    assert 30000 <= created["spec"]["ports"][0]["nodePort"] < 32768
    body["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"]
    body["metadata"]["labels"] = {"a": "b"}
    updated = server.ask("PUT", f"{services}/s", body).json
    assert updated["spec"]["ports"] == created["spec"]["ports"]
    assert updated["spec"]["clusterIP"] == created["spec"]["clusterIP"]


def test_a_namespace_goes_when_it_is_finalized(server: Server) -> None:
    deleted = server.ask("DELETE", "/api/v1/namespaces/ns").json
    assert deleted["status"]["phase"] == "Terminating"
    server.settle()
    refused = server.ask("POST", "/api/v1/namespaces/ns/configmaps", {"metadata": {"name": "x"}})
    assert refused.status == 403
    deleted["spec"]["finalizers"] = []
    assert server.ask("PUT", "/api/v1/namespaces/ns/finalize", deleted).status == 200
    assert server.ask("GET", "/api/v1/namespaces/ns").status == 404


def test_metrics_are_for_admins_and_for_monitoring(server: Server) -> None:
    answer = server.ask("GET", "/metrics")
    assert answer.answer_headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    line = (
        'apiserver_request_total{verb="POST",dry_run="",group="",version="v1",resource="namespaces",subresource="",'
        'scope="resource",component="apiserver",code="201"} 1'
    )
    assert line in answer.data.decode()
    monitoring = {"impersonate-group": "system:monitoring"}
    assert server.ask("GET", "/metrics", user="prometheus", headers=monitoring).status == 200
    assert server.ask("GET", "/metrics", user="someone").status == 403


def test_a_request_ends_at_its_deadline(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.member.storage, "txn", lambda txn, cost_us: Promise())
    path = "/api/v1/namespaces/ns/configmaps?timeout=10s"
    sent = server.send("POST", path, {"metadata": {"name": "x"}})
    server.settle(9.9)
    assert not sent.finished
    server.settle(0.2)
    assert sent.status == 504
    assert sent.json["message"] == "Timeout: request did not complete within the allotted timeout"
    assert sum(level.queues.executing for level in server.member.flow.levels.values()) == 0
    bad = server.ask("GET", "/api/v1/nodes?timeout=soon")
    assert bad.status == 400


def test_without_its_store_a_member_is_not_ready_and_says_why(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*arguments: Any) -> Promise[Any]:
        promise: Promise[Any] = Promise()
        promise.fail(StoreUnavailable("etcdserver: request timed out"))
        return promise

    monkeypatch.setattr(server.member.storage, "get", lost)
    monkeypatch.setattr(server.member.storage, "txn", lost)
    answer = server.ask("GET", "/api/v1/namespaces/ns/configmaps/x")
    assert (answer.status, answer.json["message"]) == (500, "etcdserver: request timed out")
    assert server.ask("POST", "/api/v1/namespaces/ns/configmaps", {"metadata": {"name": "x"}}).status == 500
    server.member.storage.on_interrupted(StoreUnavailable("gone"))
    ready = server.ask("GET", "/readyz?verbose")
    assert ready.status == 500
    assert b"[-]etcd failed: reason withheld" in ready.data
    assert server.ask("GET", "/readyz/etcd").status == 500
    assert server.ask("GET", "/readyz/ping").status == 200


def test_a_fault_of_ours_is_an_internal_error_and_one_line_in_the_log(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*arguments: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(server.member.router, "find", broken)
    answer = server.ask("GET", "/api/v1/nodes")
    assert answer.status == 500
    assert answer.json["reason"] == "InternalError"
    log = capsys.readouterr().err
    assert log.count("\n") == 1
    assert "RuntimeError: broken" in log


def test_a_client_that_leaves_gives_its_seats_back(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.member.storage, "get", lambda key: Promise())
    sent = server.send("GET", "/api/v1/namespaces/ns/configmaps/x", user="system:kube-scheduler")
    server.settle()
    sent = server.send("GET", "/api/v1/namespaces/ns/configmaps/x")
    server.settle()
    sent.leave()
    server.settle()
    assert sum(level.queues.executing for level in server.member.flow.levels.values()) == 0
    assert not sent.finished


def test_flow_control_turns_away_with_plain_text() -> None:
    server = Server(server_concurrency=1, cores=0.05)
    rejected = []
    sent = [server.send("GET", "/api/v1/nodes", user="someone") for _ in range(400)]
    rejected = [exchange for exchange in sent if exchange.status == 429]
    assert rejected
    assert rejected[0].data == b"Too many requests, please try again later.\n"
    headers = rejected[0].answer_headers
    assert headers["retry-after"] == "1"
    assert headers["content-type"] == "text/plain; charset=utf-8"
    assert "x-kubernetes-pf-prioritylevel-uid" in headers
    server.close()


def test_modelled_cores_decide_how_long_requests_take() -> None:
    took = {}
    for cores in (1.0, 0.1):
        server = Server(cores=cores)
        at = server.clock.now()
        sent = [server.send("GET", "/api/v1/nodes?resourceVersion=0") for _ in range(100)]
        while not all(exchange.finished for exchange in sent):
            server.settle(0.001)
        took[cores] = server.clock.now() - at
        server.close()
    assert took[0.1] > 8 * took[1.0]
