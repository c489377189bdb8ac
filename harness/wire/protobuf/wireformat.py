"""The wire format: varints, tags, and the way past a field that nobody knows (github.com/gogo/protobuf)."""

from __future__ import annotations

from harness.wire.errors import SwarmletError

MAGIC = b"k8s\x00"
"""What each object in protobuf starts with (am/runtime/serializer/protobuf/protobuf.go)."""

VARINT, FIXED64, LENGTH, GROUP, END_GROUP, FIXED32 = range(6)
_EOF = "unexpected EOF"


class ProtobufError(SwarmletError, ValueError):
    """A body that a Go server would not unmarshal, or an object that has no protobuf form; str() says why."""


class UnknownKind(ProtobufError):
    """An object of a kind that the table of message types lacks."""


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """(value, where it ends), unsigned. Raises ProtobufError."""
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift >= 64:
            raise ProtobufError("proto: integer overflow")
    raise ProtobufError(_EOF)


def length(data: bytes, at: int, end: int) -> tuple[int, int]:
    """(start, stop) of a length-delimited value. Raises ProtobufError where it does not fit before `end`."""
    size, at = varint(data, at, end)
    if size >= 1 << 63:
        raise ProtobufError("proto: negative length found during unmarshaling")
    if at + size > end:
        raise ProtobufError(_EOF)
    return at, at + size


def signed(value: int) -> int:
    """An int32 or int64 of its varint: negative numbers take all 64 bits."""
    return value - (1 << 64) if value >> 63 else value


def check_tag(tag: int, message: str) -> None:
    """Raises ProtobufError for a tag that no field can have."""
    if tag & 7 == END_GROUP:
        raise ProtobufError(f"proto: {message}: wiretype end group for non-group")
    if not 0 < tag >> 3 < 1 << 31:
        raise ProtobufError(f"proto: {message}: illegal tag {tag >> 3} (wire type {tag & 7})")


def skip(data: bytes, at: int, end: int, wire: int) -> int:
    """Where a value of wire type `wire` ends; groups end with their last field. Raises ProtobufError."""
    depth = 0
    while True:
        if wire == VARINT:
            _, at = varint(data, at, end)
        elif wire == LENGTH:
            _, at = length(data, at, end)
        elif wire in (FIXED64, FIXED32):
            at += 8 if wire == FIXED64 else 4
            if at > end:
                raise ProtobufError(_EOF)
        elif wire == GROUP:
            depth += 1
        elif wire == END_GROUP:
            depth -= 1
        else:
            raise ProtobufError(f"proto: illegal wireType {wire}")
        if depth <= 0:
            return at
        tag, at = varint(data, at, end)
        wire = tag & 7


def put_varint(value: int) -> bytes:
    """A non-negative number below 2**64, or a negative one above -2**63."""
    if 0 <= value < 0x80:
        return bytes((value,))
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
