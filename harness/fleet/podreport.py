"""The status of a pod as the API server is told it. kk/pkg/kubelet/kubelet_pods.go (generateAPIPodStatus, getPhase) and
kk/pkg/kubelet/status/generate.go (conditions)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import msgspec

from harness.fleet.containers import Run, RunState
from harness.fleet.context import Context
from harness.fleet.nodestatus import node_address
from harness.fleet.pods import Container, Pod

_LOST = (137, "ContainerStatusUnknown", "The container could not be located when the pod was terminated")
"""Exit code, reason and message of a container that never ran, of a pod that is over (status_manager.go,
TerminatePod)."""
_DIED = (255, "Unknown", None)
"""The same of a container that went with its machine: what containerd makes of one that it finds without a process
(internal/cri/server/restart.go: unknownExitCode, unknownExitReason)."""


class Phase(Enum):
    """Where a pod is, as far as its status shows it."""

    CREATING = "nothing runs yet"
    DIED = "its containers ended with the machine that they ran on, and nothing runs yet"
    RUNNING = "its containers run"
    STOPPED = "its containers have ended, the pod is not over"
    SUCCEEDED = "over"
    FAILED = "over, and not as it should be"


_OVER = (Phase.SUCCEEDED, Phase.FAILED)
_NOTHING_RUNS = (Phase.CREATING, Phase.DIED)


class Snapshot(msgspec.Struct, gc=False):
    """What there is to say about a pod at one moment. Times are the kubelet's; `runs` are its containers where it has
    more to them than its phase, else empty."""

    pod: Pod
    phase: Phase
    generation: int
    heard_at: float
    started_at: float
    stopped_at: float
    address: int
    runs: tuple[Run, ...] = ()
    before: tuple[int, ...] | None = None
    """Of a pod that ran before its machine was started again: how often each container had been restarted by then, init
    containers first; empty where nobody knows."""

    @property
    def api_phase(self) -> str:
        """status.phase."""
        if self.phase in _OVER:
            return self.phase.name.capitalize()
        if self.phase is Phase.DIED:
            return "Running"  # kubelet_pods.go, getPhase: all are about to be started again
        if self.phase is Phase.CREATING:
            return "Pending"
        if self.runs and not any(run.started_at for run in self.runs if not run.init):
            return "Pending"  # still initialising
        return "Running"

    @property
    def since(self) -> float:
        if self.phase in _NOTHING_RUNS:
            return self.heard_at
        return self.started_at if self.phase is Phase.RUNNING else self.stopped_at

    def kinds(self) -> list[str]:
        """The state of each container, init containers first: waiting, running or terminated."""
        if self.runs:
            ended = self.phase in _OVER or self.phase is Phase.DIED
            return ["terminated" if ended else _kind(run) for run in self.runs]
        kind = {Phase.CREATING: "waiting", Phase.RUNNING: "running"}.get(self.phase, "terminated")
        return [kind] * len(self.pod.plan.containers)

    def restarts(self) -> list[int]:
        """Of each container, init containers first."""
        if self.before is None and not self.runs:
            return [0] * len(self.pod.plan.containers)
        runs = self.runs or (None,) * len(self.pod.plan.containers)
        before = self.before or ()
        found = []
        for place, run in enumerate(runs):
            again = (self.started_at if run is None else run.started_at) > 0
            earlier = before[place] + again if place < len(before) else 0
            found.append(earlier + (0 if run is None else run.restarts))
        return found


def _kind(run: Run) -> str:
    if run.crashed or run.state in (RunState.WAITING, RunState.STARTING):
        return "waiting"
    return "running" if run.state is RunState.RUNNING else "terminated"


# ---- what a server shows ---------------------------------------------------------------------------------------------
class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str
    status: str


class _Some(msgspec.Struct, frozen=True, gc=False):
    """Whatever it says."""


class _State(msgspec.Struct, frozen=True, gc=False):
    waiting: _Some | None = None
    running: _Some | None = None
    terminated: _Some | None = None

    @property
    def kind(self) -> str:
        if self.running is not None:
            return "running"
        return "terminated" if self.terminated is not None else "waiting"


class _ContainerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    state: _State = _State()
    restart_count: int = 0


class ShownStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What is compared of the status that a server has."""

    phase: str = ""
    observed_generation: int = 0
    conditions: tuple[_Condition, ...] = ()
    init_container_statuses: tuple[_ContainerStatus, ...] = ()
    container_statuses: tuple[_ContainerStatus, ...] = ()

    def shows(self, snapshot: Snapshot) -> bool:
        """Whether nothing would change (isPodStatusByKubeletEqual)."""
        if self.phase != snapshot.api_phase or self.observed_generation != snapshot.generation:
            return False
        ready = "True" if _ready(snapshot) else "False"
        if not any(each.type == "Ready" and each.status == ready for each in self.conditions):
            return False
        found = (*self.init_container_statuses, *self.container_statuses)
        if [each.state.kind for each in found] != snapshot.kinds():
            return False
        return sum(snapshot.restarts()) == sum(each.restart_count for each in found)

    def restarts(self) -> tuple[int, ...]:
        """Of each container, init containers first."""
        return tuple(each.restart_count for each in (*self.init_container_statuses, *self.container_statuses))


