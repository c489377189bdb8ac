"""What form an answer has: JSON plain and indented, YAML, Tables and metadata alone, of objects, lists and watches."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakemember import FakeExchange, Server

from harness.apiserver.handlers.negotiate import JSON, PROTOBUF, YAML, Representation, View, negotiate
from harness.wire.status import StatusError

MAPS = "/api/v1/namespaces/ns/configmaps"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@pytest.mark.parametrize(
    ("accept", "found"),
    [
        ("", Representation()),
        ("*/*", Representation()),
        ("application/*", Representation()),
        (f"{PROTOBUF},{JSON}", Representation()),
        (f"{PROTOBUF}, */*", Representation()),
        (YAML, Representation(YAML)),
        (f"{JSON};q=0.5, {YAML}", Representation(YAML)),
        (f"{JSON};q=0.5, {YAML};q=0.4", Representation(JSON)),
        (f"*/*, {YAML}", Representation(YAML)),
        (f"{JSON};q=nonsense", Representation()),
        (f"{JSON};pretty=1", Representation(pretty=True)),
        (f"{JSON}; charset=utf-8", Representation()),
        (TABLE, Representation(JSON, View.TABLE)),
        (f"{JSON};as=Table;g=meta.k8s.io;v=v1beta1", Representation(JSON, View.TABLE, "v1beta1")),
        (f"{JSON};as=Table;g=meta.k8s.io;v=v2,{JSON}", Representation()),
        (f"{JSON};as=Chair;g=meta.k8s.io;v=v1,{TABLE}", Representation(JSON, View.TABLE)),
    ],
)
def test_the_best_clause_that_is_served_is_taken(accept: str, found: Representation) -> None:
    assert negotiate(accept) == found


@pytest.mark.parametrize(
    "accept", [PROTOBUF, f"{PROTOBUF};stream=watch", "text/plain", f"{JSON};as=Chair;g=meta.k8s.io;v=v1"]
)
def test_what_is_not_served_is_406(server: Server, accept: str) -> None:
    with pytest.raises(StatusError):
        negotiate(accept)
    answer = server.ask("GET", MAPS, headers={"accept": accept})
    assert (answer.status, answer.json["reason"]) == (406, "NotAcceptable")
    assert "application/json, application/yaml" in answer.json["message"]


# ---- indented JSON -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", [MAPS, MAPS + "/a", MAPS + "/none"])
@pytest.mark.parametrize(
    ("query", "headers", "pretty"),
    [
        ("", {}, False),
        ("?pretty=true", {}, True),
        ("?pretty=1", {}, True),
        ("?pretty=maybe", {}, False),
        ("?pretty=false", {"user-agent": "curl/8.5.0"}, False),
        ("", {"user-agent": "curl/8.5.0"}, True),
        ("", {"user-agent": "Wget/1.21"}, True),
        ("", {"user-agent": "Mozilla/5.0 (X11)"}, True),
        ("", {"user-agent": "kubectl/v1.36.2"}, False),
        ("", {"accept": JSON + ";pretty=1"}, True),
    ],
)
def test_json_is_indented_for_who_asks_and_for_humans(
    server: Server, path: str, query: str, headers: dict[str, str], pretty: bool
) -> None:
    server.ask("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "<&>"}})
    plain, answer = server.ask("GET", path), server.ask("GET", path + query, headers=headers)
    assert answer.status == plain.status
    if pretty and not (path.endswith("none") and "accept" in headers):
        assert answer.data.decode() == json.dumps(plain.json, indent=2)
    else:
        assert answer.data == plain.data


def test_watches_and_health_are_never_indented(server: Server) -> None:
    server.ask("POST", MAPS, {"metadata": {"name": "a"}})
    watch = server.send("GET", MAPS + "?watch=1&pretty=true&resourceVersion=0")
    server.settle()
    assert watch.data.count(b"\n") == len(watch.events) == 1
    watch.leave()
    assert server.ask("GET", "/healthz?pretty=true").data == b"ok"


@pytest.mark.parametrize(
    ("path", "agent", "pretty"),
    [
        ("/version", "", True),
        ("/", "", True),
        ("/api", "", False),
        ("/api", "curl/8", True),
        ("/apis/apps/v1", "curl/8", True),
        ("/apis/apps/v1", "", False),
    ],
)
def test_pages_are_indented_where_they_are_no_objects_or_for_humans(
    server: Server, path: str, agent: str, pretty: bool
) -> None:
    answer = server.ask("GET", path, headers={"user-agent": agent})
    assert (answer.data.count(b"\n  ") > 0) is pretty
    assert answer.json


# ---- bodies --------------------------------------------------------------------------------------------------------
def test_a_protobuf_body_of_an_unknown_kind_is_415(server: Server) -> None:
    type_meta = b"\x0a\x0bexample/v1\x12\x05Thing".replace(b"\x0a\x0b", b"\x0a\x0a")
    body = b"k8s\x00\x0a" + bytes([len(type_meta)]) + type_meta
    answer = server.ask("POST", MAPS, body.decode("latin-1"), headers={"content-type": PROTOBUF})
    assert (answer.status, answer.json["reason"]) == (415, "UnsupportedMediaType")
    assert answer.json["message"].endswith("accepted media types include: application/json, application/yaml")


def test_a_malformed_protobuf_body_is_400(server: Server) -> None:
    answer = server.ask("POST", MAPS, "k8s\0", headers={"content-type": PROTOBUF})
    assert answer.status == 400


def test_options_of_a_deletion_may_be_yaml(server: Server) -> None:
    server.ask("POST", MAPS, {"metadata": {"name": "a"}})
    headers = {"content-type": YAML}
    assert server.ask("DELETE", MAPS + "/a", "a: [", headers=headers).status == 400
    wrong = "preconditions:\n  uid: other\n"
    assert server.ask("DELETE", MAPS + "/a", wrong, headers=headers).status == 409
    assert server.ask("DELETE", MAPS + "/a", "propagationPolicy: Background\n", headers=headers).status == 200


# ---- views of every resource ---------------------------------------------------------------------------------------
def watch(server: Server, path: str, accept: str) -> FakeExchange:
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    opened = server.send("GET", f"{path}?{query}", headers={"accept": accept})
    server.settle(0.2)
    opened.leave()
    return opened


def collections(server: Server) -> list[str]:
    found = []
    for endpoint in server.member.router.endpoints.values():
        resource = endpoint.resource
        if "watch" in resource.verbs and resource.cached:
            prefix = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
            found.append(f"{prefix}/{resource.resource}")
    return found


def test_every_resource_is_watched_as_tables(server: Server) -> None:
    for path in collections(server):
        opened = watch(server, path, TABLE)
        assert opened.status == 200, path
        first, *others = opened.events
        width = len(first["object"]["columnDefinitions"])
        assert opened.events[-1]["type"] == "BOOKMARK", path
        for event in opened.events:
            assert event["object"]["kind"] == "Table", path
            assert [len(row["cells"]) for row in event["object"]["rows"]] == [width], path
        assert all(event["object"]["columnDefinitions"] is None for event in others), path


def test_every_resource_is_watched_and_listed_as_metadata_alone(server: Server) -> None:
    for path in collections(server):
        opened = watch(server, path, PARTIAL)
        assert {event["object"]["kind"] for event in opened.events} == {"PartialObjectMetadata"}, path
        annotations = opened.events[-1]["object"]["metadata"]["annotations"]
        assert annotations == {"k8s.io/initial-events-end": "true"}, path
        listed = server.ask("GET", path, headers={"accept": PARTIAL_LIST}).json
        assert listed["kind"] == "PartialObjectMetadataList"
        assert all(item.keys() == {"kind", "apiVersion", "metadata"} for item in listed["items"])


@pytest.mark.parametrize("include", ["None", "Metadata", "Object", ""])
def test_rows_of_a_watch_carry_what_is_asked_for(server: Server, include: str) -> None:
    server.ask("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    path = f"{MAPS}?watch=1&resourceVersion=0&includeObject={include}"
    opened = server.send("GET", path, headers={"accept": TABLE})
    server.settle()
    row: dict[str, Any] = opened.events[0]["object"]["rows"][0]
    kinds = {"None": None, "Object": "ConfigMap"}
    assert row.get("object", {}).get("kind") == kinds.get(include, "PartialObjectMetadata")
    opened.leave()


def test_a_written_object_comes_back_in_the_view_that_was_asked_for(server: Server) -> None:
    made = server.ask("POST", MAPS, {"metadata": {"name": "a"}}, headers={"accept": TABLE})
    assert (made.status, made.json["kind"], made.json["rows"][0]["cells"][0]) == (201, "Table", "a")
    got = server.ask("GET", MAPS + "/a", headers={"accept": PARTIAL})
    assert got.json["kind"] == "PartialObjectMetadata"
    wrong = server.ask("GET", MAPS + "?includeObject=All", headers={"accept": TABLE})
    assert wrong.status == 400


# ---- dry runs ------------------------------------------------------------------------------------------------------
def test_no_dry_run_writes(server: Server) -> None:
    pods = "/api/v1/namespaces/ns/pods"
    spec = {"containers": [{"name": "c", "image": "pause"}]}
    pod = {"metadata": {"name": "p"}, "spec": spec}
    assert server.ask("POST", pods + "?dryRun=All", pod).status == 201
    assert server.ask("GET", pods + "/p").status == 404
    server.ask("POST", pods, pod)
    before = server.ask("GET", pods + "/p").data
    merge = {"content-type": "application/merge-patch+json"}
    labels = {"metadata": {"labels": {"a": "b"}}}
    whole = {
        **json.loads(before),
        **labels,
        "metadata": {**json.loads(before)["metadata"], **labels["metadata"]},
    }
    target = {"target": {"kind": "Node", "name": "n"}}
    for method, path, body, headers in (
        ("PATCH", "/p", labels, merge),
        ("PUT", "/p", whole, {}),
        ("PATCH", "/p/status", {"status": {"phase": "Running"}}, merge),
        ("POST", "/p/binding", target, {}),
        ("POST", "/p/eviction", {"metadata": {"name": "p"}}, {}),
        ("DELETE", "/p", None, {}),
        ("DELETE", "", None, {}),
    ):
        answer = server.ask(method, f"{pods}{path}?dryRun=All", body, headers=headers)
        assert answer.status in (200, 201), (method, path, answer.data)
        assert server.ask("GET", pods + "/p").data == before, (method, path)
    for body in ({"dryRun": ["All"]}, {"metadata": {"name": "p"}, "deleteOptions": {"dryRun": ["All"]}}):
        path, method = ("/p", "DELETE") if "dryRun" in body else ("/p/eviction", "POST")
        server.ask(method, pods + path, body)
        assert server.ask("GET", pods + "/p").data == before
