"""A kubelet's whole life in protobuf: what it sends and what it understands is the same as in JSON."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from harness.client.content import ACCEPT, ContentType, prepared
from harness.client.machine import Answered, Event, Key, Opened, Received, Send
from harness.client.requests import NODES, PODS, create_, get_, patch_, watch_
from harness.client.rest import Rest
from harness.fleet.kubelet import Kubelet, kubelet_limiters
from harness.fleet.options import KubeletOptions
from harness.fleet.podworker import Stage
from harness.wire.errors import ConfigError
from harness.wire.objectviews import PROTOBUF
from harness.wire.protobuf import MAGIC, decode_object, encode_object
from harness.wire.request import JSON, Response
from tests.fleet.builders import pod, with_objects
from tests.fleet.fakeapi import EPOCH_S, Logged, World

KINDS = {
    "nodes": ("v1", "Node"),
    "pods": ("v1", "Pod"),
    "events": ("v1", "Event"),
    "services": ("v1", "Service"),
    "secrets": ("v1", "Secret"),
    "configmaps": ("v1", "ConfigMap"),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim"),
    "persistentvolumes": ("v1", "PersistentVolume"),
    "leases": ("coordination.k8s.io/v1", "Lease"),
    "csinodes": ("storage.k8s.io/v1", "CSINode"),
    "csidrivers": ("storage.k8s.io/v1", "CSIDriver"),
    "runtimeclasses": ("node.k8s.io/v1", "RuntimeClass"),
}


def frame(line: bytes, resource: str) -> bytes:
    """A JSON watch event as a protobuf one."""
    event = msgspec.json.decode(line)
    version, kind = KINDS[resource]
    raw = encode_object({**event["object"], "kind": kind, "apiVersion": version})
    kind_field = b"\x0a" + bytes([len(event["type"])]) + event["type"].encode()
    inner = b"\x0a" + _size(len(raw)) + raw
    body = kind_field + b"\x12" + _size(len(inner)) + inner
    return len(body).to_bytes(4) + body


def _size(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80, *_size(number >> 7)]) if number > 0x7F else bytes([number])


class ProtobufWorld(World):
    """Answers in protobuf those who accept it, and reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[tuple[str, str, bytes]] = []  # verb, content type, body
        self._asked: dict[tuple[int, Key], Logged] = {}

    def _send(self, who: int, action: Send) -> None:
        request = action.request
        if request.body:
            self.bodies.append((request.verb, request.content_type, request.body))
        if request.content_type == PROTOBUF:
            body = msgspec.json.encode(decode_object(request.body))
            action = Send(action.key, msgspec.structs.replace(request, body=body))
        super()._send(who, action)
        self._asked[who, action.key] = self.log[-1]

    def _later(self, who: int, key: Key, event: Event) -> None:
        asked = self._asked[who, key]
        resource = asked.info.resource
        if not asked.request.accept.startswith(PROTOBUF):
            pass
        elif isinstance(event, Opened):
            event = Opened(key, event.member, f"{PROTOBUF};stream=watch")
        elif isinstance(event, Received):
            event = Received(key, frame(event.data, resource))
        elif isinstance(event, Answered):
            event = Answered(key, self._in_protobuf(event.response, asked.info.subresource, resource))
        super()._later(who, key, event)

    @staticmethod
    def _in_protobuf(response: Response, subresource: str, resource: str) -> Response:
        body = msgspec.json.decode(response.body)
        if subresource == "token" and response.ok:
            version, kind = "authentication.k8s.io/v1", "TokenRequest"
        elif response.ok:
            version, kind = KINDS[resource]
        else:
            version, kind = "v1", "Status"
        if "items" in body:
            kind += "List"
        if response.ok and not body:
            return response
        data = encode_object({**body, "kind": kind, "apiVersion": version})
        return Response(
            response.status, {**response.headers, "content-type": PROTOBUF}, data, response.member
        )


