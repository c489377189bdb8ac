"""One request's way through flow control, as its caller holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.apiserver.clock import Promise, Timer
from harness.apiserver.flowcontrol.bootstrap import FlowSchema, PriorityLevel
from harness.apiserver.flowcontrol.estimator import WorkEstimate
from harness.apiserver.flowcontrol.flowmetrics import FlowMetrics

if TYPE_CHECKING:
    from harness.apiserver.flowcontrol.queueset import QueueSet, _Queue

ESTIMATED_SERVICE_S = 0.003  # queueset.go:217: what a request is presumed to take until it has finished
QUEUE_FULL = "queue-full"
TIME_OUT = "time-out"
CONCURRENCY_LIMIT = "concurrency-limit"
_READS = frozenset({"get", "list", "watch"})


class Rejection:
    """Turned away: answer 429 with Retry-After."""

    __slots__ = ("level", "reason", "retry_after_s", "schema")

    def __init__(self, schema: FlowSchema, level: PriorityLevel, reason: str, retry_after_s: int) -> None:
        self.schema = schema
        self.level = level
        self.reason = reason
        self.retry_after_s = retry_after_s

    def __repr__(self) -> str:
        return f"Rejection({self.schema.name}, {self.level.name}, {self.reason}, {self.retry_after_s} s)"


class Activity:
    """Requests of one kind (reads, writes) at once, now and at most since last asked."""

    __slots__ = ("executing", "executing_peak", "waiting", "waiting_peak")

    def __init__(self) -> None:
        self.executing = self.executing_peak = 0
        self.waiting = self.waiting_peak = 0

    def take_peaks(self) -> tuple[int, int]:
        """(executing, waiting) at most; begins anew."""
        peaks = self.executing_peak, self.waiting_peak
        self.executing_peak, self.waiting_peak = self.executing, self.waiting
        return peaks


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
        "is_watch",
        "level",
        "schema",
    )

    def __init__(
        self,
        queue_set: QueueSet,
        schema: FlowSchema,
        estimate: WorkEstimate,
        metrics: FlowMetrics,
        promise: Admission,
        verb: str,
        now: float,
    ) -> None:
        self.schema = schema
        self.level = queue_set.level
        self.estimate = estimate
        self.is_watch = verb == "watch"
        self.finished = False
        self._queue_set = queue_set
        self._activity = queue_set.activity[verb not in _READS]
        self._metrics = metrics
        self._promise: Admission | None = promise  # None once settled: a cycle would wait for the collector
        self._max_seats = max(estimate.initial_seats, estimate.final_seats)
        self._work = (
            estimate.initial_seats * ESTIMATED_SERVICE_S + estimate.final_seats * estimate.extra_latency_s
        )
        self._queue: _Queue | None = None
        self._arrived_at = now
        self._arrival_r = 0.0
        self._started_at = now
        self._timer: Timer | None = None

    @property
    def waited_s(self) -> float:
        """Seconds between arrival and the start of execution."""
        return self._started_at - self._arrived_at

    def finish(self) -> None:
        """Give the seats back, after the estimate's extra latency if it has one."""
        if not self.finished:
            self.finished = True
            self._queue_set.finish(self)

    def __repr__(self) -> str:
        return f"Ticket({self.schema.name}, {self.level.name}, {self.estimate}, finished={self.finished})"


class Admission(Promise["Ticket | Rejection"]):
    """The answer to a request for seats."""

    __slots__ = ("ticket",)

    def __init__(self) -> None:
        super().__init__()
        self.ticket: Ticket | None = None

    def cancel(self) -> None:
        """The client has gone: leave the queue (counted as a time-out, as upstream) or give the seats back."""
        ticket = self.ticket
        if ticket is None:
            return
        if self.done:
            ticket.finish()
        else:
            ticket._queue_set.time_out(ticket)
