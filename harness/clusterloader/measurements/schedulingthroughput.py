"""SchedulingThroughput: pods scheduled a second, interval by interval.

Mirrors pkg/measurement/common/scheduling_throughput.go: the summary holds quantiles and the maximum of the
intervals' rates, and the threshold is for the maximum. Added here: the average from the first pod scheduled to the
last, and how many pods that were.
"""

from __future__ import annotations

from harness.client.requests import PODS
from harness.client.store import Changed
from harness.clusterloader.durations import quantile
from harness.clusterloader.measurements.base import (
    Call,
    MeasurementError,
    Outcome,
    Result,
    Selector,
    unknown_action,
)
from harness.clusterloader.measurements.pods import PodTally, decode_pod
from harness.clusterloader.runtime import Informer, Runtime

_INTERVAL_S = 5.0  # defaultSchedulingThroughputInterval


class SchedulingThroughput:
    def __init__(self) -> None:
        self._informer: Informer | None = None
        self._tally = PodTally()
        self._rates: list[float] = []
        self._scheduled = 0
        self._first_at: float | None = None
        self._last_at = 0.0

    async def execute(self, call: Call) -> Outcome:
        action = call.params.text("action")
        if action == "start":
            await self._start(call)
            return Outcome()
        if action == "gather":
            return self._gather(call)
        raise unknown_action(action, "start", "gather")

    def dispose(self) -> None:
        if self._informer is not None:
            self._informer.stop()
            self._informer = None

    async def _start(self, call: Call) -> None:
        if self._informer is not None:
            return
        selector = Selector.of(call.params)
        interval_s = call.params.duration("measurmentInterval", _INTERVAL_S)  # upstream's spelling
        if interval_s <= 0:
            raise MeasurementError(
                f"params.measurmentInterval: {interval_s:g}s is not allowed; expected more than 0"
            )
        runtime = call.runtime
        self._informer = runtime.watch(
            PODS,
            decode_pod,
            lambda changed: self._changed(changed, runtime.now),
            namespace=selector.namespace,
            labels=selector.labels,
            fields=selector.fields,
        )
        await self._informer.synced
        runtime.tasks.spawn(self._collect(runtime, self._informer, interval_s))

    def _changed(self, changed: Changed, now: float) -> None:
        before = self._tally.scheduled
        self._tally.apply(changed)
        if self._tally.scheduled > before:
            self._first_at = now if self._first_at is None else self._first_at
            self._last_at = now
            self._scheduled += 1

    async def _collect(self, runtime: Runtime, informer: Informer, interval_s: float) -> None:
        last, at = 0, runtime.now
        while True:
            at += interval_s
            await runtime.tasks.until(at)
            if not informer.running:
                return
            self._rates.append((self._tally.scheduled - last) / interval_s)
            last = self._tally.scheduled

    def _gather(self, call: Call) -> Outcome:
        threshold = call.params.number("threshold", 0.0)
        enforced = call.params.boolean("enableViolations", True)
        if self._informer is None:
            raise MeasurementError("measurement is not running")
        self.dispose()
        rates = sorted(self._rates)
        content = {f"perc{percent}": quantile(rates, percent) for percent in (50, 90, 99)}
        content["max"] = rates[-1] if rates else 0.0
        span_s = 0.0 if self._first_at is None else self._last_at - self._first_at
        average = self._scheduled / span_s if span_s > 0 else 0.0
        values: dict[str, object] = {**content, "average": average, "pods": self._scheduled, "unit": "pods/s"}
        failure = ""
        if threshold > 0 and content["max"] < threshold and enforced:
            failure = f"scheduler throughput: actual throughput {content['max']:f} lower than threshold {threshold:f}"
        return Outcome((Result("SchedulingThroughput", values, content),), failure)
