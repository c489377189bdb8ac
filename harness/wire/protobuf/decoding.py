"""Protobuf to objects as JSON would have given them.

A message's plan is made when it is first read: for each tag that it may have, what to do with the value behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.wire.protobuf.schema import Field, Message, Put, Shape, message, message_of
from harness.wire.protobuf.values import VALUES, delimited, double, string
from harness.wire.protobuf.wireformat import (
    LENGTH,
    MAGIC,
    VARINT,
    ProtobufError,
    UnknownKind,
    check_tag,
    length,
    signed,
    skip,
    varint,
)

Object = dict[str, Any]
_EOF = "unexpected EOF"


def decode_object(body: bytes) -> Object:
    """The object in an envelope, kind and apiVersion first; fields that the table lacks are skipped.

    Raises ProtobufError for malformed bytes, UnknownKind for a kind that the table lacks.
    """
    if not body:
        raise ProtobufError("empty data")
    if not body.startswith(MAGIC):
        prefix = " ".join(map(str, MAGIC))
        raise ProtobufError(
            f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]"
        )
    if len(body) == len(MAGIC):
        raise ProtobufError("empty body")
    api_version, kind, start, stop = envelope_of(body)
    of = message_of(api_version, kind)
    if of is None:
        raise UnknownKind(f"no protobuf message for kind {kind[:100]!r} in version {api_version[:100]!r}")
    found: Object = {"kind": kind, "apiVersion": api_version}
    _read(body, start, stop, of, found)
    return found


def envelope_of(body: bytes) -> tuple[str, str, int, int]:
    """apiVersion, kind, and where the raw object starts and stops (runtime.Unknown)."""
    types: dict[int, str] = {}
    raw = (0, 0)
    for number, start, stop in delimited(body, len(MAGIC), len(body), "Unknown"):
        if number == 1:
            types |= {inner: string(body, *span) for inner, *span in delimited(body, start, stop, "TypeMeta")}
        elif number == 2:
            raw = (start, stop)
        elif number == 3 and start < stop:
            raise ProtobufError("an encoded body (contentEncoding) is not read")
    return types.get(1, ""), types.get(2, ""), *raw


# ---- messages ------------------------------------------------------------------------------------------------------
def _read(data: bytes, at: int, end: int, of: Message, into: Object) -> None:
    """One message's fields, merged into `into` as Unmarshal merges a field that comes twice."""
    puts = of.puts
    if puts is None:
        puts = of.puts = {varint(field.tag, 0, len(field.tag))[0]: _planned(field) for field in of.ordered}
    while at < end:
        tag = data[at]
        at += 1
        if tag >= 0x80:
            tag, at = varint(data, at - 1, end)
        put = puts.get(tag)
        if put is None:
            at = _unplanned(data, at, end, tag, of, into)
        elif tag & 7 == LENGTH:
            if at >= end:
                raise ProtobufError(_EOF)
            size = data[at]
            start = at + 1
            if size >= 0x80:
                start, at = length(data, at, end)
            else:
                at = start + size
                if at > end:
                    raise ProtobufError(_EOF)
            put(data, start, at, into)
        elif tag & 7 == VARINT:
            number, at = varint(data, at, end)
            put(data, number, 0, into)
        else:
            at = skip(data, at, end, tag & 7)
            put(data, at - 8, at, into)
    for name, zero in of.required.items():
        into.setdefault(name, zero)


def _unplanned(data: bytes, at: int, end: int, tag: int, of: Message, into: Object) -> int:
    """Where a value ends whose tag the message does not have: an unknown field is skipped, a known one of another wire
    type refused, but for numbers that are packed."""
    check_tag(tag, of.name)
    field, wire = of.fields.get(tag >> 3), tag & 7
    if field is None:
        return skip(data, at, end, wire)
    if wire != LENGTH:
        raise ProtobufError(f"proto: wrong wireType = {wire} for field {field.name} of {of.name}")
    start, at = length(data, at, end)
    _packed(data, start, at, field, into)
    return at


def _packed(data: bytes, at: int, end: int, field: Field, into: Object) -> None:
    """Numbers packed into one value, which Go reads and does not write."""
    if field.shape is not Shape.MANY:
        raise ProtobufError(f"proto: wrong wireType = {LENGTH} for field {field.name}")
    put = _planned(field)
    while at < end:
        number, at = varint(data, at, end)
        put(data, number, 0, into)


