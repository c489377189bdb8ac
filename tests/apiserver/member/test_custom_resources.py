"""CustomResourceDefinitions and the objects of their kinds, over a whole member, or several."""

import copy
from typing import Any

import pytest
from fakemember import FakeExchange, Server

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/ns/widgets"
MERGE = {"content-type": "application/merge-patch+json"}
SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "port": {"x-kubernetes-int-or-string": True},
        "tags": {
            "type": "array",
            "maxItems": 2,
            "items": {"type": "string"},
            "x-kubernetes-list-type": "set",
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "replicas": {"type": "integer"},
    },
}
STATUS = {"type": "object", "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}}}
VERSION = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}},
    "subresources": {
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
    },
    "additionalPrinterColumns": [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ],
    "selectableFields": [{"jsonPath": ".spec.color"}],
}
DEFINITION: dict[str, Any] = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [VERSION],
    },
}


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 1, **spec},
    }


def define(server: Server, definition: dict[str, Any] = DEFINITION) -> FakeExchange:
    answer = server.ask("POST", DEFINITIONS, definition)
    assert answer.status == 201, answer.data
    server.settle(1.0)
    return answer


@pytest.fixture
def defined(server: Server) -> Server:
    define(server)
    return server


def conditions(server: Server, name: str = "widgets.example.com") -> dict[str, tuple[str, str]]:
    status = server.ask("GET", f"{DEFINITIONS}/{name}").json["status"]
    return {item["type"]: (item["status"], item["reason"]) for item in status["conditions"]}


# ---- definitions -----------------------------------------------------------------------------------------------------
def test_a_definition_is_accepted_and_established(server: Server) -> None:
    created = define(server).json
    assert created["status"]["storedVersions"] == ["v1"]
    assert created["spec"]["names"]["singular"] == "widget"
    assert created["spec"]["names"]["listKind"] == "WidgetList"
    assert conditions(server) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    there = server.ask("GET", f"{DEFINITIONS}/widgets.example.com").json
    assert there["status"]["acceptedNames"] == there["spec"]["names"]


def test_a_kind_is_unknown_until_it_is_established(server: Server) -> None:
    assert server.ask("GET", WIDGETS).status == 404
    define(server)
    listed = server.ask("GET", WIDGETS).json
    assert (listed["kind"], listed["apiVersion"], listed["items"]) == ("WidgetList", "example.com/v1", [])


def without(path: str) -> dict[str, Any]:
    changed = copy.deepcopy(DEFINITION)
    *parents, last = path.split(".")
    place: Any = changed
    for part in parents:
        place = place[int(part)] if part.isdecimal() else place[part]
    del place[last]
    return changed


@pytest.mark.parametrize(
    ("definition", "field"),
    [
        (without("spec.group"), "metadata.name"),
        (without("spec.scope"), "spec.scope"),
        (without("spec.names.kind"), "spec.names.kind"),
        (without("spec.versions.0.schema"), "spec.versions[0].schema.openAPIV3Schema"),
        (without("spec.versions.0.storage"), "spec.versions"),
        (
            without("spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.size.type"),
            "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].type",
        ),
    ],
)
def test_a_faulty_definition_is_refused(server: Server, definition: dict[str, Any], field: str) -> None:
    answer = server.ask("POST", DEFINITIONS, definition)
    assert answer.status == 422
    assert field in [cause["field"] for cause in answer.json["details"]["causes"]]


def test_names_of_another_definition_are_not_accepted(defined: Server) -> None:
    other = copy.deepcopy(DEFINITION)
    other["metadata"]["name"] = "gadgets.example.com"
    other["spec"]["names"] = {"plural": "gadgets", "kind": "Gadget", "shortNames": ["wd"]}
    define(defined, other)
    assert conditions(defined, "gadgets.example.com")["NamesAccepted"] == ("False", "ShortNamesConflict")
    assert defined.ask("GET", "/apis/example.com/v1/namespaces/ns/gadgets").status == 404
    defined.ask("DELETE", f"{DEFINITIONS}/widgets.example.com")
    defined.settle(10.0)
    assert conditions(defined, "gadgets.example.com")["Established"] == ("True", "InitialNamesAccepted")
    assert defined.ask("GET", "/apis/example.com/v1/namespaces/ns/gadgets").status == 200