def life(content: ContentType) -> tuple[ProtobufWorld, Kubelet]:
    """Registration, a pod with a claim and objects, its deletion, a failed mount."""
    world = ProtobufWorld()
    options = KubeletOptions(start_delay_s=(0.2, 0.2), content_type=content)
    kubelet = Kubelet("n1", options, Random(1), EPOCH_S)
    world.add(Rest(kubelet, kubelet_limiters(options), content=content))
    world.checks.append(kubelet.validate)
    with_objects(world, "t", "s0", "c0")
    claim = {"metadata": {"name": "data"}, "spec": {"volumeName": "pv1"}, "status": {"phase": "Bound"}}
    uid = world.create("persistentvolumeclaims", "t", claim)["metadata"]["uid"]
    world.create(
        "persistentvolumes",
        "",
        {"metadata": {"name": "pv1"}, "spec": {"claimRef": {"uid": uid}, "hostPath": {"path": "/x"}}},
    )
    world.run(5.0)
    body = pod("p", "n1", secrets=("s0",), configmaps=("c0",))
    body["spec"]["volumes"].append({"name": "v", "persistentVolumeClaim": {"claimName": "data"}})
    world.create("pods", "t", body)
    world.create("pods", "t", pod("q", "n1", secrets=("s9",)))
    world.run(20.0)
    assert kubelet.pods.count(Stage.RUNNING) == 1
    assert kubelet.pods.count(Stage.MOUNTING) == 1
    world.delete("pods", "t", "p")
    world.run(60.0)
    assert len(kubelet.pods) == 1
    return world, kubelet


@pytest.mark.parametrize("content", ["auto", "protobuf"])
def test_a_life_in_protobuf_is_the_same_as_in_json(content: ContentType) -> None:
    in_json, _ = life("json")
    world, _ = life(content)
    assert [(each.at, each.line, each.status) for each in world.log] == [
        (each.at, each.line, each.status) for each in in_json.log
    ]
    assert [each.request.path for each in world.log] == [each.request.path for each in in_json.log]


def test_auto_accepts_protobuf_and_writes_json() -> None:
    world, _ = life("auto")
    assert {each.request.accept for each in world.log} == {ACCEPT}
    assert not [kind for _, kind, _ in world.bodies if kind == PROTOBUF]


def test_protobuf_bodies_are_those_of_creates_updates_and_deletes_but_not_patches() -> None:
    world, _ = life("protobuf")
    kinds = {(verb, kind) for verb, kind, _ in world.bodies}
    assert kinds == {
        ("create", PROTOBUF),
        ("update", PROTOBUF),
        ("delete", PROTOBUF),
        ("patch", "application/strategic-merge-patch+json"),
    }
    assert all(body.startswith(MAGIC) for _, kind, body in world.bodies if kind == PROTOBUF)
    lease = next(
        decode_object(body) for verb, kind, body in world.bodies if verb == "update" and kind == PROTOBUF
    )
    assert lease["spec"]["holderIdentity"] == "n1"


def test_json_is_asked_for_and_written_where_that_is_wanted() -> None:
    world, _ = life("json")
    assert {each.request.accept for each in world.log} == {JSON}


def test_a_kind_without_a_protobuf_form_is_sent_as_json() -> None:
    body = b'{"kind":"Widget","apiVersion":"x.io/v1","metadata":{"name":"w"}}'
    request = prepared(create_(PODS, "t", body), "protobuf")
    assert (request.content_type, request.body, request.accept) == (JSON, body, ACCEPT)


def test_a_request_that_says_what_it_accepts_is_left_alone() -> None:
    request = msgspec.structs.replace(get_(NODES, None, "n"), accept="application/json;as=Table")
    assert prepared(request, "protobuf") is request


@pytest.mark.parametrize("request_", [get_(PODS, "t", "p"), watch_(PODS), patch_(PODS, "t", "p", b"{}")])
def test_what_has_no_body_of_its_own_only_accepts_protobuf(request_: Any) -> None:
    request = prepared(request_, "protobuf")
    assert request.accept == ACCEPT
    assert (request.body, request.content_type) == (request_.body, request_.content_type)


def test_an_unknown_content_type_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="content_type='yaml' is not known; allowed are auto, protobuf, json"
    ):
        KubeletOptions(content_type="yaml")  # type: ignore[arg-type]


def test_a_refusal_in_protobuf_is_told_with_its_message() -> None:
    world, _ = life("protobuf")
    texts = [
        decode_object(body)["message"]
        for verb, kind, body in world.bodies
        if verb == "create" and b"FailedMount" in body and kind == PROTOBUF
    ]
    assert texts
    assert texts[0].endswith('secret "s9" not found')
