"""Answers in protobuf, for members that offer them to clients which prefer it (kubelets, controllers).

A cached object is encoded once, at the first watch event or list that needs it, and keeps that form as long as it is in
use: a fan-out of one change to many watchers pays once. Nothing here is run for clients that take JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.cache.watchers import Transform
from harness.apiserver.conversion import shown
from harness.apiserver.resources import Resource
from harness.apiserver.views.partial import partial_object
from harness.wire.protobuf.encoding import encode_object, encode_raw, envelope, sized
from harness.wire.watching import ERROR, encode_frame

STREAM = "application/vnd.kubernetes.protobuf;stream=watch"
"""The Content-Type of a watch (as/endpoints/handlers/watch.go:97)."""

_decode = msgspec.json.Decoder().decode


def encoded(body: bytes) -> bytes:
    """An object, list or Status of JSON in its envelope. Raises ProtobufError."""
    return encode_object(_decode(body))


def list_body(resource: Resource, items: Sequence[CachedObject], metadata: dict[str, Any]) -> bytes:
    kind = f"{resource.kind}List"
    raws = [b"\x12" + sized(_raw(resource, item)) for item in items]
    head = encode_raw(resource.api_version, kind, {"metadata": metadata})
    return envelope(resource.api_version, kind, head + b"".join(raws))


def object_events(resource: Resource) -> Transform:
    def as_protobuf(kind: str, obj: CachedObject) -> bytes:
        return encode_frame(kind, envelope(resource.api_version, resource.kind, _raw(resource, obj)))

    return as_protobuf


def partial_events(version: str) -> Transform:
    return lambda kind, obj: encode_frame(kind, encoded(partial_object(obj.body, version)))


def error_event(status: bytes) -> bytes:
    """The last event of a watch that fails; `status` is JSON."""
    return encode_frame(ERROR, encoded(status))


def _raw(resource: Resource, obj: CachedObject) -> bytes:
    if resource.hub is not None:  # another form than the one that is cached
        return encode_raw(resource.api_version, resource.kind, _decode(shown(resource, obj.body)))
    try:
        return obj.protobuf
    except AttributeError:
        raw = obj.protobuf = encode_raw(resource.api_version, resource.kind, _decode(obj.body))
        return raw
