"""Flow control of one apiserver: the door that every request passes.

k8s.io/apiserver v1.36 pkg/util/flowcontrol/apf_controller.go:560-860 (digesting a configuration), 1035-1090
(startRequest); pkg/server/filters/priority-and-fairness.go:308-440 (wait limit, watermarks, Retry-After).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harness.apiserver.clock import Clock, Timer
from harness.apiserver.flowcontrol import classify as rules
from harness.apiserver.flowcontrol.activity import Activity
from harness.apiserver.flowcontrol.bootstrap import FLOW_SCHEMAS, MANDATORY, PRIORITY_LEVELS
from harness.apiserver.flowcontrol.borrowing import allot
from harness.apiserver.flowcontrol.config import EXEMPT, FlowSchema, PriorityLevel, Response
from harness.apiserver.flowcontrol.dropped import DroppedRequests
from harness.apiserver.flowcontrol.estimator import Estimator, ObjectCounts, WorkEstimate
from harness.apiserver.flowcontrol.flow import Flow
from harness.apiserver.flowcontrol.flowmetrics import FlowMetrics
from harness.apiserver.flowcontrol.level import Level
from harness.apiserver.flowcontrol.queueset import QueueSet
from harness.apiserver.flowcontrol.ticket import Admission, Ticket
from harness.apiserver.flowcontrol.utilization import KINDS, KindUtilization, LevelUtilization
from harness.apiserver.flowcontrol.watches import WatchTracker
from harness.apiserver.metrics.families import Metrics

BORROWING_PERIOD_S = 10.0
WATERMARK_PERIOD_S = 1.0
MAX_WAIT_S = 60.0
DEFAULT_WAIT_S = 15.0  # a quarter of the default request timeout of 60 s
_MAX_KNOWN_FLOWS = 100_000


def wait_limit(deadline_s: float | None, request_timeout_s: float = 60.0) -> float:
    """How long a request that must be answered within `deadline_s` may wait for a seat. None: a watch has no deadline
    of its own, so that of all requests counts."""
    return min((request_timeout_s if deadline_s is None else deadline_s) / 4, MAX_WAIT_S)


class FlowController:
    """Seats for requests. `start()` begins the periodic work, `stop()` ends it; `configure()` may be called at any
    time. Begins with the bootstrap configuration."""

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
        self.levels: dict[str, Level] = {}
        self.schemas: tuple[FlowSchema, ...] = ()
        self._clock = clock
        self._metrics = metrics
        self._server_seats = server_concurrency
        self._desired: tuple[tuple[PriorityLevel, ...], tuple[FlowSchema, ...]] = ((), ())
        self._names = rules.names_in(())
        self._flows: dict[str, Flow] = {}
        self._classified: dict[tuple[object, ...], Flow] = {}
        self._hands: dict[tuple[str, str], tuple[int, ...]] = {}
        self._dropped: dict[str, DroppedRequests] = {}
        self._timers: dict[Callable[[], object], Timer] = {}
        self._activity = (Activity(clock.now()), Activity(clock.now()))  # reads, writes
        self._kinds = KindUtilization(metrics, self._activity)
        self._reaping = False
        self.configure(levels, schemas)
        metrics.on_render(self._fill)

    def start(self) -> None:
        self._repeat(BORROWING_PERIOD_S, self._adjust_limits)
        self._repeat(WATERMARK_PERIOD_S, self._publish_watermarks)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    # ---- requests ------------------------------------------------------------------------------------------------
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
        flow = self._classify(user, info)
        level = flow.level
        metrics = flow.metrics
        if estimate is None:
            estimate, watches = self.estimator.estimate(info, level.max_seats)
            if watches is not None:
                metrics.watch_count.observe(watches)
        metrics.seats.observe(max(estimate.initial_seats, estimate.final_seats))
        admission = Admission()
        ticket = Ticket(flow, estimate, admission, user, info, self._clock.now())
        admission.ticket = ticket
        level.queues.start(ticket, self._hand(flow, user, info), wait_limit_s)
        return admission

    def _classify(self, user: rules.User, info: rules.Info) -> Flow:
        if not info.is_resource:
            return self._flow(rules.classify(self.schemas, user, info))
        # All that the rules look at; names only where a rule could, so that nodes share their entries.
        names, name, namespace = self._names, user.name, info.namespace
        known = name if name in names.users or name.startswith(rules.SERVICE_ACCOUNT) else ""
        scope = namespace if not namespace or namespace in names.namespaces else "*"
        key = (known, user.groups, info.verb, info.group, info.resource, info.subresource, scope)
        flow = self._classified.get(key)
        if flow is None:
            flow = self._flow(rules.classify(self.schemas, user, info))
            if len(self._classified) >= _MAX_KNOWN_FLOWS:
                self._classified.clear()
            self._classified[key] = flow
        return flow

    def _flow(self, schema: FlowSchema) -> Flow:
        flow = self._flows.get(schema.name)
        if flow is None:
            metrics = FlowMetrics(self._metrics, schema.level, schema.name)
            flow = self._flows[schema.name] = Flow(schema, self.levels[schema.level], metrics)
        return flow

    def _hand(self, flow: Flow, user: rules.User, info: rules.Info) -> tuple[int, ...]:
        level = flow.level.config
        if level.queues < 1:
            return ()
        key = (flow.schema.name, rules.flow_of(flow.schema, user, info))
        hand = self._hands.get(key)
        if hand is None:
            if len(self._hands) >= _MAX_KNOWN_FLOWS:
                self._hands.clear()
            hand = rules.deal(rules.hash_flow(*key), level.queues, level.hand_size)
            self._hands[key] = hand
        return hand

    def _drop(self, name: str) -> int:
        dropped = self._dropped.setdefault(name, DroppedRequests())
        dropped.record(self._clock.wall())
        return dropped.retry_after_s

    # ---- configuration -------------------------------------------------------------------------------------------
    def configure(self, levels: Iterable[PriorityLevel], schemas: Iterable[FlowSchema]) -> frozenset[str]:
        """Go on with these; returns the names of schemas whose level is not among them, which serve nobody.

        A level that is no longer wanted stays until nothing is in it. Missing mandatory levels and schemas are added.
        """
        self._desired = (tuple(levels), tuple(schemas))
        wanted = {level.name: level for level in self._desired[0]}
        served = [schema for schema in self._desired[1] if schema.level in wanted]
        dangling = frozenset(schema.name for schema in self._desired[1] if schema.level not in wanted)
        self.schemas = _in_order(served)
        known, self.levels = self.levels, {}
        for name, config in wanted.items():
            self.levels[name] = self._level(config, known.get(name))
        for name, level in known.items():
            if name not in wanted and self._stays(name, level):
                self.levels[name] = level
        for config in PRIORITY_LEVELS:
            if config.name in MANDATORY and config.name not in self.levels:
                self.levels[config.name] = self._level(config, None)
        self._classified.clear()
        self._hands.clear()
        self._names = rules.names_in(self.schemas)
        self._flows.clear()
        metrics = self._metrics
        for schema in self.schemas:  # the other series begin with a schema's first request
            metrics.apiserver_flowcontrol_current_inqueue_requests.labels(schema.level, schema.name)
            metrics.apiserver_flowcontrol_current_executing_requests.labels(schema.level, schema.name)
        self._size_levels(known)
        return dangling

    def _level(self, config: PriorityLevel, known: Level | None) -> Level:
        if known is None:
            name = config.name
            level = Level(config)
            level.queues = QueueSet(self._clock, config, lambda: self._drop(name), self._activity)
            level.utilization = LevelUtilization(self._metrics, name, level.queues)
            return level
        known.config = config
        known.quiescing = False
        known.queues.on_idle = None
        known.queues.configure(config)
        return known

    def _stays(self, name: str, level: Level) -> bool:
        """Whether a level that nobody wants any more remains for now: for what is in it, or because it must be."""
        if name in MANDATORY:
            return True
        if level.queues.idle:
            return False
        level.quiescing = True
        level.queues.on_idle = self._reap_soon
        return True

    def _reap_soon(self) -> None:
        if not self._reaping:
            self._reaping = True
            self._clock.call_at(self._clock.now(), self._reap)

    def _reap(self) -> None:
        self._reaping = False
        self.configure(*self._desired)

    def _size_levels(self, known: dict[str, Level]) -> None:
        """Divide the server among the levels, then let them borrow."""
        metrics = self._metrics
        share_sum = sum(level.config.shares for level in self.levels.values())
        for name, level in self.levels.items():
            level.size(self._server_seats, share_sum)
            if known.get(name) is not level:
                level.queues.set_limit(level.initial)
            metrics.apiserver_flowcontrol_nominal_limit_seats.labels(name).set(level.nominal)
            metrics.apiserver_flowcontrol_lower_limit_seats.labels(name).set(level.least)
            metrics.apiserver_flowcontrol_upper_limit_seats.labels(name).set(level.most)
        waiting = sum(level.config.queues * level.config.queue_length for level in self.levels.values())
        executing = sum(level.nominal for level in self.levels.values())
        self._kinds.limit((executing, executing), waiting, self._clock.now())
        self._adjust_limits()

    # ---- periodic ------------------------------------------------------------------------------------------------
    def _repeat(self, period_s: float, act: Callable[[], object]) -> None:
        act()
        self._timers[act] = self._clock.call_at(self._clock.now() + period_s, self._repeat, period_s, act)

    def _publish_watermarks(self) -> None:
        for kind, activity in zip(KINDS, self._activity, strict=True):
            executing, waiting = activity.take_peaks()
            self._metrics.apiserver_current_inflight_requests.labels(kind).set(executing)
            self._metrics.apiserver_current_inqueue_requests.labels(kind).set(waiting)

    def _adjust_limits(self) -> None:
        """Let levels that have too little borrow from those that have too much."""
        for level in self.levels.values():
            level.take_demand()
        allotment = allot(self.levels)
        metrics = self._metrics
        metrics.apiserver_flowcontrol_seat_fair_frac.labels().set(allotment.fair_fraction)
        for name, level in self.levels.items():
            seats = allotment.seats[name]
            level.utilization.limit(seats, self._server_seats)
            level.queues.set_limit(seats)
            metrics.apiserver_flowcontrol_current_limit_seats.labels(name).set(seats)
            metrics.apiserver_flowcontrol_demand_seats_high_watermark.labels(name).set(level.high_watermark)
            metrics.apiserver_flowcontrol_demand_seats_average.labels(name).set(level.average)
            metrics.apiserver_flowcontrol_demand_seats_stdev.labels(name).set(level.deviation)
            metrics.apiserver_flowcontrol_demand_seats_smoothed.labels(name).set(level.smoothed)
        for name, claim in allotment.claims.items():
            metrics.apiserver_flowcontrol_target_seats.labels(name).set(claim.target)

    def _fill(self) -> None:
        """What is cheaper to look up for a scrape than to keep."""
        self._kinds.fold(self._clock.now())
        metrics = self._metrics
        for name, level in self.levels.items():
            level.utilization.fold()
            metrics.apiserver_flowcontrol_current_r.labels(name).set(level.queues.r)
            if level.config.response is Response.QUEUE:
                last = level.queues.last_dispatch
                metrics.apiserver_flowcontrol_dispatch_r.labels(name).set(last.r)
                metrics.apiserver_flowcontrol_latest_s.labels(name).set(last.s)
                next_s = metrics.apiserver_flowcontrol_next_s_bounds
                next_s.labels(name, "min").set(last.s_min)
                next_s.labels(name, "max").set(last.s_max)
                discounted = metrics.apiserver_flowcontrol_next_discounted_s_bounds
                discounted.labels(name, "min").set(last.discounted_s_min)
                discounted.labels(name, "max").set(last.discounted_s_max)

    def validate(self) -> None:
        """Assert what must hold between calls."""
        for name, level in self.levels.items():
            assert name == level.config.name, "a level under another's name"
            level.queues.validate()
        assert {schema.level for schema in self.schemas} <= self.levels.keys(), "a schema without its level"


def _in_order(schemas: list[FlowSchema]) -> tuple[FlowSchema, ...]:
    """By precedence, then by name; the mandatory ones first and last where they are missing."""
    found = sorted(schemas, key=lambda schema: (schema.precedence, schema.name))
    names = {schema.name for schema in found}
    for schema in FLOW_SCHEMAS:
        if schema.name in MANDATORY and schema.name not in names:
            found.insert(0 if schema.name == EXEMPT else len(found), schema)
    return tuple(found)
