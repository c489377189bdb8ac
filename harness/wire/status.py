"""Status objects: what a Kubernetes API answers where there is no object to answer with.

`Status` is the value; the functions build those that real servers send, word for word (am/api/errors/errors.go and
recorded answers of v1.36.2). `parse_status` is the client's view of one. Key order, absent keys and the line feed at
the end are those of Go's encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from harness.wire.errors import SwarmletError
from harness.wire.gotext import quote
from harness.wire.protobuf import MAGIC, ProtobufError, decode_object

APF_REJECTED = b"Too many requests, please try again later.\n"
"""Body of the 429 by which flow control rejects: text/plain (as/server/filters/priority-and-fairness.go)."""
SHUTTING_DOWN_TEXT = b"The apiserver is shutting down, please try again later.\n"
"""Body of the text/plain 429 with Retry-After 5 of a server that drains (as/server/filters/with_retry_after.go)."""


class Cause(msgspec.Struct, frozen=True, omit_defaults=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, omit_defaults=True, rename={"retry_after_s": "retryAfterSeconds"}):
    """`kind` is the resource for most reasons (``configmaps``), the kind for Invalid (``ConfigMap``)."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_s: int = 0


class Status(msgspec.Struct, frozen=True):
    """A Status. `details` None leaves the key out, an empty one gives ``{}``; `code` 0 leaves it out (deletions).

    `continue_token` is metadata.continue (expired pages).
    """

    code: int
    reason: str = ""
    message: str = ""
    details: Details | None = None
    success: bool = False
    continue_token: str = ""

    def as_dict(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_token} if self.continue_token else {},
            "status": "Success" if self.success else "Failure",
        }
        if self.message:
            body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = msgspec.to_builtins(self.details)
        if self.code:
            body["code"] = self.code
        return body

    def body(self) -> bytes:
        """JSON as the server writes it, HTML characters escaped, with its line feed."""
        encoded = msgspec.json.encode(self.as_dict())
        for character, escape in ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026")):
            if character in encoded:
                encoded = encoded.replace(character, escape)
        return encoded + b"\n"

    @property
    def http_status(self) -> int:
        return self.code or 200

    @property
    def retry_after_header(self) -> str | None:
        """The Retry-After header that goes with it, None if there is none.

        As ErrorNegotiated sets it (as/endpoints/handlers/responsewriters/writers.go).
        """
        seconds = self.details.retry_after_s if self.details is not None else 0
        return str(seconds) if seconds else None


class StatusError(SwarmletError):
    """A request that ends in this Status."""

    def __init__(self, status: Status) -> None:
        super().__init__(f"{status.code} {status.reason}: {status.message}")
        self.status = status


# ---- what servers send ---------------------------------------------------------------------------------------------
def _about(group: str, resource: str, name: str = "", **more: Any) -> Details:
    return Details(name=name, group=group, kind=resource, **more)


def _qualified(group: str, resource: str) -> str:
    return f"{resource}.{group}" if group else resource


def success(details: Details | None = None, code: int = 0) -> Status:
    """What a deletion (details with the uid, no code) and a binding (code 201) answer."""
    return Status(code, details=details, success=True)


def bad_request(message: str) -> Status:
    return Status(400, "BadRequest", message)


def unauthorized(message: str = "Unauthorized") -> Status:
    return Status(401, "Unauthorized", message)


def forbidden(group: str, resource: str, name: str, message: str, causes: Sequence[Cause] = ()) -> Status:
    """403 on an object or (`name` "") a collection: ``secrets "s1" is forbidden: <message>``."""
    what = _qualified(group, resource) + (f" {quote(name)}" if name else "")
    return Status(
        403,
        "Forbidden",
        f"{what} is forbidden: {message}",
        _about(group, resource, name, causes=tuple(causes)),
    )


def forbidden_path(user: str, verb: str, path: str) -> Status:
    text = _sanitized(f"User {quote(user)} cannot {verb} path {quote(path)}")
    return Status(403, "Forbidden", f"forbidden: {text}", Details())


def unauthorized_action(
    user: str,
    verb: str,
    group: str,
    resource: str,
    *,
    subresource: str = "",
    namespace: str = "",
    name: str = "",
    reason: str = "",
) -> Status:
    """403 by the authorizer (as/endpoints/handlers/responsewriters/errors.go:44-85); `reason` is the authorizer's."""
    full = f"{resource}/{subresource}" if subresource else resource
    scope = f"in the namespace {quote(namespace)}" if namespace else "at the cluster scope"
    text = _sanitized(
        f"User {quote(user)} cannot {verb} resource {quote(full)} in API group {quote(group)} {scope}"
    )
    return forbidden(group, resource, name, f"{text}: {reason}" if reason else text)


def _sanitized(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def not_found(group: str, resource: str, name: str) -> Status:
    message = f"{_qualified(group, resource)} {quote(name)} not found"
    return Status(404, "NotFound", message, _about(group, resource, name))


def no_such_resource() -> Status:
    """404 for a path that names no resource."""
    return Status(404, "NotFound", "the server could not find the requested resource", Details())


def method_not_allowed() -> Status:
    message = "the server does not allow this method on the requested resource"
    return Status(405, "MethodNotAllowed", message, Details())


def not_acceptable(available: Sequence[str]) -> Status:
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(available)}"
    return Status(406, "NotAcceptable", message, Details())


