"""ReplicaSets and ReplicationControllers: so many pods of one template. kk/pkg/controller/replicaset, replication."""

from __future__ import annotations

from functools import cmp_to_key
from math import log2
from typing import Any, ClassVar

import msgspec

from harness.client.requests import PODS, ResourceRef
from harness.client.store import Change
from harness.fleet.controllers.api import (
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    ApiError,
    Steps,
    call,
    call_all,
    slow_start,
)
from harness.fleet.controllers.claims import claim
from harness.fleet.controllers.controller import Controller
from harness.fleet.controllers.expectations import Expectations
from harness.fleet.controllers.podcontrol import (
    condition,
    find_condition,
    pod_from,
    pods_available,
    selector_of,
)
from harness.fleet.controllers.views import Object, PodView, View, WholeView, whole
from harness.wire import rfc3339
from harness.wire.request import Response
from harness.wire.selectors import LabelSelector

_BURST = 500  # BurstReplicas
_STATUS_RETRIES = 1  # statusUpdateRetries


class ReplicaSetController(Controller):
    """The one loop behind both kinds; `ReplicationManager` says what differs."""

    name = "replicaset-controller"
    ref: ClassVar[ResourceRef] = REPLICASETS
    kind: ClassVar[str] = "ReplicaSet"

    def subscribe(self) -> None:
        self.expectations = Expectations()
        self.sets = self.watch(self.ref, self.set_changed)
        self.pods = self.watch_pods(self.pod_changed)

    # ---- what is heard -----------------------------------------------------------------------------------------------
    def set_changed(self, change: Change, new: WholeView, old: WholeView | None) -> None:
        if change is Change.DELETED:
            self.expectations.forget(new.key)
        self.queue.add(new.key)

    def pod_changed(self, change: Change, new: PodView, old: PodView | None) -> None:
        """addPod, updatePod and deletePod: a pod that has just got its deletionTimestamp counts as deleted."""
        if change is Change.DELETED:
            self._pod_gone(new)
            return
        if old is not None and old.resource_version == new.resource_version:
            return
        if old is not None and alike(old, new):
            return
        before = None if old is None else old.controller
        if new.deleted is not None and (old is None or old.deleted is None):
            self._pod_gone(new)
            if old is not None and old.labels is not new.labels:
                self._pod_gone(old)
            return
        owner = new.controller
        if before is not None and (owner is None or owner.uid != before.uid):
            self._enqueue_owner(new.namespace, before.kind, before.name, before.uid)
        if owner is not None:
            found = self._enqueue_owner(new.namespace, owner.kind, owner.name, owner.uid)
            if found is not None:
                if change is Change.ADDED:
                    self.expectations.created(found.key)
                elif old is not None and new.ready and not old.ready:
                    self._recheck_availability(found)
        elif old is None or old.labels is not new.labels or before is not None:
            self._enqueue_matching(new)

    def _pod_gone(self, pod: PodView) -> None:
        owner = pod.controller
        if owner is not None:
            found = self._enqueue_owner(pod.namespace, owner.kind, owner.name, owner.uid)
            if found is not None:
                self.expectations.deleted(found.key, pod.uid)

    def _enqueue_owner(self, namespace: str, kind: str, name: str, uid: str) -> WholeView | None:
        if kind != self.kind:
            return None
        found: WholeView | None = self.sets.get(f"{namespace}/{name}")
        if found is None or found.uid != uid:
            return None
        self.queue.add(found.key)
        return found

    def _recheck_availability(self, found: WholeView) -> None:
        """A pod that became ready becomes available later, without a further event."""
        if b'"minReadySeconds"' in found.raw:
            seconds = whole(found)["spec"].get("minReadySeconds", 0)
            if seconds > 0:
                self.add_after(found.key, seconds + 1)

    def _enqueue_matching(self, pod: PodView) -> None:
        """An orphan may be adopted by any set of its namespace that selects it."""
        if pod.labels:
            for each in self.sets.in_namespace(pod.namespace):
                if self.selector(whole(each)).match(pod.labels):
                    self.queue.add(each.key)

    # ---- what differs by kind ----------------------------------------------------------------------------------------
    def selector(self, obj: Object) -> LabelSelector:
        return selector_of(obj["spec"]["selector"])

    def related_pods(self, owner: Object) -> list[PodView]:
        """Pods of all sets of the same owner, which a node should not have twice (getIndirectlyRelatedPods)."""
        refs = owner["metadata"].get("ownerReferences") or ()
        uid = next((each["uid"] for each in refs if each.get("controller")), "")
        if not uid:
            return self.pods.owned_by(owner["metadata"]["uid"])
        siblings = [each for each in self.sets.owned_by(uid) if isinstance(each, WholeView)]
        return [pod for each in siblings for pod in self.pods.owned_by(each.uid)]

    # ---- a sync ------------------------------------------------------------------------------------------------------
    def sync(self, key: str) -> Steps[None]:
        view = self.sets.get(key)
        if view is None:
            return
        self.check_fresh(key)
        owner = whole(view)
        satisfied = self.expectations.satisfied(key, self.hub.now)
        selector = self.selector(owner)
        candidates = self.pods.owned_by(view.uid) + self.pods.orphans_in(view.namespace)
        terminating = sum(each.deleted is not None and not each.ended for each in candidates)
        active = [each for each in candidates if each.active]
        active = yield from claim(self, owner, self.ref, PODS, active, selector)
        error: ApiError | None = None
        if satisfied and "deletionTimestamp" not in owner["metadata"]:
            error = yield from self._manage(key, owner, active)
        status = self._status(owner, active, terminating, error)
        yield from self._write_status(owner, status)
        if error is not None:
            raise error
        spec = owner["spec"]
        seconds = spec.get("minReadySeconds", 0)
        if seconds > 0 and status["readyReplicas"] == spec["replicas"] != status["availableReplicas"]:
            self.add_after(key, seconds)

    def _manage(self, key: str, owner: Object, active: list[PodView]) -> Steps[ApiError | None]:
        """manageReplicas."""
        missing = owner["spec"]["replicas"] - len(active)
        if missing > 0:
            return (yield from self._create_pods(key, owner, min(missing, _BURST)))
        if missing < 0:
            return (yield from self._delete_pods(key, owner, active, min(-missing, _BURST)))
        return None

    def _create_pods(self, key: str, owner: Object, count: int) -> Steps[ApiError | None]:
        self.expectations.expect(key, self.hub.now, creations=count)
        namespace = owner["metadata"]["namespace"]
        request = self.create(PODS, namespace, pod_from(owner["spec"]["template"], owner))
        failed = 0

        def done(_: int, response: Response | None, error: ApiError | None) -> ApiError | None:
            nonlocal failed
            if response is not None:
                self.wrote(key, self.pods, response)
                self.recorder.normal(owner, "SuccessfulCreate", f"Created pod: {_name(response)}")
                return None
            assert error is not None
            if error.terminating:  # any creation will fail: its expectation is left, so none is tried
                return None
            failed += 1
            self.recorder.warning(owner, "FailedCreate", f"Error creating: {error}")
            return error

        successes, error = yield from slow_start([request] * count, done)
        skipped = count - successes
        if skipped > 0:  # those that failed and those that were never sent
            self.expectations.created(key, skipped)
        return error

    def _delete_pods(
        self, key: str, owner: Object, active: list[PodView], count: int
    ) -> Steps[ApiError | None]:
        if count < len(active):
            related = self.related_pods(owner)
            active = ranked(active, related, self.hub.wall_s())[:count]
        self.expectations.expect(key, self.hub.now, deletions=[each.uid for each in active])
        errors = yield from call_all([self.delete(PODS, each.namespace, each.name) for each in active])
        first: ApiError | None = None
        for pod, error in zip(active, errors, strict=True):
            if error is None:
                self.recorder.normal(owner, "SuccessfulDelete", f"Deleted pod: {pod.name}")
                continue
            self.expectations.deleted(key, pod.uid)
            if not error.not_found:
                self.recorder.warning(owner, "FailedDelete", f"Error deleting: {error}")
                first = first or error
        return first

    # ---- status ------------------------------------------------------------------------------------------------------
    def _status(
        self, owner: Object, active: list[PodView], terminating: int, error: ApiError | None
    ) -> Object:
        """calculateStatus."""
        spec, old = owner["spec"], owner.get("status") or {}
        wanted = (spec["template"].get("metadata") or {}).get("labels") or {}
        min_ready_s, now_s = spec.get("minReadySeconds", 0), self.hub.wall_s()
        status: Object = {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(wanted.items() <= each.labels.items() for each in active),
            "readyReplicas": sum(each.ready for each in active),
            "availableReplicas": sum(available(each, min_ready_s, now_s) for each in active),
            "observedGeneration": owner["metadata"].get("generation", 0),
        }
        if self.ref is REPLICASETS:
            status["terminatingReplicas"] = terminating
        conditions = [each for each in old.get("conditions") or () if each["type"] != "ReplicaFailure"]
        failure = find_condition(old, "ReplicaFailure")
        if error is not None and failure is None:
            reason = "FailedCreate" if spec["replicas"] > len(active) else "FailedDelete"
            failure = condition("ReplicaFailure", "True", reason, str(error), self.hub.stamp())
        if error is not None and failure is not None:
            conditions.append(failure)
        if conditions:
            status["conditions"] = conditions
        return status

    def _write_status(self, owner: Object, status: Object) -> Steps[None]:
        """updateReplicaSetStatus: one more try with a fresh object."""
        old = owner.get("status") or {}
        same = all(old.get(field, 0) == value for field, value in status.items() if field != "conditions")
        if same and (old.get("conditions") or []) == status.get("conditions", []):
            return
        metadata = owner["metadata"]
        for tries in range(_STATUS_RETRIES + 1):
            try:
                response = yield from call(self.update(self.ref, {**owner, "status": status}, "status"))
                self.wrote(f"{metadata['namespace']}/{metadata['name']}", self.sets, response)
                return
            except ApiError as error:
                if tries == _STATUS_RETRIES:
                    raise
                failed = error
            response = yield from call(self.get(self.ref, metadata["namespace"], metadata["name"]))
            owner = whole(response.body)
            if owner["metadata"]["uid"] != metadata["uid"]:
                raise failed


