"""Decoding once what many kubelets of a process are sent alike: services, drivers, the secret of a whole Deployment."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from harness.client.store import Decode
from harness.wire.objectviews import view_decoder

_OBJECTS = 8192  # at most _BYTES each, so at most 16 MB a process and view
_BYTES = 2048  # larger objects are decoded each time rather than kept as keys


def shared_decode(view: type[Any]) -> Decode:
    """A decode function whose results are shared: equal bytes give one and the same object, never to be changed."""
    decode: Decode = view_decoder(view)
    remembered = lru_cache(maxsize=_OBJECTS)(decode)

    def shared(raw: bytes) -> Any:
        return remembered(raw) if len(raw) <= _BYTES else decode(raw)

    return shared
