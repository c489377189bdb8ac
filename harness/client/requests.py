"""Requests as client-go's generated clients send them, for any resource.

Statistics names are bounded: the resource, with its subresource (``pods/status``), never an object's name.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harness.wire.gotext import duration
from harness.wire.paths import QueryValue, build_path
from harness.wire.request import JSON, STRATEGIC_MERGE_PATCH, Request


class ResourceRef(msgspec.Struct, frozen=True, gc=False):
    """Group ("" for core), version and plural name."""

    group: str
    version: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


NAMESPACES = ResourceRef("", "v1", "namespaces")
NODES = ResourceRef("", "v1", "nodes")
PODS = ResourceRef("", "v1", "pods")
SECRETS = ResourceRef("", "v1", "secrets")
CONFIGMAPS = ResourceRef("", "v1", "configmaps")
SERVICES = ResourceRef("", "v1", "services")
SERVICEACCOUNTS = ResourceRef("", "v1", "serviceaccounts")
EVENTS = ResourceRef("", "v1", "events")
LEASES = ResourceRef("coordination.k8s.io", "v1", "leases")
CSINODES = ResourceRef("storage.k8s.io", "v1", "csinodes")
CSIDRIVERS = ResourceRef("storage.k8s.io", "v1", "csidrivers")
RUNTIMECLASSES = ResourceRef("node.k8s.io", "v1", "runtimeclasses")
PERSISTENTVOLUMECLAIMS = ResourceRef("", "v1", "persistentvolumeclaims")
PERSISTENTVOLUMES = ResourceRef("", "v1", "persistentvolumes")
VOLUMEATTACHMENTS = ResourceRef("storage.k8s.io", "v1", "volumeattachments")
ENDPOINTSLICES = ResourceRef("discovery.k8s.io", "v1", "endpointslices")
SERVICECIDRS = ResourceRef("networking.k8s.io", "v1", "servicecidrs")
CERTIFICATESIGNINGREQUESTS = ResourceRef("certificates.k8s.io", "v1", "certificatesigningrequests")
NEW_EVENTS = ResourceRef("events.k8s.io", "v1", "events")


def get_(
    ref: ResourceRef,
    namespace: str | None,
    name: str,
    *,
    subresource: str = "",
    resource_version: str | None = None,
    timeout_s: float | None = None,
    client: str = "main",
) -> Request:
    """GET one object. `resource_version` None reads the latest from etcd, "0" whatever the watch cache has."""
    query: dict[str, QueryValue] = {"resourceVersion": resource_version}
    return _request(
        "get", "GET", ref, namespace, name, subresource, query, timeout_s=timeout_s, client=client
    )


def list_(
    ref: ResourceRef,
    namespace: str | None = None,
    *,
    field_selector: str = "",
    label_selector: str = "",
    resource_version: str = "",
    resource_version_match: str = "",
    limit: int = 0,
    continue_token: str = "",
    timeout_s: float | None = None,
    client: str = "main",
) -> Request:
    """LIST. `resource_version` "" is a consistent read; `limit` 0 asks for everything at once."""
    query: dict[str, QueryValue] = {
        "continue": continue_token,
        "fieldSelector": field_selector,
        "labelSelector": label_selector,
        "limit": limit or None,
        "resourceVersion": resource_version,
        "resourceVersionMatch": resource_version_match,
    }
    return _request("list", "GET", ref, namespace, "", "", query, timeout_s=timeout_s, client=client)


def watch_(
    ref: ResourceRef,
    namespace: str | None = None,
    *,
    field_selector: str = "",
    label_selector: str = "",
    resource_version: str = "",
    watch_list: bool = False,
    bookmarks: bool = True,
    timeout_seconds: int = 0,
    generated_client: bool = True,
    client: str = "main",
) -> Request:
    """WATCH; with `watch_list` the initial state comes as events (sendInitialEvents).

    `timeout_seconds` 0 leaves the end to the server. Generated clients also send it as ``timeout``
    (cg/gentype/type.go:189-202); NewListWatchFromClient does not.
    """
    query: dict[str, QueryValue] = {
        "allowWatchBookmarks": True if bookmarks else None,
        "fieldSelector": field_selector,
        "labelSelector": label_selector,
        "resourceVersion": resource_version,
        "resourceVersionMatch": "NotOlderThan" if watch_list else None,
        "sendInitialEvents": True if watch_list else None,
        "timeout": duration(timeout_seconds) if generated_client and timeout_seconds else None,
        "timeoutSeconds": timeout_seconds or None,
        "watch": True,
    }
    return _request("watch", "GET", ref, namespace, "", "", query, client=client)


def create_(
    ref: ResourceRef,
    namespace: str | None,
    body: bytes,
    *,
    name: str = "",
    subresource: str = "",
    timeout_s: float | None = None,
    client: str = "main",
) -> Request:
    """POST to a collection, or to a subresource of the object `name` (``pods/binding``, ``serviceaccounts/token``)."""
    return _request(
        "create", "POST", ref, namespace, name, subresource, body=body, timeout_s=timeout_s, client=client
    )


def update_(
    ref: ResourceRef,
    namespace: str | None,
    name: str,
    body: bytes,
    *,
    subresource: str = "",
    timeout_s: float | None = None,
    client: str = "main",
) -> Request:
    return _request(
        "update", "PUT", ref, namespace, name, subresource, body=body, timeout_s=timeout_s, client=client
    )


def patch_(
    ref: ResourceRef,
    namespace: str | None,
    name: str,
    body: bytes,
    *,
    content_type: str = STRATEGIC_MERGE_PATCH,
    subresource: str = "",
    timeout_s: float | None = None,
    client: str = "main",
) -> Request:
    return _request(
        "patch",
        "PATCH",
        ref,
        namespace,
        name,
        subresource,
        body=body,
        content_type=content_type,
        timeout_s=timeout_s,
        client=client,
    )


def delete_(
    ref: ResourceRef,
    namespace: str | None,
    name: str,
    *,
    grace_period_s: int | None = None,
    uid: str = "",
    resource_version: str = "",
    propagation: str = "",
    timeout_s: float | None = None,
    client: str = "main",
) -> Request:
    """DELETE one object; `grace_period_s` None takes the object's own, `uid` and `resource_version` are
    preconditions, `propagation` "" is the kind's default policy. client-go always sends DeleteOptions as the body."""
    options: dict[str, object] = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if grace_period_s is not None:
        options["gracePeriodSeconds"] = grace_period_s
    if propagation:
        options["propagationPolicy"] = propagation
    preconditions = {}
    if uid:
        preconditions["uid"] = uid
    if resource_version:
        preconditions["resourceVersion"] = resource_version
    if preconditions:
        options["preconditions"] = preconditions
    body = msgspec.json.encode(options)
    return _request("delete", "DELETE", ref, namespace, name, body=body, timeout_s=timeout_s, client=client)


