"""The ReplicaSets of a Deployment: how many pods, which annotations. kk/pkg/controller/deployment/util."""

from __future__ import annotations

from harness.fleet.controllers.podcontrol import percent_of
from harness.fleet.controllers.views import Object

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
HASH = "pod-template-hash"
_NOT_COPIED = {
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAXIMUM,
    "deprecated.deployment.rollback.to",
}


def max_surge(deployment: Object) -> int:
    """Rounded up; 0 for Recreate."""
    return _rolling(deployment)[0]


def max_unavailable(deployment: Object) -> int:
    """Rounded down, and 1 where both would be 0 (ResolveFenceposts)."""
    return min(_rolling(deployment)[1], int(deployment["spec"]["replicas"]))


def _rolling(deployment: Object) -> tuple[int, int]:
    spec = deployment["spec"]
    rolling = spec["strategy"].get("rollingUpdate") if spec["strategy"]["type"] == "RollingUpdate" else None
    if rolling is None or spec["replicas"] == 0:
        return 0, 0
    surge = percent_of(rolling.get("maxSurge"), spec["replicas"], up=True)
    unavailable = percent_of(rolling.get("maxUnavailable"), spec["replicas"], up=False)
    return surge, 1 if surge == 0 and unavailable == 0 else unavailable


def new_replicas(deployment: Object, sets: list[Object], current: int) -> int:
    """NewRSNewReplicas: how many the new set should have next."""
    wanted = int(deployment["spec"]["replicas"])
    if deployment["spec"]["strategy"]["type"] == "Recreate":
        return wanted
    total = sum(each["spec"]["replicas"] for each in sets)
    room = wanted + max_surge(deployment) - total
    return current if room <= 0 else current + min(room, wanted - current)


def sizes(deployment: Object) -> dict[str, str]:
    replicas = deployment["spec"]["replicas"]
    return {DESIRED: str(replicas), MAXIMUM: str(replicas + max_surge(deployment))}


def annotate(deployment: Object, found: Object, revision: str, *, exists: bool) -> bool:
    """SetNewReplicaSetAnnotations; whether anything changed."""
    notes = found["metadata"].setdefault("annotations", {})
    before = dict(notes)
    for name, value in (deployment["metadata"].get("annotations") or {}).items():
        if name not in _NOT_COPIED:
            notes[name] = value
    old = notes.get(REVISION, "")
    if not old or int(old) < int(revision):
        notes[REVISION] = revision
        if exists and old:
            earlier = notes.get(HISTORY, "")
            notes[HISTORY] = f"{earlier},{old}" if earlier else old
    if not exists:
        notes.update(sizes(deployment))
    return bool(notes != before)


def set_revision(deployment: Object, revision: str) -> bool:
    notes = deployment["metadata"].setdefault("annotations", {})
    changed = bool(notes.get(REVISION) != revision)
    notes[REVISION] = revision
    return changed


def is_scaling(deployment: Object, sets: list[Object]) -> bool:
    """isScalingEvent: a set that has pods was last sized for another number."""
    for each in sets:
        desired = (each["metadata"].get("annotations") or {}).get(DESIRED)
        if each["spec"]["replicas"] == 0 or desired is None:
            continue
        if int(desired) != deployment["spec"]["replicas"]:
            return True
    return False


def revision_of(found: Object) -> int:
    text = (found["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def age_of(found: Object) -> tuple[str, str]:
    return found["metadata"].get("creationTimestamp", ""), found["metadata"]["name"]


def without_hash(template: Object) -> Object:
    metadata = template.get("metadata") or {}
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def with_hash(template: Object, digest: str) -> Object:
    metadata = template.get("metadata") or {}
    return {
        **template,
        "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), HASH: digest}},
    }


def replace(old: Object, new: Object) -> Object:
    """Put what the server answered in the place of what was sent, in every list that holds it."""
    old.clear()
    old.update(new)
    return old
