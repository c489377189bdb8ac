"""Type trees as JSON schemas that refer to each other by name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from harness.apiserver.resources import RESOURCES
from harness.apiserver.schema import Schema, models, schema_for
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
    QUANTITY,
    STRING,
    TIME,
)
from harness.wire.patchschema import TYPES, ListField

Object = dict[str, Any]
META_PACKAGE = "io.k8s.apimachinery.pkg.apis.meta.v1"
_CRD_PACKAGE = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_TIME = f"{META_PACKAGE}.Time"
_MICRO_TIME = f"{META_PACKAGE}.MicroTime"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_META_TYPES = frozenset(
    {
        *("APIGroup", "APIGroupList", "APIResource", "APIResourceList", "APIVersions", "Condition"),
        *("DeleteOptions", "FieldSelectorRequirement", "GroupVersionForDiscovery", "LabelSelector"),
        *("LabelSelectorRequirement", "ListMeta", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference"),
        *("Preconditions", "ServerAddressByClientCIDR", "Status", "StatusCause", "StatusDetails"),
    }
)
_PLAIN: dict[str, Object] = {
    STRING: {"type": "string"},
    BOOLEAN: {"type": "boolean"},
    NUMBER: {"type": "number", "format": "double"},
    BYTES: {"type": "string", "format": "byte"},
    ANY: {"type": "object"},
}
_SHARED: dict[str, Object] = {
    _TIME: {"type": "string", "format": "date-time"},
    _MICRO_TIME: {"type": "string", "format": "date-time"},
    _QUANTITY: {"type": "string"},
    _INT_OR_STRING: {"type": "string", "format": "int-or-string"},
}


class Definitions:
    """Collects the definitions that are referred to, from any number of roots. `prefix` is what a reference starts
    with: ``#/definitions/`` of version 2, ``#/components/schemas/`` of version 3."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._v3 = prefix != "#/definitions/"
        self.made: dict[str, Object] = {}
        self._pending: list[tuple[str, Schema]] = []

    def root(self, schema: Schema, gvks: Iterable[Object]) -> str:
        """Define a kind, and everything it is made of; its name."""
        name = name_of(schema.model)
        self._define(name, schema)
        while self._pending:
            self._define(*self._pending.pop())
        self.made[name]["x-kubernetes-group-version-kind"] = list(gvks)
        return name

    def reference_to(self, schema: Schema) -> Object:
        """A reference to an object's type, which is defined."""
        made = self._value(schema)
        while self._pending:
            self._define(*self._pending.pop())
        return made

    def _define(self, name: str, schema: Schema) -> None:
        if name in self.made:
            return
        details = models.details(schema.model)
        definition: Object = {"type": "object"}
        self.made[name] = definition
        if details.description:
            definition["description"] = details.description
        if details.required:
            definition["required"] = list(details.required)
        if schema.fields:
            definition["properties"] = {
                field: self._property(schema.name, field, item, details.fields.get(field, ""))
                for field, item in sorted(schema.fields.items())
            }
        if schema.atomic:
            definition["x-kubernetes-map-type"] = "atomic"

    def _property(self, owner: str, field: str, schema: Schema, description: str) -> Object:
        made = self._value(schema)
        if schema.type == LIST:
            made["x-kubernetes-list-type"] = schema.list_type
            if schema.keys:
                made["x-kubernetes-list-map-keys"] = list(schema.keys)
        elif schema.type == MAP and schema.atomic:
            made["x-kubernetes-map-type"] = "atomic"
        made |= _merging(owner, field, schema)
        if description:
            if self._v3 and "$ref" in made:
                made = {"allOf": [made], "default": {}}
            made["description"] = description
        return made

    def _value(self, schema: Schema) -> Object:
        type = schema.type
        if type == OBJECT:
            name = name_of(schema.model)
            if name not in self.made:
                self._pending.append((name, schema))
            return self._reference(name)
        if type in (LIST, MAP):
            items = self._value(schema.items) if schema.items is not None else {}
            return (
                {"type": "array", "items": items}
                if type == LIST
                else {"type": "object", "additionalProperties": items}
            )
        if type == INTEGER:
            return {"type": "integer", "format": schema.format or "int64"}
        shared = {
            TIME: _MICRO_TIME if schema.format == "micro" else _TIME,
            QUANTITY: _QUANTITY,
            INT_OR_STRING: _INT_OR_STRING,
        }.get(type)
        if shared is not None:
            self.made.setdefault(shared, _SHARED[shared])
            return self._reference(shared)
        return dict(_PLAIN[type])

    def _reference(self, name: str) -> Object:
        return {"$ref": self._prefix + name}


def _merging(owner: str, field: str, schema: Schema) -> Object:
    """How a strategic merge patch treats a field."""
    rule = TYPES.get(owner, {}).get(field)
    if rule is None and schema.type == LIST and schema.keys == ("type",):
        return {"x-kubernetes-patch-merge-key": "type", "x-kubernetes-patch-strategy": "merge"}
    if isinstance(rule, ListField):
        made: Object = {"x-kubernetes-patch-strategy": "merge,retainKeys" if rule.retain_keys else "merge"}
        return made | ({"x-kubernetes-patch-merge-key": rule.key} if rule.key else {})
    return {"x-kubernetes-patch-strategy": "retainKeys"} if rule is not None and rule.retain_keys else {}


def name_of(model: str) -> str:
    """A type as upstream's documents call it: ``io.k8s.api.core.v1.PodSpec``."""
    kind, version = models.go_name(model), models.version_of(model)
    if kind in _META_TYPES:
        return f"{META_PACKAGE}.{kind}"
    group = _groups().get(model) or models.group_of(model)
    return f"{_CRD_PACKAGE}.{kind}" if group == "apiextensions" else f"io.k8s.api.{group}.{version}.{kind}"


@cache
def _groups() -> dict[str, str]:
    """The group of each type that a served kind is made of: the first in the order of the table, which begins with the
    core types that others hold."""
    found: dict[str, str] = {}
    for resource in RESOURCES:
        root = schema_for(resource.api_version, resource.kind)
        if root is not None:
            _mark(root, resource.group.split(".")[0] or "core", found)
    return found


def _mark(schema: Schema, group: str, found: dict[str, str]) -> None:
    if schema.items is not None:
        _mark(schema.items, group, found)
    if not schema.model or schema.model in found:
        return
    found[schema.model] = group
    for item in schema.fields.values():
        _mark(item, group, found)
