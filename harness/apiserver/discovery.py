"""What a client reads first: API versions, groups, resources, the server's version.

Documents are made from the table of resources, and again where custom resources come and go. Mirrors
as/endpoints/discovery (aggregated documents: discovery/aggregated); OpenAPI is a package of its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from harness.apiserver.openapi import CustomType, OpenApi
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
_AGGREGATED_PATHS = ("/api", "/apis")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_VERBS_OF: dict[str, tuple[str, ...]] = {
    "status": ("get", "patch", "update"),
    "binding": ("create",),
    "eviction": ("create",),
    "finalize": ("update",),
    "log": ("get",),
    **dict.fromkeys(("attach", "exec", "portforward"), ("create", "get")),
    "token": ("create",),
}
_KIND_OF: dict[str, tuple[str, str, str]] = {  # subresource: group, version, kind of its body
    "attach": ("", "", "PodAttachOptions"),
    "binding": ("", "", "Binding"),
    "exec": ("", "", "PodExecOptions"),
    "portforward": ("", "", "PodPortForwardOptions"),
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
    if resource.stored:
        entry["storageVersionHash"] = storage_version_hash(resource.hub or resource)
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


class Document(msgspec.Struct, frozen=True, gc=False):
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = {}
    status: int = 200


class Discovery:
    """Answers discovery paths. `serve_also` says which custom resources there are."""

    def __init__(self, resources: Sequence[Resource], server_address: str) -> None:
        self._builtin = resources
        self._address = server_address
        self.openapi = OpenApi(resources, str(VERSION["gitVersion"]))
        self._resources: Sequence[Resource] = ()
        self._groups: dict[str, list[str]] = {}
        self._documents: dict[str, bytes] = {}
        self._aggregated: dict[str, Document] = {}
        self.serve_also(())

    def serve_also(self, custom: Sequence[CustomType]) -> None:
        """These custom resources, and no others; the first version of a group is its preferred one."""
        self._resources = (*self._builtin, *(item.resource for item in custom))
        self._groups = {}
        for resource in self._resources:
            versions = self._groups.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        self._documents = {}
        self._aggregated = {}
        self.openapi.serve_also(custom)

    def document(
        self, path: str, accept: str, headers: Mapping[str, str], query: Mapping[str, str]
    ) -> Document | None:
        """None where the path is none of discovery's. `headers` and `query` are the request's."""
        path = path.rstrip("/") or "/"
        if path in _AGGREGATED_PATHS and (version := _aggregated_version(accept)):
            return _unless_known(self._aggregate_of(path, version), headers)
        if path.startswith("/openapi/"):
            return self._openapi(path, accept, headers, query)
        if not self._documents:
            self._documents = self._make()
        body = self._documents.get(path)
        return None if body is None else Document(body)

    def _openapi(
        self, path: str, accept: str, headers: Mapping[str, str], query: Mapping[str, str]
    ) -> Document | None:
        """cm/pkg/handler3/handler.go: an address with the present hash may be kept for a year."""
        if path == "/openapi/v2" and "json" not in accept and "*/*" not in accept and accept:
            return Document(b"", "text/plain; charset=utf-8", status=406)  # gnostic's protobuf alone
        body = self.openapi.document(path)
        if body is None:
            return None
        digest = hashlib.sha512(body).hexdigest().upper()
        more = {"etag": f'"{digest}"', "vary": "Accept"}
        wanted, (group, version) = query.get("hash", ""), _group_version(path)
        if wanted and version:
            present = self.openapi.hash_of(group, version)
            if wanted != present:
                return Document(b"", headers={"location": f"{path}?hash={present}"}, status=301)
            more |= {"cache-control": "public, immutable", "etag": f'"{present}"'}
        return _unless_known(Document(body, headers=more), headers)

    def _aggregate_of(self, path: str, version: str) -> Document:
        key = f"{path} {version}"
        made = self._aggregated.get(key)
        if made is None:
            groups = [""] if path == "/api" else [group for group in self._groups if group]
            body = _encode(self._aggregate(groups, version))
            digest = hashlib.sha512(body).hexdigest().upper()
            content_type = AGGREGATED.replace("v=v2;", f"v={version};")
            made = Document(body, content_type, {"etag": f'"{digest}"', "vary": "Accept"})
            self._aggregated[key] = made
        return made

    def _make(self) -> dict[str, bytes]:
        address = {"clientCIDR": "0.0.0.0/0", "serverAddress": self._address}
        documents: dict[str, Object] = {
            "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]},
            "/apis": {
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": [self._group(group) for group in self._groups if group],
            },
            "/version": VERSION,
        }
        for group, versions in self._groups.items():
            if group:
                documents[f"/apis/{group}"] = {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}
            for version in versions:
                prefix = self._prefix(group, version)
                documents[f"/{prefix}"] = self._resource_list(group, version)
        pages = ("/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz")
        documents["/"] = {"paths": sorted((*documents, *pages))}
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

    def _aggregate(self, groups: list[str], version: str) -> Object:
        items = []
        for group in groups:
            versions = [
                {
                    "version": served,
                    "resources": [
                        *([] if group else [_AGGREGATED_BINDINGS]),
                        *(_aggregated(resource) for resource in self._in(group, served)),
                    ],
                    "freshness": "Current",
                }
                for served in self._groups.get(group, ())
            ]
            metadata: Object = {"name": group} if group else {}
            metadata["creationTimestamp"] = None
            items.append({"metadata": metadata, "versions": versions})
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"apidiscovery.k8s.io/{version}",
            "metadata": {},
            "items": items,
        }


def _aggregated_version(accept: str) -> str:
    """The version of the aggregated document that is asked for first, "" where none is."""
    for clause in accept.split(","):
        if "as=APIGroupDiscoveryList" in clause and "g=apidiscovery.k8s.io" in clause:
            for version in ("v2", "v2beta1"):
                if f"v={version};" in clause.strip() + ";":
                    return version
    return ""


def _unless_known(document: Document, headers: Mapping[str, str]) -> Document:
    """304 to a client that has the document already (as/endpoints/discovery/aggregated/etag.go)."""
    if headers.get("if-none-match") == document.headers["etag"]:
        return Document(b"", document.content_type, document.headers, 304)
    return document


def _group_version(path: str) -> tuple[str, str]:
    """Of a document's path below /openapi/v3; version "" of others."""
    parts = path.removeprefix("/openapi/v3/").split("/")
    if parts[0] == "api" and len(parts) == 2:
        return "", parts[1]
    return (parts[1], parts[2]) if parts[0] == "apis" and len(parts) == 3 else ("", "")


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
