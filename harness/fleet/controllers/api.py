"""How a sync is written: straight code in a generator that yields the requests it waits for.

A sync yields a list of requests, which go out together, and is resumed with their answers in the same order once all
are there. `call` asks one and raises `ApiError` for what is no success, so a sync reads like upstream's and returns an
error in the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias, TypeVar

import msgspec

from harness.client.requests import ResourceRef
from harness.wire.errors import SwarmletError
from harness.wire.request import Request, Response, TransportError

T = TypeVar("T")
Answer: TypeAlias = Response | TransportError
Steps: TypeAlias = Generator[Sequence[Request], list[Answer], T]

REPLICASETS = ResourceRef("apps", "v1", "replicasets")
DEPLOYMENTS = ResourceRef("apps", "v1", "deployments")
STATEFULSETS = ResourceRef("apps", "v1", "statefulsets")
DAEMONSETS = ResourceRef("apps", "v1", "daemonsets")
REVISIONS = ResourceRef("apps", "v1", "controllerrevisions")
JOBS = ResourceRef("batch", "v1", "jobs")
REPLICATIONCONTROLLERS = ResourceRef("", "v1", "replicationcontrollers")
ENDPOINTS = ResourceRef("", "v1", "endpoints")
ENDPOINTSLICES = ResourceRef("discovery.k8s.io", "v1", "endpointslices")
CLAIMS = ResourceRef("", "v1", "persistentvolumeclaims")
VOLUMES = ResourceRef("", "v1", "persistentvolumes")
STORAGECLASSES = ResourceRef("storage.k8s.io", "v1", "storageclasses")
DISRUPTIONBUDGETS = ResourceRef("policy", "v1", "poddisruptionbudgets")


class _Cause(msgspec.Struct, gc=False):
    reason: str = ""


class _Details(msgspec.Struct, gc=False):
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct, gc=False):
    message: str = ""
    reason: str = ""
    details: _Details | None = None


_decode_status = msgspec.json.Decoder(_Status).decode


class ApiError(SwarmletError):
    """A request that was refused, or (`code` 0) got no answer. The text is the server's message."""

    def __init__(self, answer: Answer) -> None:
        self.code = 0
        self.terminating = False
        status = _Status()
        if isinstance(answer, Response):
            self.code = answer.status
            try:
                status = _decode_status(answer.body)
            except msgspec.DecodeError:
                status = _Status(message=f"the server responded with the status code {answer.status}")
            causes = (status.details and status.details.causes) or ()
            self.terminating = any(each.reason == "NamespaceTerminating" for each in causes)
        self.reason = status.reason
        super().__init__(status.message if self.code else str(answer))

    @property
    def not_found(self) -> bool:
        return self.code == 404

    @property
    def exists(self) -> bool:
        return self.reason == "AlreadyExists"

    @property
    def conflict(self) -> bool:
        return self.code == 409 and not self.exists


class SyncError(SwarmletError):
    """A sync that failed without a request; it is tried again as after an `ApiError`."""


def failure(answer: Answer) -> ApiError | None:
    return None if isinstance(answer, Response) and answer.ok else ApiError(answer)


def call(request: Request) -> Steps[Response]:
    """The answer of one request. Raises ApiError."""
    (answer,) = yield [request]
    if isinstance(answer, Response) and answer.ok:
        return answer
    raise ApiError(answer)


def call_all(requests: Sequence[Request]) -> Steps[list[ApiError | None]]:
    """What became of each of several requests that go out at once."""
    if not requests:
        return []
    answers = yield requests
    return [failure(answer) for answer in answers]


def slow_start(
    requests: Sequence[Request], done: Callable[[int, Response | None, ApiError | None], ApiError | None]
) -> Steps[tuple[int, ApiError | None]]:
    """Send 1, 2, 4, 8... at once, and no further batch after one with an error (slowStartBatch,
    kk/pkg/controller/replicaset/replica_set.go). `done` hears of each and says which errors count. Returns how many
    succeeded, and the first error."""
    successes, sent, batch = 0, 0, min(1, len(requests))
    while batch > 0:
        answers = yield requests[sent : sent + batch]
        first: ApiError | None = None
        for index, answer in enumerate(answers, sent):
            error = failure(answer)
            error = done(index, None if error or not isinstance(answer, Response) else answer, error)
            successes += error is None
            first = first or error
        sent += batch
        if first is not None:
            return successes, first
        batch = min(2 * batch, len(requests) - sent)
    return successes, None