def already_exists(group: str, resource: str, name: str, generated: bool = False) -> Status:
    """`generated`: the server drew the name (am/api/errors/errors.go:176)."""
    message = f"{_qualified(group, resource)} {quote(name)} already exists"
    if not generated:
        return Status(409, "AlreadyExists", message, _about(group, resource, name))
    message += ", the server was not able to generate a unique name for the object"
    return Status(409, "AlreadyExists", message, _about(group, resource, name, retry_after_s=1))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(group: str, resource: str, name: str, message: str = MODIFIED) -> Status:
    what = f"{_qualified(group, resource)} {quote(name)}"
    return Status(
        409, "Conflict", f"Operation cannot be fulfilled on {what}: {message}", _about(group, resource, name)
    )


def expired(message: str, continue_token: str = "") -> Status:
    return Status(410, "Expired", message, continue_token=continue_token)


def too_old(revision: int, oldest: int) -> Status:
    """410 of a watch that starts before the watch cache's history; `oldest` is the oldest revision it still has."""
    return expired(f"too old resource version: {revision} ({oldest - 1})")


WATCH_COMPACTED = expired("The resourceVersion for the provided watch is too old.")
LIST_COMPACTED = expired("The resourceVersion for the provided list is too old.")


def continue_expired(continue_token: str) -> Status:
    """410 of a page whose revision is gone; `continue_token` (revision -1) goes on at the latest state."""
    return expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list.",
        continue_token,
    )


def unsupported_media_type(accepted: Sequence[str] | None = None) -> Status:
    """415; `accepted` for a body that cannot be decoded, None for a patch type that does not exist."""
    if accepted is None:
        return Status(415, "UnsupportedMediaType", "415: Unsupported Media Type", Details())
    return Status(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted),
    )


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> Status:
    """422; each cause has a reason such as FieldValueInvalid, a message (``Invalid value: ...``) and a field."""
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    message = f"{_qualified(group, kind)} {quote(name)} is invalid"
    if texts:
        message += ": " + (texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    return Status(422, "Invalid", message, Details(name=name, group=group, kind=kind, causes=tuple(causes)))


def rejected_patch() -> Status:
    """422 of a JSON patch that does not apply."""
    return Status(422, "Invalid", "the server rejected our request due to an error in our request", Details())


def storage_initializing(retry_after_s: int) -> Status:
    """429 of a watch cache that is not ready: a JSON Status, unlike flow control's plain text."""
    return Status(429, "TooManyRequests", "storage is (re)initializing", Details(retry_after_s=retry_after_s))


def internal_error(message: str) -> Status:
    return Status(
        500,
        "InternalError",
        f"Internal error occurred: {message}",
        Details(causes=(Cause(message=message),)),
    )


def unclassified(message: str) -> Status:
    """500 without a reason, what an error becomes that upstream did not sort."""
    return Status(500, "", message)


def unavailable(message: str) -> Status:
    return Status(503, "ServiceUnavailable", message)


def shutting_down() -> Status:
    """503 with Retry-After 1 of a server that ends."""
    return Status(503, "ServiceUnavailable", "apiserver is shutting down", Details(retry_after_s=1))


def too_large_resource_version(revision: int, current: int, *, from_cache: bool = True) -> Status:
    """504 of a read that asks for a revision not reached yet; the etcd path gives no retryAfterSeconds."""
    return Status(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {revision}, current: {current}",
        Details(
            causes=(Cause("ResourceVersionTooLarge", "Too large resource version"),),
            retry_after_s=1 if from_cache else 0,
        ),
    )


def request_timeout() -> Status:
    """504 of a request that took its whole deadline."""
    message = "Timeout: request did not complete within the allotted timeout"
    return Status(504, "Timeout", message, Details())


# ---- what clients read ---------------------------------------------------------------------------------------------
class StatusView(msgspec.Struct, frozen=True):
    """What a client decides on. `causes` are (reason, message) pairs."""

    reason: str = ""
    code: int = 0
    message: str = ""
    retry_after_s: int = 0
    causes: tuple[tuple[str, str], ...] = ()

    @property
    def expired(self) -> bool:
        """410: the revision asked for is gone (isExpiredError, cg/tools/cache/reflector.go)."""
        return self.reason in ("Expired", "Gone") or (not self.reason and self.code == 410)

    @property
    def too_large(self) -> bool:
        """The revision asked for is not reached yet (isTooLargeResourceVersionError, same file)."""
        return any(
            reason == "ResourceVersionTooLarge" or message == "Too large resource version"
            for reason, message in self.causes
        )

    @property
    def too_many_requests(self) -> bool:
        return self.reason == "TooManyRequests" or self.code == 429


class _Body(msgspec.Struct):
    kind: str = ""
    reason: str = ""
    code: int = 0
    message: str = ""
    details: Details | None = None


_decode = msgspec.json.Decoder(_Body).decode


def parse_status(body: bytes, http_status: int = 0) -> StatusView:
    """The Status in `body`; where there is none (plain text, a proxy's page), what `http_status` alone says."""
    try:
        found = _decode(body) if body[:4] != MAGIC else msgspec.convert(decode_object(body), _Body)
    except ProtobufError as error:
        return StatusView(code=http_status, message=str(error))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return StatusView(code=http_status, message=body[:200].decode("utf-8", "replace").strip())
    if found.kind != "Status":
        return StatusView(code=http_status, message="not a Status")
    details = found.details or Details()
    return StatusView(
        found.reason,
        found.code or http_status,
        found.message,
        details.retry_after_s,
        tuple((cause.reason, cause.message) for cause in details.causes),
    )
