"""Flow control of one apiserver: the door that every request passes.

k8s.io/apiserver v1.36 pkg/util/flowcontrol/apf_controller.go:380-500 (borrowing), 857-893 (limits), 1035-1090
(startRequest); pkg/server/filters/priority-and-fairness.go:308-440 (wait limit, watermarks, Retry-After).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from harness.apiserver.clock import Clock, Timer
from harness.apiserver.flowcontrol import classify as rules
from harness.apiserver.flowcontrol.bootstrap import (
    FLOW_SCHEMAS,
    PRIORITY_LEVELS,
    FlowSchema,
    PriorityLevel,
    Response,
)
from harness.apiserver.flowcontrol.demand import SMOOTHING, Claim, DemandIntegrator, allocate
from harness.apiserver.flowcontrol.dropped import DroppedRequests
from harness.apiserver.flowcontrol.estimator import Estimator, ObjectCounts, WorkEstimate
from harness.apiserver.flowcontrol.flowmetrics import FlowMetrics
from harness.apiserver.flowcontrol.queueset import QueueSet
from harness.apiserver.flowcontrol.ticket import Activity, Admission, Ticket
from harness.apiserver.flowcontrol.watches import WatchTracker
from harness.apiserver.metrics.families import Metrics

BORROWING_PERIOD_S = 10.0
WATERMARK_PERIOD_S = 1.0
MAX_SEATS_SHARE = 0.15  # of a level's nominal seats, for one request
MAX_WAIT_S = 60.0
DEFAULT_WAIT_S = 15.0  # a quarter of the request timeout of 60 s; watches have no deadline of their own
_MAX_KNOWN_FLOWS = 100_000


def wait_limit(deadline_s: float | None) -> float:
    """How long a request that must be answered within `deadline_s` (None: a watch) may wait for a seat."""
    return DEFAULT_WAIT_S if deadline_s is None else min(deadline_s / 4, MAX_WAIT_S)


class Level:
    """One priority level at work. Seats: `nominal` by shares, `least` not lent, `most` with all that it may borrow."""

    def __init__(self, config: PriorityLevel, server_seats: int, share_sum: int) -> None:
        self.config = config
        self.nominal = math.ceil(server_seats * config.shares / share_sum)
        lendable = _go_round(self.nominal * config.lendable_percent / 100)
        self.least = self.nominal - lendable
        self.most = self.nominal + server_seats
        self.initial = self.nominal - lendable // 2
        self.max_seats = 0  # nothing said: exempt and catch-all
        if config.hand_size:
            capped = min(math.ceil(self.nominal * MAX_SEATS_SHARE), self.nominal // config.hand_size)
            self.max_seats = max(1, capped)
        self.smoothed = 0.0
        self.high_watermark = 0
        self.dropped = DroppedRequests()
        self.queues: QueueSet
        self.demand: DemandIntegrator

    @property
    def exempt(self) -> bool:
        return self.config.response is Response.EXEMPT


def _go_round(value: float) -> int:
    """Halves away from zero, as math.Round in Go."""
    return math.floor(value + 0.5)


class FlowController:
    """Seats for requests. `start()` begins the periodic work, `stop()` ends it."""

    def __init__(
        self,
        clock: Clock,
        metrics: Metrics,
        server_concurrency: int = 600,
        levels: Sequence[PriorityLevel] = PRIORITY_LEVELS,
        schemas: Sequence[FlowSchema] = FLOW_SCHEMAS,
    ) -> None:
        if server_concurrency < 1:
            raise ValueError(f"server_concurrency must be at least 1, not {server_concurrency}")
        self.counts = ObjectCounts(clock)
        self.watches = WatchTracker()
        self.estimator = Estimator(self.counts, self.watches)
        self._clock = clock
        self._metrics = metrics
        self._server_seats = server_concurrency
        self._schemas = tuple(schemas)
        self._named = frozenset(name for schema in schemas for name in schema.users)
        self._classified: dict[tuple[object, ...], FlowSchema] = {}
        self._hands: dict[tuple[str, str], tuple[int, ...]] = {}
        self._flow_metrics: dict[str, FlowMetrics] = {}
        self._timers: dict[Callable[[], object], Timer] = {}
        self._activity = (Activity(), Activity())  # reads, writes
        share_sum = sum(level.shares for level in levels)
        self.levels = {
            level.name: self._open(Level(level, server_concurrency, share_sum)) for level in levels
        }
        for schema in schemas:  # the other series begin with a schema's first request
            metrics.apiserver_flowcontrol_current_inqueue_requests.labels(schema.level, schema.name)
            metrics.apiserver_flowcontrol_current_executing_requests.labels(schema.level, schema.name)
        self._adjust_limits()

    def start(self) -> None:
        self._repeat(BORROWING_PERIOD_S, self._adjust_limits)
        self._repeat(WATERMARK_PERIOD_S, self._publish_watermarks)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def admit(
        self,
        user: rules.User,
        info: rules.Info,
        estimate: WorkEstimate | None = None,
        wait_limit_s: float = DEFAULT_WAIT_S,
    ) -> Admission:
        """Ask for seats. Settles with a Ticket (call `finish()`) or a Rejection, at the latest after `wait_limit_s`.

        `estimate` None: estimated from `counts` and `watches`.
        """
        schema = self._classify(user, info)
        level = self.levels[schema.level]
        metrics = self._flow_metrics.get(schema.name)
        if metrics is None:
            metrics = FlowMetrics(self._metrics, schema.level, schema.name)
            self._flow_metrics[schema.name] = metrics
        if estimate is None:
            estimate, watches = self.estimator.estimate(info, level.max_seats)
            if watches is not None:
                metrics.watch_count.observe(watches)
        metrics.seats.observe(max(estimate.initial_seats, estimate.final_seats))
        admission = Admission()
        ticket = Ticket(level.queues, schema, estimate, metrics, admission, info.verb, self._clock.now())
        admission.ticket = ticket
        level.queues.start(ticket, self._hand(schema, level.config, user, info), wait_limit_s)
        return admission

    def validate(self) -> None:
        for level in self.levels.values():
            level.queues.validate()

    def _classify(self, user: rules.User, info: rules.Info) -> FlowSchema:
        if not info.is_resource:
            return rules.classify(self._schemas, user, info)
        # All that the rules look at; a name only where a rule could, so that nodes share their entries.
        name = user.name
        known = name if name in self._named or name.startswith(rules.SERVICE_ACCOUNT) else ""
        scoped = info.namespace != ""
        key = (known, user.groups, info.verb, info.group, info.resource, info.subresource, scoped)
        schema = self._classified.get(key)
        if schema is None:
            schema = rules.classify(self._schemas, user, info)
            if len(self._classified) >= _MAX_KNOWN_FLOWS:
                self._classified.clear()
            self._classified[key] = schema
        return schema

    def _hand(
        self, schema: FlowSchema, level: PriorityLevel, user: rules.User, info: rules.Info
    ) -> tuple[int, ...]:
        if not level.queues:
            return ()
        key = (schema.name, rules.flow_of(schema, user, info))
        hand = self._hands.get(key)
        if hand is None:
            if len(self._hands) >= _MAX_KNOWN_FLOWS:
                self._hands.clear()
            hand = rules.deal(rules.hash_flow(*key), level.queues, level.hand_size)
            self._hands[key] = hand
        return hand

    def _open(self, level: Level) -> Level:
        name = level.config.name
        level.demand = DemandIntegrator(self._clock)
        level.queues = QueueSet(
            self._clock, level.config, level.initial, level.demand, lambda: self._drop(level), self._activity
        )
        metrics = self._metrics
        metrics.apiserver_flowcontrol_nominal_limit_seats.labels(name).set(level.nominal)
        metrics.apiserver_flowcontrol_lower_limit_seats.labels(name).set(level.least)
        metrics.apiserver_flowcontrol_upper_limit_seats.labels(name).set(level.most)
        return level

    def _drop(self, level: Level) -> int:
        level.dropped.record(self._clock.wall())
        return level.dropped.retry_after_s

    def _repeat(self, period_s: float, act: Callable[[], object]) -> None:
        act()
        self._timers[act] = self._clock.call_at(self._clock.now() + period_s, self._repeat, period_s, act)

    def _publish_watermarks(self) -> None:
        for kind, activity in zip(("readOnly", "mutating"), self._activity, strict=True):
            executing, waiting = activity.take_peaks()
            self._metrics.apiserver_current_inflight_requests.labels(kind).set(executing)
            self._metrics.apiserver_current_inqueue_requests.labels(kind).set(waiting)

    def _adjust_limits(self) -> None:
        """Let levels that have too little borrow from those that have too much."""
        remaining = nominal_sum = sum(level.nominal for level in self.levels.values())
        limited: list[Level] = []
        claims: list[Claim] = []
        limits: dict[str, int] = {}
        for name, level in self.levels.items():
            self._update_demand(level)
            if level.exempt:
                limits[name] = max(level.least, level.high_watermark)
                remaining -= limits[name]
            else:
                lower = max(level.least, min(level.nominal, level.high_watermark))
                limited.append(level)
                claims.append(Claim(lower, level.most, max(lower, level.smoothed)))
        limits |= self._share(nominal_sum, remaining, limited, claims)
        for name, level in self.levels.items():
            level.queues.set_limit(limits[name])
            self._metrics.apiserver_flowcontrol_current_limit_seats.labels(name).set(limits[name])

    def _share(
        self, nominal_sum: int, remaining: int, limited: list[Level], claims: list[Claim]
    ) -> dict[str, int]:
        """Seats of each limited level; `remaining` is what exempt requests leave of the server."""
        least_sum = sum(level.least for level in limited)
        lower_sum = sum(int(claim.lower) for claim in claims)
        fair = self._metrics.apiserver_flowcontrol_seat_fair_frac.labels()
        fair.set(0)
        for level, claim in zip(limited, claims, strict=True):
            self._metrics.apiserver_flowcontrol_target_seats.labels(level.config.name).set(claim.target)
        if remaining <= least_sum:
            return {level.config.name: level.least for level in limited}
        if remaining <= lower_sum:
            part = (remaining - least_sum) / (lower_sum - least_sum)
            return {
                level.config.name: level.least + _go_round((claim.lower - level.least) * part)
                for level, claim in zip(limited, claims, strict=True)
            }
        seats, proportion = allocate(nominal_sum, claims)
        fair.set(proportion)
        return {level.config.name: _go_round(share) for level, share in zip(limited, seats, strict=True)}

    def _update_demand(self, level: Level) -> None:
        demand = level.demand.reset()
        level.high_watermark = _go_round(demand.maximum)
        name = level.config.name
        metrics = self._metrics
        metrics.apiserver_flowcontrol_demand_seats_high_watermark.labels(name).set(level.high_watermark)
        if demand.duration_s > 0:
            envelope = demand.average + demand.deviation
            level.smoothed = max(envelope, SMOOTHING * level.smoothed + (1 - SMOOTHING) * envelope)
            metrics.apiserver_flowcontrol_demand_seats_average.labels(name).set(demand.average)
            metrics.apiserver_flowcontrol_demand_seats_stdev.labels(name).set(demand.deviation)
        metrics.apiserver_flowcontrol_demand_seats_smoothed.labels(name).set(level.smoothed)
