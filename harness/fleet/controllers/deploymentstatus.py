"""What a Deployment's status says. kk/pkg/controller/deployment/sync.go (calculateStatus), progress.go."""

from __future__ import annotations

from harness.fleet.controllers.deploymentsets import max_unavailable
from harness.fleet.controllers.podcontrol import find_condition
from harness.fleet.controllers.views import Object
from harness.wire import rfc3339

_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
_NEVER = 2**31 - 1  # a progressDeadlineSeconds that means none


def has_deadline(deployment: Object) -> bool:
    """HasProgressDeadline."""
    return deployment["spec"].get("progressDeadlineSeconds") not in (None, _NEVER)


def new(kind: str, status: str, reason: str, message: str, now: str) -> Object:
    return {
        "type": kind,
        "status": status,
        "lastUpdateTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }


def put(status: Object, condition: Object) -> None:
    """SetDeploymentCondition: nothing changes where status and reason are the same; a transition time only where the
    status changes."""
    current = find_condition(status, condition["type"])
    if current is not None:
        if current["status"] == condition["status"] and current["reason"] == condition["reason"]:
            return
        if current["status"] == condition["status"]:
            condition["lastTransitionTime"] = current["lastTransitionTime"]
    drop(status, condition["type"])
    status["conditions"].append(condition)


def drop(status: Object, kind: str) -> None:
    status["conditions"] = [each for each in status.get("conditions") or () if each["type"] != kind]


def calculate(deployment: Object, sets: list[Object], newest: Object | None, now: str) -> Object:
    """Counts and the Available condition; other conditions are taken over. Numbers that are 0 are left out, as Go
    writes them."""
    available = _sum(sets, "availableReplicas")
    total = sum(each["spec"]["replicas"] for each in sets)
    counts = {
        "replicas": _sum(sets, "replicas"),
        "updatedReplicas": 0 if newest is None else (newest.get("status") or {}).get("replicas", 0),
        "readyReplicas": _sum(sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total - available),
    }
    old = deployment.get("status") or {}
    status: Object = {"observedGeneration": deployment["metadata"].get("generation", 0)}
    status |= {name: count for name, count in counts.items() if count}
    terminating = [(each.get("status") or {}).get("terminatingReplicas") for each in sets]
    if all(each is not None for each in terminating):
        status["terminatingReplicas"] = sum(each or 0 for each in terminating)
    if old.get("collisionCount"):
        status["collisionCount"] = old["collisionCount"]
    status["conditions"] = [dict(each) for each in old.get("conditions") or ()]
    put(status, _available(deployment, available, now))
    return status


def _sum(sets: list[Object], field: str) -> int:
    return sum((each.get("status") or {}).get(field, 0) for each in sets)


def _available(deployment: Object, available: int, now: str) -> Object:
    if available >= deployment["spec"]["replicas"] - max_unavailable(deployment):
        text = "Deployment has minimum availability."
        return new("Available", "True", "MinimumReplicasAvailable", text, now)
    text = "Deployment does not have minimum availability."
    return new("Available", "False", "MinimumReplicasUnavailable", text, now)


def complete(deployment: Object, status: Object) -> bool:
    """DeploymentComplete."""
    wanted = deployment["spec"]["replicas"]
    counts = [status.get(field, 0) for field in ("updatedReplicas", "replicas", "availableReplicas")]
    observed, generation = status.get("observedGeneration", 0), deployment["metadata"].get("generation", 0)
    return all(count == wanted for count in counts) and bool(observed >= generation)


def progressing(old: Object, status: Object) -> bool:
    """DeploymentProgressing: more updated, more ready or available, or fewer old ones than before."""

    def old_ones(each: Object) -> int:
        return int(each.get("replicas", 0) - each.get("updatedReplicas", 0))

    more = any(
        status.get(field, 0) > old.get(field, 0)
        for field in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    return more or old_ones(status) < old_ones(old)


def timed_out(deployment: Object, status: Object, now_s: float) -> bool:
    """DeploymentTimedOut: its last progress is longer ago than the deadline."""
    condition = find_condition(status, "Progressing")
    if condition is None or condition["reason"] == "NewReplicaSetAvailable":
        return False
    if condition["reason"] == "ProgressDeadlineExceeded":
        return True
    since = rfc3339.parse(condition["lastUpdateTime"])
    return bool(since + deployment["spec"]["progressDeadlineSeconds"] < now_s)


def judge_progress(
    deployment: Object, sets: list[Object], newest: Object | None, status: Object, now: str, now_s: float
) -> None:
    """The Progressing condition of `status` (syncRolloutStatus)."""
    if not has_deadline(deployment):
        drop(status, "Progressing")
    current = find_condition(status, "Progressing")
    done = (
        status.get("replicas", 0) == status.get("updatedReplicas", 0)
        and current is not None
        and current["reason"] == "NewReplicaSetAvailable"
    )
    if has_deadline(deployment) and not done:
        name = deployment["metadata"]["name"]
        what = f'Deployment "{name}"' if newest is None else f'ReplicaSet "{newest["metadata"]["name"]}"'
        if complete(deployment, status):
            put(
                status,
                new(
                    "Progressing",
                    "True",
                    "NewReplicaSetAvailable",
                    f"{what} has successfully progressed.",
                    now,
                ),
            )
        elif progressing(deployment.get("status") or {}, status):
            condition = new("Progressing", "True", "ReplicaSetUpdated", f"{what} is progressing.", now)
            if current is not None and current["status"] == "True":
                condition["lastTransitionTime"] = current["lastTransitionTime"]
            drop(status, "Progressing")
            status["conditions"].append(condition)
        elif timed_out(deployment, status, now_s):
            put(
                status,
                new(
                    "Progressing",
                    "False",
                    "ProgressDeadlineExceeded",
                    f"{what} has timed out progressing.",
                    now,
                ),
            )
    _take_failure(sets, newest, status)


def _take_failure(sets: list[Object], newest: Object | None, status: Object) -> None:
    """The ReplicaFailure of the new set, else of any."""
    ordered = [each for each in sets if each is newest] + [each for each in sets if each is not newest]
    for each in ordered:
        found = find_condition(each.get("status") or {}, "ReplicaFailure")
        if found is not None:
            put(status, {**found, "lastUpdateTime": found["lastTransitionTime"]})
            return
    drop(status, "ReplicaFailure")