def test_a_deleted_definition_takes_its_objects_along(defined: Server) -> None:
    defined.ask("POST", WIDGETS, widget("a"))
    deleted = defined.ask("DELETE", f"{DEFINITIONS}/widgets.example.com").json
    assert deleted["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    defined.settle(10.0)
    assert defined.ask("GET", f"{DEFINITIONS}/widgets.example.com").status == 404
    assert defined.ask("GET", WIDGETS).status == 404
    define(defined)
    assert defined.ask("GET", WIDGETS).json["items"] == []


def test_an_object_with_a_finalizer_holds_its_definition_which_takes_no_new_ones(defined: Server) -> None:
    held = widget("a")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    defined.ask("POST", WIDGETS, held)
    defined.ask("DELETE", f"{DEFINITIONS}/widgets.example.com")
    defined.settle(10.0)
    assert conditions(defined)["Terminating"] == ("True", "InstanceDeletionInProgress")
    refused = defined.ask("POST", WIDGETS, widget("b"))
    assert refused.status == 403
    assert "create not allowed while custom resource definition is terminating" in refused.json["message"]
    defined.ask("PATCH", f"{WIDGETS}/a", {"metadata": {"finalizers": None}}, headers=MERGE)
    defined.settle(10.0)
    assert defined.ask("GET", f"{DEFINITIONS}/widgets.example.com").status == 404


# ---- objects ---------------------------------------------------------------------------------------------------------
def test_objects_have_defaults_and_lose_what_the_schema_does_not_know(defined: Server) -> None:
    answer = defined.ask("POST", WIDGETS, {**widget("a", bogus=1, free={"x": 1}), "status": {"phase": "x"}})
    assert answer.status == 201, answer.data
    assert answer.answer_headers["warning"] == '299 - "unknown field \\"spec.bogus\\""'
    made = answer.json
    assert made["spec"] == {"size": 1, "color": "red", "free": {"x": 1}}
    assert "status" not in made
    assert made["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"size": 10}, "spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9"),
        ({"size": 0}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        (
            {"size": "x"},
            'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
        ),
        ({"color": "green"}, 'spec.color: Unsupported value: "green": supported values: "red", "blue"'),
        ({"code": "A"}, "spec.code: Invalid value: \"A\": spec.code in body should match '^[a-z]+$'"),
        ({"code": "abcdef"}, "spec.code: Too long: may not be more than 5 bytes"),
        ({"tags": ["a", "b", "c"]}, "spec.tags: Too many: 3: must have at most 2 items"),
        ({"tags": ["a", "a"]}, 'spec.tags[1]: Duplicate value: "a"'),
        (
            {"labels": {"k": 1}},
            'spec.labels.k: Invalid value: "integer": spec.labels.k in body must be of type string: "integer"',
        ),
        (
            {"port": 1.5},
            'spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number"',
        ),
    ],
)
def test_the_schema_is_enforced_in_upstream_s_words(defined: Server, spec: Any, message: str) -> None:
    answer = defined.ask("POST", WIDGETS, widget("a", **spec))
    assert answer.status == 422
    assert answer.json["message"] == f'Widget.example.com "a" is invalid: {message}'


def test_what_is_demanded_must_be_there(defined: Server) -> None:
    answer = defined.ask("POST", WIDGETS, {**widget("a"), "spec": {}})
    assert answer.json["message"] == 'Widget.example.com "a" is invalid: spec.size: Required value'


def test_status_and_scale_are_subresources(defined: Server) -> None:
    defined.ask("POST", WIDGETS, widget("a", replicas=2))
    patched = defined.ask(
        "PATCH",
        f"{WIDGETS}/a/status",
        {"spec": {"size": 5}, "status": {"phase": "Ready", "replicas": 1}},
        headers=MERGE,
    ).json
    assert (patched["spec"]["size"], patched["status"]) == (1, {"phase": "Ready", "replicas": 1})
    scale = defined.ask("GET", f"{WIDGETS}/a/scale").json
    assert (scale["kind"], scale["spec"], scale["status"]) == ("Scale", {"replicas": 2}, {"replicas": 1})
    scaled = defined.ask("PATCH", f"{WIDGETS}/a/scale", {"spec": {"replicas": 7}}, headers=MERGE)
    assert scaled.json["spec"] == {"replicas": 7}
    there = defined.ask("GET", f"{WIDGETS}/a").json
    assert (there["spec"]["replicas"], there["metadata"]["generation"]) == (7, 2)
    wrong = defined.ask("PATCH", f"{WIDGETS}/a/status", {"status": {"phase": 5}}, headers=MERGE)
    assert wrong.status == 422


def test_a_put_needs_a_resource_version(defined: Server) -> None:
    made = defined.ask("POST", WIDGETS, widget("a")).json
    refused = defined.ask("PUT", f"{WIDGETS}/a", widget("a", size=3))
    assert "must be specified for an update" in refused.json["message"]
    made["spec"]["size"] = 3
    assert defined.ask("PUT", f"{WIDGETS}/a", made).json["metadata"]["generation"] == 2


def test_strategic_merge_is_no_type_of_theirs(defined: Server) -> None:
    defined.ask("POST", WIDGETS, widget("a"))
    strategic = {"content-type": "application/strategic-merge-patch+json"}
    answer = defined.ask("PATCH", f"{WIDGETS}/a", {"spec": {"size": 2}}, headers=strategic)
    assert answer.status == 415
    assert "application/merge-patch+json" in answer.json["message"]
    unknown = defined.ask(
        "PATCH", f"{WIDGETS}/a?fieldValidation=Strict", {"spec": {"bogus": 2}}, headers=MERGE
    )
    assert unknown.status == 422
    assert 'unknown field "spec.bogus"' in unknown.json["message"]


def test_tables_have_the_definition_s_columns(defined: Server) -> None:
    defined.ask("POST", WIDGETS, widget("a"))
    table = defined.ask(
        "GET", WIDGETS, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    ).json
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size", "Color", "Age"]
    assert table["rows"][0]["cells"][:3] == ["a", 1, "red"]


def test_lists_select_by_the_definition_s_fields(defined: Server) -> None:
    for name, color in (("a", "red"), ("b", "blue")):
        defined.ask("POST", WIDGETS, widget(name, color=color))
    listed = defined.ask("GET", f"{WIDGETS}?fieldSelector=spec.color%3Dblue").json
    assert [item["metadata"]["name"] for item in listed["items"]] == ["b"]
    assert defined.ask("GET", f"{WIDGETS}?fieldSelector=spec.size%3D1").status == 400


def test_watches_see_them(defined: Server) -> None:
    watch = defined.send("GET", f"{WIDGETS}?watch=true&resourceVersion=0")
    defined.settle()
    defined.ask("POST", WIDGETS, widget("a"))
    defined.settle()
    assert [(event["type"], event["object"]["kind"]) for event in watch.events] == [("ADDED", "Widget")]
    defined.ask("DELETE", f"{DEFINITIONS}/widgets.example.com")
    defined.settle(10.0)
    assert watch.finished


def test_a_namespace_that_is_not_there_takes_none(defined: Server) -> None:
    assert defined.ask("POST", WIDGETS.replace("/ns/", "/nowhere/"), widget("a")).status == 404


def test_rbac_applies(defined: Server) -> None:
    assert defined.ask("GET", WIDGETS, user="somebody").status == 403


# ---- versions --------------------------------------------------------------------------------------------------------
def test_an_object_is_shown_in_each_version(server: Server) -> None:
    definition = copy.deepcopy(DEFINITION)
    definition["spec"]["versions"].append({**copy.deepcopy(VERSION), "name": "v1beta1", "storage": False})
    define(server, definition)
    server.ask("POST", WIDGETS, widget("a"))
    beta = WIDGETS.replace("/v1/", "/v1beta1/")
    shown = server.ask("GET", f"{beta}/a").json
    assert (shown["apiVersion"], shown["spec"]["size"]) == ("example.com/v1beta1", 1)
    assert server.ask("GET", beta).json["items"][0]["metadata"]["name"] == "a"
    made = server.ask("POST", beta, {**widget("b"), "apiVersion": "example.com/v1beta1"})
    assert (made.status, made.json["apiVersion"]) == (201, "example.com/v1beta1")
    assert server.ask("GET", f"{WIDGETS}/b").json["apiVersion"] == "example.com/v1"
    group = server.ask("GET", "/apis/example.com").json
    assert [item["version"] for item in group["versions"]] == ["v1", "v1beta1"]


def test_another_version_may_become_the_stored_one(defined: Server) -> None:
    defined.ask("POST", WIDGETS, widget("a"))
    old = defined.ask("GET", f"{DEFINITIONS}/widgets.example.com").json
    old["spec"]["versions"] = [{**VERSION, "storage": False}, {**VERSION, "name": "v2"}]
    changed = defined.ask("PUT", f"{DEFINITIONS}/widgets.example.com", old)
    assert changed.json["status"]["storedVersions"] == ["v1", "v2"]
    defined.settle(1.0)
    newer = WIDGETS.replace("/v1/", "/v2/")
    assert defined.ask("GET", f"{newer}/a").json["apiVersion"] == "example.com/v2"


# ---- discovery -------------------------------------------------------------------------------------------------------
def test_discovery_and_openapi_follow(defined: Server) -> None:
    resources = defined.ask("GET", "/apis/example.com/v1").json["resources"]
    assert [item["name"] for item in resources] == ["widgets", "widgets/scale", "widgets/status"]
    assert resources[1]["kind"] == "Scale"
    document = defined.ask("GET", "/openapi/v3/apis/example.com/v1").json
    schema = document["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["properties"]["spec"]["properties"]["size"]["type"] == "integer"
    before = defined.ask("GET", "/openapi/v3").json["paths"]["apis/example.com/v1"]
    defined.ask("DELETE", f"{DEFINITIONS}/widgets.example.com")
    defined.settle(10.0)
    assert defined.ask("GET", "/apis/example.com/v1").status == 404
    assert before["serverRelativeURL"].startswith("/openapi/v3/apis/example.com/v1?hash=")
    assert "apis/example.com/v1" not in defined.ask("GET", "/openapi/v3").json["paths"]


# ---- several members -------------------------------------------------------------------------------------------------
def test_every_member_serves_it_and_objects_are_the_same() -> None:
    server = Server(3)
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "ns"}})
    define(server)
    server.ask("POST", WIDGETS, widget("a"), member=1)
    server.settle()
    for member in range(3):
        assert server.ask("GET", f"{WIDGETS}/a", member=member).json["spec"]["size"] == 1
    server.ask("DELETE", f"{DEFINITIONS}/widgets.example.com", member=2)
    server.settle(10.0)
    assert [server.ask("GET", WIDGETS, member=member).status for member in range(3)] == [404, 404, 404]
    server.close()


