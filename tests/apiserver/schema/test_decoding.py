"""Documents as Go's decoder takes them: what it keeps, what it minds, what it refuses, in its words."""

from typing import Any

import msgspec
import pytest

from harness.apiserver.schema import Schema, schema_for
from harness.apiserver.schema.checked import check_of, no_key_is_lost
from harness.apiserver.schema.decode import (
    MAX_STRICT_ERRORS,
    decode_strictly,
    decode_value,
    repeated_keys,
)


def schema(kind: str) -> Schema:
    api_version, _, name = kind.rpartition("/")
    found = schema_for(api_version, name)
    assert found is not None
    return found


POD = schema("v1/Pod")


@pytest.mark.parametrize(
    ("document", "kept", "strict"),
    [
        ('{"spec":{"foo":1}}', {"spec": {}}, ['unknown field "spec.foo"']),
        ('{"bar":{"a":1,"a":2}}', {}, ['unknown field "bar"']),
        (
            '{"spec":{"containers":[{},{"name":"a","name":"b","zz":1}]}}',
            {"spec": {"containers": [{}, {"name": "b"}]}},
            ['duplicate field "spec.containers[1].name"', 'unknown field "spec.containers[1].zz"'],
        ),
        (
            '{"metadata":{"labels":{"a":"1","a":"2"}}}',
            {"metadata": {"labels": {"a": "2"}}},
            ['duplicate field "metadata.labels.a"'],
        ),
        ('{"spec":{"Containers":[]}}', {"spec": {}}, ['unknown field "spec.Containers"']),
        ('{"x":1,"x":2}', {}, ['unknown field "x"']),
        # what reads itself does not say what stands twice in it
        (
            '{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{},"f:a":{}}}]}}',
            {"metadata": {"managedFields": [{"fieldsV1": {"f:a": {}}}]}},
            [],
        ),
        # nulls are zero values
        ('{"metadata":{"labels":{"a":null}}}', {"metadata": {"labels": {"a": ""}}}, []),
        ('{"metadata":{"finalizers":[null,"b"]}}', {"metadata": {"finalizers": ["", "b"]}}, []),
        ('{"spec":{"containers":[null]}}', {"spec": {"containers": [{}]}}, []),
        ('{"spec":{"nodeName":null,"containers":null}}', {"spec": {}}, []),
        (
            '{"status":{"conditions":[{"type":"a","lastProbeTime":null}]}}',
            {"status": {"conditions": [{"type": "a", "lastProbeTime": None}]}},
            [],
        ),
    ],
)
def test_what_is_kept_and_what_is_minded(document: str, kept: Any, strict: list[str]) -> None:
    decoded = decode_strictly(document.encode(), POD)
    assert (decoded.value, decoded.strict, decoded.fatal) == (kept, strict, "")


INTO = "into Go struct field "


@pytest.mark.parametrize(
    ("kind", "document", "fatal"),
    [
        (
            "v1/Pod",
            '{"spec":{"containers":[{"name":5}]}}',
            f"json: cannot unmarshal number {INTO}Container.spec.containers.name of type string",
        ),
        (
            "v1/Pod",
            '{"spec":{"containers":{}}}',
            f"json: cannot unmarshal object {INTO}PodSpec.spec.containers of type []v1.Container",
        ),
        ("v1/Pod", '{"spec":"x"}', f"json: cannot unmarshal string {INTO}Pod.spec of type v1.PodSpec"),
        (
            "v1/Pod",
            '{"spec":{"priority":3000000000}}',
            f"json: cannot unmarshal number 3000000000 {INTO}PodSpec.spec.priority of type int32",
        ),
        (
            "v1/Pod",
            '{"spec":{"priority":1.5}}',
            f"json: cannot unmarshal number 1.5 {INTO}PodSpec.spec.priority of type int32",
        ),
        (
            "v1/Pod",
            '{"spec":{"restartPolicy":true}}',
            f"json: cannot unmarshal bool {INTO}PodSpec.spec.restartPolicy of type v1.RestartPolicy",
        ),
        (
            "v1/Pod",
            '{"metadata":{"labels":{"a":1}}}',
            f"json: cannot unmarshal number {INTO}ObjectMeta.metadata.labels of type string",
        ),
        (
            "v1/Pod",
            '{"metadata":{"creationTimestamp":1}}',
            f"json: cannot unmarshal number {INTO}ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            "v1/Pod",
            '{"metadata":{"creationTimestamp":"soon"}}',
            'parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"',
        ),
        (
            "v1/Pod",
            '{"spec":{"overhead":{"cpu":"much"}}}',
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            "v1/Pod",
            '{"spec":{"overhead":[]}}',
            f"json: cannot unmarshal array {INTO}PodSpec.spec.overhead of type v1.ResourceList",
        ),
        (
            "v1/Service",
            '{"spec":{"ports":[{"targetPort":true}]}}',
            f"json: cannot unmarshal bool {INTO}ServicePort.spec.ports.targetPort of type int32",
        ),
        ("v1/Secret", '{"data":{"k":"a"}}', "illegal base64 data at input byte 0"),
        (
            "v1/Secret",
            '{"data":{"k":1}}',
            f"json: cannot unmarshal number {INTO}Secret.data of type []uint8",
        ),
        ("v1/Pod", "[]", "json: cannot unmarshal array into Go value of type v1.Pod"),
    ],
)
def test_a_value_of_another_type_is_refused(kind: str, document: str, fatal: str) -> None:
    assert decode_strictly(document.encode(), schema(kind)).fatal == fatal
    assert decode_value(msgspec.json.decode(document), schema(kind)).fatal == fatal
    assert not check_of(schema(kind)).fits(document.encode())


