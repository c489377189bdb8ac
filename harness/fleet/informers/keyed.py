"""Objects as the checker sees them: a key and a revision, one value in the process however many clients were sent it.

A crowd that begins at once has the whole state of each informer under way at the same time. With views of their own,
200 informers of 10,000 objects would hold 600 MB; as it is they hold a dictionary each, of 0.3 MB.
"""

from __future__ import annotations

import msgspec

from harness.client.store import Decode, ObjectMeta, ObjectView
from harness.wire.objectviews import view_decoder

KEPT = 500_000
"""Objects, about 250 bytes each. Beyond that (names are never used again, as pods') all are forgotten."""


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Named(msgspec.Struct, gc=False):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_decode_named = view_decoder(_Named)


def keyed_decode(kept: int = KEPT) -> Decode:
    """A decode function whose views are shared and never to be changed: ``metadata.name`` is the whole key
    (``namespace/name``), ``metadata.namespace`` and ``metadata.uid`` are empty."""
    known: dict[str, ObjectView] = {}

    def decode(raw: bytes) -> ObjectView:
        found = _decode_named(raw).metadata
        key = f"{found.namespace}/{found.name}" if found.namespace else found.name
        view = known.get(key)
        if view is None:
            if len(known) >= kept:
                known.clear()
        elif view.metadata.resource_version == found.resource_version:
            return view
        else:
            key = view.metadata.name
        view = known[key] = ObjectView(ObjectMeta(key, "", "", found.resource_version))
        return view

    return decode


decode_keyed = keyed_decode()
