"""The documents of a member: an index and one of each group version (v3), and all of them in one (v2)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from harness.apiserver.openapi.definitions import Definitions, Object
from harness.apiserver.openapi.paths import paths_of
from harness.apiserver.resources import Resource
from harness.apiserver.schema import schema_for
from harness.wire.request import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH

_encode = msgspec.json.Encoder().encode
_BUILT_IN_PATCHES = (APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH)
_CUSTOM_PATCHES = (APPLY_PATCH, JSON_PATCH, MERGE_PATCH)


class CustomType(msgspec.Struct, frozen=True):
    """A custom resource and its OpenAPI v3 schema."""

    resource: Resource
    schema: Any


class OpenApi:
    """`document(path)` gives the JSON of an OpenAPI path, None of any other."""

    def __init__(self, resources: Sequence[Resource], version: str) -> None:
        self._builtin = resources
        self._custom: Sequence[CustomType] = ()
        self._info = {"title": "Kubernetes", "version": version}
        self._made: dict[str, bytes] = {}

    def serve_also(self, custom: Sequence[CustomType]) -> None:
        """These custom resources, and no others."""
        changed = {item.resource.api_version for item in (*self._custom, *custom)}
        self._custom = custom
        for api_version in changed:
            self._made.pop(f"/openapi/v3/{_prefix(*_split(api_version))}", None)
        self._made.pop("/openapi/v3", None)
        self._made.pop("/openapi/v2", None)

    def document(self, path: str) -> bytes | None:
        made = self._made.get(path)
        if made is None and (maker := self._maker(path)) is not None:
            made = self._made[path] = _encode(maker()) + b"\n"
        return made

    def _maker(self, path: str) -> Callable[[], Object] | None:
        if path == "/openapi/v3":
            return self._index
        if path == "/openapi/v2":
            return self._version_2
        for group, version in self._group_versions():
            if path == f"/openapi/v3/{_prefix(group, version)}":
                return lambda: self._version_3(group, version)
        return None

    def hash_of(self, group: str, version: str) -> str:
        """What a group version's document is made from, in short: as upstream, upper-case hexadecimal of SHA-512."""
        parts = (self._rows(group, version), self._customs(group, version), self._info)
        return hashlib.sha512(repr(parts).encode()).hexdigest().upper()

    # ---- documents -----------------------------------------------------------------------------------------------
    def _index(self) -> Object:
        paths = {}
        for group, version in self._group_versions():
            prefix = _prefix(group, version)
            url = f"/openapi/v3/{prefix}?hash={self.hash_of(group, version)}"
            paths[prefix] = {"serverRelativeURL": url}
        return {"paths": paths}

    def _version_3(self, group: str, version: str) -> Object:
        prefix = "#/components/schemas/"
        definitions = Definitions(prefix)
        paths: Object = {}
        for resource in self._rows(group, version):
            name = _define(definitions, resource)
            paths |= paths_of(resource, prefix + name, _BUILT_IN_PATCHES)
        for custom in self._customs(group, version):
            name = _define_custom(definitions, custom)
            paths |= paths_of(custom.resource, prefix + name, _CUSTOM_PATCHES)
        return {
            "openapi": "3.0.0",
            "info": self._info,
            "paths": paths,
            "components": {"schemas": definitions.made},
        }

    def _version_2(self) -> Object:
        definitions = Definitions("#/definitions/")
        for resource in self._builtin:
            _define(definitions, resource)
        for custom in self._custom:
            _define_custom(definitions, custom)
        return {"swagger": "2.0", "info": self._info, "paths": {}, "definitions": definitions.made}

    # ---- rows ----------------------------------------------------------------------------------------------------
    def _group_versions(self) -> list[tuple[str, str]]:
        rows = (*self._builtin, *(item.resource for item in self._custom))
        return list(dict.fromkeys((row.group, row.version) for row in rows))

    def _rows(self, group: str, version: str) -> list[Resource]:
        return [row for row in self._builtin if (row.group, row.version) == (group, version)]

    def _customs(self, group: str, version: str) -> list[CustomType]:
        return [
            item for item in self._custom if (item.resource.group, item.resource.version) == (group, version)
        ]


def _prefix(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _split(api_version: str) -> tuple[str, str]:
    group, _, version = api_version.rpartition("/")
    return group, version


def gvk(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _define(definitions: Definitions, resource: Resource) -> str:
    schema = schema_for(resource.api_version, resource.kind)
    if schema is not None:
        return definitions.root(schema, [gvk(resource)])
    name = f"io.k8s.api.{resource.group.split('.')[0] or 'core'}.{resource.version}.{resource.kind}"
    definitions.made[name] = {"type": "object", "x-kubernetes-group-version-kind": [gvk(resource)]}
    return name


def _define_custom(definitions: Definitions, custom: CustomType) -> str:
    """A custom resource's definition (ae/pkg/controller/openapi/builder/builder.go): its schema, with the fields that
    every object has."""
    resource = custom.resource
    name = ".".join((*reversed(resource.group.split(".")), resource.version, resource.kind))
    definition = dict(custom.schema or {"type": "object"})
    properties = dict(definition.get("properties") or {})
    schema = schema_for("v1", "Secret")
    if schema is not None:
        properties["metadata"] = definitions.reference_to(schema.fields["metadata"])
    properties |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    definition["properties"] = properties
    definition["x-kubernetes-group-version-kind"] = [gvk(resource)]
    definitions.made[name] = definition
    return name