def _inner(name: str, into: Object) -> Object:
    """The object or map of a field; null if its message came before without it."""
    inner: Object | None = into.get(name)
    if inner is None:
        inner = into[name] = {}
    return inner


def _many(name: str, into: Object) -> list[Any]:
    """The list of a repeated field, as `_inner`."""
    values: list[Any] | None = into.get(name)
    if values is None:
        values = into[name] = []
    return values


# ---- plans ---------------------------------------------------------------------------------------------------------
def _planned(field: Field) -> Put:
    """What to do with a value of `field`: of one with a length its start and stop, of a number (number, 0)."""
    if field.message is not None:
        return _nested(field, field.message)
    if field.shape is Shape.MAP:
        return _pair(field.name, READERS[field.kind])
    read = _NUMBERS[field.kind] if field.wire != LENGTH else READERS[field.kind]
    return _item(field.name, read) if field.shape is Shape.MANY else _one(field, read)


def _one(field: Field, read: Callable[[bytes, int, int], Any]) -> Put:
    name, keeps_zero = field.name, field.keeps_zero

    def put(data: bytes, start: int, stop: int, into: Object) -> None:
        value = read(data, start, stop)
        if value or (keeps_zero and value is not None):
            into[name] = value
        else:
            into.pop(name, None)

    return put


def _item(name: str, read: Callable[[bytes, int, int], Any]) -> Put:
    return lambda data, start, stop, into: _many(name, into).append(read(data, start, stop))


def _pair(name: str, read: Callable[[bytes, int, int], Any]) -> Put:
    def put(data: bytes, start: int, stop: int, into: Object) -> None:
        key, start, stop = _entry(data, start, stop)
        _inner(name, into)[key] = read(data, start, stop)

    return put


def _nested(field: Field, of: Message) -> Put:
    name = field.name

    def embedded(data: bytes, start: int, stop: int, into: Object) -> None:
        _read(data, start, stop, of, into)

    def one(data: bytes, start: int, stop: int, into: Object) -> None:
        _read(data, start, stop, of, _inner(name, into))

    def item(data: bytes, start: int, stop: int, into: Object) -> None:
        inner: Object = {}
        _many(name, into).append(inner)
        _read(data, start, stop, of, inner)

    def pair(data: bytes, start: int, stop: int, into: Object) -> None:
        key, start, stop = _entry(data, start, stop)
        inner: Object = {}
        _inner(name, into)[key] = inner
        _read(data, start, stop, of, inner)

    return embedded if field.embedded else {Shape.ONE: one, Shape.MANY: item, Shape.MAP: pair}[field.shape]


def _entry(data: bytes, at: int, end: int) -> tuple[str, int, int]:
    """A map entry's key, and where its value starts and stops."""
    key, value = "", (0, 0)
    for number, start, stop in delimited(data, at, end, "MapEntry"):
        if number == 1:
            key = string(data, start, stop)
        elif number == 2:
            value = (start, stop)
    return key, *value


# ---- types that are one of several -----------------------------------------------------------------------------------
def _union(name: str, data: bytes, at: int, end: int) -> Object:
    found: Object = {}
    _read(data, at, end, message(name), found)
    return found


def _schema_or_array(data: bytes, at: int, end: int) -> Any:
    found = _union("JSONSchemaPropsOrArray", data, at, end)
    return found.get("schemas") or found.get("schema")


def _schema_or_bool(data: bytes, at: int, end: int) -> Any:
    found = _union("JSONSchemaPropsOrBool", data, at, end)
    return found.get("schema", found.get("allows", False))


def _schema_or_strings(data: bytes, at: int, end: int) -> Any:
    found = _union("JSONSchemaPropsOrStringArray", data, at, end)
    return found.get("properties") or found.get("schema")


_NUMBERS: dict[str, Callable[[bytes, int, int], Any]] = {
    "int": lambda data, number, _: signed(number),
    "bool": lambda data, number, _: bool(number),
    "double": lambda data, start, _: double(data, start),
}
READERS: dict[str, Callable[[bytes, int, int], Any]] = {
    **VALUES,
    "JSONSchemaPropsOrArray": _schema_or_array,
    "JSONSchemaPropsOrBool": _schema_or_bool,
    "JSONSchemaPropsOrStringArray": _schema_or_strings,
}
"""What reads a value that has a length, by its type."""
