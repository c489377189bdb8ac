"""What a client reads first: API versions, groups, resources, the server's version, and enough OpenAPI for kubectl.

All documents are made once from the table of resources. Mirrors as/endpoints/discovery (aggregated documents:
discovery/aggregated) and cm/pkg/handler3 for OpenAPI. Of the schemas only what kubectl asks for is given: which kinds
there are, and that their writes take ``fieldValidation``.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from harness.apiserver.resources import Resource

Object = dict[str, Any]
_encode = msgspec.json.Encoder().encode

VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.2",
    "gitCommit": "swarmlet",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "go1.26",
    "compiler": "gc",
    "platform": "linux/amd64",
}
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_VERBS_OF: dict[str, tuple[str, ...]] = {
    "status": ("get", "patch", "update"),
    "binding": ("create",),
    "eviction": ("create",),
    "finalize": ("update",),
    "token": ("create",),
}
_KIND_OF: dict[str, tuple[str, str, str]] = {  # subresource: group, version, kind of its body
    "binding": ("", "", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "scale": ("autoscaling", "v1", "Scale"),
}


_BINDINGS = {
    "name": "bindings",
    "singularName": "binding",
    "namespaced": True,
    "kind": "Binding",
    "verbs": ["create"],
}


def storage_version_hash(resource: Resource) -> str:
    """as/endpoints/discovery/storageversionhash.go: 8 bytes of the SHA-256 of group/version/kind."""
    text = f"{resource.group}/{resource.version}/{resource.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _entry(resource: Resource) -> Object:
    entry: Object = {
        "name": resource.resource,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    entry["storageVersionHash"] = storage_version_hash(resource)
    return entry


def _subentry(resource: Resource, subresource: str) -> Object:
    group, version, kind = _KIND_OF.get(subresource, ("", "", resource.kind))
    entry: Object = {
        "name": f"{resource.resource}/{subresource}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if group:
        entry |= {"group": group, "version": version}
    return entry | {"kind": kind, "verbs": list(_VERBS_OF.get(subresource, ("get", "patch", "update")))}


class Discovery:
    """`document(path, accept)` gives (content type, body) of a discovery path, None where it is none of them."""

    def __init__(self, resources: Sequence[Resource], server_address: str) -> None:
        self._resources = resources
        self._groups: dict[str, list[str]] = {}
        for resource in resources:
            versions = self._groups.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        self._documents = self._make(server_address)
        self._aggregated = {
            "/api": _encode(self._aggregate([""])),
            "/apis": _encode(self._aggregate([group for group in self._groups if group])),
        }

    def document(self, path: str, accept: str) -> tuple[str, bytes] | None:
        path = path.rstrip("/") or "/"
        if path in self._aggregated and "as=APIGroupDiscoveryList" in accept and "v=v2;" in accept + ";":
            return AGGREGATED, self._aggregated[path]
        body = self._documents.get(path)
        return None if body is None else ("application/json", body)

    def _make(self, server_address: str) -> dict[str, bytes]:
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}
        documents: dict[str, Object] = {
            "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]},
            "/apis": {
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": [self._group(group) for group in self._groups if group],
            },
            "/version": VERSION,
            "/openapi/v3": self._openapi_index(),
            "/openapi/v2": self._openapi_v2(),
        }
        for group, versions in self._groups.items():
            if group:
                documents[f"/apis/{group}"] = {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}
            for version in versions:
                prefix = self._prefix(group, version)
                documents[f"/{prefix}"] = self._resource_list(group, version)
                documents[f"/openapi/v3/{prefix}"] = self._openapi_v3(group, version)
        documents["/"] = {"paths": [*sorted(documents), "/healthz", "/livez", "/metrics", "/readyz"]}
        return {path: _encode(document) + b"\n" for path, document in documents.items()}

    @staticmethod
    def _prefix(group: str, version: str) -> str:
        return f"apis/{group}/{version}" if group else f"api/{version}"

    def _group(self, group: str) -> Object:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version} for version in self._groups[group]
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _in(self, group: str, version: str) -> list[Resource]:
        found = [item for item in self._resources if (item.group, item.version) == (group, version)]
        return sorted(found, key=lambda item: item.resource)

    def _resource_list(self, group: str, version: str) -> Object:
        entries: list[Object] = [] if group else [_BINDINGS]
        for resource in self._in(group, version):
            entries.append(_entry(resource))
            entries += [_subentry(resource, subresource) for subresource in resource.subresources]
        return {
            "kind": "APIResourceList",
            **({"apiVersion": "v1"} if group else {}),
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": entries,
        }

    def _aggregate(self, groups: list[str]) -> Object:
        items = []
        for group in groups:
            versions = [
                {
                    "version": version,
                    "resources": [
                        *([] if group else [_AGGREGATED_BINDINGS]),
                        *(_aggregated(resource) for resource in self._in(group, version)),
                    ],
                    "freshness": "Current",
                }
                for version in self._groups.get(group, ())
            ]
            metadata: Object = {"name": group} if group else {}
            metadata["creationTimestamp"] = None
            items.append({"metadata": metadata, "versions": versions})
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }

    # ---- OpenAPI ---------------------------------------------------------------------------------------------------
    def _openapi_index(self) -> Object:
        paths = {}
        for group, versions in self._groups.items():
            for version in versions:
                prefix = self._prefix(group, version)
                digest = hashlib.sha256(repr(self._in(group, version)).encode()).hexdigest()
                paths[prefix] = {"serverRelativeURL": f"/openapi/v3/{prefix}?hash={digest}"}
        return {"paths": paths}

    def _openapi_v3(self, group: str, version: str) -> Object:
        paths: Object = {}
        schemas: Object = {}
        for resource in self._in(group, version):
            name = _schema_name(resource)
            schemas[name] = {"type": "object", "x-kubernetes-group-version-kind": [_gvk(resource)]}
            scope = "/namespaces/{namespace}" if resource.namespaced else ""
            collection = f"/{self._prefix(group, version)}{scope}/{resource.resource}"
            paths[collection] = {"post": _operation(resource, name, "post")}
            paths[collection + "/{name}"] = {
                "put": _operation(resource, name, "put"),
                "patch": _operation(resource, name, "patch"),
            }
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
            "paths": paths,
            "components": {"schemas": schemas},
        }

    def _openapi_v2(self) -> Object:
        definitions = {
            _schema_name(resource): {"type": "object", "x-kubernetes-group-version-kind": [_gvk(resource)]}
            for resource in self._resources
        }
        info = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
        return {"swagger": "2.0", "info": info, "paths": {}, "definitions": definitions}


def _aggregated(resource: Resource) -> Object:
    entry: Object = {
        "resource": resource.resource,
        "responseKind": _gvk(resource),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    subresources = []
    for subresource in resource.subresources:
        group, version, kind = _KIND_OF.get(subresource, ("", "", resource.kind))
        gvk = (
            {"group": group, "version": version, "kind": kind} if group else {**_gvk(resource), "kind": kind}
        )
        verbs = list(_VERBS_OF.get(subresource, ("get", "patch", "update")))
        subresources.append({"subresource": subresource, "responseKind": gvk, "verbs": verbs})
    return entry | ({"subresources": subresources} if subresources else {})


_AGGREGATED_BINDINGS = {
    "resource": "bindings",
    "responseKind": {"group": "", "version": "v1", "kind": "Binding"},
    "scope": "Namespaced",
    "singularResource": "binding",
    "verbs": ["create"],
}


def _gvk(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _schema_name(resource: Resource) -> str:
    group = resource.group.split(".")[0] or "core"
    return f"io.k8s.api.{group}.{resource.version}.{resource.kind}"


def _operation(resource: Resource, schema: str, action: str) -> Object:
    query = {"in": "query", "schema": {"type": "string", "uniqueItems": True}}
    reference = {"schema": {"$ref": f"#/components/schemas/{schema}"}}
    return {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(resource),
        "parameters": [
            {"name": name, **query} for name in ("dryRun", "fieldManager", "fieldValidation", "pretty")
        ],
        "responses": {"200": {"description": "OK", "content": {"application/json": reference}}},
    }
