"""A store's whole state as the payloads of a snapshot file, and back. No I/O.

The payloads are a `Head`, lists of `SavedKey`s in the order of their keys, and a `Tail`, whose number of keys says that
nothing is missing. The history since the last compaction is in it: watches go on from where they were, as after a
restart of etcd.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from harness.apiserver.store.core import SavedKey, StoreCore

KEYS_AT_ONCE = 200
"""Keys of one payload: a fraction of a millisecond's work, between which the store serves."""


class Head(msgspec.Struct, array_like=True, frozen=True):
    """`proposals` have been applied; the store was then at `revision`."""

    proposals: int
    revision: int
    compacted: int


class Tail(msgspec.Struct, array_like=True, frozen=True):
    keys: int


encode = msgspec.msgpack.Encoder().encode
_decode_head = msgspec.msgpack.Decoder(Head).decode
_decode_keys = msgspec.msgpack.Decoder(list[SavedKey]).decode
_decode_tail = msgspec.msgpack.Decoder(Tail).decode


def payloads(core: StoreCore, proposals: int) -> Iterator[bytes]:
    """The state as of this call, however much is written while this is iterated; only compactions have to wait, those
    that have begun too."""
    return _payloads(core, core.keys(), Head(proposals, core.revision, core.compacted))


def _payloads(core: StoreCore, keys: list[str], head: Head) -> Iterator[bytes]:
    yield encode(head)
    count = 0
    for at in range(0, len(keys), KEYS_AT_ONCE):
        saved = core.save(keys[at : at + KEYS_AT_ONCE], head.revision)
        count += len(saved)
        yield encode(saved)
    yield encode(Tail(count))


def restore(found: list[memoryview], now: float) -> tuple[StoreCore, int]:
    """The store of a snapshot's payloads and how many proposals it has seen. Raises ValueError where they are not a
    whole snapshot."""
    try:
        head, tail = _decode_head(found[0]), _decode_tail(found[-1])
        saved = [key for payload in found[1:-1] for key in _decode_keys(payload)]
    except (IndexError, msgspec.MsgspecError) as error:
        raise ValueError(f"it is no snapshot: {error}") from None
    if len(saved) != tail.keys:
        raise ValueError(f"{len(saved)} keys of {tail.keys}")
    return StoreCore.restored(head.revision, head.compacted, saved, now), head.proposals
