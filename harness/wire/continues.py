"""Continue tokens of paged lists (as/storage/continue.go): unpadded base64url of a small JSON object."""

from __future__ import annotations

import base64
import binascii
import posixpath

import msgspec

from harness.wire.errors import SwarmletError

_VERSION = "meta.k8s.io/v1"
CURRENT = -1
"""The revision of a token that continues at the latest state, not at the snapshot of the first page."""


class ContinueError(SwarmletError):
    """A token that a real server would refuse with 400 ``invalid continue token: ...``; str() is that message."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"invalid continue token: {detail}")


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


def encode(revision: int, start: str) -> str:
    """A token for a list at `revision` from the key `start` on, which is relative to the resource's prefix.

    To continue after an object, `start` is its key and a NUL: ``ns/name\\0``.
    """
    body = msgspec.json.encode({"v": _VERSION, "rv": revision, "start": start})
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()


def decode(token: str) -> tuple[int, str]:
    """(revision, start) of a token; start has no leading slash. Raises ContinueError."""
    fields = _read(token)
    if fields.v != _VERSION:
        raise ContinueError(
            f"continue key is not valid: server does not recognize this encoded version {fields.v}"
        )
    if fields.rv == 0:
        raise ContinueError(
            f"continue key is not valid: incorrect encoded start resourceVersion (version {_VERSION})"
        )
    if not fields.start:
        raise ContinueError(f"continue key is not valid: encoded start key empty (version {_VERSION})")
    key = fields.start if fields.start.startswith("/") else f"/{fields.start}"
    if key.startswith("//") or posixpath.normpath(key) != key:  # no way out of the resource's prefix
        raise ContinueError(f"continue key is not valid: {fields.start}")
    return fields.rv, key[1:]


def _read(token: str) -> _Token:
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ContinueError("continue key is not valid: illegal base64 data at input byte 0") from None
    try:
        return msgspec.json.decode(raw, type=_Token)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # encoding/json reads bytes where Python would read UTF-8: an invalid one is shown as its Latin-1 character
        first = chr(raw[0]) if raw else ""
        shown = f"\\x{raw[0]:02x}" if raw and raw[0] >= 0x7F else first
        raise ContinueError(
            f"continue key is not valid: invalid character '{shown}' looking for beginning of value"
            if raw
            else "continue key is not valid: unexpected end of JSON input"
        ) from None
