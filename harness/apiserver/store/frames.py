"""What members and the store process say to each other: length-prefixed msgpack frames over a Unix-domain socket.

A frame holds everything that one turn of the sender's event loop had to say, in order. No I/O here.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.apiserver.store.core import (
    Compacted,
    FutureRevision,
    StoreError,
    StoreTimeout,
    StoreUnavailable,
    Txn,
)

VERSION = 2
LENGTH_BYTES = 4
LONGEST_FRAME = 1 << 30


# ---- from a member
class Hello(msgspec.Struct, array_like=True, tag=0, frozen=True):
    """First of all: whose replica this connection is for."""

    version: int
    member: str


class Follow(msgspec.Struct, array_like=True, tag=1, frozen=True):
    """Send events from `from_revision` on, 0 being the next; `previous` values for keys under these prefixes."""

    from_revision: int
    previous_for: tuple[str, ...]


class Unfollow(msgspec.Struct, array_like=True, tag=2, frozen=True):
    pass


class AskTxn(msgspec.Struct, array_like=True, tag=3, frozen=True):
    id: int
    txn: Txn


class AskGet(msgspec.Struct, array_like=True, tag=4, frozen=True):
    id: int
    key: str


class AskRange(msgspec.Struct, array_like=True, tag=5, frozen=True):
    id: int
    prefix: str
    start_key: str
    limit: int
    revision: int


class AskRevision(msgspec.Struct, array_like=True, tag=6, frozen=True):
    id: int


class AskHistory(msgspec.Struct, array_like=True, tag=7, frozen=True):
    id: int
    prefix: str
    after: int


class AskCompact(msgspec.Struct, array_like=True, tag=8, frozen=True):
    id: int
    revision: int


class AskDelay(msgspec.Struct, array_like=True, tag=9, frozen=True):
    """Make every write and read take so much longer, for all members."""

    id: int
    write_s: float
    read_s: float


Ask = AskTxn | AskGet | AskRange | AskRevision | AskHistory | AskCompact | AskDelay
FromMember = Hello | Follow | Unfollow | Ask


class MemberFrame(msgspec.Struct, array_like=True, frozen=True):
    """`backlog_s` is how far behind the etcd member on the sender's host is."""

    backlog_s: float
    items: Sequence[FromMember]


# ---- from the store
class Answer(msgspec.Struct, array_like=True, tag=0, frozen=True):
    """The result of the question with this id, in the type that belongs to it."""

    id: int
    result: msgspec.Raw


class Failure(msgspec.Struct, array_like=True, tag=1, frozen=True):
    """The error of the question with this id; id 0: the subscription has ended with it."""

    id: int
    kind: str
    message: str
    requested: int = 0
    limit: int = 0


class Events(msgspec.Struct, array_like=True, tag=2, frozen=True):
    """`StoreEvent`s, each encoded once for all members."""

    events: Sequence[msgspec.Raw]


class Welcome(msgspec.Struct, array_like=True, tag=3, frozen=True):
    """The answer to Hello. `identity` tells one durable store from others; "" is one that keeps nothing."""

    identity: str


class Following(msgspec.Struct, array_like=True, tag=4, frozen=True):
    """The answer to Follow: events up to `revision` have been applied before, and come only if they were asked for."""

    revision: int


FromStore = Answer | Failure | Events | Welcome | Following

encode = msgspec.msgpack.Encoder().encode
decode_member_frame = msgspec.msgpack.Decoder(MemberFrame).decode
decode_store_frame = msgspec.msgpack.Decoder(list[FromStore]).decode


def failure(id_: int, error: StoreError) -> Failure:
    """An error as it travels."""
    kind = type(error).__name__
    if isinstance(error, Compacted):
        return Failure(id_, kind, "", error.requested, error.compacted)
    if isinstance(error, FutureRevision):
        return Failure(id_, kind, "", error.requested, error.current)
    return Failure(id_, kind, str(error))


def error_of(message: Failure) -> StoreError:
    """The error that travelled."""
    if message.kind == "Compacted":
        return Compacted(message.requested, message.limit)
    if message.kind == "FutureRevision":
        return FutureRevision(message.requested, message.limit)
    kinds: dict[str, type[StoreError]] = {"StoreTimeout": StoreTimeout, "StoreUnavailable": StoreUnavailable}
    return kinds.get(message.kind, StoreError)(message.message)


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


class FrameReader:
    """Bytes in, in any split; bodies of whole frames out."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Raises ValueError on a length that nobody would send."""
        rest = self._rest
        rest += data
        bodies = []
        start = 0
        while len(rest) - start >= LENGTH_BYTES:
            length = int.from_bytes(rest[start : start + LENGTH_BYTES], "big")
            if length > LONGEST_FRAME:
                raise ValueError(f"store protocol: a frame of {length} bytes")
            end = start + LENGTH_BYTES + length
            if len(rest) < end:
                break
            bodies.append(bytes(rest[start + LENGTH_BYTES : end]))
            start = end
        del rest[:start]
        return bodies