class ReplicationManager(ReplicaSetController):
    name = "replication-controller"
    component = "replication-controller"
    ref = REPLICATIONCONTROLLERS
    kind = "ReplicationController"

    def selector(self, obj: Object) -> LabelSelector:
        return selector_of({"matchLabels": obj["spec"]["selector"]})


# ---- helpers ---------------------------------------------------------------------------------------------------------
class _Named(msgspec.Struct, gc=False):
    name: str = ""


class _Created(msgspec.Struct, gc=False):
    metadata: _Named


_decode_created = msgspec.json.Decoder(_Created).decode


def _name(response: Response) -> str:
    """Of the object that was created."""
    return _decode_created(response.body).metadata.name


created_name = _name


def alike(old: PodView, new: PodView) -> bool:
    """Whether a sync would come to the same: upstream syncs all the same, and over each binding and each IP of
    thousands of pods that costs more than everything else."""
    return (
        old.phase == new.phase
        and old.ready is new.ready
        and old.deleted == new.deleted
        and old.labels is new.labels
        and old.owners is new.owners
        and old.uid == new.uid
    )


def available(pod: PodView, min_ready_s: int, now_s: float) -> bool:
    since = rfc3339.parse(pod.ready_since) if min_ready_s and pod.ready_since else None
    return pods_available(pod.ready, since, min_ready_s, now_s)


