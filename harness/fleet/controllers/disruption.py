"""How many pods a PodDisruptionBudget lets be evicted. kk/pkg/controller/disruption."""

from __future__ import annotations

from harness.client.requests import ResourceRef
from harness.client.store import Change
from harness.fleet.controllers.api import (
    DISRUPTIONBUDGETS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    STATEFULSETS,
    Steps,
    call,
)
from harness.fleet.controllers.controller import Controller
from harness.fleet.controllers.informers import Informer
from harness.fleet.controllers.podcontrol import condition, find_condition, percent_of, selector_of
from harness.fleet.controllers.replicaset import alike
from harness.fleet.controllers.views import Object, PodView, WholeView, whole

_SCALES: dict[str, ResourceRef] = {
    "ReplicaSet": REPLICASETS,
    "StatefulSet": STATEFULSETS,
    "ReplicationController": REPLICATIONCONTROLLERS,
}


class DisruptionController(Controller):
    name = "disruption-controller"
    component = "controllermanager"
    workers = 1

    def subscribe(self) -> None:
        self.budgets = self.watch(DISRUPTIONBUDGETS, self.enqueue)
        self.pods = self.watch_pods(self.pod_changed)
        self.scales: dict[str, Informer] = {kind: self.watch(ref) for kind, ref in _SCALES.items()}

    def pod_changed(self, change: Change, new: PodView, old: PodView | None) -> None:
        if change is Change.MODIFIED and old is not None and alike(old, new):
            return
        for each in self.budgets.in_namespace(new.namespace):
            if selector_of(whole(each)["spec"].get("selector")).match(new.labels):
                self.queue.add(each.key)

    def sync(self, key: str) -> Steps[None]:
        view: WholeView | None = self.budgets.get(key)
        if view is None:
            return
        budget = whole(view)
        selector = selector_of(budget["spec"].get("selector"))
        pods = [each for each in self.pods.selected(view.namespace, selector.match) if not each.ended]
        expected = self._expected(pods)
        desired = _desired(budget["spec"], expected)
        healthy = sum(each.ready and each.deleted is None for each in pods)
        allowed = max(0, healthy - desired) if expected > 0 else 0
        status = self._status(budget, expected, desired, healthy, allowed)
        if status != (budget.get("status") or {}):
            yield from call(self.update(DISRUPTIONBUDGETS, {**budget, "status": status}, "status"))

    def _expected(self, pods: list[PodView]) -> int:
        """getExpectedScale: what the owners of the pods are to have; a pod without one counts for itself."""
        owners: dict[str, int] = {}
        for pod in pods:
            owner = pod.controller
            informer = None if owner is None else self.scales.get(owner.kind)
            found = (
                None if informer is None or owner is None else informer.get(f"{pod.namespace}/{owner.name}")
            )
            if owner is None or found is None:
                owners[pod.uid] = 1
            elif owner.uid not in owners:
                owners[owner.uid] = int(whole(found)["spec"].get("replicas", 0))
        return sum(owners.values())

    def _status(self, budget: Object, expected: int, desired: int, healthy: int, allowed: int) -> Object:
        old = budget.get("status") or {}
        enough = allowed > 0
        found = find_condition(old, "DisruptionAllowed")
        reason = "SufficientPods" if enough else "InsufficientPods"
        if found is None or found["reason"] != reason:
            found = condition(
                "DisruptionAllowed", "True" if enough else "False", reason, "", self.hub.stamp()
            )
        found["observedGeneration"] = budget["metadata"].get("generation", 0)
        status: Object = {
            "observedGeneration": budget["metadata"].get("generation", 0),
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "conditions": [found],
        }
        if old.get("disruptedPods"):
            status["disruptedPods"] = old["disruptedPods"]
        return status


def _desired(spec: Object, expected: int) -> int:
    """desiredHealthy."""
    if spec.get("maxUnavailable") is not None:
        return max(0, expected - percent_of(spec["maxUnavailable"], expected, up=True))
    return percent_of(spec.get("minAvailable"), expected, up=True)
