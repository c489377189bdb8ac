"""Server-side apply through a member, and what other writes do to objects that were applied."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakemember import FakeExchange, Server

from harness.apiserver.handlers.call import manager_of

MAPS = "/api/v1/namespaces/ns/configmaps"
PODS = "/api/v1/namespaces/ns/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/ns/deployments"


def config(name: str = "a", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": containers, **spec},
    }


def apply(server: Server, path: str, body: Any, query: str = "fieldManager=me", **more: Any) -> FakeExchange:
    headers = {"content-type": "application/apply-patch+yaml", **more.pop("headers", {})}
    return server.ask("PATCH", f"{path}?{query}", body, headers=headers, **more)


def patch(server: Server, path: str, body: Any, kind: str = "merge", **headers: str) -> FakeExchange:
    sent = {"content-type": f"application/{kind}-patch+json", **headers}
    return server.ask("PATCH", path, body, headers=sent)


def managers(answer: FakeExchange) -> list[tuple[str, str, str]]:
    return [
        (entry["manager"], entry["operation"], entry.get("subresource", ""))
        for entry in answer.json["metadata"].get("managedFields") or ()
    ]


def test_an_object_is_created_changed_and_left_alone(server: Server) -> None:
    created = apply(server, MAPS + "/a", config(x="1", y="1"))
    assert (created.status, created.json["data"]) == (201, {"x": "1", "y": "1"})
    assert managers(created) == [("me", "Apply", "")]
    changed = apply(server, MAPS + "/a", config(y="2"))
    assert (changed.status, changed.json["data"]) == (200, {"y": "2"})
    again = apply(server, MAPS + "/a", config(y="2"))
    assert again.data == changed.data
    assert server.ask("GET", MAPS + "/a").data == changed.data


def test_yaml_is_applied_as_json_is(server: Server) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: '1'\n"
    assert apply(server, MAPS + "/a", text).json["data"] == {"x": "1"}


def test_a_conflict_names_fields_and_managers(server: Server) -> None:
    apply(server, MAPS + "/a", config(x="1"))
    refused = apply(server, MAPS + "/a", config(x="2"), "fieldManager=you")
    assert refused.status == 409
    assert refused.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Apply failed with 1 conflict: conflict with "me": .data.x',
        "reason": "Conflict",
        "details": {
            "causes": [
                {"reason": "FieldManagerConflict", "message": 'conflict with "me"', "field": ".data.x"}
            ]
        },
        "code": 409,
    }
    forced = apply(server, MAPS + "/a", config(x="2"), "fieldManager=you&force=true")
    assert (forced.status, forced.json["data"]) == (200, {"x": "2"})
    assert managers(forced) == [("you", "Apply", "")]


@pytest.mark.parametrize(
    ("query", "causes"),
    [
        ("", [("fieldManager", "Required value: is required for apply patch")]),
        ("fieldManager=" + "x" * 129, [("fieldManager", "Too long: may not be more than 128 bytes")]),
        (
            "fieldManager=a%07",
            [("fieldManager", 'Invalid value: "a\\a": invalid character U+0007 (at position 1)')],
        ),
        ("fieldManager=me&dryRun=Some", [("dryRun", 'Unsupported value: ["Some"]: supported values: "All"')]),
    ],
)
def test_options_that_are_refused(server: Server, query: str, causes: list[tuple[str, str]]) -> None:
    refused = apply(server, MAPS + "/a", config(), query)
    assert refused.status == 422
    assert [(cause["field"], cause["message"]) for cause in refused.json["details"]["causes"]] == causes


def test_force_is_for_apply_alone(server: Server) -> None:
    apply(server, MAPS + "/a", config())
    refused = patch(server, MAPS + "/a?force=true", {})
    assert refused.json["details"]["causes"][0]["message"] == (
        "Forbidden: may not be specified for non-apply patch"
    )


def test_a_patch_type_that_is_not_served(server: Server) -> None:
    headers = {"content-type": "application/apply-patch+cbor"}
    refused = server.ask("PATCH", MAPS + "/a?fieldManager=me", "{}", headers=headers)
    assert (refused.status, refused.json["reason"]) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        ("{", 400, "error encoding patch: error converting YAML to JSON: yaml: "),
        (
            "[]",
            400,
            (
                "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into "
                "Go value of type map[string]interface {}"
            ),
        ),
        ("", 400, "invalid object type: /, Kind="),
        (
            {"apiVersion": "apps/v1", "kind": "Deployment"},
            400,
            "invalid object type: apps/v1, Kind=Deployment",
        ),
        (config("b"), 400, "the name of the object (b) does not match the name on the URL (a)"),
        (
            {"apiVersion": "v1", "kind": "ConfigMap"},
            400,
            "the name of the object (a based on URL) was undeterminable: name must be provided",
        ),
        (
            {**config(), "metadata": {"name": "a", "namespace": "other"}},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            {**config(), "metadata": {"name": "a", "uid": "u"}},
            409,
            (
                'Operation cannot be fulfilled on configmaps "a": uid mismatch: the provided object specified uid u, '
                "and no existing object was found"
            ),
        ),
        (
            {**config(), "metadata": {"name": "a", "managedFields": []}},
            400,
            "metadata.managedFields must be nil",
        ),
        (
            {**config(), "data": {"x": 1}},
            500,
            (
                "failed to create typed patch object (/a; v1, Kind=ConfigMap): .data.x: expected string, got "
                "&value.valueUnstructured{Value:1}"
            ),
        ),
    ],
)
def test_what_cannot_be_applied(server: Server, body: Any, code: int, text: str) -> None:
    refused = apply(server, MAPS + "/a", body)
    assert (refused.status, refused.json["message"][: len(text)]) == (code, text)


def test_versions_and_uids_are_preconditions(server: Server) -> None:
    created = apply(server, MAPS + "/a", config(x="1")).json["metadata"]
    stale = {**config(x="2"), "metadata": {"name": "a", "resourceVersion": "1"}}
    assert apply(server, MAPS + "/a", stale).status == 409
    current = {
        "name": "a",
        "namespace": "ns",
        "resourceVersion": created["resourceVersion"],
        "uid": created["uid"],
    }
    assert apply(server, MAPS + "/a", {**config(x="2"), "metadata": current}).status == 200
    other = {"name": "a", "uid": "00000000-0000-4000-8000-000000000000"}
    assert apply(server, MAPS + "/a", {**config(x="3"), "metadata": other}).status == 409


def test_a_dry_run_writes_nothing(server: Server) -> None:
    dry = apply(server, MAPS + "/a", config(x="1"), "fieldManager=me&dryRun=All")
    assert (dry.status, dry.json["data"]) == (201, {"x": "1"})
    assert server.ask("GET", MAPS + "/a").status == 404
    apply(server, MAPS + "/a", config(x="1"))
    dry = apply(server, MAPS + "/a", config(x="2"), "fieldManager=me&dryRun=All")
    assert (dry.status, dry.json["data"]) == (200, {"x": "2"})
    assert server.ask("GET", MAPS + "/a").json["data"] == {"x": "1"}


TWICE = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1"},"data":{"x":"2"}}'


def test_keys_that_occur_twice_are_warned_of_or_refused(server: Server) -> None:
    strict = apply(server, MAPS + "/a", TWICE, "fieldManager=me&fieldValidation=Strict")
    assert strict.status == 400
    fault = 'error converting YAML to JSON: yaml: unmarshal errors:\n  line 1: key "data" already set in map'
    assert strict.json["message"] == "error strict decoding patch: " + fault
    warned = apply(server, MAPS + "/a", TWICE)
    assert (warned.status, warned.json["data"]) == (201, {"x": "2"})
    assert 'key \\"data\\" already set' in warned.answer_headers["warning"]
    silent = apply(server, MAPS + "/a", TWICE, "fieldManager=me&fieldValidation=Ignore")
    assert "warning" not in silent.answer_headers


def test_what_was_created_otherwise_is_not_tracked_until_it_is_applied(server: Server) -> None:
    server.ask("POST", PODS, pod())
    assert managers(patch(server, PODS + "/p", {"metadata": {"labels": {"a": "b"}}})) == []
    applied = apply(server, PODS + "/p", pod())
    assert managers(applied) == [("me", "Apply", ""), ("before-first-apply", "Update", "")]
    owned = applied.json["metadata"]["managedFields"][0]["fieldsV1"]
    port = 'k:{"containerPort":80,"protocol":"TCP"}'
    assert owned["f:spec"]["f:containers"]['k:{"name":"c"}']["f:ports"] == {
        port: {".": {}, "f:containerPort": {}}
    }


def test_later_writes_are_tracked_under_their_managers(server: Server) -> None:
    apply(server, MAPS + "/a", config(x="1", y="1"))
    edited = patch(server, MAPS + "/a?fieldManager=kubectl-edit", {"data": {"x": "2"}})
    assert managers(edited) == [("me", "Apply", ""), ("kubectl-edit", "Update", "")]
    by_agent = {"user-agent": "my-controller/v1 (linux)"}
    again = patch(server, MAPS + "/a", {"data": {"z": "1"}}, **by_agent)
    assert managers(again)[-1] == ("my-controller", "Update", "")
    whole = {**again.json, "data": {"x": "3"}}
    put = server.ask("PUT", MAPS + "/a", whole, headers=by_agent)
    assert [entry[0] for entry in managers(put)] == ["my-controller"]
    plain = config(x="4")
    assert [entry[0] for entry in managers(server.ask("PUT", MAPS + "/a", plain))] == ["unknown"]


def test_a_status_write_is_tracked_under_its_subresource(server: Server) -> None:
    apply(server, PODS + "/p", pod())
    status = {"status": {"phase": "Running"}}
    written = patch(server, PODS + "/p/status", status, "strategic-merge", **{"user-agent": "kubelet/v1.36"})
    assert written.json["status"]["phase"] == "Running"
    assert managers(written) == [("me", "Apply", ""), ("kubelet", "Update", "status")]
    ours = {**pod(), "status": {"phase": "Failed"}}
    applied = apply(server, PODS + "/p", ours)
    assert applied.json["status"]["phase"] == "Running"
    assert applied.json["metadata"]["managedFields"][0]["fieldsV1"].keys() == {"f:spec"}
    taken = apply(server, PODS + "/p/status", ours, "fieldManager=agent&force=true")
    assert taken.json["status"]["phase"] == "Failed"
    assert ("agent", "Apply", "status") in managers(taken)


def test_the_status_of_nothing_is_not_created(server: Server) -> None:
    assert apply(server, PODS + "/none/status", pod()).status == 404


def test_an_empty_list_of_managed_fields_resets_them(server: Server) -> None:
    apply(server, MAPS + "/a", config(x="1"))
    for body, kind in (
        ({"metadata": {"managedFields": []}}, "merge"),
        ({"metadata": {"managedFields": [{}]}}, "merge"),
    ):
        assert managers(patch(server, MAPS + "/a", body, kind)) == []
        apply(server, MAPS + "/a", config(x="1"))
    operations = [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]
    assert managers(patch(server, MAPS + "/a", json.dumps(operations), "json")) == []


def test_a_create_that_brings_managed_fields_is_tracked(server: Server) -> None:
    entry = {"manager": "old", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    entries = [{**entry, "fieldsV1": {"f:data": {"f:x": {}}}}]
    body = {"metadata": {"generateName": "g-", "managedFields": entries}, "data": {"x": "1"}}
    created = server.ask("POST", MAPS + "?fieldManager=new", body)
    assert created.status == 201
    assert managers(created) == [("new", "Update", "")]
    broken = {"metadata": {"name": "b", "managedFields": [{"manager": "m"}]}}
    assert managers(server.ask("POST", MAPS, broken)) == []


def test_a_write_that_changes_nothing_is_none(server: Server) -> None:
    before = apply(server, MAPS + "/a", config(x="1"))
    server.settle(5.0)
    assert patch(server, MAPS + "/a", {"data": {"x": "1"}}).data == before.data
    assert apply(server, MAPS + "/a", config(x="1")).data == before.data


def test_creating_by_apply_takes_the_right_to_create(server: Server) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}}
    refused = apply(server, "/api/v1/nodes/n1", node, user="system:node:n1")
    assert refused.status == 400  # another name: nodes may create and patch nodes
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "n2"}}
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n2"
    assert apply(server, path, lease, user="system:node:n1").status == 403


def test_finalizers_of_two_managers_are_united(server: Server) -> None:
    one = {**config(x="1"), "metadata": {"name": "a", "finalizers": ["x/one"]}}
    two = {**config(x="1"), "metadata": {"name": "a", "finalizers": ["x/two"]}}
    apply(server, MAPS + "/a", one)
    both = apply(server, MAPS + "/a", two, "fieldManager=you")
    assert both.json["metadata"]["finalizers"] == ["x/one", "x/two"]
    left = apply(server, MAPS + "/a", config(x="1"))
    assert left.json["metadata"]["finalizers"] == ["x/two"]


def test_two_members_apply_over_one_another(server: Server) -> None:
    pool = Server(members=2)
    try:
        path = "/api/v1/namespaces/default/configmaps/a"
        sent = [
            apply_later(pool, path, config(**{f"k{number}": "v"}), f"m{number}", number % 2)
            for number in range(6)
        ]
        pool.settle(1.0)
        assert sorted(exchange.status for exchange in sent) == [200] * 5 + [201]
        assert pool.ask("GET", path).json["data"] == {f"k{number}": "v" for number in range(6)}
    finally:
        pool.close()


def apply_later(pool: Server, path: str, body: Any, name: str, member: int) -> FakeExchange:
    headers = {"content-type": "application/apply-patch+yaml"}
    return pool.send("PATCH", f"{path}?fieldManager={name}", body, headers=headers, member=member)


def deployment(**spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec},
    }


def test_a_scale_takes_the_replicas_from_their_manager(server: Server) -> None:
    assert apply(server, DEPLOYMENTS + "/d", deployment(replicas=2)).status == 201
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 3}}
    refused = apply(server, DEPLOYMENTS + "/d/scale", scale, "fieldManager=hpa")
    assert (refused.status, refused.json["details"]["causes"][0]["field"]) == (409, ".spec.replicas")
    taken = apply(server, DEPLOYMENTS + "/d/scale", scale, "fieldManager=hpa&force=true")
    assert (taken.status, taken.json["spec"]) == (200, {"replicas": 3})
    live = server.ask("GET", DEPLOYMENTS + "/d")
    assert ("hpa", "Apply", "scale") in managers(live)
    assert "f:replicas" not in live.json["metadata"]["managedFields"][-1]["fieldsV1"]["f:spec"]
    put = server.ask("PUT", DEPLOYMENTS + "/d/scale", {**taken.json, "spec": {"replicas": 4}})
    assert put.json["spec"] == {"replicas": 4}
    assert ("unknown", "Update", "scale") in managers(server.ask("GET", DEPLOYMENTS + "/d"))
    wrong = apply(server, DEPLOYMENTS + "/d/scale", deployment(), "fieldManager=hpa")
    assert (wrong.status, wrong.json["message"]) == (400, "invalid object type: apps/v1, Kind=Deployment")


def test_defaults_are_filled_in_but_not_owned(server: Server) -> None:
    created = apply(server, DEPLOYMENTS + "/d", deployment())
    assert created.json["spec"]["replicas"] == 1
    owned = created.json["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]
    assert owned.keys() == {"f:selector", "f:template"}
    again = apply(server, DEPLOYMENTS + "/d", deployment())
    assert again.data == created.data


@pytest.mark.parametrize(
    ("agent", "manager"),
    [
        ("kubectl/v1.36.2 (linux/amd64)", "kubectl"),
        ("plain", "plain"),
        ("", "unknown"),
        ("/", "unknown"),
        ("a\x00b/1", "ab"),
        ("ä" * 100, "ä" * 64),
    ],
)
def test_a_client_that_names_no_manager_is_its_user_agent(agent: str, manager: str) -> None:
    assert manager_of(agent) == manager


THINGS = "/apis/example.com/v1/namespaces/ns/things"


def thing_definition() -> dict[str, Any]:
    item = {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "integer"}}}
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    spec = {"type": "object", "properties": {"items": {"type": "array", "items": item, **keyed}}}
    status = {"type": "object", "properties": {"count": {"type": "integer"}}}
    structure = {"type": "object", "properties": {"spec": spec, "status": status}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": structure},
    }
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def thing(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, **fields}


def test_custom_resources_are_merged_by_their_own_structure(server: Server) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com"
    assert apply(server, definitions, thing_definition()).status == 201
    server.settle(3.0)
    one = thing(spec={"items": [{"name": "a", "value": 1}]}, status={"count": 1})
    assert apply(server, THINGS + "/t", one).status == 201
    both = apply(
        server, THINGS + "/t", thing(spec={"items": [{"name": "b", "value": 2}]}), "fieldManager=you"
    )
    assert [item["name"] for item in both.json["spec"]["items"]] == ["a", "b"]
    assert "status" not in both.json
    refused = apply(
        server, THINGS + "/t", thing(spec={"items": [{"name": "a", "value": 3}]}), "fieldManager=you"
    )
    assert refused.json["details"]["causes"][0]["field"] == '.spec.items[name="a"].value'
    counted = apply(server, THINGS + "/t/status", thing(status={"count": 4}), "fieldManager=counter")
    assert counted.json["status"] == {"count": 4}
    assert ("counter", "Apply", "status") in managers(counted)
    unknown = apply(server, THINGS + "/t", thing(spec={"nope": 1}))
    assert unknown.json["message"].endswith(".spec.nope: field not declared in schema")


def test_kubectl_moves_what_client_side_apply_owned_by_a_json_patch(server: Server) -> None:
    """client-go/util/csaupgrade/upgrade.go: managedFields are replaced, and so is resourceVersion, by itself."""
    server.ask("POST", MAPS, config(x="1"))
    applied = apply(server, MAPS + "/a", config(x="1"), "fieldManager=kubectl")
    metadata = applied.json["metadata"]
    entries = [entry for entry in metadata["managedFields"] if entry["operation"] == "Apply"]
    assert len(entries) < len(metadata["managedFields"])
    replace = [
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
    ]
    moved = patch(server, MAPS + "/a", replace, "json")
    assert (moved.status, managers(moved)) == (200, [("kubectl", "Apply", "")])
    late = patch(server, MAPS + "/a", replace, "json")
    assert (late.status, late.json["reason"]) == (409, "Conflict")
    version = moved.json["metadata"]["resourceVersion"]
    test = [{"op": "test", "path": "/metadata/resourceVersion", "value": version}]
    assert patch(server, MAPS + "/a", test, "json").data == moved.data
