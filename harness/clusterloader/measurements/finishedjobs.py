"""WaitForFinishedJobs: until every Job of a selector is complete or failed (pkg/measurement/common/wait_for_jobs.go).

A Job that has finished and is deleted since (ttlSecondsAfterFinished) stays finished.
"""

from __future__ import annotations

import msgspec

from harness.client.requests import ResourceRef
from harness.client.store import Change, Changed, Decode, ObjectMeta, decoder_for
from harness.clusterloader.measurements.base import (
    Call,
    MeasurementError,
    Outcome,
    Selector,
    unknown_action,
)
from harness.clusterloader.measurements.pods import Condition
from harness.clusterloader.objects import items_of
from harness.clusterloader.runtime import Informer, Progress
from harness.clusterloader.tasks import Signal

JOBS = ResourceRef("batch", "v1", "jobs")

_TIMEOUT_S = 600.0  # defaultWaitForFinishedJobsTimeout
_SHOWN = 5  # Jobs that a message names


class JobMeta(ObjectMeta, gc=False, rename="camel"):
    creation_timestamp: str = ""


class JobStatus(msgspec.Struct, gc=False, rename="camel"):
    start_time: str | None = None
    completion_time: str | None = None
    conditions: list[Condition] | None = None


class JobView(msgspec.Struct, gc=False):
    metadata: JobMeta = msgspec.field(default_factory=JobMeta)
    status: JobStatus = msgspec.field(default_factory=JobStatus)

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def finished(self) -> str:
        """``Complete`` or ``Failed``, "" while it runs."""
        for condition in self.status.conditions or ():
            if condition.status == "True" and condition.type in ("Complete", "Failed"):
                return condition.type
        return ""


decode_job: Decode = decoder_for(JobView)


class WaitForFinishedJobs:
    def __init__(self) -> None:
        self._informer: Informer | None = None
        self._selector = Selector("", "", "")
        self._finished: dict[str, str] = {}
        self._changed = Signal()

    async def execute(self, call: Call) -> Outcome:
        action = call.params.text("action")
        if action == "start":
            await self._start(call)
        elif action == "gather":
            await self._gather(call)
        else:
            raise unknown_action(action, "start", "gather")
        return Outcome()

    def dispose(self) -> None:
        if self._informer is not None:
            self._informer.stop()
            self._informer = None

    async def _start(self, call: Call) -> None:
        if self._informer is not None:
            return
        self._selector = Selector.of(call.params)
        namespace, labels, fields = self._selector
        self._informer = call.runtime.watch(
            JOBS, decode_job, self._look, namespace=namespace, labels=labels, fields=fields
        )
        await self._informer.synced

    def _look(self, changed: Changed) -> None:
        job: JobView | None = changed.object
        if job is None:
            return
        if job.finished:
            self._finished[job.key] = job.finished
        elif changed.change is Change.ADDED:
            self._finished.pop(job.key, None)  # another Job of that name
        self._changed.notify()

    async def _gather(self, call: Call) -> None:
        if self._informer is None:
            raise MeasurementError("WaitForFinishedJobs has not been started")
        runtime = call.runtime
        start = runtime.now
        timeout_s = call.params.duration("timeout", _TIMEOUT_S)
        namespace, labels, fields = self._selector
        reply = await runtime.api.list(JOBS, namespace, labels=labels, fields=fields)
        if not reply.ok:
            raise MeasurementError(f"listing jobs: {reply.failure}")
        jobs = [f"{item.metadata.namespace}/{item.metadata.name}" for item in items_of(reply)]
        progress = Progress(runtime, call.step, call.identifier)
        while (
            left := [job for job in jobs if job not in self._finished]
        ) and runtime.now < start + timeout_s:
            progress.report(len(jobs) - len(left), len(jobs))
            await runtime.tasks.either(self._changed.changed, start + timeout_s)
        failed = sum(self._finished.get(job) == "Failed" for job in jobs)
        runtime.note(
            "barrier",
            step=call.step,
            identifier=call.identifier,
            start_s=start,
            seconds=runtime.now - start,
            passed=not left,
            objects=f"{len(jobs)} Jobs, {len(jobs) - len(left)} finished, {failed} failed",
        )
        if left:
            more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
            raise MeasurementError(f"{len(left)} Jobs timed out: {', '.join(left[:_SHOWN])}{more}")
