"""Whatever bytes or objects come, only ProtobufError escapes; what is encoded is read back the same."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.wire.protobuf import MAGIC, ProtobufError, decode_object, encode_object
from harness.wire.protobuf.schema import KINDS, Field, Shape, message_of
from tests.wire.protobuf_bytes import contained, envelope, kubectl, raw_object, recorded

RECORDED = {name: body for name, body, _ in recorded()} | kubectl()
NAMES, BODIES = list(RECORDED), list(RECORDED.values())
ALL_KINDS = sorted((version, kind) for version, kinds in KINDS.items() for kind in kinds)
TEXT = st.text(max_size=5)
STAMP = st.integers(0, 4_102_444_800)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXT,
    "bytes": st.sampled_from(["", "AA==", "/wD+"]),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "bool": st.booleans(),
    "Quantity": st.sampled_from(["0", "100m", "1Gi"]),
    "IntOrString": st.integers(0, 65535) | TEXT,
    "Time": st.sampled_from(["2026-11-29T13:48:14Z", "1970-01-01T00:00:00Z"]),
    "MicroTime": st.sampled_from(["2026-11-29T13:48:14.000001Z", "2038-01-19T03:14:08.999999Z"]),
    "FieldsV1": st.just({"f:data": {".": {}}}),
    "double": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(1 << 53), 1 << 53),
    "JSON": st.just({"a": [1]}) | TEXT | st.none(),
    "RawExtension": st.just({"a": 0.5}) | st.booleans(),
    "Strings": st.lists(TEXT, max_size=2),
    "JSONSchemaPropsOrArray": st.just({"type": "string"}) | st.just([{"type": "string"}, {}]),
    "JSONSchemaPropsOrBool": st.just({"type": "string"}) | st.booleans(),
    "JSONSchemaPropsOrStringArray": st.just({"type": "string"}) | st.just(["a"]),
}


def draw_object(draw: st.DrawFn, api_version: str, kind: str) -> dict[str, Any]:
    found = message_of(api_version, kind)
    assert found is not None
    return {"kind": kind, "apiVersion": api_version, **_draw_message(draw, found.ordered, 0)}


def _draw_message(draw: st.DrawFn, fields: tuple[Field, ...], depth: int) -> dict[str, Any]:
    """A few of the fields, fewer the deeper."""
    chosen = draw(
        st.lists(st.sampled_from(fields), max_size=max(1, 5 - depth), unique_by=lambda field: field.name)
    )
    found: dict[str, Any] = {}
    for field in chosen:
        if field.embedded:
            assert field.message is not None
            found.update(_draw_message(draw, field.message.ordered, depth + 1))
        elif field.shape is Shape.ONE:
            found[field.name] = _draw_value(draw, field, depth)
        elif field.shape is Shape.MANY:
            found[field.name] = [_draw_value(draw, field, depth) for _ in range(draw(st.integers(0, 2)))]
        else:
            found[field.name] = {
                key: _draw_value(draw, field, depth) for key in draw(st.sets(TEXT, max_size=2))
            }
    return found


def _draw_value(draw: st.DrawFn, field: Field, depth: int) -> Any:
    if field.message is None:
        return draw(SCALARS[field.kind])
    return _draw_message(draw, field.message.ordered, depth + 1) if depth < 8 else {}


@st.composite
def served_objects(draw: st.DrawFn) -> dict[str, Any]:
    return draw_object(draw, *draw(st.sampled_from(ALL_KINDS)))


@settings(max_examples=150, deadline=None)
@given(served_objects())
def test_an_encoded_object_is_read_back(value: dict[str, Any]) -> None:
    body = encode_object(value)
    found = decode_object(body)
    assert contained(value, found)
    assert encode_object(found) == body


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(ALL_KINDS))
def test_only_the_declared_error_escapes_from_bytes(data: bytes, kind: tuple[str, str]) -> None:
    for body in (data, MAGIC + data, envelope(*kind, data)):
        with suppress(ProtobufError):
            decode_object(body)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(BODIES),
    st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_only_the_declared_error_escapes_from_damaged_bodies(
    body: bytes, damage: list[tuple[int, int]]
) -> None:
    damaged = bytearray(body)
    for at, byte in damage:
        damaged[at % len(body)] = byte
    with suppress(ProtobufError):
        encode_object(decode_object(bytes(damaged)))


@pytest.mark.parametrize("body", BODIES, ids=NAMES)
def test_a_body_is_whole_only_where_a_field_of_the_envelope_ends(body: bytes) -> None:
    whole = []
    for stop in range(len(body)):
        with suppress(ProtobufError):
            whole.append((stop, decode_object(body[:stop])))
    types, raw, encoding = whole
    assert body[types[0] - len(types[1]["kind"]) : types[0]].decode() == types[1]["kind"]
    assert set(types[1]) < set(raw[1]), "no object at all reads as an empty one"
    assert (raw[0], encoding[0]) == (len(body) - 4, len(body) - 2)
    assert raw[1] == encoding[1] == decode_object(body)


@pytest.mark.parametrize("body", BODIES, ids=NAMES)
def test_an_object_cut_anywhere_lets_only_the_declared_error_escape(body: bytes) -> None:
    found = decode_object(body)
    raw = raw_object(body)
    refused = 0
    for stop in range(len(raw)):
        try:
            decode_object(envelope(found["apiVersion"], found["kind"], raw[:stop]))
        except ProtobufError:
            refused += 1
    assert refused >= len(raw) * 0.8, "a cut is seen but between the fields of the object itself"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def objects_with_a_wrong_value(draw: st.DrawFn) -> dict[str, Any]:
    value = draw(served_objects())
    at = value
    while True:
        key = draw(st.sampled_from(sorted(at)))
        inner = at[key]
        if not isinstance(inner, dict) or not inner or draw(st.booleans()):
            at[key] = draw(JSON)
            return value
        at = inner


@settings(max_examples=150, deadline=None)
@given(objects_with_a_wrong_value())
def test_only_the_declared_error_escapes_from_encoding(value: dict[str, Any]) -> None:
    with suppress(ProtobufError):
        encode_object(value)
