"""Jobs: pods that run to their end, so many in all. kk/pkg/controller/job.

A pod keeps the finalizer batch.kubernetes.io/job-tracking until its end has been counted: it is first noted in
status.uncountedTerminatedPods, then loses the finalizer, then is counted. Changes of pods are gathered for a second.
`jobcounts` has what a status says.
"""

from __future__ import annotations

from harness.client.requests import PODS
from harness.client.store import Change
from harness.fleet.controllers.api import JOBS, ApiError, Steps, call, call_all, slow_start
from harness.fleet.controllers.claims import claim
from harness.fleet.controllers.controller import Controller
from harness.fleet.controllers.expectations import Expectations
from harness.fleet.controllers.jobcounts import (
    FINALIZER,
    INDEX,
    Counts,
    finish,
    finished,
    missing_indexes,
    unfinalized,
)
from harness.fleet.controllers.podcontrol import find_condition, pod_from, selector_of
from harness.fleet.controllers.replicaset import created_name, owner_of
from harness.fleet.controllers.views import Object, PodView, WholeView, decode_pod, whole
from harness.fleet.controllers.workqueue import WorkQueue
from harness.wire import rfc3339
from harness.wire.request import Request, Response

_BATCH_S = 1.0  # syncJobBatchPeriod
_RETRY_S, _RETRY_CAP_S = 1.0, 60.0  # DefaultJobApiBackOff, MaxJobApiBackOff
_POD_BACKOFF_S, _POD_BACKOFF_CAP_S = 10.0, 600.0  # DefaultJobPodFailureBackOff, MaxJobPodFailureBackOff
_MOST_CREATED = 500  # MaxPodCreateDeletePerSync


