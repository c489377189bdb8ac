"""Every verb, on a namespaced and on a cluster-scoped resource."""

import pytest
from fakemember import Server

NAMESPACED = (
    "/api/v1/namespaces/ns/configmaps",
    {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}, "data": {"k": "v"}},
)
CLUSTER = (
    "/apis/node.k8s.io/v1/runtimeclasses",
    {"kind": "RuntimeClass", "apiVersion": "node.k8s.io/v1", "metadata": {"name": "x"}, "handler": "runc"},
)
BOTH = pytest.mark.parametrize(("collection", "body"), [NAMESPACED, CLUSTER], ids=["namespaced", "cluster"])


@BOTH
def test_an_object_lives_from_create_to_delete(server: Server, collection: str, body: dict) -> None:
    created = server.ask("POST", collection, body)
    assert created.status == 201
    assert list(created.json)[:3] == ["kind", "apiVersion", "metadata"]
    read = server.ask("GET", f"{collection}/x")
    assert (read.status, read.json) == (200, created.json)

    changed = {**created.json, "metadata": {**created.json["metadata"], "labels": {"a": "b"}}}
    replaced = server.ask("PUT", f"{collection}/x", changed)
    assert replaced.status == 200
    assert replaced.json["metadata"]["labels"] == {"a": "b"}
    assert replaced.json["metadata"]["uid"] == created.json["metadata"]["uid"]
    assert server.ask("PUT", f"{collection}/x", changed).status == 409

    patch = {"metadata": {"annotations": {"c": "d"}}}
    patched = server.ask(
        "PATCH", f"{collection}/x", patch, headers={"content-type": "application/merge-patch+json"}
    )
    assert patched.json["metadata"]["annotations"] == {"c": "d"}
    assert [item["metadata"]["name"] for item in server.ask("GET", collection).json["items"]] == ["x"]

    assert server.ask("DELETE", f"{collection}/x").status == 200
    assert server.ask("GET", f"{collection}/x").status == 404


@BOTH
def test_a_collection_is_deleted_by_selector(server: Server, collection: str, body: dict) -> None:
    for name, labels in (("a", {"t": "1"}), ("b", {"t": "2"}), ("c", {"t": "1"})):
        server.ask("POST", collection, {**body, "metadata": {"name": name, "labels": labels}})
    deleted = server.ask("DELETE", f"{collection}?labelSelector=t%3D1")
    assert [item["metadata"]["name"] for item in deleted.json["items"]] == ["a", "c"]
    left = server.ask("GET", collection).json["items"]
    assert [item["metadata"]["name"] for item in left] == ["b"]


@BOTH
def test_a_watch_sees_each_change(server: Server, collection: str, body: dict) -> None:
    watch = server.send("GET", f"{collection}?watch=true&resourceVersion=0")
    server.settle()
    server.ask("POST", collection, body)
    server.ask("DELETE", f"{collection}/x")
    server.settle()
    assert [event["type"] for event in watch.events] == ["ADDED", "DELETED"]
    first, last = (int(event["object"]["metadata"]["resourceVersion"]) for event in watch.events)
    assert first < last


