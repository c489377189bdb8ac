"""Without priority and fairness: so many reads and so many writes at once, whoever asks.

k8s.io/apiserver v1.36 pkg/server/filters/maxinflight.go:112-220, what ``--enable-priority-and-fairness=false`` leaves:
nothing waits, watches do not count, and a member of system:masters is served above the limit.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.apiserver.clock import Clock, Timer
from harness.apiserver.flowcontrol.activity import Activity
from harness.apiserver.flowcontrol.classify import Info, User
from harness.apiserver.flowcontrol.estimator import ObjectCounts
from harness.apiserver.flowcontrol.ticket import CONCURRENCY_LIMIT, READS, Admission, Rejection
from harness.apiserver.flowcontrol.utilization import KINDS, KindUtilization
from harness.apiserver.flowcontrol.watches import WatchTracker
from harness.apiserver.metrics.families import Metrics

RETRY_AFTER_S = 1
WATERMARK_PERIOD_S = 1.0
_MASTERS = "system:masters"


class Slot:
    """A request that is served; call `finish()` once it has been answered."""

    __slots__ = ("_release", "finished")
    waited_s = 0.0
    headers: dict[str, str] = {}  # noqa: RUF012  # nobody says anything of a level that does not exist

    def __init__(self, release: Callable[[], object] | None) -> None:
        self.finished = False
        self._release = release

    def finish(self) -> None:
        if not self.finished:
            self.finished = True
            if self._release is not None:
                self._release()

    def leave(self) -> None:
        """A slot is given at once or not at all."""


class MaxInFlight:
    """Slots for requests: `reads` and `writes` at once. Counts and watches are kept for nobody: the estimator that
    asks for them belongs to priority and fairness."""

    def __init__(self, clock: Clock, metrics: Metrics, reads: int, writes: int) -> None:
        if reads < 1 or writes < 1:
            raise ValueError(
                f"at least one read and one write must be allowed at once, not {reads} and {writes}"
            )
        self.counts = ObjectCounts(clock)
        self.watches = WatchTracker()
        self._clock = clock
        self._metrics = metrics
        self._limits = (reads, writes)
        self._activity = (Activity(clock.now()), Activity(clock.now()))
        self._utilization = KindUtilization(metrics, self._activity)
        self._utilization.limit(self._limits, 1, clock.now())
        metrics.on_render(lambda: self._utilization.fold(clock.now()))
        self._timer: Timer | None = None

    def start(self) -> None:
        """Begin to publish watermarks."""
        for kind, activity in zip(KINDS, self._activity, strict=True):
            executing, _ = activity.take_peaks()
            self._metrics.apiserver_current_inflight_requests.labels(kind).set(executing)
        self._timer = self._clock.call_at(self._clock.now() + WATERMARK_PERIOD_S, self.start)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def admit(self, user: User, info: Info, wait_limit_s: float = 0.0) -> Admission:
        """Settled when it is returned, with a Slot or a Rejection."""
        admission = Admission()
        if info.verb == "watch":
            admission.resolve(Slot(None))
            return admission
        kind = info.verb not in READS
        activity = self._activity[kind]
        if activity.executing < self._limits[kind]:
            self._change(activity, 1)
            slot = admission.ticket = Slot(lambda: self._change(activity, -1))
            admission.resolve(slot)
        elif _MASTERS in user.groups:
            admission.resolve(Slot(None))
        else:
            admission.resolve(Rejection("", "", CONCURRENCY_LIMIT, RETRY_AFTER_S, {}))
        return admission

    def _change(self, activity: Activity, change: int) -> None:
        activity.settle(self._clock.now())
        activity.executing += change
        activity.executing_peak = max(activity.executing_peak, activity.executing)
