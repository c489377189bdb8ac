"""The life of each pod on a kubelet, from the first word of it to its deletion. kk/pkg/kubelet/pod_workers.go.

    HEARD -> MOUNTING -> STARTING -> RUNNING        the way up
    HEARD, MOUNTING, STARTING, RUNNING -> STOPPING -> ENDING -> CLEANING -> FINISHED    once deletionTimestamp is set
    RUNNING -> CLEANING -> FINISHED                 all containers have ended, and none is started again
    HEARD -> CLEANING -> FINISHED                   the same of those that died with the machine

A deleted pod reports three times where the status manager finds the time: that the deletion was observed, that its
containers have ended, and, after the next relist of the PLEG, that it is over (SyncTerminatingPod and
SyncTerminatedPod, kubelet.go). A pod that vanishes from
the API server is dropped from any stage. Each pod has one timer, ("pod", uid), and while it mounts, the volume
manager's.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from math import ceil, inf

from harness.client.machine import Arm, Disarm, Fired, Sample
from harness.fleet.containers import Happening, Run, Runs, RunState
from harness.fleet.context import Context, Out
from harness.fleet.events import EventRecorder
from harness.fleet.firstreads import FirstReads
from harness.fleet.nodestatus import NodeStatus
from harness.fleet.objectcache import ObjectCache, Read, not_found, sync_timeout
from harness.fleet.pods import Pod, Ref
from harness.fleet.podstatus import StatusManager
from harness.fleet.volumes import VolumeManager
from harness.wire.errors import SwarmletError

PART = "pod"


class Stage(Enum):
    """Where a pod is; the value says what it waits for."""

    HEARD = "the kubelet to take it up"
    MOUNTING = "its volumes"
    STARTING = "its containers to start"
    READING = "an object that its environment needs"
    RETRYING = "another try after its environment could not be made"
    RUNNING = "what its containers do"
    STOPPING = "its containers to stop"
    ENDING = "the kubelet to take note of that"
    CLEANING = "its volumes to be unmounted"
    FINISHED = "its deletion"


class Cue(Enum):
    """What moves a pod on."""

    TAKEN_UP = "taken up"
    MOUNTED = "all volumes mounted"
    UNSYNCED = "an object of the environment is not synced"
    UNREADABLE = "an object of the environment cannot be had"
    AGAIN = "another try"
    STARTED = "containers started"
    DELETED = "deletionTimestamp seen"
    STOPPED = "containers stopped"
    ENDED = "the pod is over"
    COMPLETED = "all containers ended by themselves"
    CLEANED = "volumes unmounted"


TRANSITIONS: dict[tuple[Stage, Cue], Stage] = {
    (Stage.HEARD, Cue.TAKEN_UP): Stage.MOUNTING,
    (Stage.MOUNTING, Cue.MOUNTED): Stage.STARTING,
    (Stage.STARTING, Cue.UNSYNCED): Stage.READING,
    (Stage.STARTING, Cue.UNREADABLE): Stage.RETRYING,
    (Stage.STARTING, Cue.STARTED): Stage.RUNNING,
    (Stage.READING, Cue.AGAIN): Stage.STARTING,
    (Stage.READING, Cue.UNREADABLE): Stage.RETRYING,
    (Stage.RETRYING, Cue.AGAIN): Stage.STARTING,
    (Stage.HEARD, Cue.DELETED): Stage.STOPPING,
    (Stage.MOUNTING, Cue.DELETED): Stage.STOPPING,
    (Stage.STARTING, Cue.DELETED): Stage.STOPPING,
    (Stage.READING, Cue.DELETED): Stage.STOPPING,
    (Stage.RETRYING, Cue.DELETED): Stage.STOPPING,
    (Stage.RUNNING, Cue.DELETED): Stage.STOPPING,
    (Stage.STOPPING, Cue.STOPPED): Stage.ENDING,
    (Stage.ENDING, Cue.ENDED): Stage.CLEANING,
    (Stage.RUNNING, Cue.COMPLETED): Stage.CLEANING,
    (Stage.HEARD, Cue.COMPLETED): Stage.CLEANING,
    (Stage.CLEANING, Cue.CLEANED): Stage.FINISHED,
}


class InvalidTransition(SwarmletError):
    """A bug: a cue that the table does not know in this stage."""


class _Record:
    """One pod and where it is."""

    __slots__ = (
        "cleaned_at",
        "deleted_at",
        "died",
        "failures",
        "heard_at",
        "pod",
        "reading",
        "referencing",
        "runs",
        "stage",
    )

    def __init__(self, pod: Pod, now: float) -> None:
        self.pod = pod
        self.heard_at = now
        self.stage = Stage.HEARD
        self.deleted_at = 0.0  # when its deletion was heard of; 0 before
        self.cleaned_at = 0.0  # when its volumes are unmounted; 0 before its containers have ended
        self.reading: Ref | None = None  # what its environment waits for
        self.referencing = False  # whether its objects are referenced
        self.died = False  # whether it ran before the machine was started again
        self.failures = 0  # mounts that had to be tried again
        self.runs: Runs | None = None  # where its containers differ from one another

    def move(self, cue: Cue) -> None:
        stage = TRANSITIONS.get((self.stage, cue))
        if stage is None:
            raise InvalidTransition(
                f"pod {self.pod.namespace}/{self.pod.name}: {cue.name} while {self.stage.name}"
            )
        self.stage = stage


class PodWorkers:
    """All pods of one kubelet."""

    __slots__ = ("_cache", "_context", "_events", "_first_reads", "_node", "_records", "_status", "_volumes")

    def __init__(
        self,
        context: Context,
        cache: ObjectCache,
        volumes: VolumeManager,
        status: StatusManager,
        events: EventRecorder,
        first_reads: FirstReads,
        node: NodeStatus,
    ) -> None:
        self._node = node
        self._context = context
        self._cache = cache
        self._volumes = volumes
        self._status = status
        self._events = events
        self._first_reads = first_reads
        self._records: dict[str, _Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def get(self, uid: str) -> Pod | None:
        record = self._records.get(uid)
        return None if record is None else record.pod

    def count(self, stage: Stage) -> int:
        """Pods in this stage."""
        return sum(record.stage is stage for record in self._records.values())

    def validate(self) -> None:
        """References are what pods add up to; only pods that mount are with the volume manager."""
        records = self._records.values()
        referencing = [record for record in records if record.referencing]
        assert self._cache.references == Counter(
            ref for record in referencing for ref in record.pod.plan.refs
        )
        assert len(self._status) == sum(record.stage is not Stage.HEARD for record in records)
        mounting = {uid for uid, record in self._records.items() if record.stage is Stage.MOUNTING}
        assert self._volumes.mounting == mounting
        assert len(self._first_reads) <= len(self._records) - self.count(Stage.RUNNING)

    # ---- what the watch says -----------------------------------------------------------------------------------------
    def update(self, pod: Pod, member: str, now: float, out: Out) -> None:
        """The pod is new or has changed, says `member`. One that has ended is none of our business."""
        record = self._records.get(pod.uid)
        if record is None:
            if pod.phase in ("Succeeded", "Failed") and not pod.deleted:
                return
            self._records[pod.uid] = _Record(pod, now)
            self._first_reads.begin(pod.uid, member, now, out)
            out.append(Arm((PART, pod.uid), now + self._context.draw(self._context.options.sync_delay_s)))
            return
        record.pod = pod
        self._status.observe(pod, now, out)
        if pod.deleted and (record.stage, Cue.DELETED) in TRANSITIONS and record.stage is not Stage.HEARD:
            self._stop_containers(record, now, out)

    def remove(self, uid: str, now: float, out: Out) -> None:
        """The pod is gone from the API server."""
        record = self._records.pop(uid, None)
        if record is None:
            return
        out.append(Disarm((PART, uid)))
        if record.deleted_at:
            out.append(Sample("pod_deletion_ms", (now - record.deleted_at) * 1000.0))
        self._volumes.drop(record.pod, out)
        self._status.forget(uid)
        self._events.forget(uid)
        self._first_reads.forget(uid)
        self._release(record, now, out)

    # ---- what time says ----------------------------------------------------------------------------------------------
    def fired(self, event: Fired, now: float, out: Out) -> None:
        record = self._records.get(str(event.key[1]))
        if record is None:
            return
        if record.stage is Stage.HEARD:
            self._take_up(record, now, out)
        elif record.stage is Stage.STARTING:
            self._start_containers(record, now, out)
        elif record.stage is Stage.READING:
            assert record.reading is not None
            self._unreadable(record, sync_timeout(record.reading), now, out)
        elif record.stage is Stage.RETRYING:
            record.move(Cue.AGAIN)
            self._start_containers(record, now, out)
        elif record.stage is Stage.RUNNING and record.runs is not None:
            self._happened(record, record.runs.advance(now), now, out)
        elif record.stage is Stage.STOPPING:
            self._stopped(record, now, out)
        elif record.stage is Stage.ENDING:
            self._over(record, Cue.ENDED, _failed(record, self._status.ran(record.pod.uid)), now, out)
        elif record.stage is Stage.CLEANING:
            record.move(Cue.CLEANED)
            self._release(record, now, out)
            self._status.finished(record.pod.uid, now, out)

    def mounted(self, uid: str, failures: int, now: float, out: Out) -> None:
        """The volume manager is done with this pod."""
        record = self._records.get(uid)
        if record is not None and record.stage is Stage.MOUNTING:
            record.failures = failures
            record.move(Cue.MOUNTED)
            self._arm(record, now + self._context.draw(self._context.options.start_delay_s), out)

    def resume(self, uid: str, now: float, out: Out) -> None:
        """An object that this pod waits for has synced."""
        record = self._records.get(uid)
        if record is not None and record.stage is Stage.READING:
            record.move(Cue.AGAIN)
            self._start_containers(record, now, out)
        elif record is not None and record.stage is Stage.MOUNTING:
            self._volumes.resume(uid, now, out)

    def touch(self, now: float, out: Out) -> None:
        """The periodic sync of running pods remounts their volumes."""
        for record in self._records.values():
            if record.stage is Stage.RUNNING:
                self._volumes.touch(record.pod, now, out)

    # ---- steps -------------------------------------------------------------------------------------------------------
    def _arm(self, record: _Record, at: float, out: Out) -> None:
        out.append(Arm((PART, record.pod.uid), at))

    def _take_up(self, record: _Record, now: float, out: Out) -> None:
        """Register with the object cache, report, mount: what the first SyncPod does (kubelet.go). The watches of its
        objects are opened here, 100 ms and more before anything reads them; none for a pod that is to end anyway."""
        pod = record.pod
        record.died = self._context.boots > 0 and pod.phase == "Running"
        over = record.died and pod.plan.restart == "Never"
        if not pod.deleted and not over:
            for ref in pod.plan.refs:
                self._cache.add(ref, now, out)
            record.referencing = True
        if pod.plan.staged:
            record.runs = Runs(pod.plan, self._context)
        self._status.creating(pod, record.heard_at, now, out, record.runs, died=record.died)
        if pod.deleted:
            self._stop_containers(record, now, out)
            return
        if over:
            self._first_reads.forget(pod.uid)
            self._over(record, Cue.COMPLETED, True, now, out)
            return
        record.move(Cue.TAKEN_UP)
        if self._volumes.begin(pod, now, out):
            self.mounted(pod.uid, 0, now, out)

    def _release(self, record: _Record, now: float, out: Out) -> None:
        """UnregisterPod: once its volumes are unmounted, before the final status (kubelet.go, SyncTerminatedPod)."""
        self._volumes.unmounted(record.pod, out)
        if record.referencing:
            record.referencing = False
            for ref in record.pod.plan.refs:
                self._cache.release(ref, now, out)

    def _start_containers(self, record: _Record, now: float, out: Out) -> None:
        """Make the environment, then run. The real texts of events; the image is always there."""
        pod = record.pod
        for source in pod.plan.env:
            assert source.ref is not None
            read = self._cache.read(source.ref, now, out)
            if read is Read.UNSYNCED:
                record.move(Cue.UNSYNCED)
                record.reading = source.ref
                self._cache.wait(source.ref, pod.uid)
                self._arm(record, now + self._context.options.object_wait_s, out)
                return
            if read is Read.MISSING and not source.optional:
                self._unreadable(record, not_found(source.ref), now, out)
                return
            if read is Read.FOUND:
                member, refused_at = self._cache.source_of(source.ref)
                kind = source.ref[0]
                self._first_reads.read(pod.uid, source.ref, kind, member, refused_at, now, out)
        record.move(Cue.STARTED)
        self._first_reads.forget(pod.uid)
        self._status.running(pod.uid, record.failures > 0, now, out)
        if record.died:  # kuberuntime_manager.go, SyncPod: its sandbox is not ready
            changed = "Pod sandbox changed, it will be killed and re-created."
            self._events.normal(pod, "SandboxChanged", changed, now, out)
        if record.runs is not None:
            self._happened(record, record.runs.begin(now), now, out)
            return
        for container in pod.plan.containers:
            self._started(pod, container.image, f"containers{{{container.name}}}", now, out)

    def _started(
        self, pod: Pod, image: str, path: str, now: float, out: Out, *, repeats: bool = False
    ) -> None:
        self._node.pulled(image, now)
        present = f'Container image "{image}" already present on machine and can be accessed by the pod'
        for reason, text in (
            ("Pulled", present),
            ("Created", "Container created"),
            ("Started", "Container started"),
        ):
            self._events.normal(pod, reason, text, now, out, path, repeats=repeats)

    def _happened(self, record: _Record, what: list[tuple[Run, Happening]], now: float, out: Out) -> None:
        """Containers have started or ended."""
        pod, runs = record.pod, record.runs
        assert runs is not None
        for run, happening in what:
            if happening is Happening.STARTED:
                again = run.container.run_s != inf and pod.plan.restart != "Never"
                self._started(pod, run.container.image, run.path, now, out, repeats=again)
            elif happening is Happening.BACKOFF:
                text = (
                    f"Back-off restarting failed container {run.container.name} in pod "
                    f"{pod.name}_{pod.namespace}({pod.uid})"
                )
                self._events.warning(pod, "BackOff", text, now, out, run.path)
        if runs.phase:
            self._volumes.drop(pod, out)
            record.cleaned_at = now + self._context.draw(self._context.options.cleanup_delay_s)
            self._over(record, Cue.COMPLETED, runs.phase == "Failed", now, out)
            return
        if what:
            self._status.progressed(pod.uid, now, out)
        if runs.due != inf:
            self._arm(record, runs.due, out)

    def _stopped(self, record: _Record, now: float, out: Out) -> None:
        uid, runs = record.pod.uid, record.runs
        if runs is not None:
            runs.stop(now)
        record.move(Cue.STOPPED)
        if self._status.ran(uid):
            self._status.stopped(uid, now, out)
        record.cleaned_at = now + self._context.draw(self._context.options.cleanup_delay_s)
        self._arm(record, self._context.next_relist(now), out)

    def _over(self, record: _Record, cue: Cue, failed: bool, now: float, out: Out) -> None:
        """SyncTerminatedPod: says so, then looks each 300 ms whether the volumes are unmounted."""
        record.move(cue)
        self._status.ended(record.pod.uid, failed, now, out)
        looks_at = now if cue is Cue.ENDED else self._context.next_relist(now)
        polls = max(0, ceil((record.cleaned_at - looks_at) / self._context.options.mount_poll_s))
        settled_s = self._context.draw(self._context.options.sync_delay_s)
        self._arm(record, looks_at + polls * self._context.options.mount_poll_s + settled_s, out)

    def _unreadable(self, record: _Record, error: str, now: float, out: Out) -> None:
        """CreateContainerConfigError: the worker comes back after its backoff."""
        record.move(Cue.UNREADABLE)
        record.failures += 1
        containers = record.pod.plan.containers
        path = f"containers{{{containers[0].name}}}" if containers else ""
        self._events.warning(record.pod, "Failed", f"Error: {error}", now, out, path)
        self._arm(record, now + self._context.draw(self._context.options.worker_retry_s), out)

    def _stop_containers(self, record: _Record, now: float, out: Out) -> None:
        """SIGTERM, and SIGKILL after the grace period; nothing to stop ends at once."""
        pod = record.pod
        ran = record.stage is Stage.RUNNING
        record.deleted_at = now
        record.move(Cue.DELETED)
        self._first_reads.forget(pod.uid)
        self._volumes.drop(pod, out)
        self._status.stopping(pod, now, out)
        delay_s = 0.0
        if ran:
            for name, path in _killed(record):
                self._events.normal(pod, "Killing", f"Stopping container {name}", now, out, path)
            delay_s = min(self._context.draw(self._context.options.stop_delay_s), float(pod.grace_s))
        self._arm(record, now + delay_s, out)


def _failed(record: _Record, ran: bool) -> bool:
    """How a deleted pod ends: one that never ran as Failed (status_manager.go, TerminatePod)."""
    return not ran or (record.runs is not None and any(run.code for run in record.runs.main))


def _killed(record: _Record) -> list[tuple[str, str]]:
    """Name and field path of each container that is told to stop."""
    if record.runs is None:
        return [(each.name, f"containers{{{each.name}}}") for each in record.pod.plan.containers]
    running = [
        run for run in (*record.runs.main, *reversed(record.runs.init)) if run.state is RunState.RUNNING
    ]
    return [(run.container.name, run.path) for run in running]
