"""JobLifecycleLatency: from a Job's creation to its start, and from that to its completion, by the API's stamps.

Mirrors pkg/measurement/common/job_lifecycle_latency.go: gather waits until every Job that was seen has completed, and
where they do not in time gives what there is.
"""

from __future__ import annotations

from harness.client.store import Changed
from harness.clusterloader.measurements.base import (
    Call,
    MeasurementError,
    Outcome,
    Result,
    Selector,
    unknown_action,
)
from harness.clusterloader.measurements.finishedjobs import JOBS, JobView, decode_job
from harness.clusterloader.measurements.transitions import TransitionTimes
from harness.clusterloader.perfdata import latency_data, latency_values
from harness.clusterloader.runtime import Informer
from harness.clusterloader.tasks import Signal

CREATED, STARTED, COMPLETED = "JobCreated", "JobStarted", "JobCompleted"
TRANSITIONS = {"create_to_start": (CREATED, STARTED), "start_to_complete": (STARTED, COMPLETED)}

_TIMEOUT_S = 600.0  # defaultWaitForFinishedJobsTimeout


class JobLifecycleLatency:
    def __init__(self) -> None:
        self._informer: Informer | None = None
        self._times = TransitionTimes()
        self._changed = Signal()

    async def execute(self, call: Call) -> Outcome:
        action = call.params.text("action")
        if action == "start":
            await self._start(call)
            return Outcome()
        if action == "gather":
            return await self._gather(call)
        raise unknown_action(action, "start", "gather")

    def dispose(self) -> None:
        if self._informer is not None:
            self._informer.stop()
            self._informer = None

    async def _start(self, call: Call) -> None:
        if self._informer is not None:
            return
        namespace, labels, fields = Selector.of(call.params)
        self._informer = call.runtime.watch(
            JOBS, decode_job, self._look, namespace=namespace, labels=labels, fields=fields
        )
        await self._informer.synced

    def _look(self, changed: Changed) -> None:
        job: JobView | None = changed.object
        if job is None:
            return
        self._times.stamp(job.key, CREATED, job.metadata.creation_timestamp)
        self._times.stamp(job.key, STARTED, job.status.start_time)
        self._times.stamp(job.key, COMPLETED, job.status.completion_time)
        self._changed.notify()

    async def _gather(self, call: Call) -> Outcome:
        if self._informer is None:
            raise MeasurementError("metric JobLifecycleLatency has not been started")
        tasks, times = call.runtime.tasks, self._times
        deadline = tasks.now + call.params.duration("timeout", _TIMEOUT_S)
        while times.count(CREATED) != times.count(COMPLETED) and tasks.now < deadline:
            await tasks.either(self._changed.changed, deadline)
        self.dispose()
        found = times.latencies_ms(TRANSITIONS)
        values = {"jobs": times.count(CREATED), "completed": times.count(COMPLETED), **latency_values(found)}
        return Outcome((Result(f"JobLifecycleLatency_{call.identifier}", values, latency_data(found)),))
