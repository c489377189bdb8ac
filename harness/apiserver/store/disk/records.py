"""A log's and a snapshot's bytes: checksummed records, one after another. No I/O.

A file begins with `MAGIC`. A record is a header (mark, payload's length, payload's CRC-32, number of its first item,
CRC-32 of these), the payload, msgpack, and a mark: no sector of it consists of zeros alone, so one that does was never
written. In a log a record holds all proposals that one sync made durable, so only the last record of the newest log can
be cut short by a crash.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

import msgspec

from harness.apiserver.store.core import Txn
from harness.wire.errors import ConfigError

MAGIC = b"swstore\n"
_CHECKED = struct.Struct("<cIIQ")  # the header without its own checksum
_HEADER = struct.Struct("<cIIQI")
_MARK, _END = b"\xa5", b"\x5a"
HEADER_BYTES = _HEADER.size
SECTOR_BYTES = 512  # what a disk writes whole or not at all

Proposal = Txn | int
"""What is logged: a write on its condition, or the revision of a compaction."""

encode = msgspec.msgpack.Encoder().encode
decode_proposals = msgspec.msgpack.Decoder(list[Proposal]).decode


class Record(NamedTuple):
    offset: int
    number: int
    payload: memoryview
    end: int


class Damage(Exception):
    """No record stands at `offset`. `torn`: as a crash leaves it, in the midst of a write that nobody was told of."""

    def __init__(self, offset: int, why: str, torn: bool) -> None:
        super().__init__(f"{why} at offset {offset}")
        self.offset = offset
        self.why = why
        self.torn = torn


class DataCorrupt(ConfigError):
    """A file of the data folder is not as it was written; the store does not start on a guess."""

    def __init__(self, path: str, offset: int, why: str) -> None:
        super().__init__(
            f"data folder: {path}: {why} at offset {offset}; the file has changed since it was written, and what "
            "follows cannot be trusted: restore the folder from a copy, or start with an empty one"
        )


def record(number: int, payload: bytes) -> tuple[bytes, bytes, bytes]:
    """Header, payload and mark, in the order in which they are written."""
    checked = _CHECKED.pack(_MARK, len(payload), crc32(payload), number)
    return checked + struct.pack("<I", crc32(checked)), payload, _END


def records(data: bytes) -> Iterator[Record]:
    """The records of a whole file, up to its end. Raises Damage where one is not as it was written."""
    if data[: len(MAGIC)] != MAGIC:
        raise Damage(0, "no header of ours", len(data) < len(MAGIC) and MAGIC.startswith(data))
    view = memoryview(data)
    at = len(MAGIC)
    while at < len(data):
        found = _record_at(view, at)
        if isinstance(found, str):
            raise Damage(at, found, _torn(data, at))
        yield found
        at = found.end


def _record_at(view: memoryview, at: int) -> Record | str:
    """The record, or what is wrong with it."""
    if len(view) - at < HEADER_BYTES:
        return "a record's header is incomplete"
    _, size, checksum, number, header_checksum = _HEADER.unpack_from(view, at)
    if crc32(view[at : at + _CHECKED.size]) != header_checksum:
        return "a record's header has a wrong checksum"
    start = at + HEADER_BYTES
    end = start + size + len(_END)
    if end > len(view):
        return "a record is incomplete"
    payload = view[start : start + size]
    if crc32(payload) != checksum or view[start + size : end] != _END:
        return "a record has a wrong checksum"
    return Record(at, number, payload, end)


def _torn(data: bytes, at: int) -> bool:
    """Whether what is damaged at `at` is the last record, incomplete or with a sector that was never written."""
    left = len(data) - at
    if left < HEADER_BYTES:
        return True
    if data.count(0, at, at + HEADER_BYTES) == HEADER_BYTES:  # the file grew, its contents did not come
        return data.count(0, at) == left
    _, size, _, _, header_checksum = _HEADER.unpack_from(data, at)
    if crc32(memoryview(data)[at : at + _CHECKED.size]) != header_checksum:
        return _has_empty_sector(data, at, at + HEADER_BYTES) and not _record_follows(data, at + 1)
    end = at + HEADER_BYTES + size + len(_END)
    return end > len(data) or (end == len(data) and _has_empty_sector(data, at, end))


def _has_empty_sector(data: bytes, start: int, end: int) -> bool:
    """Whether a sector, as far as it lies within, is all zeros."""
    at = start
    while at < end:
        after = min(end, at - at % SECTOR_BYTES + SECTOR_BYTES)
        if data.count(0, at, after) == after - at:
            return True
        at = after
    return False


def _record_follows(data: bytes, start: int) -> bool:
    view = memoryview(data)
    return any(isinstance(_record_at(view, at), Record) for at in range(start, len(data) - HEADER_BYTES + 1))
