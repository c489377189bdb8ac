"""How far a Job is. kk/pkg/controller/job/job_controller.go (syncJob), indexed_job_utils.go."""

from __future__ import annotations

from harness.fleet.controllers.podcontrol import find_condition
from harness.fleet.controllers.views import Object, PodView

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
_MOST_NOTED = 500  # uncountedTerminatedPods are flushed in batches (MaxUncountedPods)


def finished(job: Object) -> bool:
    status = job.get("status") or {}
    return any(
        found is not None and found["status"] == "True"
        for found in (find_condition(status, "Complete"), find_condition(status, "Failed"))
    )


def finish(status: Object, kind: str, reason: str, message: str, now: str) -> None:
    """Add a condition."""
    found = {
        "type": kind,
        "status": "True",
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
    status["conditions"] = [*(status.get("conditions") or ()), found]


def unfinalized(pod: PodView) -> list[str]:
    return [each for each in pod.finalizers if each != FINALIZER]


class Counts:
    """Of one Job at one moment. A pod that has its end but not yet its place in the counts still has the finalizer."""

    __slots__ = (
        "_noted",
        "active",
        "ended",
        "failed",
        "job",
        "new_failures",
        "new_successes",
        "pods",
        "succeeded",
        "terminating",
    )

    def __init__(self, job: Object, pods: list[PodView]) -> None:
        self.job = job
        self.pods = pods
        status = job.get("status") or {}
        noted = status.get("uncountedTerminatedPods") or {}
        self._noted = {
            "succeeded": list(noted.get("succeeded") or ()),
            "failed": list(noted.get("failed") or ()),
        }
        known = {*self._noted["succeeded"], *self._noted["failed"]}
        self.active = [each for each in pods if each.active]
        self.terminating = sum(each.deleted is not None and not each.ended for each in pods)
        self.ended = [
            each for each in pods if FINALIZER in each.finalizers and (each.ended or self._gone(each))
        ]
        new = [each for each in self.ended if each.uid not in known]
        self.new_successes = sum(each.phase == "Succeeded" for each in new)
        self.new_failures = [each for each in new if each.phase != "Succeeded"]
        self.succeeded = int(status.get("succeeded", 0)) + len(self._noted["succeeded"])
        self.succeeded += len(new) - len(self.new_failures)
        self.failed = status.get("failed", 0) + len(self._noted["failed"]) + len(self.new_failures)

    def _gone(self, pod: PodView) -> bool:
        """A pod that is deleted before its end has failed (isPodFailed), unless a replacement waits for its end."""
        return pod.deleted is not None and not self._waits_for_end

    @property
    def _waits_for_end(self) -> bool:
        return bool(self.job["spec"].get("podReplacementPolicy") == "Failed")

    @property
    def terminating_to_wait_for(self) -> int:
        return int(self.terminating) if self._waits_for_end else 0

    @property
    def complete(self) -> bool:
        completions = self.job["spec"].get("completions")
        if completions is None:
            return self.succeeded > 0 and not self.active
        if self.job["spec"].get("completionMode") == "Indexed":
            return len(succeeded_indexes(self)) >= int(completions)
        return bool(self.succeeded >= completions)

    @property
    def wanted_active(self) -> int:
        spec = self.job["spec"]
        parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
        if completions is None:
            return len(self.active) if self.succeeded > 0 else parallelism
        return max(0, min(parallelism, int(completions) - self.succeeded))

    @property
    def remaining(self) -> bool:
        """Whether a pod has not ended, or its end is not counted."""
        return any(not each.ended and not self._gone(each) for each in self.pods) or bool(self.active)

    def note_ended(self, status: Object) -> list[PodView]:
        """Put the uids of pods that ended into the status; returns these pods, whose finalizers may go once it is
        written. Those of the Job's own deletion count as well."""
        ended = self.ended[:_MOST_NOTED]
        if not ended:
            return []
        known = {*self._noted["succeeded"], *self._noted["failed"]}
        for pod in ended:
            if pod.uid not in known:
                self._noted["succeeded" if pod.phase == "Succeeded" else "failed"].append(pod.uid)
        status["uncountedTerminatedPods"] = {name: uids for name, uids in self._noted.items() if uids}
        return ended

    def count_ended(self, status: Object) -> None:
        """The finalizers are gone: the notes become numbers."""
        for field, uids in self._noted.items():
            if uids:
                status[field] = status.get(field, 0) + len(uids)
        status["uncountedTerminatedPods"] = {}
        if self.job["spec"].get("completionMode") == "Indexed":
            status["completedIndexes"] = _ranges(sorted(succeeded_indexes(self)))


def succeeded_indexes(counts: Counts) -> set[int]:
    found = _parse((counts.job.get("status") or {}).get("completedIndexes", ""))
    return found | {
        int(each.index) for each in counts.pods if each.phase == "Succeeded" and each.index.isdecimal()
    }


def missing_indexes(job: Object, counts: Counts, count: int) -> list[int]:
    """The first indexes that have neither succeeded nor a pod (firstPendingIndexes)."""
    taken = succeeded_indexes(counts) | {int(each.index) for each in counts.active if each.index.isdecimal()}
    free = (each for each in range(job["spec"]["completions"]) if each not in taken)
    return [index for index, _ in zip(free, range(count), strict=False)]


def _parse(text: str) -> set[int]:
    """``1,3-5`` as numbers."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _ranges(indexes: list[int]) -> str:
    """Numbers as ``1,3-5``; two in a row are written apart, as upstream does."""
    parts: list[list[int]] = []
    for index in indexes:
        if parts and parts[-1][-1] == index - 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in parts]
    return ",".join(texts)
