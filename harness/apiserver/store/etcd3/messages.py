"""etcd's messages, those that an apiserver sends and gets (etcd api/etcdserverpb/rpc.proto, api/mvccpb/kv.proto)."""

from __future__ import annotations

from typing import NamedTuple

from harness.apiserver.store.core import KeyValue, RangeResult, StoreEvent, Txn, TxnResult
from harness.wire.protobuf.wireformat import (
    LENGTH,
    VARINT,
    ProtobufError,
    length,
    put_varint,
    signed,
    skip,
    varint,
)

RANGE = b"/etcdserverpb.KV/Range"
TXN = b"/etcdserverpb.KV/Txn"
COMPACT = b"/etcdserverpb.KV/Compact"
GRANT = b"/etcdserverpb.Lease/LeaseGrant"
WATCH = b"/etcdserverpb.Watch/Watch"

_EQUAL, _GREATER = 0, 1  # Compare.CompareResult
_VERSION, _CREATE, _MOD = 0, 1, 2  # Compare.CompareTarget
_DELETE = 1  # Event.EventType


# ---- the wire
def message(*fields: tuple[int, int | bytes | str]) -> bytes:
    """Fields by number, those with their default value left out."""
    out = bytearray()
    for number, value in fields:
        if not value:
            continue
        if isinstance(value, int):
            out += put_varint(number << 3 | VARINT) + put_varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += put_varint(number << 3 | LENGTH) + put_varint(len(data)) + data
    return bytes(out)


def nested(number: int, body: bytes) -> bytes:
    """A message as a field, there even where it is empty."""
    return put_varint(number << 3 | LENGTH) + put_varint(len(body)) + body


def fields(data: bytes, at: int, end: int) -> list[tuple[int, int, int]]:
    """(number, value, 0) of numbers, (number, start, stop) of all that has a length. Raises ProtobufError."""
    found = []
    while at < end:
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = varint(data, at, end)
        wire = tag & 7
        if wire == VARINT:
            value = data[at] if at < end else 0x80
            if value < 0x80:
                at += 1
            else:
                value, at = varint(data, at, end)
            found.append((tag >> 3, value, 0))
        elif wire == LENGTH:
            start, at = length(data, at, end)
            found.append((tag >> 3, start, at))
        else:
            at = skip(data, at, end, wire)
    return found


# ---- requests
def range_request(key: str, end: str = "", limit: int = 0, revision: int = 0) -> bytes:
    return message((1, key), (2, end), (3, limit), (4, revision))


def txn_request(txn: Txn, lease: int = 0) -> bytes:
    """Write if the condition holds, else read what stands (store.go: OptimisticPut, OptimisticDelete)."""
    key = txn.key.encode()
    found = nested(1, message((1, key)))
    if txn.value is None:
        write = nested(3, message((1, key)))
    else:
        write = nested(2, message((1, key), (2, txn.value), (3, lease)))
    compare = b""
    if txn.expected is not None:
        compare = nested(1, _compare(_EQUAL, _MOD, key) + _number(6, txn.expected))
    elif txn.value is None:  # what is not there cannot be deleted
        compare = nested(1, _compare(_GREATER, _CREATE, key) + _number(5, 0))
    return compare + nested(2, write) + nested(3, found)


def compare_and_put(key: str, version: int, value: bytes) -> bytes:
    """Put if the key has this version, else read it."""
    compare = _compare(_EQUAL, _VERSION, key.encode()) + _number(4, version)
    put = nested(2, message((1, key), (2, value)))
    return nested(1, compare) + nested(2, put) + nested(3, nested(1, message((1, key))))


def compaction_request(revision: int) -> bytes:
    return message((1, revision))


def grant_request(ttl_s: int) -> bytes:
    return message((1, ttl_s))


def watch_everything(start_revision: int) -> bytes:
    """Every key there is, with what it was before; 0 is from now on."""
    return nested(1, message((1, b"\0"), (2, b"\0"), (3, start_revision), (4, 1), (6, 1)))


def _compare(result: int, target: int, key: bytes) -> bytes:
    return message((1, result), (2, target), (3, key))


def _number(number: int, value: int) -> bytes:
    """A field of a oneof, there even where it is 0."""
    return put_varint(number << 3 | VARINT) + put_varint(value)


# ---- answers
class Versioned(NamedTuple):
    """A key's newest version by etcd's own count, and its value; version 0: no such key."""

    version: int
    value: bytes


