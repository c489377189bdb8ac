"""Objects to protobuf, byte for byte as Go writes them: by field number, maps by key, zero values where no pointer."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from typing import Any

import msgspec

from harness.wire.protobuf.schema import Field, Message, Shape, message_of
from harness.wire.protobuf.wireformat import MAGIC, ProtobufError, put_varint
from harness.wire.rfc3339 import parse


def encode_object(value: dict[str, Any]) -> bytes:
    """An envelope with the object, the list or the Status `value`; keys that the table lacks are left out.

    Raises ProtobufError for a kind that the table lacks and for values of another type than the field's.
    """
    kind, api_version = value.get("kind"), value.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(api_version, str):
        raise ProtobufError(f"no kind or apiVersion: {kind!r:.100}, {api_version!r:.100}")
    message = message_of(api_version, kind)
    if message is None:
        raise ProtobufError(f"no protobuf message for kind {kind[:100]!r} in version {api_version[:100]!r}")
    types = b"\n" + _sized(api_version.encode()) + b"\x12" + _sized(kind.encode())
    try:
        raw = _message(value, message)
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise ProtobufError(f"{kind}: {error}") from None
    return MAGIC + b"\n" + _sized(types) + b"\x12" + _sized(raw) + b'\x1a\x00"\x00'


def _sized(data: bytes) -> bytes:
    return put_varint(len(data)) + data


def _message(value: dict[str, Any], message: Message) -> bytes:
    out = bytearray()
    for field in message.ordered:
        item = value if field.embedded else value.get(field.name)
        if field.shape is Shape.ONE:
            if item is not None or not field.pointer:
                out += field.tag + _one(item, field)
        elif item is not None and field.shape is Shape.MANY:
            for each in item:
                out += field.tag + _one(each, field)
        elif item is not None:
            for key in sorted(item):
                out += field.tag + _sized(b"\n" + _sized(key.encode()) + b"\x12" + _one(item[key], field))
    return bytes(out)


def _one(item: Any, field: Field) -> bytes:
    """A value after its tag; None is the zero value."""
    if field.message is not None:
        return _sized(_message({} if item is None else item, field.message))
    if field.kind == "int":
        return put_varint(int(item or 0))
    if field.kind == "bool":
        return b"\x01" if item else b"\x00"
    return _sized(_WRITERS[field.kind](item))


def _string(item: Any) -> bytes:
    return str(item or "").encode()


def _bytes(item: Any) -> bytes:
    return b64decode(item or "", validate=True)


def _quantity(item: Any) -> bytes:
    return b"\n" + _sized(str(item or "0").encode())


def _int_or_string(item: Any) -> bytes:
    if isinstance(item, str):
        return b"\x08\x01\x10\x00\x1a" + _sized(item.encode())
    return b"\x08\x00\x10" + put_varint(item or 0) + b"\x1a\x00"


def _time(item: Any) -> bytes:
    return b"\x08" + put_varint(int(parse(item) // 1)) + b"\x10\x00" if item else b""


def _micro_time(item: Any) -> bytes:
    if not item:
        return b""
    whole_s, microseconds = divmod(round(parse(item) * 1_000_000), 1_000_000)
    return b"\x08" + put_varint(whole_s) + b"\x10" + put_varint(microseconds * 1000)


def _fields_v1(item: Any) -> bytes:
    return b"\n" + _sized(msgspec.json.encode(item))


_WRITERS: dict[str, Callable[[Any], bytes]] = {
    "string": _string,
    "bytes": _bytes,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "Time": _time,
    "MicroTime": _micro_time,
    "FieldsV1": _fields_v1,
}
