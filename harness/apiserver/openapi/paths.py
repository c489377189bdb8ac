"""The paths of a resource and their operations: which parameters they take, what they take and give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.apiserver.resources import Resource

Object = dict[str, Any]
_STRING: Object = {"in": "query", "schema": {"type": "string", "uniqueItems": True}}
_WRITE = [{"name": name, **_STRING} for name in ("dryRun", "fieldManager", "fieldValidation", "pretty")]
_READ = [{"name": "pretty", **_STRING}]


def paths_of(resource: Resource, reference: str, patches: Sequence[str]) -> Object:
    """`reference` is where the kind is defined; `patches` are the media types that PATCH takes."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    collection = f"{root}{scope}/{resource.resource}"
    taken = {"content": {"*/*": {"schema": {"$ref": reference}}}}
    patched = {"content": {media_type: {"schema": {"type": "object"}} for media_type in patches}}
    paths = {
        collection: _operations(
            resource,
            reference,
            {"get": ("list", _READ, None), "post": ("create", _WRITE, taken)},
        ),
        collection + "/{name}": _operations(
            resource,
            reference,
            {
                "get": ("get", _READ, None),
                "put": ("update", _WRITE, taken),
                "patch": ("patch", [*_WRITE, {"name": "force", **_STRING}], patched),
                "delete": ("delete", _WRITE[:1], None),
            },
        ),
    }
    if resource.namespaced and "list" in resource.verbs:
        paths[f"{root}/{resource.resource}"] = _operations(
            resource, reference, {"get": ("list", _READ, None)}
        )
    return {path: operations for path, operations in paths.items() if operations}


def _operations(
    resource: Resource, reference: str, wanted: dict[str, tuple[str, list[Object], Object | None]]
) -> Object:
    """Those of `wanted` (method: verb, parameters, body) that the resource has."""
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    content = {"application/json": {"schema": {"$ref": reference}}}
    made: Object = {}
    for method, (verb, parameters, body) in wanted.items():
        if verb in resource.verbs:
            made[method] = {
                "x-kubernetes-action": "post" if verb == "create" else "put" if verb == "update" else verb,
                "x-kubernetes-group-version-kind": kind,
                "parameters": parameters,
                **({"requestBody": body} if body is not None else {}),
                "responses": {"200": {"description": "OK", "content": content}},
            }
    return made