# ---- the patch -------------------------------------------------------------------------------------------------------
def patch_body(snapshot: Snapshot, context: Context) -> bytes:
    """What is sent to pods/status: a strategic merge patch."""
    pod = snapshot.pod
    conditions = _conditions(snapshot, context)
    host = node_address(context.name)
    status: dict[str, Any] = {
        "$setElementOrder/conditions": [{"type": each["type"]} for each in conditions],
        "conditions": conditions,
        "containerStatuses": list(_containers(snapshot, context, init=False)),
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "observedGeneration": snapshot.generation,
        "phase": snapshot.api_phase,
    }
    if snapshot.before is None:
        status["startTime"] = context.stamp(snapshot.heard_at)
    if pod.plan.init:
        status["initContainerStatuses"] = list(_containers(snapshot, context, init=True))
    if snapshot.phase not in _NOTHING_RUNS:
        address = host if pod.plan.host_network else node_address(context.name, snapshot.address)
        status["podIP"] = address
        status["podIPs"] = [{"ip": address}]
    return msgspec.json.encode({"metadata": {"uid": pod.uid}, "status": status})


def _ready(snapshot: Snapshot) -> bool:
    if snapshot.phase is not Phase.RUNNING:
        return False
    serving = [run for run in snapshot.runs if not run.init or run.container.sidecar]
    return all(run.state is RunState.RUNNING for run in serving)


def _conditions(snapshot: Snapshot, context: Context) -> list[dict[str, Any]]:
    """PodScheduled is the scheduler's: only its observedGeneration is ours."""
    stamp, generation = context.stamp, snapshot.generation
    sandbox = "True" if snapshot.phase is Phase.RUNNING else "False"
    since = stamp(snapshot.since)
    initialised, why_not = _initialised(snapshot)
    common = {"lastProbeTime": None, "observedGeneration": generation}
    ready = "True" if _ready(snapshot) else "False"
    why = _unready(snapshot)
    return [
        {"type": "PodReadyToStartContainers", "status": sandbox, "lastTransitionTime": since, **common},
        {
            "type": "Initialized",
            "status": initialised,
            "lastTransitionTime": stamp(snapshot.heard_at) if not snapshot.runs else since,
            **why_not,
            **common,
        },
        {"type": "Ready", "status": ready, "lastTransitionTime": since, **why, **common},
        {"type": "ContainersReady", "status": ready, "lastTransitionTime": since, **why, **common},
        {"type": "PodScheduled", "status": "True", "observedGeneration": generation},
    ]


def _initialised(snapshot: Snapshot) -> tuple[str, dict[str, Any]]:
    if snapshot.phase is Phase.SUCCEEDED:
        return "True", {"reason": "PodCompleted"}
    missing = [run.container.name for run in snapshot.runs if run.init and not run.done]
    if not missing or snapshot.phase in (*_OVER, Phase.STOPPED, Phase.DIED):
        return "True", {"reason": None, "message": None} if snapshot.runs else {}
    names = " ".join(missing)
    return "False", {
        "reason": "ContainersNotInitialized",
        "message": f"containers with incomplete status: [{names}]",
    }


def _unready(snapshot: Snapshot) -> dict[str, Any]:
    """null takes away what an earlier patch set."""
    if snapshot.phase is Phase.SUCCEEDED:
        return {"reason": "PodCompleted", "message": None}
    if snapshot.phase is Phase.FAILED:
        return {"reason": "PodFailed", "message": None}
    if _ready(snapshot):
        return {"reason": None, "message": None}
    names = [each.name for each in snapshot.pod.plan.containers]
    if snapshot.runs:
        serving = [run for run in snapshot.runs if not run.init or run.container.sidecar]
        names = [run.container.name for run in serving if run.state is not RunState.RUNNING]
    return {
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{' '.join(names)}]",
    }


