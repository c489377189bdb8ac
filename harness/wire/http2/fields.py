"""Which header lists are well formed (RFC 9113, 8.2 and 8.3). Each check returns what is wrong, or None."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_BAD_VALUE = re.compile(rb"[\0\r\n]")
_CONNECTION_SPECIFIC = frozenset(
    (b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade")
)
_KNOWN_NAMES = frozenset(
    b"accept accept-encoding authorization audit-id cache-control content-type content-length date user-agent "
    b"impersonate-user impersonate-group x-kubernetes-pf-flowschema-uid x-kubernetes-pf-prioritylevel-uid".split()
)
"""Checked once, here, rather than by the expression each time."""

_REQUEST_PSEUDO = frozenset((b":method", b":scheme", b":authority", b":path", b":protocol"))
_LIST_ENTRY_BYTES = 32

_Headers = list[tuple[bytes, bytes]]


def check_request(headers: _Headers) -> str | None:
    pseudo: dict[bytes, bytes] = {}
    for name, value in headers:
        if name not in _REQUEST_PSEUDO:
            break
        if name in pseudo:
            return f"{name!r} twice"
        pseudo[name] = value
    if not pseudo.get(b":method"):
        return "no :method"
    if pseudo[b":method"] == b"CONNECT":
        return "CONNECT is not served"
    if not pseudo.get(b":path") or b":scheme" not in pseudo:
        return "no :path or no :scheme"
    return check_fields(headers, len(pseudo))


def check_response(headers: _Headers) -> str | None:
    if not headers or headers[0][0] != b":status":
        return "no :status"
    status = headers[0][1]
    if len(status) != 3 or not status.isdigit():
        return f":status {status[:20]!r}"
    return check_fields(headers, 1)


def check_fields(headers: _Headers, pseudo: int = 0) -> str | None:
    """The fields after the first `pseudo` pseudo-headers; trailers have none."""
    for name, value in headers[pseudo:]:
        if name in _KNOWN_NAMES:
            continue
        if _NAME.fullmatch(name) is None:
            return f"header name {name[:40]!r}"
        if name in _CONNECTION_SPECIFIC:
            return f"connection-specific header {name!r}"
        if name == b"te" and value != b"trailers":
            return f"te: {value[:40]!r}"
    if _BAD_VALUE.search(b" ".join([value for _, value in headers])):
        return "a header value with a line break or NUL"
    return None


def list_size(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """Bytes as MAX_HEADER_LIST_SIZE counts them (6.5.2)."""
    return sum(len(name) + len(value) + _LIST_ENTRY_BYTES for name, value in headers)