class WatchAnswer(NamedTuple):
    """`revision` is the store's; `compacted` the least revision there is, where the watch was canceled for that."""

    revision: int
    created: bool
    canceled: bool
    compacted: int
    reason: str
    events: list[StoreEvent]


def range_answer(data: bytes, revision: int = 0) -> RangeResult:
    """The answer of a range at `revision`, 0 being whatever was the newest."""
    kvs: list[KeyValue] = []
    count = newest = 0
    for number, value, stop in fields(data, 0, len(data)):
        if number == 2:
            kvs.append(_key_value(data, value, stop))
        elif number == 1:
            newest = _revision(data, value, stop)
        elif number == 4:
            count = value
    return RangeResult(kvs, count, revision or newest)


def txn_answer(data: bytes) -> TxnResult:
    succeeded, revision, current = False, 0, None
    for number, value, stop in fields(data, 0, len(data)):
        if number == 1:
            revision = _revision(data, value, stop)
        elif number == 2:
            succeeded = bool(value)
        elif number == 3:
            current = _range_within(data, value, stop)
    return TxnResult(succeeded, revision, None if succeeded else current)


def versioned_answer(data: bytes) -> tuple[bool, int, Versioned]:
    """Of `compare_and_put`: whether it was put, the revision, what stands where it was not."""
    answer = txn_answer(data)
    found = Versioned(0, b"")
    for number, value, stop in fields(data, 0, len(data)):
        if number == 3 and not answer.succeeded:
            found = _versioned(data, value, stop)
    return answer.succeeded, answer.revision, found


def grant_answer(data: bytes) -> int:
    """The lease."""
    return next((value for number, value, _ in fields(data, 0, len(data)) if number == 2), 0)


def watch_answer(data: bytes) -> WatchAnswer:
    revision = compacted = 0
    created = canceled = False
    reason = ""
    events: list[StoreEvent] = []
    for number, value, stop in fields(data, 0, len(data)):
        if number == 11:
            events.append(_event(data, value, stop))
        elif number == 1:
            revision = _revision(data, value, stop)
        elif number == 3:
            created = bool(value)
        elif number == 4:
            canceled = bool(value)
        elif number == 5:
            compacted = signed(value)
        elif number == 6:
            reason = data[value:stop].decode("utf-8", "replace")
    return WatchAnswer(revision, created, canceled, compacted, reason, events)


def _revision(data: bytes, start: int, stop: int) -> int:
    """Of a ResponseHeader."""
    return next((value for number, value, _ in fields(data, start, stop) if number == 3), 0)


def _key_value(data: bytes, start: int, stop: int) -> KeyValue:
    key, value, created, modified = "", b"", 0, 0
    for number, item, end in fields(data, start, stop):
        if number == 1:
            key = data[item:end].decode("utf-8", "surrogateescape")
        elif number == 2:
            created = item
        elif number == 3:
            modified = item
        elif number == 5:
            value = data[item:end]
    return KeyValue(key, value, created, modified)


def _event(data: bytes, start: int, stop: int) -> StoreEvent:
    kind, kv, before = 0, None, None
    for number, item, end in fields(data, start, stop):
        if number == 1:
            kind = item
        elif number == 2:
            kv = _key_value(data, item, end)
        elif number == 3:
            before = _key_value(data, item, end)
    if kv is None:
        raise ProtobufError("etcd: an event without a key")
    previous = before.value if before else None
    if kind == _DELETE:
        return StoreEvent(kv.mod_revision, kv.key, None, before.create_revision if before else 0, previous)
    return StoreEvent(kv.mod_revision, kv.key, kv.value, kv.create_revision, previous)


def _range_within(data: bytes, start: int, stop: int) -> KeyValue | None:
    """The one key of a range that is the operation of a transaction."""
    for number, value, end in fields(data, start, stop):
        if number == 1:
            for inner, kv_start, kv_stop in fields(data, value, end):
                if inner == 2:
                    return _key_value(data, kv_start, kv_stop)
    return None


def _versioned(data: bytes, start: int, stop: int) -> Versioned:
    version, content = 0, b""
    for number, value, end in fields(data, start, stop):
        for inner, kv_start, kv_stop in fields(data, value, end) if number == 1 else ():
            for kv_field, item, kv_end in fields(data, kv_start, kv_stop) if inner == 2 else ():
                if kv_field == 4:
                    version = item
                elif kv_field == 5:
                    content = data[item:kv_end]
    return Versioned(version, content)