# ---- containers ------------------------------------------------------------------------------------------------------
def _containers(snapshot: Snapshot, context: Context, *, init: bool) -> Iterator[dict[str, Any]]:
    restarts = snapshot.restarts()
    if snapshot.runs:
        for run, count in zip(snapshot.runs, restarts, strict=True):
            if run.init == init:
                yield _of_run(snapshot, run, count, context)
    elif not init:
        for container, count in zip(snapshot.pod.plan.containers, restarts, strict=True):
            yield {**_plain(snapshot, container, context), "restartCount": count}


def _plain(snapshot: Snapshot, container: Container, context: Context) -> dict[str, Any]:
    """Of a pod whose containers are all alike."""
    phase, stamp = snapshot.phase, context.stamp
    if phase is Phase.CREATING:
        return _status(snapshot, container, {"waiting": {"reason": "ContainerCreating"}}, ran=False)
    if phase is Phase.RUNNING:
        running = {"running": {"startedAt": stamp(snapshot.started_at)}}
        return _died_before(snapshot, _status(snapshot, container, running, up=True), context)
    if not snapshot.started_at:
        ran = snapshot.before is not None
        return _status(snapshot, container, {"terminated": _never_ended(snapshot, context)}, ran=ran)
    ended = _terminated(snapshot, container, 0, snapshot.started_at, snapshot.stopped_at, context)
    return _status(snapshot, container, {"terminated": ended})


def _never_ended(snapshot: Snapshot, context: Context) -> dict[str, Any]:
    """The end of a container of which there is none: it never ran, or went with its machine."""
    died = snapshot.before is not None
    code, reason, message = _DIED if died else _LOST
    at = context.stamp(context.started) if died else None
    return {"exitCode": code, "reason": reason, "message": message, "startedAt": None, "finishedAt": at}


def _died_before(snapshot: Snapshot, status: dict[str, Any], context: Context) -> dict[str, Any]:
    if snapshot.before is not None:
        status["lastState"] = {"terminated": _never_ended(snapshot, context)}
    return status


def _of_run(snapshot: Snapshot, run: Run, restarts: int, context: Context) -> dict[str, Any]:
    kind, container = _kind(run), run.container
    status = _status(snapshot, container, {}, up=kind == "running", ran=bool(run.started_at))
    status["restartCount"] = restarts
    if run.init and not run.container.sidecar:
        status["started"] = False
        status["ready"] = run.done
    last = run.last
    if run.started_at:
        _died_before(snapshot, status, context)
    if snapshot.phase is Phase.DIED:
        status["state"] = {"terminated": _never_ended(snapshot, context)}
    elif kind == "running":
        status["state"] = {"running": {"startedAt": context.stamp(run.started_at)}}
    elif run.crashed:
        pod = snapshot.pod
        text = (
            f"back-off {_duration(run.backoff_s)} restarting failed container={container.name} "
            f"pod={pod.name}_{pod.namespace}({pod.uid})"
        )
        status["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
        last = (run.code, run.started_at, run.ended_at)
    elif kind == "terminated":
        ended = _terminated(snapshot, container, run.code, run.started_at, run.ended_at, context)
        status["state"] = {"terminated": ended}
    elif snapshot.phase in _OVER:
        status["state"] = {"terminated": _never_ended(snapshot, context)}
    else:
        reason = "PodInitializing" if snapshot.pod.plan.init else "ContainerCreating"
        status["state"] = {"waiting": {"reason": reason}}
    if last is not None:
        status["lastState"] = {"terminated": _terminated(snapshot, container, *last, context)}
    return status


def _status(
    snapshot: Snapshot, container: Container, state: dict[str, Any], *, up: bool = False, ran: bool = True
) -> dict[str, Any]:
    status = {
        "name": container.name,
        "state": state,
        "lastState": {},
        "ready": up,
        "restartCount": 0,
        "image": container.image,
        "imageID": container.image if ran else "",
        "started": up,
    }
    if ran:
        status["containerID"] = f"containerd://{snapshot.pod.uid}-{container.name}"
    return status


def _terminated(
    snapshot: Snapshot, container: Container, code: int, started: float, ended: float, context: Context
) -> dict[str, Any]:
    return {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": context.stamp(started),
        "finishedAt": context.stamp(ended),
        "containerID": f"containerd://{snapshot.pod.uid}-{container.name}",
    }


def _duration(seconds: float) -> str:
    """As Go prints it: 10s, 1m20s, 5m0s."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
