"""What ClusterLoader2 makes of an answer: done, to be tried again, failed.

Mirrors clusterloader2/pkg/framework/client/objects.go:44-160. Upstream reports none of its retries; here each is
counted by its reason.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.wire.request import Failure, Response, TransportError
from harness.wire.status import StatusView, parse_status

ATTEMPTS = 6
FIRST_WAIT_S = 0.1
FACTOR = 3.0

_REASONS = {  # what client-go makes of an answer without a Status (am/api/errors: NewGenericServerResponse)
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_RETRIED_REASONS = frozenset({"InternalError", "Timeout", "ServerTimeout", "TooManyRequests", "Unauthorized"})
_RETRIED_FAILURES = frozenset({Failure.RESET, Failure.TIMEOUT, Failure.LOST})
_SHOWN = 300  # characters of a message that a record keeps


class Verdict(NamedTuple):
    """`done`: nothing more to do. Else `reason` names it in few words, `retry` says whether to try again, `message`
    is for a person."""

    done: bool
    retry: bool
    reason: str
    message: str


DONE = Verdict(True, False, "", "")


def wait_s(attempt: int) -> float:
    """The wait after the given attempt, counted from 1 (wait.Backoff without jitter)."""
    return FIRST_WAIT_S * FACTOR ** (attempt - 1)


def judge(answer: Response | TransportError, allowed: str = "") -> Verdict:
    """`allowed` is a Status reason that counts as done: AlreadyExists of a create, NotFound of a delete."""
    if isinstance(answer, TransportError):
        retry = answer.failure in _RETRIED_FAILURES
        return Verdict(False, retry, answer.failure.value, str(answer)[:_SHOWN])
    if answer.ok:
        return DONE
    status = parse_status(answer.body, answer.status)
    reason = status.reason or _REASONS.get(answer.status, str(answer.status))
    if allowed and (reason == allowed or (allowed == "AlreadyExists" and _is_bare_conflict(status))):
        return DONE
    retry = reason in _RETRIED_REASONS or _says_when(answer, status) or _is_quota_conflict(status, reason)
    return Verdict(False, retry, reason, f"HTTP {answer.status} {reason}: {status.message}"[:_SHOWN])


def _is_bare_conflict(status: StatusView) -> bool:
    """A 409 to a POST without a Status means AlreadyExists (NewGenericServerResponse)."""
    return not status.reason and status.code == 409


def _says_when(answer: Response, status: StatusView) -> bool:
    """The server itself says when to try again (SuggestsClientDelay)."""
    return status.retry_after_s > 0 or answer.headers.get("retry-after", "").isdecimal()


def _is_quota_conflict(status: StatusView, reason: str) -> bool:
    """Two writes met at a ResourceQuota (kubernetes#67761)."""
    return reason == "Conflict" and "resourcequotas" in status.message