def test_an_update_that_changes_nothing_writes_nothing(server: Server) -> None:
    collection, body = NAMESPACED
    created = server.ask("POST", collection, body).json
    again = server.ask("PUT", f"{collection}/x", created).json
    assert again["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


def test_a_generated_name_has_five_characters_more(server: Server) -> None:
    collection, body = NAMESPACED
    names = [
        server.ask("POST", collection, {**body, "metadata": {"generateName": "gen-"}}).json["metadata"][
            "name"
        ]
        for _ in range(3)
    ]
    assert len(set(names)) == 3
    assert all(name.startswith("gen-") and len(name) == 9 for name in names)


def test_a_generated_name_that_exists_is_drawn_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    collection, body = NAMESPACED
    drawn = iter(["taken", "taken", "freed"])
    monkeypatch.setattr("harness.apiserver.strategies.base.suffix", lambda rng: next(drawn))
    first = server.ask("POST", collection, {**body, "metadata": {"generateName": "g-"}})
    second = server.ask("POST", collection, {**body, "metadata": {"generateName": "g-"}})
    assert first.json["metadata"]["name"] == "g-taken"
    assert second.json["metadata"]["name"] == "g-freed"


def test_a_generated_name_that_always_exists_is_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection, body = NAMESPACED
    monkeypatch.setattr("harness.apiserver.strategies.base.suffix", lambda rng: "taken")
    server.ask("POST", collection, {**body, "metadata": {"generateName": "g-"}})
    refused = server.ask("POST", collection, {**body, "metadata": {"generateName": "g-"}})
    assert (refused.status, refused.json["reason"]) == (409, "AlreadyExists")
    assert refused.json["message"].endswith(
        '"g-taken" already exists, the server was not able to generate a unique name for the object'
    )
    assert refused.json["details"]["retryAfterSeconds"] == 1
    assert refused.answer_headers["retry-after"] == "1"


def test_orphans_are_asked_for_in_one_way_only(server: Server) -> None:
    collection, body = NAMESPACED
    server.ask("POST", collection, {**body, "metadata": {"name": "x"}})
    both = server.ask("DELETE", collection + "/x?orphanDependents=true&propagationPolicy=Orphan")
    assert both.status == 422
    assert "orphanDependents and deletionPropagation cannot be both set" in both.json["message"]
    orphan = server.ask("DELETE", collection + "/x?orphanDependents=true")
    assert orphan.json["metadata"]["finalizers"] == ["orphan"]
    assert server.ask("DELETE", collection + "/x?orphanDependents=false").json["status"] == "Success"
    assert server.ask("GET", collection + "/x").status == 404


def test_a_collection_is_deleted_under_a_policy(server: Server) -> None:
    collection, body = NAMESPACED
    for name in ("x", "y"):
        server.ask("POST", collection, {**body, "metadata": {"name": name}})
    server.ask("DELETE", collection, {"propagationPolicy": "Foreground"})
    items = server.ask("GET", collection).json["items"]
    assert [item["metadata"]["finalizers"] for item in items] == [["foregroundDeletion"]] * 2
    server.ask("DELETE", collection, {"propagationPolicy": "Background"})
    assert server.ask("GET", collection).json["items"] == []


def test_of_two_updates_on_one_version_the_second_conflicts(server: Server) -> None:
    collection, body = NAMESPACED
    created = server.ask("POST", collection, body).json
    one = server.send("PUT", f"{collection}/x", {**created, "data": {"k": "1"}})
    two = server.send("PUT", f"{collection}/x", {**created, "data": {"k": "2"}})
    server.settle(1)
    assert [one.status, two.status] == [200, 409]


def test_patches_at_once_are_all_applied(server: Server) -> None:
    collection, body = NAMESPACED
    server.ask("POST", collection, body)
    merge = {"content-type": "application/merge-patch+json"}
    sent = [
        server.send("PATCH", f"{collection}/x", {"data": {f"k{i}": "v"}}, headers=merge) for i in range(10)
    ]
    server.settle(1)
    assert {exchange.status for exchange in sent} == {200}
    assert len(server.ask("GET", f"{collection}/x").json["data"]) == 11


def test_a_lease_is_created_by_put_and_needs_a_version_then(server: Server) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l"
    lease = {"metadata": {"name": "l", "namespace": "ns"}, "spec": {"holderIdentity": "a"}}
    created = server.ask("PUT", path, lease)
    assert created.status == 201
    refused = server.ask("PUT", path, lease)
    assert refused.status == 422
    assert (
        "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update"
        in refused.json["message"]
    )
    assert server.ask("PUT", path, created.json).status == 200


def test_every_answer_names_its_flow_and_has_an_audit_id(server: Server) -> None:
    for path in ("/api/v1/nodes", "/api/v1/nodes/none", "/healthz", "/nothing"):
        headers = server.ask("GET", path).answer_headers
        assert headers["cache-control"] == "no-cache, private"
        assert {
            "audit-id",
            "content-type",
            "x-kubernetes-pf-flowschema-uid",
            "x-kubernetes-pf-prioritylevel-uid",
        } <= headers.keys()


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/api/v1/namespaces", "/api/v1/namespaces/ns", "/api/v1/nodes?watch=1"])
def test_resources_have_no_other_methods(server: Server, method: str, path: str) -> None:
    answer = server.ask(method, path)
    assert answer.status == 405
    assert bool(answer.data) is (method != "HEAD")


def test_health_is_asked_by_head_too(server: Server) -> None:
    answer = server.ask("HEAD", "/healthz")
    assert (answer.status, answer.data) == (200, b"")
