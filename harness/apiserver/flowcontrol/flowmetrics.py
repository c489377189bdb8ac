"""The series of one priority level and flow schema, looked up once."""

from __future__ import annotations

from harness.apiserver.metrics.families import Metrics


class FlowMetrics:
    """Children of the flow control families for one (priority level, flow schema)."""

    __slots__ = (
        "dispatched",
        "executing_requests",
        "executing_seats",
        "execution_regular",
        "execution_watch",
        "inqueue_requests",
        "inqueue_seats",
        "no_accommodation",
        "queue_length",
        "rejected",
        "seats",
        "waited_executed",
        "waited_rejected",
        "watch_count",
    )

    def __init__(self, metrics: Metrics, level: str, schema: str) -> None:
        self.dispatched = metrics.apiserver_flowcontrol_dispatched_requests_total.labels(level, schema)
        self.rejected = {
            reason: metrics.apiserver_flowcontrol_rejected_requests_total.labels(level, schema, reason)
            for reason in ("queue-full", "time-out", "concurrency-limit")
        }
        self.inqueue_requests = metrics.apiserver_flowcontrol_current_inqueue_requests.labels(level, schema)
        self.inqueue_seats = metrics.apiserver_flowcontrol_current_inqueue_seats.labels(level, schema)
        self.executing_requests = metrics.apiserver_flowcontrol_current_executing_requests.labels(
            level, schema
        )
        self.executing_seats = metrics.apiserver_flowcontrol_current_executing_seats.labels(level, schema)
        waited = metrics.apiserver_flowcontrol_request_wait_duration_seconds
        self.waited_executed = waited.labels(level, schema, "true")
        self.waited_rejected = waited.labels(level, schema, "false")
        execution = metrics.apiserver_flowcontrol_request_execution_seconds
        self.execution_regular = execution.labels(level, schema, "regular")
        self.execution_watch = execution.labels(level, schema, "watch")
        self.seats = metrics.apiserver_flowcontrol_work_estimated_seats.labels(level, schema)
        self.watch_count = metrics.apiserver_flowcontrol_watch_count_samples.labels(level, schema)
        self.queue_length = metrics.apiserver_flowcontrol_request_queue_length_after_enqueue.labels(
            level, schema
        )
        self.no_accommodation = metrics.apiserver_flowcontrol_request_dispatch_no_accommodation_total.labels(
            level, schema
        )