_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def ranked(pods: list[PodView], related: list[PodView], now_s: float) -> list[PodView]:
    """Those to delete first come first (ActivePodsWithRanks, kk/pkg/controller/controller_utils.go)."""
    on_node: dict[str, int] = {}
    for each in related:
        if each.active:
            on_node[each.node] = on_node.get(each.node, 0) + 1

    def compare(a: PodView, b: PodView) -> int:
        for left, right in (
            (bool(a.node), bool(b.node)),
            (_PHASES.get(a.phase, 0), _PHASES.get(b.phase, 0)),
            (a.ready, b.ready),
            (a.delete_cost, b.delete_cost),
            (-on_node.get(a.node, 0), -on_node.get(b.node, 0)),
        ):
            if left != right:
                return -1 if left < right else 1
        if a.ready and a.ready_since != b.ready_since:
            order = _by_age(a.ready_since, b.ready_since, a.uid, b.uid, now_s)
            if order:
                return order
        if a.restarts != b.restarts:
            return -1 if a.restarts > b.restarts else 1
        return _by_age(a.created, b.created, a.uid, b.uid, now_s)

    return sorted(pods, key=cmp_to_key(compare))


def _by_age(a: str, b: str, a_uid: str, b_uid: str, now_s: float) -> int:
    """Younger first; ages of one power of two count as equal, then the uid decides (LogarithmicScaleDown)."""
    if not a or not b:
        return 0 if a == b else (-1 if not a else 1)
    ranks = [_rank(now_s - rfc3339.parse(each)) for each in (a, b)]
    if ranks[0] == ranks[1]:
        return (a_uid > b_uid) - (a_uid < b_uid)
    return -1 if ranks[0] < ranks[1] else 1


def _rank(age_s: float) -> int:
    return int(log2(age_s * 1e9)) if age_s * 1e9 > 1 else 0


def owner_of(view: View, kind: str) -> Any:
    """The controlling owner where it is of `kind`."""
    owner = view.controller
    return owner if owner is not None and owner.kind == kind else None
