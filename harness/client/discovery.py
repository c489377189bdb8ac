"""Which resources a server has: aggregated discovery, as client-go asks for it (cg/discovery/discovery_client.go)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harness.client.requests import ResourceRef
from harness.wire.request import Request

PATHS = ("/api", "/apis")  # the core group, and all the others
_ACCEPT = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


class _Resource(msgspec.Struct, frozen=True, gc=False):
    resource: str
    scope: str = ""
    verbs: tuple[str, ...] = ()


class _Version(msgspec.Struct, frozen=True, gc=False):
    version: str
    resources: tuple[_Resource, ...] = ()


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _Group(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()
    versions: tuple[_Version, ...] = ()


class GroupList(msgspec.Struct, frozen=True, gc=False):
    """An APIGroupDiscoveryList; versions stand in order of preference."""

    items: tuple[_Group, ...]


GROUPS = msgspec.json.Decoder(GroupList)


def discover_(path: str) -> Request:
    """GET of one of `PATHS`; the answer is for `GROUPS`."""
    return Request("get", "GET", path, "discovery", accept=_ACCEPT)


def namespaced(lists: Iterable[GroupList], verb: str = "delete") -> tuple[ResourceRef, ...]:
    """Resources that live in namespaces and have `verb`, each in the version that is preferred
    (ServerPreferredNamespacedResources)."""
    found: dict[tuple[str, str], ResourceRef] = {}
    for groups in lists:
        for group in groups.items:
            name = group.metadata.name
            for version in group.versions:
                for each in version.resources:
                    if each.scope == "Namespaced" and verb in each.verbs:
                        found.setdefault(
                            (name, each.resource), ResourceRef(name, version.version, each.resource)
                        )
    return tuple(found.values())