class JobController(Controller):
    name = "job-controller"

    def make_queue(self) -> WorkQueue:
        return WorkQueue(_RETRY_S, _RETRY_CAP_S)

    def subscribe(self) -> None:
        self.expectations = Expectations()
        self._failures: dict[str, tuple[int, float]] = {}  # in a row, and when the last was seen
        self.jobs = self.watch(JOBS, self.job_changed)
        self.pods = self.watch_pods(self.pod_changed)

    # ---- what is heard -----------------------------------------------------------------------------------------------
    def job_changed(self, change: Change, new: WholeView, old: WholeView | None) -> None:
        if change is Change.DELETED:
            self.expectations.forget(new.key)
            self._failures.pop(new.key, None)
        if change is Change.MODIFIED and old is not None and _generation(new) == _generation(old):
            self.add_after(new.key, _BATCH_S)
        else:
            self.queue.add(new.key)

    def pod_changed(self, change: Change, new: PodView, old: PodView | None) -> None:
        owner = owner_of(new, "Job")
        if owner is None:
            return
        found = self.jobs.get(f"{new.namespace}/{owner.name}")
        if found is None or found.uid != owner.uid:
            if FINALIZER in new.finalizers and change is not Change.DELETED:
                self.queue.add(f"orphan:{new.key}")
            return
        if change is Change.ADDED:
            self.expectations.created(found.key)
        released = old is not None and FINALIZER in old.finalizers and FINALIZER not in new.finalizers
        if change is Change.DELETED or released:
            self.expectations.deleted(found.key, new.uid)
        self.add_after(found.key, _BATCH_S)

    # ---- a sync ------------------------------------------------------------------------------------------------------
    def sync(self, key: str) -> Steps[None]:
        if key.startswith("orphan:"):
            yield from self._release(key.removeprefix("orphan:"))
            return
        view = self.jobs.get(key)
        if view is None:
            return
        job = whole(view)
        pods = yield from self._claimed(job)
        if finished(job):
            yield from self._remove_finalizers(key, [each for each in pods if FINALIZER in each.finalizers])
            return
        self.check_fresh(key)
        satisfied = self.expectations.satisfied(key, self.hub.now)
        counts = Counts(job, pods)
        status = job["status"] = dict(job.get("status") or {})
        before = dict(status)
        if "startTime" not in status and not job["spec"].get("suspend"):
            status["startTime"] = self.hub.stamp()
        self._note_failures(key, counts)
        self._judge(key, job, counts)
        error: ApiError | None = None
        if find_condition(status, "FailureTarget") or find_condition(status, "SuccessCriteriaMet"):
            error = yield from self._delete_pods(key, job, counts.active, counts)
        elif satisfied and "deletionTimestamp" not in job["metadata"]:
            error = yield from self._manage(key, job, counts)
        status["active"], status["ready"] = len(counts.active), sum(each.ready for each in counts.active)
        status["terminating"] = counts.terminating
        yield from self._track(key, job, counts, before)
        if error is not None:
            raise error

    def _claimed(self, job: Object) -> Steps[list[PodView]]:
        metadata = job["metadata"]
        candidates = self.pods.owned_by(metadata["uid"])
        if job["spec"].get("manualSelector"):
            candidates += self.pods.orphans_in(metadata["namespace"])
        selector = selector_of(job["spec"]["selector"])
        return (yield from claim(self, job, JOBS, PODS, candidates, selector))

    def _judge(self, key: str, job: Object, counts: Counts) -> None:
        """Whether it has failed or is done: noted now, final once no pod is left (delayed terminal conditions)."""
        status, spec, now = job["status"], job["spec"], self.hub.stamp()
        if find_condition(status, "FailureTarget") or find_condition(status, "SuccessCriteriaMet"):
            return
        deadline_s = spec.get("activeDeadlineSeconds")
        left_s = 1.0
        if deadline_s is not None and "startTime" in status and not spec.get("suspend"):
            left_s = rfc3339.parse(status["startTime"]) + deadline_s - self.hub.wall_s()
            self.add_after(key, max(left_s, 0.0))
        if left_s <= 0:
            text = "Job was active longer than specified deadline"
            finish(status, "FailureTarget", "DeadlineExceeded", text, now)
        elif counts.failed > spec.get("backoffLimit", 6):
            text = "Job has reached the specified backoff limit"
            finish(status, "FailureTarget", "BackoffLimitExceeded", text, now)
        elif counts.complete:
            finish(
                status,
                "SuccessCriteriaMet",
                "CompletionsReached",
                "Reached expected number of succeeded pods",
                now,
            )

    # ---- pods --------------------------------------------------------------------------------------------------------
    def _manage(self, key: str, job: Object, counts: Counts) -> Steps[ApiError | None]:
        """manageJob."""
        spec = job["spec"]
        active = counts.active
        if spec.get("suspend"):
            return (yield from self._delete_pods(key, job, active, counts))
        wanted = counts.wanted_active
        if len(active) > wanted:
            spare = sorted(active, key=lambda each: (bool(each.node), each.ready, each.created))
            return (yield from self._delete_pods(key, job, spare[: len(active) - wanted], counts))
        missing = min(wanted - len(active) - counts.terminating_to_wait_for, _MOST_CREATED)
        if missing <= 0:
            return None
        wait_s = self._backoff_s(key)
        if wait_s > 0:
            self.add_after(key, wait_s)
            return None
        return (yield from self._create_pods(key, job, missing, counts))

    def _note_failures(self, key: str, counts: Counts) -> None:
        """Failures since the last success (backoff_utils.go); they count from when they are seen."""
        if counts.new_successes:
            self._failures.pop(key, None)
        if counts.new_failures:
            before, _ = self._failures.get(key, (0, 0.0))
            self._failures[key] = (before + len(counts.new_failures), self.hub.now)

    def _backoff_s(self, key: str) -> float:
        """How much longer a failed pod is not replaced."""
        failures, last = self._failures.get(key, (0, 0.0))
        if failures == 0:
            return 0.0
        delay_s = min(_POD_BACKOFF_S * 2.0 ** min(failures - 1, 8), _POD_BACKOFF_CAP_S)
        return last + delay_s - self.hub.now

    def _create_pods(self, key: str, job: Object, count: int, counts: Counts) -> Steps[ApiError | None]:
        self.expectations.expect(key, self.hub.now, creations=count)

        def done(_: int, response: Response | None, error: ApiError | None) -> ApiError | None:
            if response is not None:
                self.wrote(key, self.pods, response)
                counts.active.append(decode_pod(response.body))
                self.recorder.normal(job, "SuccessfulCreate", f"Created pod: {created_name(response)}")
                return None
            assert error is not None
            if not error.terminating:
                self.recorder.warning(job, "FailedCreate", f"Error creating: {error}")
            return error

        requests = self._creations(job, count, counts)
        successes, error = yield from slow_start(requests, done)
        self.expectations.created(key, count - successes)
        return None if error is not None and error.terminating else error

    def _creations(self, job: Object, count: int, counts: Counts) -> list[Request]:
        namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
        pod = pod_from(job["spec"]["template"], job)
        metadata = pod["metadata"]
        metadata["finalizers"] = [*(metadata.get("finalizers") or ()), FINALIZER]
        if job["spec"].get("completionMode") != "Indexed":
            return [self.create(PODS, namespace, pod)] * count
        labels, notes = metadata.get("labels") or {}, metadata.get("annotations") or {}
        requests = []
        for index in missing_indexes(job, counts, count):
            metadata["generateName"] = f"{name}-{index}-"
            metadata["labels"] = {**labels, INDEX: str(index)}
            metadata["annotations"] = {**notes, INDEX: str(index)}
            spec = {**pod["spec"], "hostname": f"{name}-{index}"}
            requests.append(self.create(PODS, namespace, {**pod, "spec": spec}))
        return requests

    def _delete_pods(
        self, key: str, job: Object, pods: list[PodView], counts: Counts
    ) -> Steps[ApiError | None]:
        going = [each for each in pods if each.deleted is None]
        if not going:
            return None
        self.expectations.expect(key, self.hub.now, deletions=[each.uid for each in going])
        errors = yield from call_all([self.delete(PODS, each.namespace, each.name) for each in going])
        first: ApiError | None = None
        for pod, error in zip(going, errors, strict=True):
            if error is None:
                self.recorder.normal(job, "SuccessfulDelete", f"Deleted pod: {pod.name}")
                counts.active.remove(pod)
                continue
            self.expectations.deleted(key, pod.uid)
            first = first or (None if error.not_found else error)
        return first

    # ---- counting ----------------------------------------------------------------------------------------------------
    def _track(self, key: str, job: Object, counts: Counts, before: Object) -> Steps[None]:
        """trackJobStatusAndRemoveFinalizers: note, take the finalizers away, count, perhaps finish."""
        status = job["status"]
        ended = counts.note_ended(status)
        if ended:
            job = yield from self._write(key, job, status)
            status = job["status"]
            yield from self._remove_finalizers(key, ended)
            counts.count_ended(status)
        if not counts.remaining:
            self._conclude(job, status)
        if ended or status != before:
            yield from self._write(key, job, status)

    def _conclude(self, job: Object, status: Object) -> None:
        """enactJobFinished: the final condition follows the noted one once all pods have ended."""
        now = self.hub.stamp()
        target, met = find_condition(status, "FailureTarget"), find_condition(status, "SuccessCriteriaMet")
        if target is not None:
            finish(status, "Failed", target["reason"], target["message"], now)
            self.recorder.warning(job, target["reason"], target["message"])
        elif met is not None:
            finish(status, "Complete", met["reason"], met["message"], now)
            status["completionTime"] = now
            self.recorder.normal(job, "Completed", "Job completed")

    def _write(self, key: str, job: Object, status: Object) -> Steps[Object]:
        response = yield from call(self.update(JOBS, {**job, "status": status}, "status"))
        self.wrote(key, self.jobs, response)
        written = whole(response.body)
        written.setdefault("status", {})
        return written

    def _remove_finalizers(self, key: str, pods: list[PodView]) -> Steps[None]:
        errors = yield from call_all([self._finalizer_patch(each) for each in pods])
        for error in errors:
            if error is not None and not error.not_found:
                raise error

    def _finalizer_patch(self, pod: PodView) -> Request:
        body = {
            "metadata": {
                "uid": pod.uid,
                "$deleteFromPrimitiveList/finalizers": [FINALIZER],
                "$setElementOrder/finalizers": unfinalized(pod),
            }
        }
        return self.patch(PODS, pod.namespace, pod.name, body)

    def _release(self, key: str) -> Steps[None]:
        """syncOrphanPod: its Job is gone."""
        pod = self.pods.reflector.store.get(key)
        if pod is None or FINALIZER not in pod.finalizers:
            return
        owner = owner_of(pod, "Job")
        found = None if owner is None else self.jobs.get(f"{pod.namespace}/{owner.name}")
        if found is None or (owner is not None and found.uid != owner.uid):
            yield from self._remove_finalizers(key, [pod])


def _generation(job: WholeView) -> int:
    return int(whole(job)["metadata"].get("generation", 0))