def test_what_may_be_null_stays_null(server: Server) -> None:
    definition = copy.deepcopy(DEFINITION)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    properties = schema["properties"]["spec"]["properties"]
    properties["note"] = {"type": "string", "nullable": True, "default": "none"}
    properties["any"] = {"x-kubernetes-preserve-unknown-fields": True}
    define(server, definition)
    spec = {"note": None, "replicas": None, "color": None, "any": {"a": None, "b": [None]}}
    created = server.ask("POST", WIDGETS, widget("a", **spec) | {"metadata": {"name": "a", "labels": None}})
    assert created.json["spec"] == {"size": 1, "note": None, "color": "red", "any": {"a": None, "b": [None]}}
    assert "labels" not in created.json["metadata"]
    merged = server.ask("PATCH", f"{WIDGETS}/a", {"spec": {"size": 2, "tags": None}}, headers=MERGE)
    assert merged.json["spec"] == created.json["spec"] | {"size": 2}
    replace = [{"op": "add", "path": "/spec/any", "value": [None, 1]}]
    headers = {"content-type": "application/json-patch+json"}
    patched = server.ask("PATCH", f"{WIDGETS}/a", replace, headers=headers)
    assert (patched.json["spec"]["any"], patched.json["spec"]["note"]) == ([None, 1], None)
    headers = {"content-type": "application/apply-patch+yaml"}
    applied = server.ask("PATCH", f"{WIDGETS}/b?fieldManager=me", widget("b", note=None), headers=headers)
    assert applied.json["spec"] == {"size": 1, "note": None, "color": "red"}
    refused = server.ask("POST", WIDGETS, widget("c", tags=["a", None]))
    assert (refused.status, refused.json["details"]["causes"][0]["field"]) == (422, "spec.tags[1]")


def test_caches_of_custom_resources_are_verified_as_long_as_they_are_there(defined: Server) -> None:
    def verdicts() -> dict[str, str]:
        found = defined.ask("POST", "/swarmlet/verify").json
        return {verdict["resource"]: verdict["status"] for verdict in found}

    defined.ask("POST", WIDGETS, widget("a"))
    assert verdicts()["widgets.example.com"] == "success"
    defined.ask("DELETE", f"{DEFINITIONS}/widgets.example.com")
    defined.settle(30.0)
    assert "widgets.example.com" not in verdicts()
