"""What a structural schema does to an object: prune what it does not have, fill in defaults (ae/pkg/apiserver/schema,
packages pruning and defaulting)."""

from __future__ import annotations

import copy
from typing import Any

Object = dict[str, Any]
_ROOT = frozenset({"apiVersion", "kind", "metadata"})


def pruned(value: Object, schema: Object) -> tuple[Object, list[str]]:
    """(the object without unknown fields, their paths). `value` is left as it is."""
    unknown: list[str] = []
    result = _prune_object(value, schema, "", unknown, root=True)
    return (result if unknown else value), unknown


def _prune(value: Any, schema: Object, path: str, unknown: list[str]) -> Any:
    if isinstance(value, dict):
        return _prune_object(value, schema, path, unknown, bool(schema.get("x-kubernetes-embedded-resource")))
    if isinstance(value, list):
        items = schema.get("items")
        if not isinstance(items, dict):
            return value
        return [_prune(item, items, f"{path}[{at}]", unknown) for at, item in enumerate(value)]
    return value


def _prune_object(value: Object, schema: Object, path: str, unknown: list[str], root: bool) -> Object:
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    preserves = schema.get("x-kubernetes-preserve-unknown-fields") or (
        schema.get("type", "") == "" and not properties and not schema.get("x-kubernetes-int-or-string")
    )
    result: Object = {}
    for key, item in value.items():
        where = f"{path}.{key}" if path else key
        if root and key in _ROOT:
            result[key] = item
        elif key in properties:
            result[key] = _prune(item, properties[key], where, unknown)
        elif isinstance(additional, dict):
            result[key] = _prune(item, additional, where, unknown)
        elif preserves or additional:
            result[key] = item
        else:
            unknown.append(where)
    return result


def default(value: Any, schema: Object) -> None:
    """Fill in defaults, in place. A null where none may be is dropped first (defaulting/prunenulls.go)."""
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for item in value:
                default(item, items)
        return
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    for name, inner in properties.items():
        if name in value and value[name] is None and not inner.get("nullable"):
            del value[name]
        if name not in value and "default" in inner:
            value[name] = copy.deepcopy(inner["default"])
        if name in value:
            default(value[name], inner)
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        for name in [name for name in value if name not in properties]:
            default(value[name], additional)
