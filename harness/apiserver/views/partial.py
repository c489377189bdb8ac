"""PartialObjectMetadata: an object's metadata alone, cut from its bytes."""

from __future__ import annotations

import msgspec


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


_decode = msgspec.json.Decoder(_Metadata).decode


def metadata_of(body: bytes) -> bytes:
    """The JSON of an object's metadata."""
    return bytes(_decode(body).metadata)


def partial_object(body: bytes, version: str = "v1") -> bytes:
    return (
        b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/'
        + version.encode()
        + b'","metadata":'
        + metadata_of(body)
        + b"}"
    )
