"""Framing of watch streams: in JSON one ``{"type":...,"object":...}`` a line (am/runtime/serializer/json framer), in
protobuf a WatchEvent behind its length in four bytes, big-endian (am/util/framer).

The object stays bytes: who needs a view of it decodes it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.wire.errors import SwarmletError
from harness.wire.protobuf.wireformat import LENGTH, ProtobufError, length, put_varint, varint

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"
BOOKMARK = "BOOKMARK"
ERROR = "ERROR"

_HEAD = b'{"type":"'
_MIDDLE = b'","object":'
_KNOWN = {kind.encode(): kind for kind in (ADDED, MODIFIED, DELETED, BOOKMARK, ERROR)}
_NAMES = {kind: kind for kind in _KNOWN.values()}  # so that readers may compare with `is`
_HEADS = {kind: _HEAD + kind.encode() + _MIDDLE for kind in _KNOWN.values()}


class WatchError(SwarmletError):
    """A line that is not a watch event."""


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


_decode = msgspec.json.Decoder(_Line).decode


class WatchDecoder:
    """Bytes of a stream in, in any split; events out. Keeps nothing while lines arrive whole."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest: bytes | bytearray = b""

    @property
    def pending_bytes(self) -> int:
        """Bytes of a line that has not ended yet: not 0 at the end of a stream means it was cut off."""
        return len(self._rest)

    def feed(self, data: bytes) -> list[tuple[str, bytes]]:
        """The (type, object) of each line that `data` completes. Raises WatchError."""
        if self._rest:
            data = self._join(data)
            if not data:
                return []
        events = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            if end > start:
                events.append(_read(data, start, end))
            start = end + 1
        self._rest = data[start:]
        return events

    def _join(self, data: bytes) -> bytes:
        """What was kept and `data`, or b"" (and all is kept) while the line goes on."""
        if not isinstance(self._rest, bytearray):  # a large event comes in many pieces: no copy for each
            self._rest = bytearray(self._rest)
        self._rest += data
        if b"\n" not in data:
            return b""
        whole = bytes(self._rest)
        self._rest = b""
        return whole


class ProtobufWatchDecoder:
    """As `WatchDecoder`, of a stream in protobuf; objects come in their envelope."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest: bytes | bytearray = b""

    @property
    def pending_bytes(self) -> int:
        return len(self._rest)

    def feed(self, data: bytes) -> list[tuple[str, bytes]]:
        """The (type, object) of each frame that `data` completes. Raises WatchError."""
        if self._rest:
            if not isinstance(self._rest, bytearray):
                self._rest = bytearray(self._rest)
            self._rest += data
            if len(self._rest) < 4 or len(self._rest) < 4 + int.from_bytes(self._rest[:4]):
                return []
            data = bytes(self._rest)
            self._rest = b""
        events = []
        start, size = 0, len(data)
        while size - start >= 4:
            end = start + 4 + int.from_bytes(data[start : start + 4])
            if end > size:
                break
            events.append(_read_frame(data, start + 4, end))
            start = end
        self._rest = data[start:]
        return events


def _read_frame(data: bytes, at: int, end: int) -> tuple[str, bytes]:
    """The event at ``data[at:end]``: WatchEvent {1: type, 2: RawExtension {1: raw}} (am/apis/meta/v1/watch.go)."""
    kind, body = b"", b""
    try:
        while at < end:
            tag, at = varint(data, at, end)
            if tag & 7 != LENGTH:
                raise ProtobufError(f"wire type {tag & 7} in a WatchEvent")
            start, at = length(data, at, end)
            if tag >> 3 == 1:
                kind = data[start:at]
            elif tag >> 3 == 2 and start < at:
                start, stop = length(data, start + 1, at)
                body = data[start:stop]
    except ProtobufError as error:
        raise WatchError(f"unable to decode an event from the watch stream: {error}") from None
    found = _KNOWN.get(kind)
    return (found if found is not None else kind.decode("utf-8", "replace")), body


def _read(data: bytes, start: int, end: int) -> tuple[str, bytes]:
    """The event of the line at ``data[start:end]``; the object is copied once."""
    if data.startswith(_HEAD, start):  # every real apiserver writes `type` first, without spaces
        quote = data.find(b'"', start + 9, end)
        kind = _KNOWN.get(data[start + 9 : quote])
        if kind is not None and data.startswith(_MIDDLE, quote) and data.endswith(b"}}", quote, end):
            return kind, data[quote + 11 : end - 1]
    line = data[start:end]
    try:
        event = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WatchError(f"unable to decode an event from the watch stream: {error}: {line[:80]!r}") from None
    return _NAMES.get(event.type, event.type), bytes(event.object)


def encode_frame(kind: str, envelope: bytes) -> bytes:
    """One frame of a stream in protobuf. `envelope` is an object in its own."""
    size = put_varint(len(envelope))
    name = kind.encode()
    event = b"\n%b%b\x12%b\n%b%b" % (
        put_varint(len(name)),
        name,
        put_varint(1 + len(size) + len(envelope)),
        size,
        envelope,
    )
    return len(event).to_bytes(4) + event


def encode_events(kind: str, bodies: Sequence[bytes]) -> bytes:
    """The lines of several events of one kind. None of `bodies` has a line feed after it."""
    head = _HEADS[kind]
    return b"%b%b}\n" % (head, (b"}\n" + head).join(bodies)) if bodies else b""


def encode_event(kind: str, body: bytes) -> bytes:
    """One line of a stream. `body` is a JSON object, with or without a line feed after it."""
    head = _HEADS.get(kind) or _HEAD + kind.encode() + _MIDDLE
    if body.endswith(b"\n"):
        body = body[:-1]
    return b"%b%b}\n" % (head, body)
