"""What a kubelet tells the API server about its pods, one request at a time. kk/pkg/kubelet/status/status_manager.go.

A change of a pod's status wakes one worker. It goes through all pods whose latest status was not sent: GET the pod,
PATCH its status where it differs, and, once the pod has finished and is being deleted, DELETE it with grace 0 and its
uid as precondition (syncPod). What failed stays behind: it is tried again at the next wake-up, and at the latest in the
full pass each 10 s, which also mends a status that someone else overwrote.
"""

from __future__ import annotations

import msgspec

from harness.client.machine import Answered, Arm, Disarm, Event, Failed, Fired, Sample, Send
from harness.client.requests import PODS, delete_, get_, patch_
from harness.fleet.containers import Runs
from harness.fleet.context import Context, Out, parsed
from harness.fleet.podreport import Phase, ShownStatus, Snapshot, patch_body
from harness.fleet.pods import Pod

PART = "status"


class _Entry:
    """The status of one pod: `version` is the latest, `sent` what the server has."""

    __slots__ = (
        "address",
        "before",
        "finished",
        "generation",
        "heard_at",
        "phase",
        "pod",
        "removed",
        "retried",
        "runs",
        "sent",
        "sent_phase",
        "started_at",
        "stopped_at",
        "version",
    )

    def __init__(self, pod: Pod, heard_at: float, address: int) -> None:
        self.pod = pod
        self.heard_at = heard_at
        self.address = address
        self.phase = Phase.CREATING
        self.before: tuple[int, ...] | None = None  # as a snapshot has it
        self.runs: Runs | None = None  # where its containers differ from one another
        self.sent_phase = ""
        self.generation = pod.generation
        self.started_at = self.stopped_at = 0.0
        self.finished = False
        self.removed = False  # its DELETE was answered
        self.retried = False  # whether a volume had to be mounted again
        self.version = 1
        self.sent = 0

    @property
    def due(self) -> bool:
        """Whether there is something to say: a newer status, or the deletion of a pod that has finished."""
        return self.sent < self.version or (self.finished and self.pod.deleted and not self.removed)

    @property
    def overwritten(self) -> bool:
        """Whether the API server shows another phase than it was told."""
        return self.sent_phase != "" and not self.finished and self.pod.phase != self.sent_phase

    def snapshot(self) -> Snapshot:
        """What there is to say now."""
        return Snapshot(
            self.pod,
            self.phase,
            self.generation,
            self.heard_at,
            self.started_at,
            self.stopped_at,
            self.address,
            () if self.runs is None else (*self.runs.init, *self.runs.main),
            self.before,
        )


class _Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    uid: str = ""


