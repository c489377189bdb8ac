"""Objects to protobuf, byte for byte as Go writes them: by field number, maps by key, zero values where no pointer.

A message's plan is made when it is first written: for each of its fields a function from its value to its bytes, and
the bytes of its absence.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Any

import msgspec

from harness.wire.protobuf.schema import Field, Message, Shape, message, message_of
from harness.wire.protobuf.wireformat import MAGIC, ProtobufError, UnknownKind, put_varint
from harness.wire.rfc3339 import parse

_Put = Callable[[Any], bytes]
_DOUBLE = Struct("<d")
_SIZES = tuple(put_varint(size) for size in range(512))
"""What is written most."""


def encode_object(value: dict[str, Any]) -> bytes:
    """An envelope with the object, the list or the Status `value`; keys that the table lacks are left out.

    Raises UnknownKind for a kind that the table lacks, ProtobufError for values of another type than the field's.
    """
    kind, api_version = value.get("kind"), value.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(api_version, str):
        raise ProtobufError(f"no kind or apiVersion: {kind!r:.100}, {api_version!r:.100}")
    return envelope(api_version, kind, encode_raw(api_version, kind, value))


def encode_raw(api_version: str, kind: str, value: dict[str, Any]) -> bytes:
    """The object alone, as it stands in a list or in an envelope. Raises as `encode_object`."""
    found = message_of(api_version, kind)
    if found is None:
        raise UnknownKind(f"no protobuf message for kind {kind[:100]!r} in version {api_version[:100]!r}")
    try:
        return _message(value, found)
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise ProtobufError(f"{kind}: {error}") from None


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    """An object that `encode_raw` has made in its envelope (runtime.Unknown)."""
    return b'%b\x12%b%b\x1a\x00"\x00' % (_head(api_version, kind), put_varint(len(raw)), raw)


@lru_cache(maxsize=256)
def _head(api_version: str, kind: str) -> bytes:
    types = b"\n" + sized(api_version.encode()) + b"\x12" + sized(kind.encode())
    return MAGIC + b"\n" + sized(types)


def sized(data: bytes) -> bytes:
    """Behind its length."""
    size = len(data)
    return (_SIZES[size] if size < 512 else put_varint(size)) + data


# ---- messages ------------------------------------------------------------------------------------------------------
def _message(value: dict[str, Any], of: Message) -> bytes:
    plan = of.plan
    if plan is None:
        plan = of.plan = tuple(map(_planned, of.ordered))
    get = value.get
    parts = []
    for name, put, absent in plan:
        item = get(name) if name else value
        if item is not None:
            parts.append(put(item))
        elif absent:
            parts.append(absent)
    return b"".join(parts)


def _planned(field: Field) -> tuple[str, _Put, bytes]:
    """A field's name, "" of one that is embedded; what writes it; what stands for its absence."""
    body, tag = _body(field), field.tag
    if field.shape is Shape.MANY:
        return field.name, _many(tag, body), b""
    if field.shape is Shape.MAP:
        return field.name, _map(tag, body), b""
    if field.embedded:
        return "", lambda value: tag + body(value), b""
    absent = b"" if field.pointer else tag + body(_ABSENT.get(field.kind, {} if field.message else None))
    return field.name, _string(tag) if field.kind == "string" else lambda item: tag + body(item), absent


def _body(field: Field) -> _Put:
    """What writes a value behind its tag."""
    of = field.message
    if of is not None:
        return lambda item: sized(_message(item, of))
    if field.kind in _NUMBERS:
        return _NUMBERS[field.kind]
    write = _WRITERS[field.kind]
    return lambda item: sized(write(item))


def _many(tag: bytes, body: _Put) -> _Put:
    return lambda items: b"".join([tag + body(item) for item in items])


def _map(tag: bytes, body: _Put) -> _Put:
    def put(items: dict[str, Any]) -> bytes:
        entries = []
        for key in sorted(items):
            entry = b"\n%b\x12%b" % (sized(key.encode()), body(items[key]))
            entries.append(tag + sized(entry))
        return b"".join(entries)

    return put


def _string(tag: bytes) -> _Put:
    """Half of all fields: in one step."""
    heads = tuple(tag + size for size in _SIZES)

    def put(item: str) -> bytes:
        data = item.encode()
        size = len(data)
        return heads[size] + data if size < 512 else tag + put_varint(size) + data

    return put


# ---- values --------------------------------------------------------------------------------------------------------
def _int(item: Any) -> bytes:
    return put_varint(int(item or 0))


def _bool(item: Any) -> bytes:
    return b"\x01" if item else b"\x00"


def _double(item: Any) -> bytes:
    return _DOUBLE.pack(float(item))


def _text(item: Any) -> bytes:
    data: bytes = item.encode()
    return data


def _bytes(item: Any) -> bytes:
    return b64decode(item or "", validate=True)


def _quantity(item: Any) -> bytes:
    return b"\n" + sized(str(item or "0").encode())


def _int_or_string(item: Any) -> bytes:
    if isinstance(item, str):
        return b"\x08\x01\x10\x00\x1a" + sized(item.encode())
    return b"\x08\x00\x10" + put_varint(item or 0) + b"\x1a\x00"


@lru_cache(maxsize=4096)
def _time(item: str) -> bytes:
    return b"\x08" + put_varint(int(parse(item) // 1)) + b"\x10\x00" if item else b""


def _micro_time(item: Any) -> bytes:
    if not item:
        return b""
    whole_s, microseconds = divmod(round(parse(item) * 1_000_000), 1_000_000)
    return b"\x08" + put_varint(whole_s) + b"\x10" + put_varint(microseconds * 1000)


def _fields_v1(item: Any) -> bytes:
    return b"\n" + sized(msgspec.json.encode(item))


def _json(item: Any) -> bytes:
    """What is null has no bytes at all."""
    return b"" if item is None else _fields_v1(item)


def _strings(items: Any) -> bytes:
    return b"".join([b"\n" + sized(item.encode()) for item in items or ()])


def _schema_or_array(item: Any) -> bytes:
    key = "schemas" if isinstance(item, list) else "schema"
    return _message({key: item}, message("JSONSchemaPropsOrArray"))


def _schema_or_bool(item: Any) -> bytes:
    """With a schema what is beside the known properties is allowed (UnmarshalJSON)."""
    is_schema = isinstance(item, dict)
    value = {"allows": is_schema or item, "schema": item if is_schema else None}
    return _message(value, message("JSONSchemaPropsOrBool"))


def _schema_or_strings(item: Any) -> bytes:
    key = "properties" if isinstance(item, list) else "schema"
    return _message({key: item}, message("JSONSchemaPropsOrStringArray"))


_NUMBERS: dict[str, _Put] = {"int": _int, "bool": _bool, "double": _double}
_WRITERS: dict[str, _Put] = {
    "string": _text,
    "bytes": _bytes,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "Time": _time,
    "MicroTime": _micro_time,
    "FieldsV1": _fields_v1,
    "JSON": _json,
    "RawExtension": _json,
    "Strings": _strings,
    "JSONSchemaPropsOrArray": _schema_or_array,
    "JSONSchemaPropsOrBool": _schema_or_bool,
    "JSONSchemaPropsOrStringArray": _schema_or_strings,
}
_ABSENT = {"string": "", "Time": "", "double": 0.0}
"""Zero values, where None will not do."""
