"""The type tree of a custom resource, from its OpenAPI v3 schema (ae/pkg/apiserver/schema)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from harness.apiserver.schema.builtin import any_object
from harness.apiserver.schema.tree import (
    ANY,
    BOOLEAN,
    BYTES,
    INT_OR_STRING,
    INTEGER,
    LIST,
    MAP,
    NUMBER,
    OBJECT,
    STRING,
    TIME,
    Schema,
)

_PLAIN = {"integer": INTEGER, "number": NUMBER, "boolean": BOOLEAN, "string": STRING}
_STRINGS = {"date-time": TIME, "byte": BYTES}


def schema_from_openapi(openapi_v3: Mapping[str, Any]) -> Schema:
    """The tree of a CRD version's ``openAPIV3Schema``, its root with apiVersion, kind and metadata."""
    return _object(openapi_v3, root=True)


def _of(node: Mapping[str, Any]) -> Schema:
    if node.get("x-kubernetes-int-or-string"):
        return Schema(INT_OR_STRING)
    type = node.get("type", "")
    if type == "array":
        keys = tuple(node.get("x-kubernetes-list-map-keys") or ())
        list_type = node.get("x-kubernetes-list-type") or "atomic"
        return Schema(LIST, items=_of(node.get("items") or {}), list_type=list_type, keys=keys)
    if type == "object":
        return _object(node, root=bool(node.get("x-kubernetes-embedded-resource")))
    if type == "string":
        return Schema(_STRINGS.get(node.get("format", ""), STRING))
    plain = _PLAIN.get(type)
    if plain is not None:
        return Schema(plain, format=node.get("format", ""))
    return Schema(ANY, preserve_unknown=bool(node.get("x-kubernetes-preserve-unknown-fields")))


def _object(node: Mapping[str, Any], *, root: bool) -> Schema:
    atomic = node.get("x-kubernetes-map-type") == "atomic"
    preserve = bool(node.get("x-kubernetes-preserve-unknown-fields"))
    additional = node.get("additionalProperties")
    if additional and not root and not node.get("properties"):
        items = _of(additional) if isinstance(additional, Mapping) else Schema(ANY, preserve_unknown=True)
        return Schema(MAP, items=items, atomic=atomic)
    return Schema(OBJECT, resolve=partial(_fields, node, root), atomic=atomic, preserve_unknown=preserve)


def _fields(node: Mapping[str, Any], root: bool) -> Mapping[str, Schema]:
    fields = {key: _of(item) for key, item in (node.get("properties") or {}).items()}
    if root:
        fields |= any_object()
    return fields
