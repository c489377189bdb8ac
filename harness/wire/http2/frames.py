"""Frame layout (RFC 9113, 4 and 6): kinds, flags, packing, and the parts of payloads."""

from __future__ import annotations

import struct

from harness.wire.http2.errors import ErrorCode, ProtocolError

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    range(10)
)

END_STREAM = 0x1
ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITY_FLAG = 0x20

HEADER_BYTES = 9
HEADER = struct.Struct(">HBBBI")
"""Length as its upper 16 and lower 8 bits, kind, flags, stream."""

U32 = struct.Struct(">I")
RST_FRAME = struct.Struct(">HBBBII")
"""A whole frame with a payload of 32 bits: RST_STREAM, WINDOW_UPDATE."""

_FIXED_LENGTHS = {PING: 8, RST_STREAM: 4, WINDOW_UPDATE: 4}
_OF_CONNECTION = frozenset((SETTINGS, PING, GOAWAY))
_OF_STREAM = frozenset((DATA, HEADERS, PRIORITY, RST_STREAM, CONTINUATION))


def pack_frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    length = len(payload)
    return HEADER.pack(length >> 8, length & 0xFF, kind, flags, stream_id) + payload


def pack_u32_frame(kind: int, stream_id: int, value: int) -> bytes:
    """RST_STREAM or WINDOW_UPDATE."""
    return RST_FRAME.pack(0, 4, kind, 0, stream_id, value)


def check_shape(kind: int, stream_id: int, length: int) -> None:
    """Raise where a frame of this kind may not have this stream or this length (the fixed lengths of section 6)."""
    if kind in _OF_CONNECTION:
        if stream_id:
            raise ProtocolError(
                ErrorCode.PROTOCOL_ERROR, f"frame of kind {kind} on stream {stream_id}, not on 0"
            )
    elif kind in _OF_STREAM and not stream_id:
        raise ProtocolError(ErrorCode.PROTOCOL_ERROR, f"frame of kind {kind} on stream 0")
    expected = _FIXED_LENGTHS.get(kind, length)
    if length != expected:
        raise ProtocolError(
            ErrorCode.FRAME_SIZE_ERROR, f"frame of kind {kind} has {length} bytes, not {expected}"
        )


def strip_padding(payload: bytes) -> bytes:
    """The content of a PADDED payload (6.1)."""
    if not payload:
        raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "a padded frame without a pad length")
    padding = payload[0]
    if padding >= len(payload):
        raise ProtocolError(
            ErrorCode.PROTOCOL_ERROR, f"padding of {padding} in a frame of {len(payload)} bytes"
        )
    return payload[1 : len(payload) - padding]


def strip_priority(payload: bytes) -> bytes:
    """The header block after the deprecated priority fields (5.3.2), which are not used."""
    if len(payload) < 5:
        raise ProtocolError(ErrorCode.FRAME_SIZE_ERROR, "HEADERS too short for its priority fields")
    return payload[5:]
