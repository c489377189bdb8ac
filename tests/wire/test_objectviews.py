"""Views of recorded protobuf are the views of the same objects in JSON."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.client.store import ObjectView
from harness.fleet.pods import decode_pod
from harness.wire.objectviews import decode_list, view_decoder
from harness.wire.protobuf import MAGIC, encode_object
from harness.wire.status import parse_status
from harness.wire.watching import ERROR, ProtobufWatchDecoder, WatchDecoder, WatchError, encode_event

RECORDED: dict[str, dict[str, Any]] = {
    each["name"]: each
    for each in json.loads((Path(__file__).parents[1] / "data" / "protobuf" / "recorded.json").read_bytes())
}
OBJECTS = ("pod", "secret", "node", "lease")
WATCHES = [name for name, each in RECORDED.items() if "json_events" in each]


def pair(name: str) -> tuple[bytes, bytes]:
    each = RECORDED[name]
    return b64decode(each["body_b64"]), json.dumps(each["json"]).encode()


class _Deep(msgspec.Struct, rename="camel"):
    class _Status(msgspec.Struct, rename="camel"):
        class _Condition(msgspec.Struct, rename="camel"):
            type: str
            status: str
            last_transition_time: str | None = None

        conditions: list[_Condition] = []
        capacity: dict[str, str] = {}

    status: _Status | None = None


class _Labels(msgspec.Struct):
    class _Meta(msgspec.Struct, rename="camel"):
        labels: dict[str, str] = {}
        annotations: dict[str, str] = {}
        generation: int = 0
        creation_timestamp: str | None = None

    metadata: _Meta


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("view", [ObjectView, _Labels])
def test_a_view_is_the_same_in_either_encoding(name: str, view: type[Any]) -> None:
    in_protobuf, in_json = pair(name)
    decode = view_decoder(view)
    assert in_protobuf.startswith(MAGIC)
    for _ in range(2):  # the second time the plan is known
        assert decode(in_protobuf) == decode(in_json)


@pytest.mark.parametrize("name", ["pod", "node"])
def test_lists_of_messages_and_maps_of_quantities_are_read(name: str) -> None:
    in_protobuf, in_json = pair(name)
    decode = view_decoder(_Deep)
    assert decode(in_protobuf) == decode(in_json)
    assert decode(in_protobuf).status is not None


def test_a_pod_is_the_same_to_the_kubelet() -> None:
    assert decode_pod(pair("pod")[0]) == decode_pod(pair("pod")[1])


@pytest.mark.parametrize("name", ["pods", "configmap list by name"])
def test_a_list_falls_into_items_that_decode_by_themselves(name: str) -> None:
    in_protobuf, in_json = (decode_list(body) for body in pair(name))
    assert in_protobuf[0] == in_json[0]
    decode = view_decoder(ObjectView)
    assert list(map(decode, in_protobuf[1])) == list(map(decode, in_json[1])) != []


@pytest.mark.parametrize("name", WATCHES)
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_frames_come_in_any_split(name: str, size: int) -> None:
    data = b64decode(RECORDED[name]["body_b64"])
    frames = ProtobufWatchDecoder()
    events = [event for at in range(0, len(data), size) for event in frames.feed(data[at : at + size])]
    assert frames.pending_bytes == 0
    lines = WatchDecoder()
    expected = [
        event
        for each in RECORDED[name]["json_events"]
        for event in lines.feed(encode_event(each["type"], json.dumps(each["object"]).encode()))
    ]
    assert [kind for kind, _ in events] == [kind for kind, _ in expected]
    decode = view_decoder(ObjectView)
    for (kind, raw), (_, raw_json) in zip(events, expected, strict=True):
        if kind is ERROR:
            assert parse_status(raw) == parse_status(raw_json)
        else:
            assert decode(raw) == decode(raw_json)


def test_a_status_is_the_same_in_either_encoding() -> None:
    in_protobuf, in_json = pair("404")
    assert parse_status(in_protobuf, 404) == parse_status(in_json, 404)
    assert parse_status(in_protobuf, 404).reason == "NotFound"


def test_a_status_that_is_cut_off_is_told_by_its_code_alone() -> None:
    assert parse_status(pair("404")[0][:-9], 404).code == 404


@pytest.mark.parametrize("name", OBJECTS)
def test_what_is_cut_off_anywhere_is_an_error_or_a_shorter_object_but_nothing_else(name: str) -> None:
    body = pair(name)[0]
    decode = view_decoder(_Labels)
    decode(body)
    for end in range(len(body)):
        try:
            decode(body[:end])
        except msgspec.DecodeError:
            continue


@pytest.mark.parametrize(
    "body",
    [
        MAGIC,
        MAGIC + b"\x0a",
        MAGIC + b"\x0a\x05\x0a\x02v1",
        MAGIC + b"\x0a\x08\x0a\x02v1\x12\x02No",
        encode_object({"kind": "Pod", "apiVersion": "v1", "metadata": {}})[:-1],
    ],
)
def test_what_is_no_object_of_the_table_is_an_error(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        view_decoder(ObjectView)(body)
    with pytest.raises(msgspec.DecodeError):
        decode_list(body)


@pytest.mark.parametrize(
    "frame", [b"\x08\x01", b"\x0a\xff", b"\x12\x04\x0a\xff\xff\x01"], ids=["number", "short", "nested"]
)
def test_a_frame_that_is_no_watch_event_is_an_error(frame: bytes) -> None:
    with pytest.raises(WatchError):
        ProtobufWatchDecoder().feed(len(frame).to_bytes(4) + frame)


def test_an_event_of_a_type_that_nobody_knows_is_told_as_it_is() -> None:
    frame = b"\x0a\x03NEW"
    assert ProtobufWatchDecoder().feed(len(frame).to_bytes(4) + frame) == [("NEW", b"")]
