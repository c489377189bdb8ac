"""The cells of one pod: readiness, restarts and the status that sums up its containers (printers.go printPod)."""

from __future__ import annotations

from typing import Any

from harness.apiserver.views.ages import human, since
from harness.wire.rfc3339 import parse

Object = dict[str, Any]
_NONE = "<none>"


def pod_cells(pod: Object, now: float) -> list[Any]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    containers = status.get("containerStatuses") or []
    ready = sum(1 for item in containers if item.get("ready") and "running" in (item.get("state") or {}))
    gates = spec.get("readinessGates") or []
    conditions = {item.get("type"): item.get("status") for item in status.get("conditions") or ()}
    passed = sum(conditions.get(gate.get("conditionType")) == "True" for gate in gates)
    addresses = [item.get("ip", "") for item in status.get("podIPs") or ()]
    return [
        pod["metadata"]["name"],
        f"{ready}/{len(spec.get('containers') or ())}",
        pod_reason(pod),
        _restarts(containers, now),
        since(pod["metadata"].get("creationTimestamp"), now),
        (addresses[0] if addresses else status.get("podIP")) or _NONE,
        spec.get("nodeName") or _NONE,
        status.get("nominatedNodeName") or _NONE,
        f"{passed}/{len(gates)}" if gates else _NONE,
    ]


def _restarts(containers: list[Object], now: float) -> str:
    count = sum(item.get("restartCount", 0) for item in containers)
    ends = [
        ((item.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        for item in containers
        if item.get("lastState")
    ]
    latest = max((parse(end) for end in ends if end), default=0.0)
    return f"{count} ({human(now - latest)} ago)" if count and latest else str(count)


def pod_reason(pod: Object) -> str:
    """The STATUS column."""
    status = pod.get("status") or {}
    reason = status.get("reason") or status.get("phase", "")
    gated = [item for item in status.get("conditions") or () if item.get("reason") == "SchedulingGated"]
    if gated:
        reason = "SchedulingGated"
    waiting = _initializing(pod)
    if waiting:
        reason = waiting
    else:
        reason = _running_reason(pod, reason)
    if "deletionTimestamp" in pod["metadata"]:
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return reason


def _initializing(pod: Object) -> str:
    """``Init:1/2`` and the like while init containers run, "" otherwise."""
    statuses = (pod.get("status") or {}).get("initContainerStatuses") or []
    total = len((pod.get("spec") or {}).get("initContainers") or ())
    for index, item in enumerate(statuses):
        state = item.get("state") or {}
        ended = state.get("terminated")
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if item.get("started") and "running" in state:  # a sidecar
            continue
        if ended is not None:
            return "Init:" + (ended.get("reason") or _exit(ended))
        reason = (state.get("waiting") or {}).get("reason", "")
        return f"Init:{reason}" if reason and reason != "PodInitializing" else f"Init:{index}/{total}"
    return ""


def _exit(ended: Object) -> str:
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _running_reason(pod: Object, reason: str) -> str:
    status = pod.get("status") or {}
    running = False
    for item in reversed(status.get("containerStatuses") or ()):
        state = item.get("state") or {}
        waiting, ended = state.get("waiting"), state.get("terminated")
        if waiting and waiting.get("reason"):
            reason = waiting["reason"]
        elif ended is not None:
            reason = ended.get("reason") or _exit(ended)
        elif item.get("ready") and "running" in state:
            running = True
    if reason == "Completed" and running:
        ready = any(
            item.get("type") == "Ready" and item.get("status") == "True"
            for item in status.get("conditions") or ()
        )
        return "Running" if ready else "NotReady"
    return reason
