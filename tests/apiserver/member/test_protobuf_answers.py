"""Members that answer in protobuf those who prefer it; others never do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fakemember import FakeExchange, Server

from harness.wire.protobuf import decode_object
from harness.wire.watching import ProtobufWatchDecoder

PROTOBUF = "application/vnd.kubernetes.protobuf"
PREFERRED = {"accept": f"{PROTOBUF},application/json"}
PARTIAL = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
PARTIAL_LIST = f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
MAPS = "/api/v1/namespaces/ns/configmaps"


@pytest.fixture
def offering() -> Iterator[Server]:
    server = Server(protobuf_answers=True)
    assert server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "ns"}}).status == 201
    yield server
    server.close()


def read(answer: FakeExchange) -> dict[str, Any]:
    assert answer.answer_headers["content-type"] == PROTOBUF
    return decode_object(answer.data)


def create(server: Server, name: str) -> None:
    body = {"metadata": {"name": name, "labels": {"a": name}}, "data": {"k": name}}
    assert server.ask("POST", MAPS, body).status == 201


def watch(server: Server, query: str, **headers: str) -> FakeExchange:
    exchange = server.send("GET", f"{MAPS}?watch=1&{query}", headers=PREFERRED | headers)
    server.settle()
    return exchange


def events(exchange: FakeExchange) -> list[tuple[str, dict[str, Any]]]:
    assert exchange.answer_headers["content-type"] == f"{PROTOBUF};stream=watch"
    return [(kind, decode_object(body)) for kind, body in ProtobufWatchDecoder().feed(exchange.data)]


def test_it_is_json_unless_a_member_offers_protobuf(server: Server) -> None:
    create(server, "a")
    answer = server.ask("GET", f"{MAPS}/a", headers=PREFERRED)
    assert answer.answer_headers["content-type"] == "application/json"
    assert server.ask("GET", f"{MAPS}/a", headers={"accept": PROTOBUF}).status == 406


def test_objects_and_lists_are_those_of_json(offering: Server) -> None:
    create(offering, "a")
    create(offering, "b")
    assert read(offering.ask("GET", f"{MAPS}/a", headers=PREFERRED)) == offering.ask("GET", f"{MAPS}/a").json
    listed = offering.ask("GET", f"{MAPS}?limit=1").json
    found = read(offering.ask("GET", f"{MAPS}?limit=1", headers=PREFERRED))
    assert found["metadata"] == listed["metadata"]
    assert found["items"] == listed["items"]
    written = offering.ask("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}}, headers=PREFERRED)
    assert "data" not in read(written)
    deleted = read(offering.ask("DELETE", f"{MAPS}/a", headers=PREFERRED))
    assert (deleted["kind"], deleted["status"]) == ("Status", "Success")


def test_what_prefers_json_gets_json(offering: Server) -> None:
    create(offering, "a")
    accept = f"application/json,{PROTOBUF}"
    answer = offering.ask("GET", f"{MAPS}/a", headers={"accept": accept})
    assert answer.json["kind"] == "ConfigMap"


def test_a_table_is_never_protobuf(offering: Server) -> None:
    create(offering, "a")
    accept = f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1,application/json;as=Table;g=meta.k8s.io;v=v1"
    assert offering.ask("GET", MAPS, headers={"accept": accept}).json["kind"] == "Table"


def test_metadata_alone(offering: Server) -> None:
    create(offering, "a")
    found = read(offering.ask("GET", f"{MAPS}/a", headers={"accept": PARTIAL}))
    assert (found["kind"], found["metadata"]["labels"]) == ("PartialObjectMetadata", {"a": "a"})
    listed = read(offering.ask("GET", MAPS, headers={"accept": PARTIAL_LIST}))
    assert listed["kind"] == "PartialObjectMetadataList"
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a"]
    seen = events(watch(offering, "resourceVersion=0", accept=PARTIAL))
    assert [(kind, obj["kind"]) for kind, obj in seen] == [("ADDED", "PartialObjectMetadata")]


def test_a_watch_brings_its_events_in_frames(offering: Server) -> None:
    create(offering, "a")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    watches = [watch(offering, query), watch(offering, query)]
    create(offering, "b")
    offering.ask("DELETE", f"{MAPS}/b")
    offering.settle()
    for seen in map(events, watches):
        assert [kind for kind, _ in seen][:4] == ["ADDED", "BOOKMARK", "ADDED", "DELETED"]
        assert [obj["metadata"].get("name") for _, obj in seen][:4] == ["a", None, "b", "b"]
        assert seen[1][1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert seen[2][1]["data"] == {"k": "b"}
    assert watches[0].data == watches[1].data


def test_selected_objects_come_and_go(offering: Server) -> None:
    create(offering, "a")
    selected = watch(offering, "labelSelector=a%3Da&resourceVersion=0")
    offering.ask("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}})
    offering.settle()
    assert [kind for kind, _ in events(selected)] == ["ADDED", "DELETED"]


def test_an_error_is_a_status_in_the_form_of_the_answer(offering: Server) -> None:
    missing = offering.ask("GET", f"{MAPS}/none", headers=PREFERRED)
    assert (missing.status, read(missing)) == (404, offering.ask("GET", f"{MAPS}/none").json)
    assert offering.ask("GET", f"{MAPS}/none").json["code"] == 404
    unknown = offering.ask("GET", "/version/none", headers=PREFERRED)
    assert unknown.answer_headers["content-type"] != PROTOBUF
    offering.join("younger", protobuf_answers=True)
    offering.settle(2.0)
    early = offering.send("GET", f"{MAPS}?watch=1&resourceVersion=1", headers=PREFERRED, member=1)
    offering.settle()
    late = events(early)
    assert [(kind, obj["kind"], obj["code"]) for kind, obj in late] == [("ERROR", "Status", 410)]


def test_versions_and_what_is_not_cached(offering: Server) -> None:
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "ns"},
        "message": "text",
    }
    assert offering.ask("POST", "/api/v1/namespaces/ns/events", event).status == 201
    path = "/apis/events.k8s.io/v1/namespaces/ns/events"
    listed = read(offering.ask("GET", path, headers=PREFERRED))
    assert [item["note"] for item in listed["items"]] == ["text"]
    exchange = offering.send("GET", f"{path}?watch=1&resourceVersion=0", headers=PREFERRED)
    offering.settle()
    assert [obj["note"] for _, obj in events(exchange)] == ["text"]


def test_custom_resources_are_json(offering: Server) -> None:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    names = {"plural": "things", "kind": "Thing"}
    definition = {
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]},
    }
    offering.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    offering.settle(1.0)
    things = "/apis/example.com/v1/things"
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "x": 1}
    assert offering.ask("POST", things, thing, headers=PREFERRED).json["x"] == 1
    assert offering.ask("GET", things, headers=PREFERRED).json["kind"] == "ThingList"
    listed = read(offering.ask("GET", things, headers={"accept": PARTIAL_LIST}))
    assert [item["metadata"]["name"] for item in listed["items"]] == ["t"]
