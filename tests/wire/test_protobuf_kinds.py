"""The table of message types is that of the served kinds: every field of their schemas, of the same type, no other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.apiserver.resources import RESOURCES
from harness.apiserver.schema import Schema, schema_for
from harness.apiserver.schema.tree import (
    ANY,
    BOOLEAN,
    BYTES,
    INT_OR_STRING,
    INTEGER,
    LIST,
    MAP,
    NUMBER,
    OBJECT,
    QUANTITY,
    STRING,
    TIME,
)
from harness.wire.protobuf import decode_object, encode_object
from harness.wire.protobuf.schema import Field, Message, Shape, message_of
from tests.wire.protobuf_bytes import contained

BODIES = [
    ("v1", "Binding"),
    ("v1", "DeleteOptions"),
    ("v1", "Status"),
    ("authentication.k8s.io/v1", "TokenRequest"),
    ("autoscaling/v1", "Scale"),
    ("policy/v1", "Eviction"),
]
"""Sent or answered by subresources and by faults."""
SERVED = sorted({(row.api_version, row.kind) for row in RESOURCES} | set(BODIES))

NEWER = {
    "CSINode": "status",
    "ClusterTrustBundleProjection": "user",
    "ConfigMapVolumeSource": "defaultUser",
    "Device": "nodeAllocatableResources",
    "DeviceCounterConsumption": "compatibilityGroups",
    "DeviceRequestAllocationResult": "skipNodeOperations",
    "DeviceSubRequest": "derivedAttributes",
    "DownwardAPIVolumeFile": "user",
    "DownwardAPIVolumeSource": "defaultUser",
    "EmptyDirVolumeSource": "mode",
    "ExactDeviceRequest": "derivedAttributes",
    "GRPCAction": "mode",
    "HTTPGetAction": "protocol",
    "HorizontalPodAutoscalerCondition": "observedGeneration",
    "JobSpec": "scheduling",
    "KeyToPath": "user",
    "NodeAllocatableResourceClaimStatus": "mapping overhead",
    "NodeSpec": "podPreemptionPolicy",
    "NodeSystemInfo": "runningInUserNamespace",
    "PersistentVolumeClaimStatus": "healthStatus",
    "PodCertificateProjection": "user",
    "PodSpec": "evictionResponders",
    "PodStatus": "volumeHealth",
    "ProjectedVolumeSource": "defaultUser",
    "ResourceSliceSpec": "partitionTypeAttribute skipNodeOperations",
    "SecretVolumeSource": "defaultUser",
    "ServiceAccountTokenProjection": "user",
    "TokenRequestSpec": "attestations",
    "VolumeMount": "bindMountOptions",
}
"""Fields that the models of v1.37 have and v1.36 has not."""
GONE = {
    "Device": "nodeAllocatableResourceMappings",
    "NodeAllocatableResourceClaimStatus": "resources",
}
"""Fields that v1.36 has and v1.37 has not."""

TYPED = ("DeleteOptions", "PersistentVolumeClaim")
"""Have a kind and an apiVersion within other objects too, which protobuf leaves to the envelope."""

NAMES = {
    STRING: "string",
    INTEGER: "int",
    NUMBER: "double",
    BOOLEAN: "bool",
    BYTES: "bytes",
    TIME: "Time",
    QUANTITY: "Quantity",
    INT_OR_STRING: "IntOrString",
}
UNTYPED = {
    "AllocatedDeviceStatus.data": "RawExtension",
    "ControllerRevision.data": "RawExtension",
    "CustomResourceSubresources.status": "CustomResourceSubresourceStatus",
    "JSONSchemaProps.additionalItems": "JSONSchemaPropsOrBool",
    "JSONSchemaProps.additionalProperties": "JSONSchemaPropsOrBool",
    "JSONSchemaProps.default": "JSON",
    "JSONSchemaProps.dependencies": "JSONSchemaPropsOrStringArray",
    "JSONSchemaProps.enum": "JSON",
    "JSONSchemaProps.example": "JSON",
    "JSONSchemaProps.items": "JSONSchemaPropsOrArray",
    "ManagedFieldsEntry.fieldsV1": "FieldsV1",
    "OpaqueDeviceConfiguration.parameters": "RawExtension",
}
"""What the models call an object of no known fields."""


def _fields(message: Message) -> dict[str, Field]:
    found: dict[str, Field] = {}
    for field in message.ordered:
        if field.embedded:
            assert field.message is not None
            found |= _fields(field.message)
        else:
            found[field.name] = field
    return found


def _differences(
    schema: Schema, message: Message, seen: set[tuple[str, str]], top: bool = False
) -> list[str]:
    if (schema.name, message.name) in seen:
        return []
    seen.add((schema.name, message.name))
    fields = _fields(message)
    expected = set(schema.fields) - set(NEWER.get(schema.name, "").split())
    expected |= set(GONE.get(schema.name, "").split())
    expected -= {"apiVersion", "kind"} if top or schema.name in TYPED else set()
    found = [f"{message.name}.{name}" for name in expected ^ set(fields)]
    for name in expected & set(fields) & set(schema.fields):
        found += _difference(f"{schema.name}.{name}", schema.fields[name], fields[name], seen)
    return found


def _difference(path: str, schema: Schema, field: Field, seen: set[tuple[str, str]]) -> list[str]:
    shape = Shape.MANY if schema.type == LIST else Shape.MAP if schema.type == MAP else Shape.ONE
    item = schema.items or schema
    if field.message is not None and item.type == OBJECT:
        return [path] * (shape is not field.shape) + _differences(item, field.message, seen)
    if item.type == LIST:
        assert item.items is not None
        return [path] * ((field.shape, field.kind, item.items.type) != (shape, "Strings", STRING))
    kind = UNTYPED.get(path) if item.type == ANY else NAMES[item.type]
    kind = "MicroTime" if item.format == "micro" else kind
    return [path] * ((shape, kind) != (field.shape, field.kind))


@pytest.mark.parametrize(("api_version", "kind"), SERVED)
def test_a_served_kind_s_message_has_the_fields_of_its_schema(api_version: str, kind: str) -> None:
    schema, message = schema_for(api_version, kind), message_of(api_version, kind)
    assert schema is not None
    assert message is not None
    assert _differences(schema, message, set(), top=True) == []
    assert (api_version, kind) in BODIES or message_of(api_version, f"{kind}List") is not None


TEXT = st.text(max_size=5)
JSON = st.recursive(
    st.booleans() | st.integers(-(1 << 53), 1 << 53) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    STRING: TEXT,
    INTEGER: st.integers(-(1 << 31), (1 << 31) - 1),
    NUMBER: st.integers(-(1 << 53), 1 << 53) | st.floats(allow_nan=False, allow_infinity=False),
    BOOLEAN: st.booleans(),
    BYTES: st.sampled_from(["", "AA==", "/wD+"]),
    QUANTITY: st.sampled_from(["0", "100m", "1Gi"]),
    INT_OR_STRING: st.integers(0, 65535) | TEXT,
}
SCHEMAS: st.SearchStrategy[Any] = st.deferred(
    lambda: st.fixed_dictionaries({}, optional={"type": TEXT, "properties": PROPERTIES})
)
PROPERTIES: st.SearchStrategy[dict[str, Any]] = st.dictionaries(TEXT, SCHEMAS, max_size=2)
STRINGS = st.lists(TEXT, min_size=1, max_size=2)
ANYTHING: dict[str, st.SearchStrategy[Any]] = {
    "RawExtension": JSON,
    "JSON": JSON,
    "FieldsV1": st.just({"f:data": {".": {}}}),
    "CustomResourceSubresourceStatus": st.just({}),
    "JSONSchemaPropsOrBool": SCHEMAS | st.booleans(),
    "JSONSchemaPropsOrArray": SCHEMAS | st.lists(SCHEMAS, min_size=1, max_size=2),
    "JSONSchemaPropsOrStringArray": SCHEMAS | STRINGS,
}


def _draw(draw: st.DrawFn, path: str, schema: Schema, depth: int) -> Any:
    if schema.type == OBJECT:
        return _draw_object(draw, schema, depth + 1) if depth < 8 else {}
    if schema.type == LIST:
        assert schema.items is not None
        return [_draw(draw, path, schema.items, depth) for _ in range(draw(st.integers(1, 2)))]
    if schema.type == MAP:
        assert schema.items is not None
        return {key: _draw(draw, path, schema.items, depth) for key in draw(st.sets(TEXT, max_size=2))}
    if schema.type == TIME:
        return "2026-11-29T13:48:14.000001Z" if schema.format == "micro" else "2026-11-29T13:48:14Z"
    return draw(ANYTHING[UNTYPED[path]] if schema.type == ANY else SCALARS[schema.type])


def _draw_object(draw: st.DrawFn, schema: Schema, depth: int) -> dict[str, Any]:
    """A few of the fields, fewer the deeper."""
    left_out = {"apiVersion", "kind"} if schema.name in TYPED else set()
    known = sorted(set(schema.fields) - set(NEWER.get(schema.name, "").split()) - left_out)
    size = max(1, 5 - depth)
    chosen = draw(st.lists(st.sampled_from(known), max_size=size, unique=True)) if known else []
    return {name: _draw(draw, f"{schema.name}.{name}", schema.fields[name], depth) for name in chosen}


@st.composite
def objects_of_schemas(draw: st.DrawFn) -> dict[str, Any]:
    api_version, kind = draw(st.sampled_from(SERVED))
    schema = schema_for(api_version, kind)
    assert schema is not None
    return _draw_object(draw, schema, 0) | {"apiVersion": api_version, "kind": kind}


@settings(max_examples=400, deadline=None)
@given(objects_of_schemas())
def test_whatever_a_schema_allows_is_encoded_and_read_back(value: dict[str, Any]) -> None:
    body = encode_object(value)
    found = decode_object(body)
    assert contained(value, found)
    assert encode_object(found) == body
