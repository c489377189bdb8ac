"""Paths of the Kubernetes API: what a request is about, and the path for what one wants.

Parsing mirrors kube-apiserver v1.36 (as/endpoints/request/requestinfo.go:95-275): everything that comes after it
(flow control, authorization, routing, metrics) sees a request through this one reading. Building mirrors client-go's
request (cg/rest/request.go) and Go's net/url.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias
from urllib.parse import quote, quote_plus, unquote, unquote_plus

import msgspec

from harness.wire.errors import SwarmletError
from harness.wire.gotext import parse_int
from harness.wire.selectors import SelectorError, parse_fields, parse_labels

QueryValue: TypeAlias = str | int | bool | None

_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_BY_NAME = re.compile(r"metadata\.name=([^=,\\]*)\Z").match
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]+\Z").match  # what no escaping changes
_SPECIAL_VERBS = ("watch", "proxy")
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_PATH_SAFE = (
    "$&+,/:;=@"  # what net/url leaves alone in a path beside unreserved characters (shouldEscape, encodePath)
)


class PathError(SwarmletError):
    """A path that names a special verb and nothing to apply it to; a real server answers 500."""


class RequestInfo(msgspec.Struct, gc=False):
    """What a request is about.

    `path` is decoded and without the query. `verb` is Kubernetes' own for a resource, the method in lower case for
    anything else. For the resource ``namespaces``, `namespace` is the namespace's own name, as upstream. `name` also
    comes from ``fieldSelector=metadata.name=X`` of a list or watch (never of a deletecollection: requestinfo.go:225
    looks at selectors for GET alone). `parts` start at the resource. `query` holds the first value of each key.
    """

    path: str
    verb: str
    is_resource: bool = False
    api_prefix: str = ""
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    parts: tuple[str, ...] = ()
    query: dict[str, str] = {}  # msgspec copies an empty dict for each instance

    @property
    def resource_and_subresource(self) -> str:
        """As messages and metrics name it: ``pods``, ``pods/status``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def parse_path(path: str, method: str = "GET") -> RequestInfo:
    """Read the request line's target (path and query).

    Raises PathError for ``/api/v1/watch`` and the like; anything else that is not a resource comes back with
    `is_resource` False.
    """
    path, _, raw_query = path.partition("?")
    query = parse_query(raw_query) if raw_query else {}
    if "%" in path:
        path = unquote(path)
    parts = path.strip("/").split("/")
    count = len(parts)
    if count < 3 or (parts[0] != "api" and (parts[0] != "apis" or count < 4)):
        prefix = parts[0] if count >= 3 and parts[0] == "apis" else ""
        return RequestInfo(path, method.lower(), api_prefix=prefix, query=query)
    if parts[0] == "api":
        group, version, parts_at = "", parts[1], 2
    else:
        group, version, parts_at = parts[1], parts[2], 3
    verb = _VERBS.get(method, "")
    if parts[parts_at] in _SPECIAL_VERBS:
        verb = parts[parts_at]
        parts_at += 1
        if parts_at == count:
            raise PathError(f"unable to determine kind and namespace from url, {path}")
    namespace = ""
    if parts[parts_at] == "namespaces" and count > parts_at + 1:
        namespace = parts[parts_at + 1]
        if count > parts_at + 2 and parts[parts_at + 2] not in _NAMESPACE_SUBRESOURCES:
            parts_at += 2
    kept = count - parts_at
    name = parts[parts_at + 1] if kept >= 2 else ""
    subresource = parts[parts_at + 2] if kept >= 3 and verb != "proxy" else ""
    if not name:
        if verb == "get":
            verb, name = _list_or_watch(query)
        elif verb == "delete":
            verb = "deletecollection"
    return RequestInfo(
        path,
        verb,
        True,
        parts[0],
        group,
        version,
        namespace,
        parts[parts_at],
        subresource,
        name,
        tuple(parts[parts_at:]),
        query,
    )


def _list_or_watch(query: Mapping[str, str]) -> tuple[str, str]:
    """(verb, name) of a GET without a name in its path."""
    if not query:
        return "list", ""
    watch = query.get("watch")
    verb = "list" if watch is None or not is_true(watch) else "watch"
    fields = query.get("fieldSelector")
    return verb, _selected_name(fields, query) if fields and "metadata.name" in fields else ""


def _selected_name(fields: str, query: Mapping[str, str]) -> str:
    """The name that a field selector requires; "" too where any list option does not parse, as upstream."""
    name: str | None
    found = _BY_NAME(fields)  # what every by-name watch of a kubelet sends
    if found is not None:
        name = found[1]
    else:
        try:
            name = parse_fields(fields).required("metadata.name")
        except SelectorError:
            return ""
    if not name or name in (".", "..") or "/" in name or "%" in name or not _decodes(query):
        return ""
    return name


def _decodes(query: Mapping[str, str]) -> bool:
    for key in ("limit", "timeoutSeconds"):
        value = query.get(key)
        if value and not value.isdecimal() and parse_int(value) is None:
            return False
    labels = query.get("labelSelector")
    if labels:
        try:
            parse_labels(labels)
        except SelectorError:
            return False
    return True


def is_true(value: str) -> bool:
    """A boolean query value (am/runtime/converter: Convert_Slice_string_To_bool): all but "0" and "false" are true."""
    return value not in ("0", "false") and value.lower() != "false"


def parse_query(raw: str) -> dict[str, str]:
    """The first value of each key of a query string (net/url's ParseQuery; a pair with a bare ``;`` is dropped)."""
    if ";" in raw:
        raw = "&".join(pair for pair in raw.split("&") if ";" not in pair)
    query: dict[str, str] = {}
    for pair in raw.split("&"):
        key, _, value = pair.partition("=")
        if "%" in pair or "+" in pair:
            value = value.replace("%3D", "=")  # all that the selectors of a fleet's by-name watches need
            if "%" in value or "+" in value:
                value = unquote_plus(value)
            if "%" in key or "+" in key:
                key = unquote_plus(key)
        if pair and key not in query:
            query[key] = value
    return query


def build_path(
    group: str,
    version: str,
    resource: str,
    namespace: str | None = None,
    name: str | None = None,
    subresource: str | None = None,
    query: Mapping[str, QueryValue] | None = None,
) -> str:
    """The path (and query) of a resource, as client-go writes it.

    `namespace` None or "" means cluster scope or all namespaces. `query` is sorted by key; None and "" values are
    left out, booleans become ``true`` and ``false``.
    """
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    if namespace:
        path += f"/namespaces/{_segment(namespace)}"
    path += f"/{resource}"
    if name:
        path += f"/{_segment(name)}"
    if subresource:
        path += f"/{subresource}"
    encoded = build_query(query) if query else ""
    return f"{path}?{encoded}" if encoded else path


def build_query(query: Mapping[str, QueryValue]) -> str:
    """Keys sorted, both sides escaped as url.Values.Encode does; None and "" are left out."""
    pairs = []
    for key in sorted(query):
        value = query[key]
        if value is None or value == "":
            continue
        if value is True or value is False:
            value = "true" if value else "false"
        text = str(value)
        escaped = key if _UNRESERVED(key) else quote_plus(key)
        pairs.append(f"{escaped}={text if _UNRESERVED(text) else quote_plus(text)}")
    return "&".join(pairs)


def _segment(text: str) -> str:
    return text if _UNRESERVED(text) else quote(text, safe=_PATH_SAFE)
