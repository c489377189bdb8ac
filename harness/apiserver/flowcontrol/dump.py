"""The debug pages of flow control: its levels, queues and requests as text.

k8s.io/apiserver v1.36 pkg/util/flowcontrol/apf_controller_debug.go. Columns end with commas and are padded to the
widest (text/tabwriter, cells of at least 8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from harness.apiserver.clock import Clock
from harness.apiserver.flowcontrol import classify as rules
from harness.apiserver.flowcontrol.config import Response
from harness.apiserver.flowcontrol.controller import FlowController
from harness.apiserver.flowcontrol.queueset import Queue, QueueSet
from harness.apiserver.flowcontrol.ticket import Ticket
from harness.wire.gotext import duration

PREFIX = "/debug/api_priority_and_fairness/"
CONTENT_TYPE = "text/plain; charset=utf-8"
_LEVELS = (
    "PriorityLevelName",
    "ActiveQueues",
    "IsIdle",
    "IsQuiescing",
    "WaitingRequests",
    "ExecutingRequests",
    "DispatchedRequests",
    "RejectedRequests",
    "TimedoutRequests",
    "CancelledRequests",
)
_QUEUES = (
    "PriorityLevelName",
    "Index",
    "PendingRequests",
    "ExecutingRequests",
    "SeatsInUse",
    "NextDispatchR",
    "InitialSeatsSum",
    "MaxSeatsSum",
    "TotalWorkSum",
)
_REQUESTS = (
    "PriorityLevelName",
    "FlowSchemaName",
    "QueueIndex",
    "RequestIndexInQueue",
    "FlowDistingsher",  # as upstream spells it
    "ArriveTime",
    "InitialSeats",
    "FinalSeats",
    "AdditionalLatency",
    "StartTime",
)
_DETAILS = ("UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")
_NEVER = "0001-01-01T00:00:00Z"
_MIN_WIDTH = 8

Row = tuple[str, ...]


def page(flow: FlowController, clock: Clock, path: str, query: Mapping[str, str]) -> bytes | None:
    """The body of one of the pages; None where the path is none of theirs."""
    name = path.removeprefix(PREFIX)
    if not path.startswith(PREFIX):
        return None
    if name == "dump_priority_levels":
        return tabulate([_LEVELS, *_level_rows(flow)])
    if name == "dump_queues":
        return tabulate([_QUEUES, *_queue_rows(flow)])
    if name == "dump_requests":
        details = bool(query.get("includeRequestDetails"))
        return tabulate([_REQUESTS + (_DETAILS if details else ()), *_request_rows(flow, clock, details)])
    return None


def tabulate(rows: Sequence[Row]) -> bytes:
    """Rows of equally many cells, each column but the last as wide as its widest cell and one space."""
    widths = [
        max(_MIN_WIDTH, 2 + max(len(row[column]) for row in rows)) for column in range(len(rows[0]) - 1)
    ]
    lines = []
    for row in rows:
        cells = [f"{cell},".ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("".join(cells) + row[-1] + "\n")
    return "".join(lines).encode()


def _level_rows(flow: FlowController) -> list[Row]:
    rows: list[Row] = []
    for name, level in sorted(flow.levels.items()):
        queues, totals = level.queues, level.queues.totals
        rows.append(
            (
                name,
                str(sum(bool(queue.waiting) for queue in queues.queues)),
                _boolean(queues.idle),
                _boolean(level.quiescing),
                str(queues.waiting),
                str(queues.executing),
                str(totals.dispatched),
                str(totals.rejected),
                "0",  # nothing counts them: requests whose time is up are cancelled
                str(totals.cancelled),
            )
        )
    return rows


def _queue_rows(flow: FlowController) -> list[Row]:
    return [
        (
            name,
            str(queue.index),
            str(len(queue.waiting)),
            str(queue.executing),
            str(queue.seats_in_use),
            seat_seconds(queue.next_dispatch_r),
            str(sum(ticket.estimate.initial_seats for ticket in queue.waiting)),
            str(sum(ticket.estimate.max_seats for ticket in queue.waiting)),
            seat_seconds(queue.waiting_work),
        )
        for name, level in flow.levels.items()
        for queue in level.queues.queues
    ]


def _request_rows(flow: FlowController, clock: Clock, details: bool) -> list[Row]:
    epoch_s = clock.wall() - clock.now()
    rows = []
    for level in flow.levels.values():
        for queue, index, ticket in _requests(level.queues):
            rows.append(_request_row(ticket, queue, index, epoch_s) + (_details(ticket) if details else ()))
    return rows


def _requests(queues: QueueSet) -> list[tuple[Queue | None, int, Ticket]]:
    """Queue by queue: those that wait in order, then those that are executed; at the end those without a queue."""
    running: dict[Queue | None, list[Ticket]] = {}
    for ticket in queues.running:
        running.setdefault(ticket.queue, []).append(ticket)
    found: list[tuple[Queue | None, int, Ticket]] = []
    for queue in queues.queues:
        found += [(queue, index, ticket) for index, ticket in enumerate(queue.waiting)]
        found += [(queue, -1, ticket) for ticket in running.get(queue, ())]
    return found + [(None, -1, ticket) for ticket in running.get(None, ())]


def _request_row(ticket: Ticket, queue: Queue | None, index: int, epoch_s: float) -> Row:
    level = ticket.level
    several = level.response is Response.QUEUE and level.queues > 1
    estimate = ticket.estimate
    return (
        level.name,
        ticket.schema.name,
        str(-1 if queue is None else queue.index),
        str(index),
        rules.flow_of(ticket.schema, ticket.user, ticket.info) if several else "",
        _nanoseconds(epoch_s + ticket.arrived_at),
        str(estimate.initial_seats),
        str(estimate.final_seats),
        duration(estimate.extra_latency_s),
        _NEVER if ticket.waiting else _nanoseconds(epoch_s + ticket.started_at),
    )


def _details(ticket: Ticket) -> Row:
    info = ticket.info
    version = f"{info.group}/{info.version}" if info.group else info.version
    return (
        ticket.user.name,
        info.verb,
        info.path,
        info.namespace,
        info.name,
        version,
        info.resource,
        info.subresource,
    )


def seat_seconds(value: float) -> str:
    """As SeatSeconds prints itself: eight decimals."""
    return f"{value:.8f}ss"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _nanoseconds(epoch_s: float) -> str:
    """RFC 3339 with the fraction's trailing zeros left off (time.RFC3339Nano); the clock knows microseconds."""
    text = datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
    return text + "Z"
