"""One request's way through flow control, as its caller holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.apiserver.clock import Promise, Timer
from harness.apiserver.flowcontrol.config import FlowSchema, PriorityLevel
from harness.apiserver.flowcontrol.estimator import WorkEstimate

if TYPE_CHECKING:
    from harness.apiserver.flowcontrol.classify import Info, User
    from harness.apiserver.flowcontrol.flow import Flow
    from harness.apiserver.flowcontrol.inflight import Slot
    from harness.apiserver.flowcontrol.queueset import Queue

ESTIMATED_SERVICE_S = 0.003  # queueset.go:217: what a request is presumed to take until it has finished
QUEUE_FULL = "queue-full"
TIME_OUT = "time-out"
CONCURRENCY_LIMIT = "concurrency-limit"
READS = frozenset({"get", "list", "watch"})


class Rejection:
    """Turned away: answer 429 with Retry-After and `headers`."""

    __slots__ = ("headers", "level", "reason", "retry_after_s", "schema")

    def __init__(
        self, level: str, schema: str, reason: str, retry_after_s: int, headers: dict[str, str]
    ) -> None:
        self.level = level
        self.schema = schema
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.headers = headers

    def __repr__(self) -> str:
        return f"Rejection({self.schema}, {self.level}, {self.reason}, {self.retry_after_s} s)"


class Ticket:
    """A request on its way through flow control; once admitted, call `finish()` exactly once.

    For a watch that is when its initial events are queued, for anything else when it has been answered.
    """

    __slots__ = (
        "_activity",
        "_arrival_r",
        "_arrived_at",
        "_max_seats",
        "_metrics",
        "_promise",
        "_queue",
        "_queue_set",
        "_started_at",
        "_timer",
        "_work",
        "estimate",
        "finished",
        "flow",
        "info",
        "is_watch",
        "user",
    )

    def __init__(
        self, flow: Flow, estimate: WorkEstimate, promise: Admission, user: User, info: Info, now: float
    ) -> None:
        self.flow = flow
        self.user = user
        self.info = info
        self.estimate = estimate
        self.is_watch = info.verb == "watch"
        self.finished = False
        queue_set = self._queue_set = flow.level.queues
        self._activity = queue_set.activity[info.verb not in READS]
        self._metrics = flow.metrics
        self._promise: Admission | None = promise  # None once settled: a cycle would wait for the collector
        self._max_seats = max(estimate.initial_seats, estimate.final_seats)
        self._work = (
            estimate.initial_seats * ESTIMATED_SERVICE_S + estimate.final_seats * estimate.extra_latency_s
        )
        self._queue: Queue | None = None
        self._arrived_at = now
        self._arrival_r = 0.0
        self._started_at = now
        self._timer: Timer | None = None

    @property
    def schema(self) -> FlowSchema:
        return self.flow.schema

    @property
    def level(self) -> PriorityLevel:
        return self.flow.level.config

    @property
    def headers(self) -> dict[str, str]:
        """Which flow schema and priority level it fell under, by uid."""
        return self.flow.headers

    @property
    def queue(self) -> Queue | None:
        """Where it waits or waited; None at a level without queues."""
        return self._queue

    @property
    def waiting(self) -> bool:
        return self._promise is not None

    @property
    def arrived_at(self) -> float:
        return self._arrived_at

    @property
    def started_at(self) -> float:
        """When execution began; of one that waits, when it arrived."""
        return self._started_at

    @property
    def waited_s(self) -> float:
        """Seconds between arrival and the start of execution."""
        return self._started_at - self._arrived_at

    def finish(self) -> None:
        """Give the seats back, after the estimate's extra latency if it has one."""
        if not self.finished:
            self.finished = True
            self._queue_set.finish(self)

    def leave(self) -> None:
        """Wait no longer; counted as a time-out, as upstream."""
        self._queue_set.time_out(self)

    def __repr__(self) -> str:
        return f"Ticket({self.schema.name}, {self.level.name}, {self.estimate}, finished={self.finished})"


class Admission(Promise["Ticket | Slot | Rejection"]):
    """The answer to a request for seats."""

    __slots__ = ("ticket",)

    def __init__(self) -> None:
        super().__init__()
        self.ticket: Ticket | Slot | None = None

    def cancel(self) -> None:
        """The client has gone: leave the queue or give the seats back."""
        ticket = self.ticket
        if ticket is None:
            return
        if self.done:
            ticket.finish()
        else:
            ticket.leave()
