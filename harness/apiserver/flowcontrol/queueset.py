"""The queues of one priority level: shuffle sharding in, fair queuing out.

k8s.io/apiserver v1.36 pkg/util/flowcontrol/fairqueuing/queueset/queueset.go:321-1000, doc.go. R, the progress meter,
is seat-seconds of service that each busy queue has been entitled to; a queue's `next_dispatch_r` is where its next
request starts in that virtual world, and the request with the least virtual finish goes first. What upstream sums
over all queues at each step is kept as running totals here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.apiserver.clock import Clock
from harness.apiserver.flowcontrol.activity import Activity
from harness.apiserver.flowcontrol.config import PriorityLevel, Response
from harness.apiserver.flowcontrol.estimator import WorkEstimate
from harness.apiserver.flowcontrol.ticket import (
    CONCURRENCY_LIMIT,
    ESTIMATED_SERVICE_S,
    QUEUE_FULL,
    TIME_OUT,
    Rejection,
    Ticket,
)

BOUNDS_PERIOD_S = 1.0  # how often the queues' virtual starts are looked at where several wait: for a gauge


class Queue:
    """One queue: those that wait in order of arrival, and how many of its requests are executed."""

    __slots__ = ("executing", "index", "next_dispatch_r", "seats_in_use", "waiting", "waiting_work")

    def __init__(self, index: int) -> None:
        self.index = index
        self.waiting: OrderedDict[Ticket, None] = OrderedDict()
        self.waiting_work = 0.0
        self.executing = 0
        self.seats_in_use = 0
        self.next_dispatch_r = 0.0

    @property
    def busy(self) -> bool:
        return self.executing > 0 or bool(self.waiting)


class Dispatch(NamedTuple):
    """The last one: R, the virtual start S of what was dispatched, and of the heads of all queues the least and the
    greatest S, as they were and less the estimated work in progress."""

    r: float
    s: float
    s_min: float
    s_max: float
    discounted_s_min: float
    discounted_s_max: float


class Totals:
    """What has become of requests so far (timed_out is upstream's, which never counts any: they are cancelled)."""

    __slots__ = ("cancelled", "dispatched", "rejected")

    def __init__(self) -> None:
        self.dispatched = self.rejected = self.cancelled = 0


class QueueSet:
    """Seats and queues of one level. `limit` changes as levels borrow; `activity` of reads and of writes is counted;
    `retry_after` counts a drop and says how long its client is to wait. `on_idle`, where it is set, is called once
    nothing waits or is executed any more."""

    def __init__(
        self,
        clock: Clock,
        level: PriorityLevel,
        retry_after: Callable[[], int],
        activity: Sequence[Activity],
    ) -> None:
        self.level = level
        self.limit = 0
        self.activity = activity
        self.seats_in_use = 0
        self.executing = 0
        self.waiting = 0
        self.seats_waiting = 0
        self.demand_peak = 0  # of seats in use and wanted, since somebody took it
        self.totals = Totals()
        self.on_idle: Callable[[], object] | None = None
        self.queues = [Queue(index) for index in range(level.queues)]
        self.running: dict[Ticket, None] = {}
        self._clock = clock
        self._retry_after = retry_after
        self._waiting_queues: dict[Queue, None] = {}
        self._busy_queues = 0
        self._robin = 0
        self._enqueues = 0
        self._dispatching = False
        self._r = 0.0
        self._r_at = clock.now()
        self._bounds_at = 0.0
        self._last_dispatch = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        # For how long which (waiting, executing, seats in use, seats waiting) has lasted since somebody took it.
        self._times: dict[tuple[int, int, int, int], float] = {}

    # ---- entry and exit ------------------------------------------------------------------------------------------
    def start(self, ticket: Ticket, hand: tuple[int, ...], wait_limit_s: float) -> None:
        """Settle the ticket's promise now, or queue it and settle within `wait_limit_s`."""
        now = self._clock.now()
        self._sync(now)
        if not hand:
            self._start_without_queue(ticket)
            return
        queue = self._choose(hand)
        if not self.waiting and self.seats_in_use + ticket._max_seats <= self.limit:
            self._pass_through(ticket, queue, now)
            return
        if self.seats_in_use >= self.limit and len(queue.waiting) >= self.level.queue_length:
            self._bound(queue)
            self._reject(ticket, QUEUE_FULL)
            return
        self._enqueue(ticket, queue, now)
        self._bound(queue)
        ticket._metrics.queue_length.observe(len(queue.waiting))
        self._dispatch(now)
        if ticket._promise is not None:
            ticket._timer = self._clock.call_at(now + wait_limit_s, self.time_out, ticket)

    def finish(self, ticket: Ticket) -> None:
        now = self._clock.now()
        self._sync(now)
        executed_s = now - ticket._started_at
        metrics = ticket._metrics
        self.executing -= 1
        del self.running[ticket]
        metrics.executing_requests.dec()
        (metrics.execution_watch if ticket.is_watch else metrics.execution_regular).observe(executed_s)
        activity = ticket._activity
        if now > activity.at:
            activity.settle(now)
        activity.executing -= 1
        if activity.executing > activity.executing_peak:
            activity.executing_peak = activity.executing
        queue = ticket._queue
        if queue is not None:
            queue.executing -= 1
            if not queue.busy:
                self._busy_queues -= 1
            # The dispatch counted the estimate; now the time is known (queueset.go:905).
            queue.next_dispatch_r -= ticket.estimate.initial_seats * (ESTIMATED_SERVICE_S - executed_s)
            self._bound(queue)
        if ticket.estimate.extra_latency_s > 0:
            self._clock.call_at(now + ticket.estimate.extra_latency_s, self._release_later, ticket)
        else:
            self._release(ticket)
        if self.waiting:
            self._dispatch(now)
        if self.on_idle is not None and self.idle:
            self.on_idle()

    def time_out(self, ticket: Ticket) -> None:
        """Reject a request that still waits. Starts nothing in its place, as upstream: a finish does."""
        if ticket._promise is None:
            return
        now = self._clock.now()
        self._sync(now)
        if ticket._timer is not None:
            ticket._timer.cancel()
        queue = ticket._queue
        assert queue is not None, "a request without a queue never waits"
        self._leave_queue(ticket, queue, now)
        if not queue.busy:
            self._busy_queues -= 1
        self._bound(queue)
        ticket._started_at = now
        self.totals.cancelled += 1
        self._reject(ticket, TIME_OUT)
        if self.on_idle is not None and self.idle:
            self.on_idle()

    @property
    def idle(self) -> bool:
        """Nothing waits, nothing is executed; seats may still be held by what has been answered."""
        return not self.waiting and not self.executing

    # ---- configuration -------------------------------------------------------------------------------------------
    def configure(self, level: PriorityLevel) -> None:
        """Other queues for what comes from now on: more at once, fewer as those that are too many run empty."""
        self.level = level
        for index in range(len(self.queues), level.queues):
            self.queues.append(Queue(index))

    def set_limit(self, limit: int) -> None:
        """Change the seats that may be used; seats in use beyond it drain."""
        now = self._clock.now()
        self._sync(now)
        self.limit = limit
        self._dispatch(now)

    # ---- what is published ---------------------------------------------------------------------------------------
    @property
    def r(self) -> float:
        """The progress meter, as of the last change of state."""
        return self._r

    @property
    def last_dispatch(self) -> Dispatch:
        return Dispatch(*self._last_dispatch)

    def take_demand_peak(self) -> int:
        """The most seats in use and wanted at any moment since the last call."""
        peak, self.demand_peak = self.demand_peak, self.seats_in_use + self.seats_waiting
        return peak

    def take_times(self) -> dict[tuple[int, int, int, int], float]:
        """Seconds that each (waiting, executing, seats in use, seats waiting) has lasted since the last call."""
        self._sync(self._clock.now())
        times, self._times = self._times, {}
        return times

    def validate(self) -> None:
        """Assert what must hold between calls."""
        waiting = [ticket for queue in self.queues for ticket in queue.waiting]
        assert self.waiting == len(waiting), "waiting requests miscounted"
        assert self.seats_waiting == sum(ticket._max_seats for ticket in waiting), "waiting seats miscounted"
        assert {queue for queue in self.queues if queue.waiting} == self._waiting_queues.keys(), (
            "waiting queues miscounted"
        )
        assert self._busy_queues == sum(queue.busy for queue in self.queues), "busy queues miscounted"
        assert [queue.index for queue in self.queues] == list(range(len(self.queues))), "queues misnumbered"
        if self.level.response is Response.QUEUE:
            assert self.seats_in_use >= sum(queue.seats_in_use for queue in self.queues), "seats miscounted"
        assert self.seats_in_use >= 0, "seats below none"
        assert self.executing == len(self.running), "executing requests miscounted"

    # ---- steps ---------------------------------------------------------------------------------------------------
    def _sync(self, now: float) -> None:
        """Move R by the time since the last change of state (queueset.go:446-520)."""
        elapsed = now - self._r_at
        if elapsed > 0:
            self._r_at = now
            used, waiting = self.seats_in_use, self.seats_waiting
            if self._busy_queues:
                seats = used + waiting
                self._r += elapsed * (seats if seats < self.limit else self.limit) / self._busy_queues
            state = (self.waiting, self.executing, used, waiting)
            self._times[state] = self._times.get(state, 0.0) + elapsed

    def _choose(self, hand: tuple[int, ...]) -> Queue:
        """The queue of the hand with the least waiting work; visits start at a different card each time."""
        size = len(hand)
        offset = self._enqueues % size
        self._enqueues += 1
        best = self.queues[hand[offset]]
        if self.waiting:
            for i in range(offset + 1, offset + size):
                queue = self.queues[hand[i % size]]
                if queue.waiting_work < best.waiting_work:
                    best = queue
        return best

    def _pass_through(self, ticket: Ticket, queue: Queue, now: float) -> None:
        """Enqueue and dispatch in one step, where nothing waits and there are seats: what nearly every request does."""
        ticket._queue = queue
        if not queue.executing:
            self._busy_queues += 1
            queue.next_dispatch_r = self._r
        elif queue.next_dispatch_r < self._r:
            queue.next_dispatch_r = self._r
        start = queue.next_dispatch_r
        discounted = start - queue.seats_in_use * ESTIMATED_SERVICE_S
        self._last_dispatch = (self._r, start, start, start, discounted, discounted)
        activity = ticket._activity
        if activity.waiting >= activity.waiting_peak:  # for a moment there was one more
            activity.waiting_peak = activity.waiting + 1
        queue.executing += 1
        queue.seats_in_use += ticket._max_seats
        queue.next_dispatch_r += ticket._work
        self._robin = queue.index
        ticket._metrics.queue_length.observe(1)
        self._execute(ticket, now)

    def _enqueue(self, ticket: Ticket, queue: Queue, now: float) -> None:
        ticket._queue = queue
        ticket._arrival_r = self._r
        if not queue.busy:
            queue.next_dispatch_r = self._r
            self._busy_queues += 1
        queue.waiting[ticket] = None
        queue.waiting_work += ticket._work
        self._waiting_queues[queue] = None
        self._count_waiting(ticket, 1, now)

    def _leave_queue(self, ticket: Ticket, queue: Queue, now: float) -> None:
        del queue.waiting[ticket]
        if queue.waiting:
            queue.waiting_work -= ticket._work
        else:
            queue.waiting_work = 0.0
            del self._waiting_queues[queue]
        self._count_waiting(ticket, -1, now)

    def _count_waiting(self, ticket: Ticket, change: int, now: float) -> None:
        seats = change * ticket._max_seats
        self.waiting += change
        self.seats_waiting += seats
        ticket._metrics.inqueue_requests.inc(change)
        ticket._metrics.inqueue_seats.inc(seats)
        ticket._activity.wait(change, now)
        self._note_demand()

    def _note_demand(self) -> None:
        wanted = self.seats_in_use + self.seats_waiting
        if wanted > self.demand_peak:
            self.demand_peak = wanted

    def _dispatch(self, now: float) -> None:
        """Start what can be started. Only the fairest head counts: it holds the rest up until it fits.

        A request may execute and finish within its start, so this can be called from within: the outer call goes on.
        """
        if self._dispatching:
            return
        self._dispatching = True
        try:
            while self.waiting and self.seats_in_use < self.limit and self._dispatch_one(now):
                pass
        finally:
            self._dispatching = False

    def _dispatch_one(self, now: float) -> bool:
        queue = self._next_queue()
        ticket = next(iter(queue.waiting))
        if not self._fits(ticket._max_seats):
            ticket._metrics.no_accommodation.inc()
            return False
        self._note_dispatch(queue, now)
        self._robin = queue.index
        self._leave_queue(ticket, queue, now)
        estimate = ticket.estimate
        if estimate.final_seats > self.limit:
            work = estimate.final_seats * estimate.extra_latency_s
            ticket.estimate = WorkEstimate(estimate.initial_seats, self.limit, work / self.limit)
            ticket._max_seats = ticket.estimate.max_seats
        queue.executing += 1
        queue.seats_in_use += ticket._max_seats
        queue.next_dispatch_r += ticket._work
        self._bound(queue)
        self._execute(ticket, now)
        return True

    def _next_queue(self) -> Queue:
        """Least virtual finish of its head; among equals the first after the last one served, in a circle."""
        if len(self._waiting_queues) == 1:
            return next(iter(self._waiting_queues))
        count = len(self.queues)
        best: Queue | None = None
        best_finish = best_turn = 0.0
        for queue in self._waiting_queues:
            finish = queue.next_dispatch_r + next(iter(queue.waiting))._work
            turn = (queue.index - self._robin - 1) % count
            if best is None or finish < best_finish or (finish == best_finish and turn < best_turn):
                best, best_finish, best_turn = queue, finish, turn
        assert best is not None, "requests wait, but no queue holds them"
        return best

    def _note_dispatch(self, queue: Queue, now: float) -> None:
        if now < self._bounds_at:
            self._last_dispatch = (self._r, queue.next_dispatch_r, *self._last_dispatch[2:])
            return
        self._bounds_at = now + BOUNDS_PERIOD_S
        starts = [each.next_dispatch_r for each in self._waiting_queues]
        discounted = [
            each.next_dispatch_r - each.seats_in_use * ESTIMATED_SERVICE_S for each in self._waiting_queues
        ]
        bounds = (min(starts), max(starts), min(discounted), max(discounted))
        self._last_dispatch = (self._r, queue.next_dispatch_r, *bounds)

    def _fits(self, seats: int) -> bool:
        if self.level.response is Response.EXEMPT:
            return True
        if seats > self.limit:
            return self.executing == 0  # too wide for the level: alone or never
        return self.seats_in_use + seats <= self.limit

    def _execute(self, ticket: Ticket, now: float) -> None:
        metrics = ticket._metrics
        ticket._started_at = now
        self.executing += 1
        self.running[ticket] = None
        self.seats_in_use += ticket._max_seats
        self.totals.dispatched += 1
        metrics.executing_requests.inc()
        metrics.executing_seats.inc(ticket._max_seats)
        metrics.dispatched.value += 1
        activity = ticket._activity
        if now > activity.at:
            activity.settle(now)
        activity.executing += 1
        if activity.executing > activity.executing_peak:
            activity.executing_peak = activity.executing
        self._note_demand()
        if ticket._timer is not None:
            ticket._timer.cancel()
            ticket._timer = None
        if self.level.response is not Response.EXEMPT:
            metrics.waited_executed.observe(now - ticket._arrived_at)
        promise, ticket._promise = ticket._promise, None
        assert promise is not None, "executed twice"
        promise.resolve(ticket)

    def _start_without_queue(self, ticket: Ticket) -> None:
        if self._fits(ticket._max_seats):
            self._execute(ticket, ticket._arrived_at)
        else:
            self._reject(ticket, CONCURRENCY_LIMIT)

    def _reject(self, ticket: Ticket, reason: str) -> None:
        metrics = ticket._metrics
        metrics.rejected[reason].inc()
        self.totals.rejected += 1
        waited_s = self._clock.now() - ticket._arrived_at
        # Upstream's label says whether there was a request object, so a time-out counts as executed
        # (apf_filter.go:190).
        (metrics.waited_executed if reason == TIME_OUT else metrics.waited_rejected).observe(waited_s)
        promise, ticket._promise = ticket._promise, None
        assert promise is not None, "rejected twice"
        promise.ticket = None
        flow = ticket.flow
        retry_after_s = self._retry_after()
        promise.resolve(Rejection(self.level.name, flow.schema.name, reason, retry_after_s, flow.headers))

    def _release(self, ticket: Ticket) -> None:
        seats = ticket._max_seats
        self.seats_in_use -= seats
        ticket._metrics.executing_seats.dec(seats)
        queue = ticket._queue
        if queue is not None:
            queue.seats_in_use -= seats
            if len(self.queues) > self.level.queues:
                self._remove(queue)

    def _release_later(self, ticket: Ticket) -> None:
        now = self._clock.now()
        self._sync(now)
        self._release(ticket)
        self._dispatch(now)

    def _remove(self, queue: Queue) -> None:
        """One of too many queues goes once it is empty, whichever it is, as upstream (removeQueueIfEmptyLocked)."""
        index = queue.index
        if queue.busy or index >= len(self.queues) or self.queues[index] is not queue:
            return
        del self.queues[index]
        for later in self.queues[index:]:
            later.index -= 1
        if self._robin >= index:
            self._robin -= 1

    def _bound(self, queue: Queue) -> None:
        """A queue that did not use its share must not save it up: no virtual dispatch before arrival."""
        if queue.waiting:
            arrival_r = next(iter(queue.waiting))._arrival_r
            if queue.next_dispatch_r < arrival_r:
                queue.next_dispatch_r = arrival_r
