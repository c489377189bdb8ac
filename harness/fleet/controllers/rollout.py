"""From the old ReplicaSets to the new one. kk/pkg/controller/deployment/rolling.go, recreate.go, sync.go (scale)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.fleet.controllers import deploymentstatus as status_of
from harness.fleet.controllers.api import DEPLOYMENTS, REPLICASETS, Steps, call, call_all
from harness.fleet.controllers.deploymentsets import (
    DESIRED,
    MAXIMUM,
    REVISION,
    max_surge,
    max_unavailable,
    new_replicas,
)
from harness.fleet.controllers.podcontrol import find_condition
from harness.fleet.controllers.views import Object
from harness.wire import rfc3339

if TYPE_CHECKING:
    from harness.fleet.controllers.deployment import DeploymentController


class Rollout:
    """One sync of one Deployment; `sets` are the ReplicaSets that it manages, changed as they are written."""

    __slots__ = ("controller", "deployment", "new", "sets")

    def __init__(
        self,
        controller: DeploymentController,
        deployment: Object,
        sets: list[Object],
        new: Object | None = None,
    ) -> None:
        self.controller = controller
        self.deployment = deployment
        self.sets = sets
        self.new = new

    @property
    def old_sets(self) -> list[Object]:
        return [each for each in self.sets if each is not self.new]

    @property
    def all_sets(self) -> list[Object]:
        return self.old_sets if self.new is None else [*self.old_sets, self.new]

    # ---- strategies --------------------------------------------------------------------------------------------------
    def rolling(self) -> Steps[None]:
        """rolloutRolling: one step up or one step down a sync."""
        self.new = yield from self.controller.new_set(self.deployment, self.sets, create=True)
        if (yield from self._grow_new()) or (yield from self._shrink_old()):
            yield from self._write_status()
            return
        yield from self._finish()

    def recreate(self) -> Steps[None]:
        """rolloutRecreate: the new set gets its pods when the last old pod is gone."""
        self.new = yield from self.controller.new_set(self.deployment, self.sets, create=False)
        scaled = False
        for each in self.old_sets:
            if each["spec"]["replicas"] > 0:
                yield from self.controller.scale_set(self.deployment, each, 0)
                scaled = True
        if scaled:
            yield from self._write_status()
            return
        if self._old_pods_running():
            yield from self._write_status()
            return
        if self.new is None:
            self.new = yield from self.controller.new_set(self.deployment, self.sets, create=True)
        yield from self._grow_new()
        yield from self._finish()

    def _finish(self) -> Steps[None]:
        status = self.deployment.get("status") or {}
        if status_of.complete(self.deployment, status):
            yield from self.clean_up()
        yield from self._write_status()

    def _old_pods_running(self) -> bool:
        pods = self.controller.pods
        return any(not pod.ended for each in self.old_sets for pod in pods.owned_by(each["metadata"]["uid"]))

    # ---- steps -------------------------------------------------------------------------------------------------------
    def _grow_new(self) -> Steps[bool]:
        """reconcileNewReplicaSet; whether its number changed."""
        assert self.new is not None
        current, wanted = self.new["spec"]["replicas"], self.deployment["spec"]["replicas"]
        if current == wanted:
            return False
        count = wanted if current > wanted else new_replicas(self.deployment, self.all_sets, current)
        self.new = yield from self.controller.scale_set(self.deployment, self.new, count)
        return bool(count != current)

    def _shrink_old(self) -> Steps[bool]:
        """reconcileOldReplicaSets: unhealthy pods first, then as many as availability allows."""
        assert self.new is not None
        old = [each for each in self.old_sets if each["spec"]["replicas"] > 0]
        if not old:
            return False
        total = sum(each["spec"]["replicas"] for each in self.all_sets)
        minimum = self.deployment["spec"]["replicas"] - max_unavailable(self.deployment)
        unready = self.new["spec"]["replicas"] - _available(self.new)
        most = total - minimum - unready
        if most <= 0:
            return False
        cleaned = yield from self._shrink(old, most, unhealthy=True)
        spare = sum(_available(each) for each in self.all_sets) - minimum
        scaled = yield from self._shrink(old, spare, unhealthy=False)
        return cleaned + scaled > 0

    def _shrink(self, old: list[Object], most: int, *, unhealthy: bool) -> Steps[int]:
        """Take up to `most` pods away, oldest set first: those that are not available, or any."""
        taken = 0
        for each in sorted(old, key=lambda found: found["metadata"].get("creationTimestamp", "")):
            count = each["spec"]["replicas"]
            fewer = min(count - _available(each) if unhealthy else count, most - taken)
            if taken < most and fewer > 0:
                yield from self.controller.scale_set(self.deployment, each, count - fewer)
                taken += fewer
        return taken

    def scale(self) -> Steps[None]:
        """scale(): the one active set gets all; of several each gets its share, larger sets first."""
        wanted = self.deployment["spec"]["replicas"]
        active = [each for each in self.all_sets if each["spec"]["replicas"] > 0]
        if len(active) <= 1:
            one = active[0] if active else self.new
            if one is not None and one["spec"]["replicas"] != wanted:
                yield from self.controller.scale_set(self.deployment, one, wanted)
            elif one is not None:
                yield from self.controller.scale_set(self.deployment, one, one["spec"]["replicas"])
            return
        if self.new is not None and _saturated(self.deployment, self.new):
            for each in self.old_sets:
                if each["spec"]["replicas"] > 0:
                    yield from self.controller.scale_set(self.deployment, each, 0)
            return
        if self.deployment["spec"]["strategy"]["type"] == "Recreate":
            return
        total = sum(each["spec"]["replicas"] for each in active)
        allowed = wanted + max_surge(self.deployment) if wanted > 0 else 0
        yield from self._scale_shares(active, allowed - total)

    def _scale_shares(self, active: list[Object], change: int) -> Steps[None]:
        """Proportions by the size that each set was last scaled for (GetReplicaSetProportion); the rest goes to the
        first."""
        ordered = sorted(active, key=lambda each: each["spec"]["replicas"], reverse=True)
        limit = self.deployment["spec"]["replicas"] + max_surge(self.deployment)
        counts, left = [], change
        for each in ordered:
            size = each["spec"]["replicas"]
            annotated = int((each["metadata"].get("annotations") or {}).get(MAXIMUM, limit))
            share = round(size * limit / annotated) - size if annotated and left else 0
            share = min(share, left) if change > 0 else max(share, left)
            counts.append(size + share)
            left -= share
        counts[0] = max(0, counts[0] + left)
        for each, count in zip(ordered, counts, strict=True):
            yield from self.controller.scale_set(self.deployment, each, count)

    def clean_up(self) -> Steps[None]:
        """cleanupDeployment: old sets without pods, beyond the history that is kept."""
        limit = self.deployment["spec"].get("revisionHistoryLimit")
        if limit is None:
            return
        old = [each for each in self.old_sets if "deletionTimestamp" not in each["metadata"]]
        old.sort(key=lambda each: int((each["metadata"].get("annotations") or {}).get(REVISION, "0")))
        spare = [each for each in old[: max(0, len(old) - limit)] if _idle(each)]
        for each in spare:
            metadata = each["metadata"]
            errors = yield from call_all(
                [self.controller.delete(REPLICASETS, metadata["namespace"], metadata["name"])]
            )
            if errors[0] is not None and not errors[0].not_found:
                raise errors[0]

    # ---- status ------------------------------------------------------------------------------------------------------
    def _write_status(self) -> Steps[None]:
        """syncRolloutStatus."""
        hub, deployment = self.controller.hub, self.deployment
        status = status_of.calculate(deployment, self.all_sets, self.new, hub.stamp())
        status_of.judge_progress(deployment, self.all_sets, self.new, status, hub.stamp(), hub.wall_s())
        if status == (deployment.get("status") or {}):
            self._check_again(status)
            return
        yield from call(self.controller.update(DEPLOYMENTS, {**deployment, "status": status}, "status"))

    def _check_again(self, status: Object) -> None:
        """requeueStuckDeployment: when its deadline is over, if nothing happens before."""
        current = find_condition(status, "Progressing")
        if not status_of.has_deadline(self.deployment) or current is None:
            return
        if status_of.complete(self.deployment, status) or current["reason"] == "ProgressDeadlineExceeded":
            return
        since = rfc3339.parse(current["lastUpdateTime"])
        after_s = since + self.deployment["spec"]["progressDeadlineSeconds"] - self.controller.hub.wall_s()
        metadata = self.deployment["metadata"]
        self.controller.add_after(f"{metadata['namespace']}/{metadata['name']}", max(after_s, 0.0) + 1.0)


def _available(found: Object) -> int:
    return int((found.get("status") or {}).get("availableReplicas", 0))


def _saturated(deployment: Object, found: Object) -> bool:
    """IsSaturated: the new set has all that the Deployment wants, and all are available."""
    wanted = deployment["spec"]["replicas"]
    desired = (found["metadata"].get("annotations") or {}).get(DESIRED)
    return bool(found["spec"]["replicas"] == wanted == _available(found) and desired == str(wanted))


def _idle(found: Object) -> bool:
    status = found.get("status") or {}
    return bool(
        status.get("replicas", 0) == 0
        and found["spec"]["replicas"] == 0
        and found["metadata"].get("generation", 0) <= status.get("observedGeneration", 0)
    )
