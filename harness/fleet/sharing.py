"""Decoding once what many kubelets of a process are sent alike: services, drivers, the secret of a whole Deployment."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from harness.client.store import Decode
from harness.wire.objectviews import view_decoder

_OBJECTS = 8192  # at most _BYTES each, so at most 16 MB a process and view
_BYTES = 2048  # of larger ones the head is the key, where it names their revision
_HEAD_BYTES = 512
_HEADS = 1024
_REVISION = b'"resourceVersion":"'


def shared_decode(view: type[Any]) -> Decode:
    """A decode function whose results are shared: equal bytes give one and the same object, never to be changed."""
    decode: Decode = view_decoder(view)
    remembered = lru_cache(maxsize=_OBJECTS)(decode)

    heads: dict[bytes, Any] = {}

    def shared(raw: bytes) -> Any:
        if len(raw) <= _BYTES:
            return remembered(raw)
        head = raw[:_HEAD_BYTES]
        found = heads.get(head)
        if found is None:
            found = decode(raw)
            if _names_revision(head):
                if len(heads) >= _HEADS:
                    del heads[next(iter(heads))]
                heads[head] = found
        return found

    return shared


def _names_revision(head: bytes) -> bool:
    """Whether these first bytes of an object in JSON hold its whole resourceVersion, and so its uid and name: no other
    object begins like that. (Keys of metadata stand in the order of their fields in Go: name, generateName, namespace,
    selfLink, uid, resourceVersion.)"""
    at = head.find(_REVISION)
    return at >= 0 and head.find(b'"', at + len(_REVISION)) >= 0