def test_the_first_fault_of_a_type_is_told_and_the_rest_is_still_read() -> None:
    decoded = decode_strictly(b'{"spec":{"nodeName":1,"hostname":2,"foo":3}}', POD)
    assert "nodeName" in decoded.fatal
    assert decoded.strict == ['unknown field "spec.foo"']


@pytest.mark.parametrize("count", [MAX_STRICT_ERRORS - 1, MAX_STRICT_ERRORS, MAX_STRICT_ERRORS + 1])
def test_no_more_than_a_hundred_faults_are_kept(count: int) -> None:
    document = msgspec.json.encode({f"x{at}": 1 for at in range(count)})
    assert len(decode_strictly(document, POD).strict) == min(count, MAX_STRICT_ERRORS)


def test_too_deep_is_refused() -> None:
    depth = 100_000
    document = b'{"metadata":{"managedFields":[{"fieldsV1":' + b"[" * depth + b"]" * depth + b"}]}}"
    assert decode_strictly(document, POD).fatal == "exceeded max depth"


def test_a_patch_is_read_without_a_type() -> None:
    document = b'{"a":{"b":[{"c":1,"c":2}]},"a":null}'
    assert repeated_keys(document) == ['duplicate field "a.b[0].c"', 'duplicate field "a"']


# ---- the quick look --------------------------------------------------------------------------------------------------
FITTING = {
    "metadata": {"name": "p", "creationTimestamp": None, "labels": {"a": "b"}},
    "spec": {
        "containers": [
            {"name": "c", "resources": {"limits": {"cpu": "5m", "memory": 100}}, "command": ["x"]}
        ],
        "priority": -(1 << 31),
    },
    "status": {"startTime": "2026-01-01T00:00:00Z"},
}


def test_what_fits_passes_at_once() -> None:
    assert check_of(POD).fits(msgspec.json.encode(FITTING))
    assert check_of(POD).status_fits(msgspec.json.encode({**FITTING, "spec": "not looked at"}))
    assert not check_of(POD).status_fits(b'{"metadata":{},"status":{"phase":1}}')
    assert not check_of(POD).status_fits(b'{"metadata":{},"status":{"foo":1}}')


def test_a_type_that_holds_itself_is_left_to_the_closer_look() -> None:
    definition = schema("apiextensions.k8s.io/v1/CustomResourceDefinition")
    assert not check_of(definition).fits(b"{}")


@pytest.mark.parametrize(
    ("document", "sure"),
    [
        (b'{"a":1,"b":{"c":"d"}}', True),
        (b'{"a": 1, "b": {"c": "\\":"}}', True),
        (b'{"a":1,"a":1}', False),
        (b'{"a":1, "a":1}', False),
        (b'{"a" :1,"b":2,"b":3}', False),
        (b'{"a":{"b":1,"b":2},"c":"\\u003a"}', False),
    ],
)
def test_keys_that_stand_twice_are_never_missed(document: bytes, sure: bool) -> None:
    assert no_key_is_lost(document, msgspec.json.decode(document)) is sure
