"""One HTTP request to a Kubernetes API and its answer, as values.

The client's pure machines make `Request`s, a transport carries them, and `Response` or `TransportError` comes back.
Nothing here knows sockets or time.
"""

from __future__ import annotations

from enum import Enum

import msgspec

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class Request(msgspec.Struct, frozen=True, gc=False):
    """What is sent.

    `verb` is Kubernetes' own (get, list, watch, create, update, patch, delete, deletecollection), `name` the bounded
    name under which statistics are kept, for example ``pods/status`` (never a node's or an object's name).
    `timeout_s` bounds the whole exchange of a unary request, None leaves it to the transport; a watch has none.
    `client` names the rate limiter that the request passes (a kubelet has ``main``, ``events``, ``heartbeat``).
    `discards`: of a unary answer 2xx the body is counted, not kept (``Response.discarded_bytes``).
    """

    verb: str
    method: str
    path: str
    name: str
    body: bytes = b""
    content_type: str = ""
    accept: str = JSON
    timeout_s: float | None = None
    client: str = "main"
    discards: bool = False

    @property
    def is_stream(self) -> bool:
        """True where the answer is a stream of watch events, not one body."""
        return self.verb == "watch"


class Response(msgspec.Struct, frozen=True, gc=False):
    """What came back: header names in lower case; `member` is the endpoint that answered. `discarded_bytes` is the
    size of a body that was not kept, once unpacked."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    member: str = ""
    discarded_bytes: int = 0

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class Failure(Enum):
    """Why an exchange ended without an answer, sorted by remedy."""

    REFUSED = "connection refused"
    TIMEOUT = "timed out"
    RESET = "connection reset"
    LOST = "connection lost"
    """Its PING was not answered: Go's "http2: client connection lost", which is neither a timeout nor a reset."""
    PROTOCOL = "protocol error"
    TLS = "TLS failure"
    CLOSED = "closed by us"


class TransportError(Exception):
    """No answer, or a stream that broke. `member` is the endpoint, "" where none was reached."""

    def __init__(self, failure: Failure, detail: str, member: str = "") -> None:
        super().__init__(f"{member or 'no endpoint'}: {failure.value}: {detail}")
        self.failure = failure
        self.detail = detail
        self.member = member