class _View(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata
    status: ShownStatus = ShownStatus()


_DECODER = msgspec.json.Decoder(_View)


class StatusManager:
    """Keys: ("status", "get" | "patch" | "delete", uid) and the full pass's timer ("status", "reconcile")."""

    __slots__ = (
        "_addresses",
        "_batch",
        "_context",
        "_current",
        "_entries",
        "_finished",
        "_full",
        "_saying",
        "_signalled",
        "_ticking",
        "_version",
    )

    def __init__(self, context: Context) -> None:
        self._context = context
        self._entries: dict[str, _Entry] = {}
        self._batch: list[str] = []  # a deque begins with 0.6 KB
        self._addresses = 0
        self._signalled = self._full = self._ticking = False
        self._current = ""  # uid of the pod being synced, with the status as it was when that began:
        self._version = 0
        self._saying: Snapshot | None = None
        self._finished = False

    def __len__(self) -> int:
        return len(self._entries)

    # ---- what the pod worker says ------------------------------------------------------------------------------------
    def creating(
        self,
        pod: Pod,
        heard_at: float,
        now: float,
        out: Out,
        runs: Runs | None = None,
        *,
        died: bool = False,
    ) -> None:
        """A new pod; `heard_at` is when the kubelet learnt of it, `runs` are its containers where they differ.
        `died`: they ran before the machine was started again."""
        self._addresses += 1
        entry = self._entries[pod.uid] = _Entry(pod, heard_at, self._addresses)
        entry.runs = runs
        if died:
            entry.phase, entry.before = Phase.DIED, ()
        self._signalled = True
        self._wake(now, out)

    def running(self, uid: str, retried: bool, now: float, out: Out) -> None:
        """The sandbox is there, and those of its containers that may run."""
        entry = self._entries[uid]
        entry.phase, entry.started_at, entry.retried = Phase.RUNNING, now, retried
        self._changed(entry, now, out)

    def progressed(self, uid: str, now: float, out: Out) -> None:
        """Something has happened to one of its containers."""
        self._changed(self._entries[uid], now, out)

    def stopping(self, pod: Pod, now: float, out: Out) -> None:
        """Deletion was asked for: it has made a new generation, which is said to be observed."""
        entry = self._entries[pod.uid]
        entry.pod, entry.generation = pod, pod.generation
        self._changed(entry, now, out)

    def ran(self, uid: str) -> bool:
        """Whether it ever had a container."""
        return self._entries[uid].started_at > 0

    def stopped(self, uid: str, now: float, out: Out) -> None:
        entry = self._entries[uid]
        entry.phase, entry.stopped_at = Phase.STOPPED, now
        self._changed(entry, now, out)

    def ended(self, uid: str, failed: bool, now: float, out: Out) -> None:
        """The pod is over."""
        entry = self._entries[uid]
        entry.phase = Phase.FAILED if failed else Phase.SUCCEEDED
        entry.stopped_at = entry.stopped_at or now
        self._changed(entry, now, out)

    def finished(self, uid: str, now: float, out: Out) -> None:
        """Nothing of the pod is left on the node: it may be deleted."""
        entry = self._entries[uid]
        entry.finished = True
        self._changed(entry, now, out)

    def observe(self, pod: Pod, now: float, out: Out) -> None:
        """The watch shows this pod; a phase other than the one sent is mended by the next full pass."""
        entry = self._entries.get(pod.uid)
        if entry is not None:
            entry.pod = pod
            if pod.uid != self._current and (entry.overwritten or entry.due):
                self._tick(now, out)

    def forget(self, uid: str) -> None:
        self._entries.pop(uid, None)

    # ---- the machine -------------------------------------------------------------------------------------------------
    def handle(self, event: Event, now: float, out: Out) -> None:
        if isinstance(event, Fired):
            self._ticking = False
            self._full = True
            self._wake(now, out)
        elif event.key[2] == self._current and isinstance(event, Answered | Failed):
            entry = self._entries.get(self._current)
            if entry is not None and isinstance(event, Answered):
                self._answered(entry, event, now, out)
            else:
                self._next(now, out)

    def stop(self, out: Out) -> None:
        if self._ticking:
            self._ticking = False
            out.append(Disarm((PART, "reconcile")))

    # ---- the worker --------------------------------------------------------------------------------------------------
    def _changed(self, entry: _Entry, now: float, out: Out) -> None:
        entry.version += 1
        self._signalled = True
        self._wake(now, out)

    def _wake(self, now: float, out: Out) -> None:
        """While it works, one wake-up is remembered (a channel of capacity 1)."""
        if not self._current:
            self._next(now, out)

    def _next(self, now: float, out: Out) -> None:
        """Go on with the batch, or with a new one if there was a wake-up meanwhile."""
        self._current = ""
        while self._batch or self._refill():
            entry = self._entries.get(self._batch.pop(0))
            if entry is not None:
                self._begin(entry, out)
                return
        if any(entry.due for entry in self._entries.values()):
            self._tick(now, out)

    def _refill(self) -> bool:
        if self._signalled or self._full:
            for uid, entry in self._entries.items():
                if entry.due or (self._full and entry.overwritten):
                    self._batch.append(uid)
        self._signalled = self._full = False
        return bool(self._batch)

    def _begin(self, entry: _Entry, out: Out) -> None:
        self._current, self._version, self._finished = entry.pod.uid, entry.version, entry.finished
        self._saying = entry.snapshot()
        out.append(Send((PART, "get", self._current), get_(PODS, entry.pod.namespace, entry.pod.name)))

    def _tick(self, now: float, out: Out) -> None:
        if not self._ticking:
            self._ticking = True
            period_s = self._context.options.status_reconcile_s
            out.append(Arm((PART, "reconcile"), self._context.next_tick(period_s, now)))

    def _answered(self, entry: _Entry, event: Answered, now: float, out: Out) -> None:
        step, response = event.key[1], event.response
        if step == "get":
            busy = self._read(entry, event, now, out)
        elif step == "patch":
            busy = response.ok and self._reported(entry, now, out)
        else:
            busy = False
            entry.removed = response.ok
        if not busy:
            self._next(now, out)

    def _read(self, entry: _Entry, event: Answered, now: float, out: Out) -> bool:
        """True where something more was sent for this pod."""
        view = parsed(_DECODER, event.response)
        if view is None or view.metadata.uid != entry.pod.uid:
            return False  # refused, or gone, which the watch will say; until it does the full pass asks again
        assert self._saying is not None
        if entry.before == ():  # how often containers were restarted so far, only the server knows
            entry.before = self._saying.before = view.status.restarts()
        if view.status.shows(self._saying):
            return self._reported(entry, now, out)
        pod = entry.pod
        body = patch_body(self._saying, self._context)
        request = patch_(PODS, pod.namespace, pod.name, body, subresource="status")
        out.append(Send((PART, "patch", pod.uid), request))
        return True

    def _reported(self, entry: _Entry, now: float, out: Out) -> bool:
        """The server has this status; True where the pod's deletion was sent."""
        assert self._saying is not None
        entry.sent = self._version
        phase = self._saying.api_phase
        if phase == "Running" and entry.sent_phase != "Running" and entry.before is None:
            labels = (("mount", "retried" if entry.retried else "first"),)
            out.append(Sample("pod_startup_ms", (now - entry.heard_at) * 1000.0, labels))
        entry.sent_phase = phase
        pod = entry.pod
        if not (self._finished and pod.deleted):
            return False
        request = delete_(PODS, pod.namespace, pod.name, grace_period_s=0, uid=pod.uid)
        out.append(Send((PART, "delete", pod.uid), request))
        return True
