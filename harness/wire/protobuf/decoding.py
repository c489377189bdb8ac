"""Protobuf to objects as JSON would have given them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import msgspec

from harness.wire.protobuf.schema import Field, Message, Shape, message_of
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
from harness.wire.rfc3339 import seconds

Object = dict[str, Any]
_YEAR_1_S, _YEAR_10000_S = -62_135_596_800, 253_402_300_800


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
    message = message_of(api_version, kind)
    if message is None:
        raise UnknownKind(f"no protobuf message for kind {kind[:100]!r} in version {api_version[:100]!r}")
    found: Object = {"kind": kind, "apiVersion": api_version}
    _read(body, start, stop, message, found)
    return found


def envelope_of(body: bytes) -> tuple[str, str, int, int]:
    """apiVersion, kind, and where the raw object starts and stops (runtime.Unknown)."""
    types: dict[int, str] = {}
    raw = (0, 0)
    for number, start, stop in _delimited(body, len(MAGIC), len(body), "Unknown"):
        if number == 1:
            types |= {
                inner: _string(body, *span) for inner, *span in _delimited(body, start, stop, "TypeMeta")
            }
        elif number == 2:
            raw = (start, stop)
        elif number == 3 and start < stop:
            raise ProtobufError("an encoded body (contentEncoding) is not read")
    return types.get(1, ""), types.get(2, ""), *raw


def _delimited(data: bytes, at: int, end: int, name: str) -> list[tuple[int, int, int]]:
    """(field number, start, stop) of each length-delimited field; others are skipped."""
    found = []
    while at < end:
        tag, at = varint(data, at, end)
        check_tag(tag, name)
        if tag & 7 == LENGTH:
            start, at = length(data, at, end)
            found.append((tag >> 3, start, at))
        else:
            at = skip(data, at, end, tag & 7)
    return found


def _read(data: bytes, at: int, end: int, message: Message, into: Object) -> None:
    """One message's fields, merged into `into` as Unmarshal merges a field that comes twice."""
    fields = message.fields
    while at < end:
        tag, at = varint(data, at, end)
        check_tag(tag, message.name)
        field, wire = fields.get(tag >> 3), tag & 7
        if wire == LENGTH:
            start, at = length(data, at, end)
            if field is not None:
                if field.wire == VARINT:
                    _packed(data, start, at, field, into)
                elif field.message is not None:
                    _nested(data, start, at, field, field.message, into)
                else:
                    _scalar(data, start, at, field, into)
        elif field is None:
            at = skip(data, at, end, wire)
        elif wire == VARINT == field.wire:
            number, at = varint(data, at, end)
            _put(field, bool(number) if field.kind == "bool" else signed(number), into)
        else:
            raise ProtobufError(f"proto: wrong wireType = {wire} for field {field.name} of {message.name}")
    for name, zero in message.required.items():
        into.setdefault(name, zero)


def _put(field: Field, value: Any, into: Object) -> None:
    if field.shape is Shape.MANY:
        _many(field, into).append(value)
    elif value is not None and (value or field.keeps_zero):
        into[field.name] = value
    else:
        into.pop(field.name, None)


def _many(field: Field, into: Object) -> list[Any]:
    """The list of a repeated field; null if its message came before without it."""
    values: list[Any] | None = into.get(field.name)
    if values is None:
        values = into[field.name] = []
    return values


def _packed(data: bytes, at: int, end: int, field: Field, into: Object) -> None:
    """Numbers packed into one value, which Go reads and does not write."""
    if field.shape is not Shape.MANY:
        raise ProtobufError(f"proto: wrong wireType = {LENGTH} for field {field.name}")
    values = _many(field, into)
    while at < end:
        number, at = varint(data, at, end)
        values.append(signed(number))


def _nested(data: bytes, at: int, end: int, field: Field, message: Message, into: Object) -> None:
    if field.embedded:
        _read(data, at, end, message, into)
        return
    if field.shape is Shape.ONE:
        inner = into.setdefault(field.name, {})
    else:
        inner = {}
        _many(field, into).append(inner)
    _read(data, at, end, message, inner)


def _scalar(data: bytes, at: int, end: int, field: Field, into: Object) -> None:
    read = READERS[field.kind]
    if field.shape is not Shape.MAP:
        _put(field, read(data, at, end), into)
        return
    key, value = "", (0, 0)
    for number, start, stop in _delimited(data, at, end, "MapEntry"):
        if number == 1:
            key = _string(data, start, stop)
        elif number == 2:
            value = (start, stop)
    into.setdefault(field.name, {})[key] = read(data, *value)


def _string(data: bytes, at: int, end: int) -> str:
    try:
        return data[at:end].decode()
    except UnicodeDecodeError:
        raise ProtobufError("proto: invalid UTF-8 in a string") from None


def _bytes(data: bytes, at: int, end: int) -> str:
    return b64encode(data[at:end]).decode()


def _quantity(data: bytes, at: int, end: int) -> str:
    for number, start, stop in _delimited(data, at, end, "Quantity"):
        if number == 1 and start < stop:
            return _string(data, start, stop)
    return "0"


def _numbers(data: bytes, at: int, end: int, name: str) -> dict[int, int]:
    """The varints of a small message by field number."""
    found = {}
    while at < end:
        tag, at = varint(data, at, end)
        check_tag(tag, name)
        if tag & 7 == VARINT:
            number, at = varint(data, at, end)
            found[tag >> 3] = signed(number)
        else:
            at = skip(data, at, end, tag & 7)
    return found


def _int_or_string(data: bytes, at: int, end: int) -> int | str:
    numbers = _numbers(data, at, end, "IntOrString")
    if not numbers.get(1):
        return numbers.get(2, 0)
    texts = [span for number, *span in _delimited(data, at, end, "IntOrString") if number == 3]
    return _string(data, *texts[-1]) if texts else ""


def _timestamp(data: bytes, at: int, end: int) -> tuple[int, int] | None:
    """Seconds and microseconds; None for Go's zero time, which is written as an empty message."""
    if at == end:
        return None
    numbers = _numbers(data, at, end, "Timestamp")
    more_s, nanoseconds = divmod(numbers.get(2, 0), 1_000_000_000)
    whole_s = numbers.get(1, 0) + more_s
    if not _YEAR_1_S <= whole_s < _YEAR_10000_S:
        raise ProtobufError(f"a time outside of the years 1 to 9999: {whole_s} seconds since 1970")
    return (whole_s, nanoseconds // 1000) if whole_s > _YEAR_1_S else None


def _time(data: bytes, at: int, end: int) -> str | None:
    stamp = _timestamp(data, at, end)
    return stamp and seconds(stamp[0])


def _micro_time(data: bytes, at: int, end: int) -> str | None:
    stamp = _timestamp(data, at, end)
    return stamp and f"{seconds(stamp[0])[:-1]}.{stamp[1]:06d}Z"


def _fields_v1(data: bytes, at: int, end: int) -> Any:
    for number, start, stop in _delimited(data, at, end, "FieldsV1"):
        if number == 1 and start < stop:
            try:
                return msgspec.json.decode(data[start:stop])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise ProtobufError(f"fieldsV1 is no JSON: {error}") from None
    return None


READERS: dict[str, Callable[[bytes, int, int], Any]] = {
    "string": _string,
    "bytes": _bytes,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "Time": _time,
    "MicroTime": _micro_time,
    "FieldsV1": _fields_v1,
}
