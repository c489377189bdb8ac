"""The modelled host of one member: so many cores, shared by its apiserver and its etcd.

This model, not the machine underneath, decides when a member saturates. Each of the three classes is a queue served in
order of arrival; those that have work share the cores equally, alone one gets all of them (generalised processor
sharing of fluids). etcd is a process of its own. Watches are a class of their own since the goroutine that a channel's
send wakes runs next on its processor (Go's runtime/proc.go, runnext): an event does not queue behind the CPU time of
every request, as it would in one queue with them. A job takes at least its own cost on one core, so eight cores do not
make a request eight times faster. Backlogs are followed exactly, however late the clock's timers fire; what fires late
is counted.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from enum import IntEnum

from harness.apiserver.clock import DONE, Clock, Promise
from harness.apiserver.model.costs import Costs

LATE_S = 0.020  # a completion that fires this long after its time was held up by the machine underneath
TINY_S = 1e-9  # rounding of the clock's floats must not leave a job for a timer of its own


class Class(IntEnum):
    """Who uses the cores."""

    APISERVER = 0  # requests
    WATCH = 1  # what keeps caches, informers and watchers up to date
    ETCD = 2


APISERVER = Class.APISERVER
WATCH = Class.WATCH
ETCD = Class.ETCD

_Target = Promise[None] | Callable[[], object]


class _Queue:
    """One class: jobs in order of arrival.

    `served_s` is the CPU time that the class has received, `tail_s` what it will have received once everything that
    has arrived is done; their difference is the backlog. A job's `mark` is the value of `served_s` at which it is done.
    """

    __slots__ = ("armed", "fluid", "running", "served_s", "tail_s")

    def __init__(self) -> None:
        self.served_s = 0.0
        self.tail_s = 0.0
        self.fluid: deque[tuple[float, float, _Target]] = deque()  # mark, earliest end, target
        self.running: list[
            tuple[float, int, _Target]
        ] = []  # heap of (due, order, target): served, not yet at its end
        self.armed = False


class Host:
    """`cores` modelled cores, fractions allowed; None means no model: every job completes at once.

    Not thread-safe; everything runs on `clock`. Costs are microseconds, everything else seconds. `slack_s` is how early
    the clock's timers may fire (LoopClock.slack_s; 0 of a virtual clock): what is due within it fires with the timer,
    since arming another for less than the clock can tell apart would spin.
    """

    def __init__(self, clock: Clock, cores: float | None, costs: Costs, slack_s: float = 0.0) -> None:
        if cores is not None and not cores > 0:
            raise ValueError(f"cores must be positive or None, not {cores!r}")
        self.cores = cores
        self.costs = costs
        self.jobs = 0
        self.late = 0
        self._clock = clock
        self._unmodelled = cores is None
        self._rate = cores if cores is not None else 1.0
        self.slack_s = slack_s
        self._speed = min(1.0, self._rate)  # of a single job
        self._parallel = self._rate > 1.0
        self._queues = tuple(_Queue() for _ in Class)
        self._at = clock.now()
        self._order = 0
        self._uncharged = [0.0 for _ in Class]  # CPU seconds by class where there is no model

    def work(self, cost_us: float, cls: Class = APISERVER) -> Promise[None]:
        """Settles when the modelled host has done `cost_us` of CPU time for this job; at once if it is 0."""
        if self._unmodelled or cost_us <= 0:
            self._free(cost_us, cls)
            return DONE
        promise: Promise[None] = Promise()
        self._enqueue(cost_us * 1e-6, cls, promise)
        return promise

    def run(self, cost_us: float, fn: Callable[[], object], cls: Class = APISERVER) -> None:
        """Call `fn` when the job is done: before this returns where nothing is modelled, later otherwise."""
        if self._unmodelled or cost_us <= 0:
            self._free(cost_us, cls)
            fn()
        else:
            self._enqueue(cost_us * 1e-6, cls, fn)

    def charge(self, cost_us: float, cls: Class = APISERVER) -> None:
        """Work that nobody waits for: it delays whatever the class is given after it."""
        if self._unmodelled:
            self._free(cost_us, cls)
        elif cost_us > 0:
            self._advance(self._clock.now())
            self._queues[cls].tail_s += cost_us * 1e-6

    def suspend(self) -> None:
        """Model nothing until `resume`: what a member does to come up is no part of a load."""
        self._unmodelled = True

    def resume(self) -> None:
        self._unmodelled = self.cores is None

    def backlog_s(self, cls: Class = APISERVER) -> float:
        """CPU seconds that the class has been given and not yet received."""
        if self.cores is None:
            return 0.0
        self._advance(self._clock.now())
        queue = self._queues[cls]
        return queue.tail_s - queue.served_s

    @property
    def busy_s(self) -> float:
        """CPU seconds delivered so far, all classes."""
        return sum(map(self.busy_of_s, Class))

    def busy_of_s(self, cls: Class) -> float:
        if self.cores is None:
            return self._uncharged[cls]
        self._advance(self._clock.now())
        return self._queues[cls].served_s

    def validate(self) -> None:
        """Assert what must hold at any time."""
        for queue in self._queues:
            assert queue.tail_s >= queue.served_s - 1e-9, "more served than arrived"
            marks = [mark for mark, _, _ in queue.fluid]
            assert marks == sorted(marks), "not in order of arrival"
            assert queue.armed or not (queue.fluid or queue.running), "jobs without a timer"

    def _free(self, cost_us: float, cls: Class) -> None:
        self.jobs += 1
        if cost_us > 0:
            self._uncharged[cls] += cost_us * 1e-6

    def _enqueue(self, cost_s: float, cls: Class, target: _Target) -> None:
        now = self._clock.now()
        if now > self._at:
            self._advance(now)
        queue = self._queues[cls]
        queue.tail_s += cost_s
        queue.fluid.append((queue.tail_s, now + cost_s / self._speed, target))
        if not queue.armed:
            self._arm(queue, cls)

    def _advance(self, now: float) -> None:
        """Share out the CPU time since the last call: equally among the classes that have work left, at any moment."""
        elapsed = now - self._at
        if elapsed <= 0:
            return
        self._at = now
        left = elapsed * self._rate
        waiting = [queue for queue in self._queues if queue.tail_s > queue.served_s]
        if len(waiting) > 1:
            waiting.sort(key=_backlog)
        for others, queue in zip(range(len(waiting) - 1, -1, -1), waiting, strict=True):
            share = left / (others + 1)
            backlog = queue.tail_s - queue.served_s
            if backlog <= share:
                queue.served_s = queue.tail_s  # set, not added up, so that an empty queue is exactly empty
                left -= backlog
            else:
                queue.served_s += share
                left -= share

    def _due(self, mark: float, queue: _Queue) -> float:
        """When `queue` will have received up to `mark` if nothing more arrives: a later arrival can only delay it.

        By then each other class has received as much, or all that it has.
        """
        ahead = total = mark - queue.served_s
        for other in self._queues:
            if other is not queue:
                beside = other.tail_s - other.served_s
                total += ahead if ahead < beside else beside
        return self._at + total / self._rate

    def _arm(self, queue: _Queue, cls: Class) -> None:
        when = queue.running[0][0] if queue.running else float("inf")
        if queue.fluid:
            when = min(when, self._due(queue.fluid[0][0], queue))
        queue.armed = True
        self._clock.call_at(when, self._fire, cls)

    def _fire(self, cls: Class) -> None:
        """Settle everything that is due. A timer may be early (work arrived since) but never misses its time."""
        now = self._clock.now()
        queue = self._queues[cls]
        queue.armed = False
        done = self._collect(now + self.slack_s + TINY_S, queue)
        self._advance(now)
        if queue.fluid or queue.running:
            self._arm(queue, cls)
        self.jobs += len(done)
        for due, _, target in done:
            if now - due > LATE_S:
                self.late += 1
            if type(target) is Promise:
                target.resolve(None)
            else:
                target()  # type: ignore[operator]

    def _collect(self, until: float, queue: _Queue) -> list[tuple[float, int, _Target]]:
        """Take off what is due by `until`, each with its exact due time, in order of these."""
        done: list[tuple[float, int, _Target]] = []
        fluid, running = queue.fluid, queue.running
        while fluid:
            mark, earliest, target = fluid[0]
            due = self._due(mark, queue)
            if due > until:
                break
            fluid.popleft()
            self._order += 1
            if self._parallel and earliest > due:
                heapq.heappush(running, (earliest, self._order, target))
            else:
                done.append((due, self._order, target))
        if running and running[0][0] <= until:
            while running and running[0][0] <= until:
                done.append(heapq.heappop(running))
            done.sort()
        return done


def _backlog(queue: _Queue) -> float:
    return queue.tail_s - queue.served_s
