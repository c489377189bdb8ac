"""Values of fields: their bytes to what JSON would have given. All raise ProtobufError."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from struct import Struct
from typing import Any

import msgspec

from harness.wire.protobuf.wireformat import (
    LENGTH,
    VARINT,
    ProtobufError,
    check_tag,
    length,
    signed,
    skip,
    varint,
)
from harness.wire.rfc3339 import seconds

_DOUBLE = Struct("<d")
_WHOLE_BELOW = 1e21  # from where on encoding/json writes an exponent
_YEAR_1_S, _YEAR_10000_S = -62_135_596_800, 253_402_300_800


def delimited(data: bytes, at: int, end: int, name: str) -> list[tuple[int, int, int]]:
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


def string(data: bytes, at: int, end: int) -> str:
    try:
        return data[at:end].decode()
    except UnicodeDecodeError:
        raise ProtobufError("proto: invalid UTF-8 in a string") from None


def _bytes(data: bytes, at: int, end: int) -> str:
    return b64encode(data[at:end]).decode()


def _quantity(data: bytes, at: int, end: int) -> str:
    for number, start, stop in delimited(data, at, end, "Quantity"):
        if number == 1 and start < stop:
            return string(data, start, stop)
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
    texts = [span for number, *span in delimited(data, at, end, "IntOrString") if number == 3]
    return string(data, *texts[-1]) if texts else ""


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


def double(data: bytes, at: int) -> int | float:
    value: float = _DOUBLE.unpack_from(data, at)[0]
    return int(value) if value.is_integer() and abs(value) < _WHOLE_BELOW else value


def _strings(data: bytes, at: int, end: int) -> list[str] | None:
    found = [string(data, *span) for number, *span in delimited(data, at, end, "ExtraValue") if number == 1]
    return found or None


def _raw_json(data: bytes, at: int, end: int) -> Any:
    for number, start, stop in delimited(data, at, end, "RawExtension"):
        if number == 1 and start < stop:
            try:
                return msgspec.json.decode(data[start:stop])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise ProtobufError(f"raw bytes that are no JSON: {error}") from None
    return None


VALUES: dict[str, Callable[[bytes, int, int], Any]] = {
    "string": string,
    "bytes": _bytes,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "Time": _time,
    "MicroTime": _micro_time,
    "FieldsV1": _raw_json,
    "JSON": _raw_json,
    "RawExtension": _raw_json,
    "Strings": _strings,
}
"""Of what has a length, by type."""
