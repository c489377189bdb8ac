"""How much of its limits flow control has used, for how long: what observes "at the end of every nanosecond".

k8s.io/apiserver v1.36 pkg/util/flowcontrol/metrics: metrics.go:140-190, timing_ratio_histogram.go. Upstream adds to a
histogram at each change of each number; here what changes is how long each state has lasted, one addition for all
families, and states are sorted into buckets when somebody reads them or a limit changes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from harness.apiserver.flowcontrol.activity import Activity
from harness.apiserver.flowcontrol.demand import Demand, DemandIntegrator
from harness.apiserver.flowcontrol.queueset import QueueSet
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.metrics.flowcontrol import DEMAND_BOUNDS, KIND_BOUNDS, REQUEST_BOUNDS, SEAT_BOUNDS
from harness.apiserver.metrics.text import Histogram

KINDS = ("readOnly", "mutating")
_NS = 1_000_000_000


def _add(cell: Histogram, bounds: Sequence[float], ratio: float, lasted_s: float) -> None:
    """`lasted_s` seconds at `ratio`: an observation for each nanosecond."""
    nanoseconds = round(lasted_s * _NS)
    cell.counts[bisect_left(bounds, ratio)] += nanoseconds
    cell.total += ratio * nanoseconds


class LevelUtilization:
    """Of one priority level. `fold()` accounts for what has been since the last call, under the limits of then."""

    def __init__(self, metrics: Metrics, name: str, queues: QueueSet) -> None:
        self._queues = queues
        self._seats = metrics.apiserver_flowcontrol_priority_level_seat_utilization.labels("executing", name)
        requests = metrics.apiserver_flowcontrol_priority_level_request_utilization
        self._executing = requests.labels("executing", name)
        self._waiting = requests.labels("waiting", name)
        self._demand = DemandIntegrator()
        self._demand_seats = metrics.apiserver_flowcontrol_demand_seats.labels(name)
        self._seat_limit = self._queue_limit = 1

    def limit(self, seats: int, server_seats: int) -> None:
        """The level's limits from now on: of seats as given (or a tenth of the server's where it has none), of waiting
        requests as its queues hold."""
        self.fold()
        self._seat_limit = seats if seats > 0 else max(1, round(server_seats / 10))
        level = self._queues.level
        self._queue_limit = max(1, level.queue_length) * max(1, level.queues)

    def take_demand(self) -> Demand:
        """What the level wanted since the last call."""
        self.fold()
        return self._demand.reset(self._queues.take_demand_peak())

    def fold(self) -> None:
        seats = self._seat_limit
        for (waiting, executing, used, wanted), lasted_s in self._queues.take_times().items():
            self._demand.add(used + wanted, lasted_s)
            _add(self._seats, SEAT_BOUNDS, used / seats, lasted_s)
            _add(self._executing, REQUEST_BOUNDS, executing / seats, lasted_s)
            _add(self._waiting, REQUEST_BOUNDS, waiting / self._queue_limit, lasted_s)
            _add(self._demand_seats, DEMAND_BOUNDS, (used + wanted) / seats, lasted_s)


class KindUtilization:
    """Of all reads and all writes of the server, against what all levels together execute and let wait."""

    def __init__(self, metrics: Metrics, activity: Sequence[Activity]) -> None:
        family = metrics.apiserver_flowcontrol_read_vs_write_current_requests
        self._cells = [
            (family.labels("executing", kind), family.labels("waiting", kind), each)
            for kind, each in zip(KINDS, activity, strict=True)
        ]
        self._executing: Sequence[int] = (1, 1)
        self._waiting = 1

    def limit(self, executing: Sequence[int], waiting: int, now: float) -> None:
        """`executing` of reads and of writes; 0 counts as 1."""
        self.fold(now)
        self._executing = tuple(max(1, limit) for limit in executing)
        self._waiting = max(1, waiting)

    def fold(self, now: float) -> None:
        for (executing_cell, waiting_cell, activity), limit in zip(self._cells, self._executing, strict=True):
            activity.settle(now)
            times, activity.times = activity.times, {}
            for (executing, waiting), lasted_s in times.items():
                _add(executing_cell, KIND_BOUNDS, executing / limit, lasted_s)
                _add(waiting_cell, KIND_BOUNDS, waiting / self._waiting, lasted_s)