def delete_collection_(
    ref: ResourceRef,
    namespace: str | None = None,
    *,
    field_selector: str = "",
    label_selector: str = "",
    propagation: str = "",
    client: str = "main",
) -> Request:
    """DELETE a collection; `propagation` "" is the kind's default policy."""
    query: dict[str, QueryValue] = {"fieldSelector": field_selector, "labelSelector": label_selector}
    body = b'{"kind":"DeleteOptions","apiVersion":"v1"}'
    if propagation:
        body = body[:-1] + b',"propagationPolicy":"%s"}' % propagation.encode()
    return _request("deletecollection", "DELETE", ref, namespace, query=query, body=body, client=client)


def _request(
    verb: str,
    method: str,
    ref: ResourceRef,
    namespace: str | None,
    name: str = "",
    subresource: str = "",
    query: Mapping[str, QueryValue] | None = None,
    *,
    body: bytes = b"",
    content_type: str = JSON,
    timeout_s: float | None = None,
    client: str = "main",
) -> Request:
    """`timeout_s` is both the client's and, as ``timeout=``, what the server is told (cg/rest/request.go:URL)."""
    if timeout_s is not None:
        query = {**(query or {}), "timeout": duration(timeout_s)}
    return Request(
        verb=verb,
        method=method,
        path=build_path(ref.group, ref.version, ref.resource, namespace, name, subresource, query),
        name=f"{ref.resource}/{subresource}" if subresource else ref.resource,
        body=body,
        content_type=content_type if body else "",
        timeout_s=timeout_s,
        client=client,
    )
