"""Objects and lists in the representation that was asked for (as/endpoints/handlers/response.go)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.conversion import shown
from harness.apiserver.handlers.call import Answer, Call
from harness.apiserver.handlers.negotiate import AVAILABLE, JSON, PROTOBUF, YAML, View
from harness.apiserver.handlers.yamltext import to_yaml
from harness.apiserver.resources import Resource
from harness.apiserver.views import protobuf
from harness.apiserver.views.partial import partial_object
from harness.apiserver.views.table import Tables
from harness.wire.status import StatusError, not_acceptable

_encode = msgspec.json.Encoder().encode


class _Revision(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815  # the API's name


class _Metadata(msgspec.Struct):
    metadata: _Revision


_revision_of = msgspec.json.Decoder(_Metadata).decode


def object_answer(call: Call, body: bytes, status: int = 200, warnings: Sequence[str] = ()) -> Answer:
    """One object."""
    view = call.representation.view
    if view is View.TABLE:
        body = tables_for(call).rows([body], {"resourceVersion": _revision_of(body).metadata.resourceVersion})
    elif view is View.PARTIAL:
        body = partial_object(body, call.representation.version)
    elif view is View.PARTIAL_LIST:
        raise StatusError(not_acceptable(AVAILABLE))
    else:
        body = shown(call.resource, body)
    return finished(call, body + b"\n", status, warnings)


def finished(
    call: Call, body: bytes, status: int = 200, warnings: Sequence[str] = (), objects: int = 1
) -> Answer:
    """JSON, with its line feed where it is to have one, in the media type that was asked for."""
    answer = Answer(body, status, objects=objects)
    if call.representation.media_type == YAML:
        answer.body = to_yaml(msgspec.json.decode(body))
        answer.content_type = YAML
    elif call.representation.media_type == PROTOBUF:
        answer.body = protobuf.encoded(body)
        answer.content_type = PROTOBUF
    elif call.representation.media_type != JSON:
        raise StatusError(not_acceptable(AVAILABLE))
    if warnings:
        answer.headers = {"warning": ", ".join(f"299 - {_quoted(text)}" for text in warnings)}
    return answer


def prettied(body: bytes) -> bytes:
    """JSON indented as json.MarshalIndent does it, without a line feed at its end (am/runtime/serializer/json:241)."""
    return msgspec.json.format(body, indent=2).strip()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def tables_for(call: Call) -> Tables:
    include = call.info.query.get("includeObject", "")
    return Tables(call.resource, call.representation.version, include, call.wall)


@lru_cache(maxsize=128)
def item_offset(resource: Resource) -> int:
    """How many bytes of an object's JSON stand before its metadata: items of a list have neither kind nor version."""
    return len(_encode({"kind": resource.kind, "apiVersion": resource.api_version})) - 1 + len(b",")


def list_answer(call: Call, objects: Sequence[CachedObject], metadata: dict[str, Any]) -> Answer:
    """A list; `metadata` in Go's order (resourceVersion, continue, remainingItemCount)."""
    view, resource = call.representation.view, call.resource
    if view is View.OBJECT and call.representation.media_type == PROTOBUF:
        body = protobuf.list_body(resource, objects, metadata)
        return Answer(body, content_type=PROTOBUF, objects=len(objects))
    items = [obj.body for obj in objects]
    if view is View.OBJECT:
        if resource.hub is not None:
            items = [shown(resource, item) for item in items]
        head = {"kind": resource.kind + "List", "apiVersion": resource.api_version, "metadata": metadata}
        at = item_offset(resource)
        body = _joined(
            head, [memoryview(item)[at:] for item in items], b"{"
        )  # one copy of what may be megabytes
    elif view is View.PARTIAL_LIST:
        version = call.representation.version
        head = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{version}",
            "metadata": metadata,
        }
        body = _joined(head, [partial_object(item, version) for item in items])
    elif view is View.TABLE:
        body = tables_for(call).rows(items, metadata) + b"\n"
    else:
        raise StatusError(not_acceptable(AVAILABLE))
    return finished(call, body, objects=len(items))


def _joined(head: dict[str, Any], items: Sequence[bytes | memoryview], opening: bytes = b"") -> bytes:
    """A list's JSON with its line feed; `opening` is put before each item."""
    between = b"," + opening
    parts: list[bytes | memoryview] = [_encode(head)[:-1], b',"items":[']
    for item in items:
        parts += (between, item)
    if items:
        parts[2] = opening
    parts.append(b"]}\n")
    return b"".join(parts)
