"""PodStartupLatency: from a pod's creation to the moment a client sees it run.

Mirrors pkg/measurement/common/slos/pod_startup_latency.go, which takes every moment from its own watch: first seen
(create), first seen with a node (schedule), first seen Running (run, and watch, which is the same now). Those are the
summaries here too, in milliseconds. Beside them the same transitions by the stamps of the API (creationTimestamp, the
PodScheduled condition, the last container's startedAt), which have whole seconds: they say when a thing happened, the
watch says when a client could know.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from harness.client.requests import PODS
from harness.client.store import Change, Changed
from harness.clusterloader.measurements.base import (
    Call,
    MeasurementError,
    Outcome,
    Result,
    Selector,
    unknown_action,
)
from harness.clusterloader.measurements.pods import PodView, decode_pod
from harness.clusterloader.perfdata import latency_data, latency_values, quantiles
from harness.clusterloader.runtime import Informer, Runtime
from harness.clusterloader.tasks import Signal
from harness.wire import rfc3339

CREATE, SCHEDULE, RUN, WATCH = "create", "schedule", "run", "watch"

TRANSITIONS = {
    "create_to_schedule": (CREATE, SCHEDULE),
    "schedule_to_run": (SCHEDULE, RUN),
    "run_to_watch": (RUN, WATCH),
    "schedule_to_watch": (SCHEDULE, WATCH),
    "pod_startup": (CREATE, WATCH),
    "create_to_run": (CREATE, RUN),
}

_SETTLE_S = 5.0  # between two looks of upstream's barriers (checkControlledPodsInterval)
_THRESHOLD_S = 5.0  # defaultPodStartupLatencyThreshold, the SLO


class _Pod:
    """When one pod reached each moment: `seen` by this client's watch (machine's clock), `stamps` by the API's stamps
    (wall clock)."""

    __slots__ = ("seen", "stamps", "stateless")

    def __init__(self, stateless: bool) -> None:
        self.seen: dict[str, float] = {}
        self.stamps: dict[str, float] = {}
        self.stateless = stateless


class PodStartupLatency:
    def __init__(self) -> None:
        self._informer: Informer | None = None
        self._pods: dict[str, _Pod] = {}
        self._thresholds_s: dict[str, float] = {}
        self._identifier = ""
        self._under_way: set[str] = set()
        self._seen = Signal()

    async def execute(self, call: Call) -> Outcome:
        action = call.params.text("action")
        if action == "start":
            await self._start(call)
            return Outcome()
        if action == "gather":
            call.params.text("schedulerName", "default-scheduler")
            await self._settle(call.runtime)
            return self._gather(call)
        raise unknown_action(action, "start", "gather")

    def dispose(self) -> None:
        if self._informer is not None:
            self._informer.stop()
            self._informer = None

    async def _start(self, call: Call) -> None:
        if self._informer is not None:
            return
        params, runtime = call.params, call.runtime
        selector = Selector.of(params)
        threshold_s = params.duration("threshold", _THRESHOLD_S)
        for percent in (50, 90, 99):
            self._thresholds_s[f"Perc{percent}"] = params.duration(f"perc{percent}Threshold", threshold_s)
        self._identifier = call.identifier
        self._informer = runtime.watch(
            PODS,
            decode_pod,
            lambda changed: self._changed(changed, runtime),
            namespace=selector.namespace,
            labels=selector.labels,
            fields=selector.fields,
        )
        await self._informer.synced

    def _changed(self, changed: Changed, runtime: Runtime) -> None:
        pod: PodView | None = changed.object
        if pod is None:
            return
        gone = changed.change is Change.DELETED or pod.metadata.deletion_timestamp
        if gone or pod.status.phase not in ("", "Pending"):
            self._under_way.discard(pod.key)
            self._seen.notify()
        else:
            self._under_way.add(pod.key)
        known = self._pods.get(pod.key)
        if known is not None and WATCH in known.seen:
            return
        if known is None:
            stateless = all(volume.stateless for volume in pod.spec.volumes or ())
            known = self._pods[pod.key] = _Pod(stateless)
        seen, now = known.seen, runtime.now
        seen.setdefault(CREATE, now)
        if pod.spec.node_name:
            seen.setdefault(SCHEDULE, now)
        if pod.status.phase == "Running":
            seen[RUN] = seen[WATCH] = now
            known.stamps = {**_stamps(pod), WATCH: runtime.wall_s}
            startup_ms = (now - seen[CREATE]) * 1000
            runtime.sample("pod_startup_ms", startup_ms, ("identifier", self._identifier))

    async def _settle(self, runtime: Runtime) -> None:
        """Let this watch see what another one has: a barrier before us ended with a pod that may still be on its way
        to us, where upstream's next look at its barrier would have come seconds later."""
        deadline = runtime.now + _SETTLE_S
        while self._under_way and runtime.now < deadline:
            await runtime.tasks.either(self._seen.changed, deadline)

    def _gather(self, call: Call) -> Outcome:
        if self._informer is None:
            raise MeasurementError("metric PodStartupLatency has not been started")
        self.dispose()
        everything = self._latencies_ms(lambda pod: pod.seen, lambda pod: True)
        results = [
            self._result("", call, everything),
            self._result(
                "Stateless", call, self._latencies_ms(lambda pod: pod.seen, lambda pod: pod.stateless)
            ),
            self._result(
                "Stateful", call, self._latencies_ms(lambda pod: pod.seen, lambda pod: not pod.stateless)
            ),
            self._result("Stamped", call, self._latencies_ms(lambda pod: pod.stamps, lambda pod: True)),
        ]
        failure = self._violation(quantiles(everything["pod_startup"]))
        return Outcome(tuple(results), f"pod startup: {failure}" if failure else "")

    def _latencies_ms(
        self, times: Callable[[_Pod], dict[str, float]], chosen: Callable[[_Pod], bool]
    ) -> dict[str, list[float]]:
        """By transition; a pod that lacks one of its moments is left out, a negative latency is 0, as upstream."""
        found: dict[str, list[float]] = {name: [] for name in TRANSITIONS}
        for pod in self._pods.values():
            if not chosen(pod):
                continue
            at = times(pod)
            for name, (first, last) in TRANSITIONS.items():
                if first in at and last in at:
                    found[name].append(max(0.0, at[last] - at[first]) * 1000)
        return found

    def _result(self, prefix: str, call: Call, latencies_ms: dict[str, list[float]]) -> Result:
        values: dict[str, object] = {
            "pods": len(latencies_ms["pod_startup"]),
            "pods_never_running": sum(WATCH not in pod.seen for pod in self._pods.values()),
            **latency_values(latencies_ms),
        }
        return Result(f"{prefix}PodStartupLatency_{call.identifier}", values, latency_data(latencies_ms))

    def _violation(self, found_ms: dict[str, float]) -> str:
        """The first percentile above its threshold (latency_metric.go: VerifyThresholdByPercentile)."""
        for bucket, threshold_s in self._thresholds_s.items():
            if found_ms[bucket] > threshold_s * 1000:
                return (
                    f"too high latency {bucket[4:]}th percentile: got {found_ms[bucket] / 1000:.3f}s "
                    f"expected: {threshold_s:g}s"
                )
        return ""


def _stamps(pod: PodView) -> dict[str, float]:
    """Moments by the API's own stamps, as far as they are there."""
    texts = {CREATE: pod.metadata.creation_timestamp or None}
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True":
            texts[SCHEDULE] = condition.last_transition_time
    started = [item.state.running.started_at for item in pod.status.container_statuses if item.state.running]
    texts[RUN] = max((text for text in started if text), default=None)
    found = {}
    for name, text in texts.items():
        if text:
            with contextlib.suppress(ValueError):  # a stamp that is no time is a stamp that is missing
                found[name] = rfc3339.parse(text)
    return found
