"""Objects in protobuf are those of a real apiserver and of real clients, and what JSON would have given."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.wire.errors import SwarmletError
from harness.wire.protobuf import (
    ProtobufError,
    access,
    decode_object,
    definitions,
    devices,
    encode_object,
    network,
    objects,
    pods,
    scaling,
    storage,
    webhooks,
    workloads,
)
from harness.wire.protobuf.schema import ANY_VERSION, KINDS, RENAMED, message, message_of
from harness.wire.protobuf.views import ViewDecoder
from harness.wire.watching import ProtobufWatchDecoder, encode_frame
from tests.wire.protobuf_bytes import envelope, kubectl, put, recorded, streams

RECORDED = recorded()
NAMES = [name for name, _, _ in RECORDED]
KUBECTL = kubectl()


def config_map(raw: bytes) -> dict[str, Any]:
    return decode_object(envelope("v1", "ConfigMap", raw))


def pod(spec: bytes) -> Any:
    return decode_object(envelope("v1", "Pod", put(2, spec)))["spec"]


@pytest.mark.parametrize(("name", "body", "value"), RECORDED, ids=NAMES)
def test_a_recorded_body_is_the_object_that_the_server_gave_in_json(
    name: str, body: bytes, value: dict[str, Any]
) -> None:
    found = decode_object(body)
    assert found == value
    assert list(found)[:2] == ["kind", "apiVersion"]


@pytest.mark.parametrize(("name", "body", "value"), RECORDED, ids=NAMES)
def test_an_object_is_encoded_to_the_bytes_that_the_server_sent(
    name: str, body: bytes, value: dict[str, Any]
) -> None:
    assert encode_object(value) == body


@pytest.mark.parametrize("command", KUBECTL)
def test_what_kubectl_posts_survives_decoding_and_encoding(command: str) -> None:
    assert encode_object(decode_object(KUBECTL[command])) == KUBECTL[command]


def test_what_kubectl_posts_is_read() -> None:
    assert decode_object(KUBECTL["kubectl create configmap bin --from-file=b=bin"]) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "bin"},
        "binaryData": {"b": "/wD+"},
    }
    service = decode_object(KUBECTL["kubectl create service nodeport np --tcp=80:web --node-port=30001"])
    port = {"name": "80-web", "protocol": "TCP", "port": 80, "targetPort": "web", "nodePort": 30001}
    assert service["spec"] == {"ports": [port], "selector": {"app": "np"}, "type": "NodePort"}
    token = decode_object(KUBECTL["kubectl create token sa2"])
    assert token["apiVersion"] == "authentication.k8s.io/v1"
    assert token["spec"] == {"audiences": None, "boundObjectRef": None, "expirationSeconds": None}


def test_empty_values_are_left_out_as_omitempty_does_unless_a_pointer_holds_them() -> None:
    spec = pod(put(3, "") + put(4, 0) + put(11, 0) + put(21, 0))
    assert spec == {
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": None,
    }


def test_fields_without_omitempty_are_there_even_if_no_byte_speaks_of_them() -> None:
    assert pod(put(2, put(6, b"")))["containers"] == [{"name": "", "ports": [{"containerPort": 0}]}]
    raw = put(2, b"") + put(14, "")
    event = decode_object(envelope("v1", "Event", raw))
    assert event == {
        "kind": "Event",
        "apiVersion": "v1",
        "involvedObject": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }


def test_an_embedded_message_is_part_of_its_parent() -> None:
    volume = put(1, "v") + put(2, put(19, put(1, put(1, "c")) + put(4, 0)))
    assert pod(put(1, volume))["volumes"] == [{"name": "v", "configMap": {"name": "c", "optional": False}}]


@pytest.mark.parametrize(
    ("stamp", "text"),
    [
        (b"", None),
        (put(1, 0) + put(2, 0), "1970-01-01T00:00:00Z"),
        (put(1, 1_795_960_094) + put(2, 999_999_999), "2026-11-29T13:48:14Z"),
        (put(1, (1 << 64) - 1), "1969-12-31T23:59:59Z"),
        (put(1, (1 << 64) - 62_135_596_800), None),
        (put(1, 253_402_300_799), "9999-12-31T23:59:59Z"),
    ],
)
def test_times_are_cut_to_seconds_and_the_zero_time_is_none(stamp: bytes, text: str | None) -> None:
    assert config_map(put(1, put(8, stamp)))["metadata"].get("creationTimestamp") == text


def test_micro_times_are_cut_to_microseconds() -> None:
    spec = put(3, put(1, 1_795_960_094) + put(2, 999_999_999)) + put(4, put(1, 1))
    lease = decode_object(envelope("coordination.k8s.io/v1", "Lease", put(2, spec)))
    assert lease["spec"] == {
        "acquireTime": "2026-11-29T13:48:14.999999Z",
        "renewTime": "1970-01-01T00:00:01.000000Z",
    }
    spec = put(3, put(1, 1_795_960_094) + put(2, 999_999_000)) + put(4, put(1, 1) + put(2, 0))
    assert put(2, spec) in encode_object(lease)


def test_a_time_that_no_text_can_show_is_refused() -> None:
    for second in (253_402_300_800, (1 << 64) - 62_135_596_801, 1 << 62):
        with pytest.raises(ProtobufError, match="years 1 to 9999"):
            config_map(put(1, put(8, put(1, second))))


def test_quantities_and_numbers_or_strings() -> None:
    quantity = put(1, put(1, "cpu") + put(2, put(1, "100m")))
    probe = put(10, put(1, put(2, put(2, put(1, 1) + put(3, "http")))))
    container = pod(put(2, put(1, "c") + put(8, quantity) + probe))["containers"][0]
    assert container["resources"] == {"limits": {"cpu": "100m"}}
    assert container["livenessProbe"] == {"httpGet": {"port": "http"}}
    number = put(10, put(1, put(2, put(2, put(1, 0) + put(2, 8080) + put(3, "")))))
    assert pod(put(2, number))["containers"][0]["livenessProbe"] == {"httpGet": {"port": 8080}}


def test_negative_numbers_and_packed_ones() -> None:
    packed = put(14, put(4, b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01") + put(4, 7))
    assert pod(packed)["securityContext"] == {"supplementalGroups": [1, -1, 7]}
    assert b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" in encode_object(
        {"kind": "Pod", "apiVersion": "v1", "spec": {"securityContext": {"supplementalGroups": [-1]}}}
    )


def test_a_field_that_comes_twice_is_merged_as_go_merges_it() -> None:
    assert config_map(put(1, put(1, "a") + put(3, "ns")) + put(1, put(1, "b")))["metadata"] == {
        "name": "b",
        "namespace": "ns",
    }
    assert config_map(put(1, put(1, "a")) + put(1, put(1, "")))["metadata"] == {}
    spec = put(2, b"") + put(2, put(2, put(1, "c")))
    assert decode_object(envelope("v1", "Pod", spec))["spec"]["containers"] == [{"name": "c"}]
    request = put(2, b"") + put(2, put(3, put(3, "s")))
    token = decode_object(envelope("authentication.k8s.io/v1", "TokenRequest", request))
    assert token["spec"]["boundObjectRef"] == {"name": "s"}


def test_unknown_fields_of_any_wire_type_are_skipped() -> None:
    group = b"\xa3\x06" + put(3, "x") + b"\xa3\x06\xa4\x06" + b"\xa4\x06"
    unknown = put(100, 5) + put(100, "x") + b"\xa1\x06" + bytes(8) + b"\xa5\x06" + bytes(4) + group
    assert config_map(unknown + put(1, put(1, "a") + unknown) + unknown)["metadata"] == {"name": "a"}


def test_delete_options_are_read_in_every_group_version() -> None:
    raw = put(1, 0) + put(2, put(1, "u")) + put(4, "Background") + put(5, "All")
    for version in ("v1", "storage.k8s.io/v1", "meta.k8s.io/v1"):
        assert decode_object(envelope(version, "DeleteOptions", raw)) == {
            "kind": "DeleteOptions",
            "apiVersion": version,
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u"},
            "propagationPolicy": "Background",
            "dryRun": ["All"],
        }


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "empty data"),
        (b"k8s", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (
            b'{"kind":"Pod"}',
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        ),
        (b"k8s\x00", "empty body"),
        (envelope("v1", "Nothing", b""), "no protobuf message for kind 'Nothing' in version 'v1'"),
        (envelope("apps/v1", "Pod", b""), "no protobuf message for kind 'Pod' in version 'apps/v1'"),
        (
            envelope("v1", "BindingListList", b""),
            "no protobuf message for kind 'BindingListList' in version 'v1'",
        ),
        (envelope("v1", "Pod", b"") + put(3, "gzip"), "an encoded body (contentEncoding) is not read"),
        (envelope("v1", "Pod", b"\x0a"), "unexpected EOF"),
        (envelope("v1", "Pod", b"\x0a\x02\x00"), "unexpected EOF"),
        (envelope("v1", "Pod", b"\x08\x01"), "proto: wrong wireType = 0 for field metadata of Pod"),
        (
            envelope("v1", "DeleteOptions", put(1, "x")),
            "proto: wrong wireType = 2 for field gracePeriodSeconds",
        ),
        (envelope("v1", "Pod", b"\x02\x01"), "proto: Pod: illegal tag 0 (wire type 2)"),
        (envelope("v1", "Pod", b"\x0c"), "proto: Pod: wiretype end group for non-group"),
        (envelope("v1", "Pod", b"\xa6\x06"), "proto: illegal wireType 6"),
        (envelope("v1", "Pod", b"\xa3\x06"), "unexpected EOF"),
        (envelope("v1", "Pod", b"\xff" * 11), "proto: integer overflow"),
        (
            envelope("v1", "Pod", b"\x0a" + b"\xff" * 9 + b"\x01"),
            "proto: negative length found during unmarshaling",
        ),
        (envelope("v1", "Pod", put(1, put(1, b"\xff"))), "proto: invalid UTF-8 in a string"),
        (
            envelope("v1", "Pod", put(1, put(17, put(7, put(1, "{"))))),
            "raw bytes that are no JSON: Input data was truncated",
        ),
    ],
)
def test_what_is_wrong_with_a_body_is_said(body: bytes, text: str) -> None:
    with pytest.raises(ProtobufError) as caught:
        decode_object(body)
    assert str(caught.value) == text
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, SwarmletError)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "no kind or apiVersion: None, None"),
        (
            {"kind": "Deployment", "apiVersion": "apps/v2"},
            "no protobuf message for kind 'Deployment' in version",
        ),
        ({"kind": "Pod", "apiVersion": "v1", "spec": []}, "Pod: 'list' object has no attribute 'get'"),
        ({"kind": "Pod", "apiVersion": "v1", "spec": {"containers": 1}}, "Pod: 'int' object is not iterable"),
        ({"kind": "Secret", "apiVersion": "v1", "data": {"a": "%"}}, "Secret: "),
    ],
)
def test_what_cannot_be_encoded_is_said(value: dict[str, Any], text: str) -> None:
    with pytest.raises(ProtobufError) as caught:
        encode_object(value)
    assert str(caught.value).startswith(text)


def test_every_message_type_of_the_table_is_whole_and_of_use() -> None:
    """Types that a line refers to exist (else KeyError), numbers and names are unique, no line is unused."""
    used = set(ANY_VERSION) | {"ListMeta"} | set(RENAMED.values())
    used |= {kind for kinds in KINDS.values() for kind in kinds}
    modules = (access, definitions, devices, network, objects, pods, scaling, storage, webhooks, workloads)
    text = "".join(module.MESSAGES for module in modules)
    names = [line.partition(":")[0] for line in text.splitlines() if line and line[0] != " "]
    assert len(names) == len(set(names))
    without_fields = ["CustomResourceSubresourceStatus"]
    columns = text.count(";") + len(names) - len(without_fields)
    assert sum(len(message(name).fields) for name in names) == columns
    for name in names:
        fields = message(name).ordered
        assert len({field.name for field in fields}) == len(fields), name
        used |= {field.kind for field in fields}
    assert set(names) <= used


def test_the_served_kinds_and_their_lists_are_in_the_table() -> None:
    for api_version, kinds in KINDS.items():
        for kind in kinds:
            assert message_of(api_version, kind) is not None
            assert message_of(api_version, f"{kind}List") is not None


@pytest.mark.parametrize(("version", "kinds"), sorted(KINDS.items()))
def test_every_kind_of_the_table_has_a_message(version: str, kinds: frozenset[str]) -> None:
    for kind in kinds:
        assert decode_object(envelope(version, kind, put(1, put(1, "x"))))["kind"] == kind


def test_what_kubectl_asks_and_grants_is_read() -> None:
    attributes = put(1, "ns") + put(2, "list") + put(5, "pods")
    review = decode_object(
        envelope("authorization.k8s.io/v1", "SelfSubjectAccessReview", put(2, put(1, attributes)))
    )
    asked = {"namespace": "ns", "verb": "list", "resource": "pods"}
    assert review["spec"] == {"resourceAttributes": asked}
    rule = put(1, "get") + put(1, "list") + put(2, "") + put(3, "pods") + put(4, "p")
    role = decode_object(envelope("rbac.authorization.k8s.io/v1", "Role", put(2, rule)))
    assert role["rules"] == [
        {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["p"]}
    ]
    subject = put(1, "User") + put(2, "rbac.authorization.k8s.io") + put(3, "u")
    reference = put(1, "rbac.authorization.k8s.io") + put(2, "Role") + put(3, "r")
    binding = put(2, subject) + put(3, reference)
    found = decode_object(envelope("rbac.authorization.k8s.io/v1", "RoleBinding", binding))
    assert found["subjects"] == [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"}]
    assert found["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}


def test_a_volume_s_source_is_part_of_its_spec() -> None:
    quantity = put(1, put(1, "storage") + put(2, put(1, "1Gi")))
    spec = quantity + put(2, put(22, put(1, "d") + put(2, "h"))) + put(3, "ReadWriteOnce")
    volume = decode_object(envelope("v1", "PersistentVolume", put(2, spec)))
    assert volume["spec"] == {
        "capacity": {"storage": "1Gi"},
        "csi": {"driver": "d", "volumeHandle": "h"},
        "accessModes": ["ReadWriteOnce"],
    }


def test_a_deployment_of_kubectl_is_read() -> None:
    labels = put(11, put(1, "app") + put(2, "x"))
    selector = put(2, put(1, put(1, "app") + put(2, "x")))
    template = put(3, put(1, labels + put(8, b"")) + put(2, put(2, put(1, "y") + put(2, "y") + put(8, b""))))
    raw = put(1, put(1, "x") + labels) + put(2, put(1, 1) + selector + template + put(4, put(1, "")))
    deployment = decode_object(envelope("apps/v1", "Deployment", raw))
    assert deployment["spec"] == {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "x"}},
        "template": {
            "metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "y", "image": "y", "resources": {}}]},
        },
        "strategy": {},
    }


def test_one_name_of_two_kinds_is_told_apart_by_the_version() -> None:
    old = decode_object(envelope("autoscaling/v1", "HorizontalPodAutoscaler", put(2, put(3, 5) + put(4, 80))))
    assert old["spec"] == {"maxReplicas": 5, "targetCPUUtilizationPercentage": 80}
    newer = decode_object(envelope("events.k8s.io/v1", "Event", put(8, put(3, "p")) + put(10, "text")))
    assert (newer["regarding"], newer["note"]) == ({"name": "p"}, "text")
    claim = put(2, put(1, put(1, put(1, "r") + put(2, put(1, "c")))))
    found = decode_object(envelope("resource.k8s.io/v1", "ResourceClaim", claim))
    requests = found["spec"]["devices"]["requests"]
    assert requests == [{"name": "r", "exactly": {"deviceClassName": "c"}}]


def test_the_extra_of_a_user_is_lists_of_strings() -> None:
    entry = put(1, "scopes") + put(2, put(1, "a") + put(1, ""))
    spec = put(2, put(3, "u") + put(5, entry) + put(5, put(1, "none")))
    review = decode_object(envelope("authorization.k8s.io/v1", "SubjectAccessReview", spec))
    assert review["spec"] == {"user": "u", "extra": {"scopes": ["a", ""], "none": None}}
    assert put(5, entry) in encode_object(review)


def test_raw_json_stays_json() -> None:
    revision = decode_object(envelope("apps/v1", "ControllerRevision", put(2, put(1, '{"a":[1,null]}'))))
    assert revision["data"] == {"a": [1, None]}
    assert put(2, put(1, '{"a":[1,null]}')) in encode_object(revision)
    assert decode_object(envelope("apps/v1", "ControllerRevision", b"")) == {
        "kind": "ControllerRevision",
        "apiVersion": "apps/v1",
        "data": None,
        "revision": 0,
    }


def test_the_schemas_of_a_definition_may_hold_themselves() -> None:
    properties = {
        "any": {"x-kubernetes-preserve-unknown-fields": True, "nullable": True, "default": None},
        "count": {"type": "integer", "minimum": 0, "maximum": 1e21, "multipleOf": 0.5, "enum": [0, None]},
        "list": {"type": "array", "items": {"type": "string", "default": ""}},
        "tuple": {"items": [{"type": "string"}, {}]},
        "map": {"additionalProperties": {"properties": {"deep": {"type": "boolean"}}}},
        "open": {"additionalProperties": True},
        "closed": {"additionalProperties": False, "dependencies": {"a": ["b"], "c": {"type": "object"}}},
    }
    version = {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}}
    definition = {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "spec": {"versions": [version]},
    }
    found = decode_object(encode_object(definition))
    read = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert read.pop("any") == {"x-kubernetes-preserve-unknown-fields": True, "nullable": True}
    del properties["any"]
    assert read == properties
    assert isinstance(read["count"]["minimum"], int)


def test_a_double_in_another_form_is_refused() -> None:
    for form in (b"\x48\x01", b"\x4a\x01\x00"):
        schema = put(2, put(7, put(4, put(1, form))))
        with pytest.raises(ProtobufError, match="wrong wireType"):
            decode_object(envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", schema))


class _Device(msgspec.Struct):
    name: str
    attributes: dict[str, dict[str, Any]] = {}


class _SliceSpec(msgspec.Struct):
    devices: list[_Device]


class _Slice(msgspec.Struct):
    spec: _SliceSpec


def test_a_view_reads_maps_of_messages() -> None:
    attributes: dict[str, dict[str, Any]] = {"model": {"string": "m"}, "empty": {}, "slot": {"int": 0}}
    body = encode_object(
        {
            "kind": "ResourceSlice",
            "apiVersion": "resource.k8s.io/v1",
            "spec": {"driver": "d", "devices": [{"name": "gpu", "attributes": attributes}]},
        }
    )
    assert ViewDecoder(_Slice).decode(body) == _Slice(_SliceSpec([_Device("gpu", attributes)]))


@pytest.mark.parametrize("stream", streams())
def test_the_frames_of_a_watch_are_those_that_the_server_sent(stream: bytes) -> None:
    events = ProtobufWatchDecoder().feed(stream)
    assert events
    assert b"".join(encode_frame(kind, body) for kind, body in events) == stream
