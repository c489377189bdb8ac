"""DaemonSets: one pod on each node that it may be on. kk/pkg/controller/daemon."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from harness.client.requests import NODES, PODS
from harness.client.store import Change
from harness.fleet.controllers import history
from harness.fleet.controllers.api import (
    DAEMONSETS,
    REVISIONS,
    ApiError,
    Steps,
    call,
    call_all,
    slow_start,
)
from harness.fleet.controllers.claims import claim
from harness.fleet.controllers.controller import Controller
from harness.fleet.controllers.expectations import Expectations
from harness.fleet.controllers.podcontrol import percent_of, pod_from, selector_of
from harness.fleet.controllers.replicaset import alike, available, created_name, owner_of
from harness.fleet.controllers.views import NodeView, Object, PodView, WholeView, whole
from harness.fleet.placement import Placing
from harness.wire.request import Request, Response

_BURST = 250  # BurstReplicas
_GENERATION = "pod-template-generation"
_TOLERATED = (  # AddOrUpdateDaemonPodTolerations
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


class DaemonSetController(Controller):
    name = "daemon-set-controller"
    component = "daemonset-controller"
    workers = 2

    def subscribe(self) -> None:
        self.expectations = Expectations()
        self.sets = self.watch(DAEMONSETS, self.set_changed)
        self.nodes = self.watch(NODES, self.node_changed)
        self.revisions = self.watch(REVISIONS, self.revision_changed)
        self.pods = self.watch_pods(self.pod_changed)

    # ---- what is heard -----------------------------------------------------------------------------------------------
    def set_changed(self, change: Change, new: WholeView, old: WholeView | None) -> None:
        if change is Change.DELETED:
            self.expectations.forget(new.key)
        self.queue.add(new.key)

    def node_changed(self, change: Change, new: NodeView, old: NodeView | None) -> None:
        if change is Change.MODIFIED and old is not None and new.alike(old):
            return
        for each in self.sets.all():
            self.queue.add(each.key)

    def revision_changed(self, change: Change, new: WholeView, old: WholeView | None) -> None:
        """updateHistory, deleteHistory: one that is deleted is made again."""
        if change is not Change.ADDED:
            self._owner(new)

    def pod_changed(self, change: Change, new: PodView, old: PodView | None) -> None:
        if change is Change.MODIFIED and old is not None and alike(old, new) and old.node == new.node:
            return
        found = self._owner(new)
        if found is None:
            return
        gone = change is Change.DELETED or (new.deleted is not None and (old is None or old.deleted is None))
        if gone:
            self.expectations.deleted(found.key, new.uid)
        elif change is Change.ADDED:
            self.expectations.created(found.key)
        elif old is not None and new.ready and not old.ready and b'"minReadySeconds"' in found.raw:
            self.add_after(found.key, whole(found)["spec"].get("minReadySeconds", 0) + 1)

    def _owner(self, obj: PodView | WholeView) -> WholeView | None:
        owner = owner_of(obj, "DaemonSet")
        found: WholeView | None = None if owner is None else self.sets.get(f"{obj.namespace}/{owner.name}")
        if owner is None or found is None or found.uid != owner.uid:
            return None
        self.queue.add(found.key)
        return found

    # ---- a sync ------------------------------------------------------------------------------------------------------
    def sync(self, key: str) -> Steps[None]:
        view = self.sets.get(key)
        if view is None or view.deleted is not None:
            return
        self.check_fresh(key)
        owner = whole(view)
        current, old = yield from self._history(owner)
        digest = current["metadata"]["labels"].get(history.HASH_LABEL, "")
        if not self.expectations.satisfied(key, self.hub.now):
            yield from self._write_status(key, owner, digest, observe=False)
            return
        error: ApiError | None = None
        try:
            by_node = yield from self._pods_by_node(owner)
            yield from self._manage(key, owner, digest, by_node)
            rolling = owner["spec"]["updateStrategy"]["type"] == "RollingUpdate"
            if rolling and self.expectations.satisfied(key, self.hub.now):
                yield from self._roll(key, owner, digest)
            live = {pod.labels.get(history.HASH_LABEL, "") for each in by_node.values() for pod in each}
            yield from history.truncate(self, owner, old, live)
        except ApiError as failed:
            error = failed
        yield from self._write_status(key, owner, digest, observe=True)
        if error is not None:
            raise error

    def _history(self, owner: Object) -> Steps[tuple[Object, list[Object]]]:
        """constructHistory: the current template's revision, and the others."""
        metadata = owner["metadata"]
        candidates = self.revisions.owned_by(metadata["uid"]) + self.revisions.orphans_in(
            metadata["namespace"]
        )
        selector = selector_of(owner["spec"]["selector"])
        claimed = yield from claim(self, owner, DAEMONSETS, REVISIONS, candidates, selector)
        found = [whole(each) for each in claimed]
        current = history.equal_to(found, owner["spec"]["template"])
        old = [each for each in found if each is not current]
        number = history.newest_number(old) + 1
        if current is None:
            collisions = (owner.get("status") or {}).get("collisionCount", 0)
            return (yield from history.create_revision(self, owner, number, collisions)), old
        if current["revision"] < number:  # a rollback
            current["revision"] = number
            response = yield from call(self.update(REVISIONS, current))
            current = whole(response.body)
        return current, old

    def _pods_by_node(self, owner: Object) -> Steps[dict[str, list[PodView]]]:
        """getNodesToDaemonPods; "" holds those that name no node."""
        metadata = owner["metadata"]
        candidates = self.pods.owned_by(metadata["uid"]) + self.pods.orphans_in(metadata["namespace"])
        selector = selector_of(owner["spec"]["selector"])
        pods = yield from claim(self, owner, DAEMONSETS, PODS, candidates, selector)
        found: dict[str, list[PodView]] = {}
        for pod in pods:
            found.setdefault(pod.node or pod.target, []).append(pod)
        return found

    def _manage(self, key: str, owner: Object, digest: str, by_node: dict[str, list[PodView]]) -> Steps[None]:
        """manage: which nodes need a pod, and which pods must go."""
        placing = _placing(owner)
        needing: list[str] = []
        doomed: list[PodView] = []
        for node in self.nodes.all():
            pods = by_node.get(node.name, [])
            should_run, may_stay = fits(placing, node)
            if not pods:
                if should_run:
                    needing.append(node.name)
                continue
            if not may_stay:
                doomed += [each for each in pods if each.deleted is None]
                continue
            doomed += [each for each in pods if each.phase == "Failed" and each.deleted is None]
            living = sorted((each for each in pods if each.active), key=_seniority)
            doomed += living[1:]
        for name, pods in by_node.items():
            if name and name not in self.nodes.reflector.store:
                doomed += [each for each in pods if not each.node and each.deleted is None]
        yield from self._sync_nodes(key, owner, digest, needing, doomed)

    def _sync_nodes(
        self, key: str, owner: Object, digest: str, needing: list[str], doomed: list[PodView]
    ) -> Steps[None]:
        """syncNodes: creations in growing batches, then all deletions at once."""
        needing, doomed = needing[:_BURST], doomed[:_BURST]
        if not needing and not doomed:
            return
        self.expectations.expect(
            key, self.hub.now, creations=len(needing), deletions=[each.uid for each in doomed]
        )

        def done(_: int, response: Response | None, error: ApiError | None) -> ApiError | None:
            if response is not None:
                self.wrote(key, self.pods, response)
                self.recorder.normal(owner, "SuccessfulCreate", f"Created pod: {created_name(response)}")
                return None
            assert error is not None
            if error.terminating:  # its expectation is left, so none is tried
                return None
            self.recorder.warning(owner, "FailedCreate", f"Error creating: {error}")
            return error

        requests = self._creations(owner, digest, needing)
        successes, error = yield from slow_start(requests, done)
        self.expectations.created(key, len(needing) - successes)
        errors = yield from call_all([self.delete(PODS, each.namespace, each.name) for each in doomed])
        for pod, failed in zip(doomed, errors, strict=True):
            if failed is None:
                self.recorder.normal(owner, "SuccessfulDelete", f"Deleted pod: {pod.name}")
                continue
            self.expectations.deleted(key, pod.uid)
            if not failed.not_found:
                self.recorder.warning(owner, "FailedDelete", f"Error deleting: {failed}")
                error = error or failed
        if error is not None:
            raise error

    def _creations(self, owner: Object, digest: str, nodes: list[str]) -> list[Request]:
        pod = pod_from(owner["spec"]["template"], owner)
        metadata = pod["metadata"]
        generation = (owner["metadata"].get("annotations") or {}).get(
            "deprecated.daemonset.template.generation"
        )
        metadata["labels"] = {**(metadata.get("labels") or {}), history.HASH_LABEL: digest}
        if generation is not None:
            metadata["labels"][_GENERATION] = generation
        spec = pod["spec"] = {**pod["spec"], "tolerations": _tolerations(pod["spec"])}
        requests = []
        for node in nodes:
            spec["affinity"] = _only_on(spec.get("affinity") or {}, node)
            requests.append(self.create(PODS, owner["metadata"]["namespace"], pod))
        return requests

    # ---- rolling update ----------------------------------------------------------------------------------------------
    def _roll(self, key: str, owner: Object, digest: str) -> Steps[None]:
        """rollingUpdate without surge: old pods that are not available go at once, others as maxUnavailable lets."""
        by_node = yield from self._pods_by_node(owner)
        placing = _placing(owner)
        rolling = owner["spec"]["updateStrategy"].get("rollingUpdate") or {}
        min_ready_s, now_s = owner["spec"].get("minReadySeconds", 0), self.hub.wall_s()
        desired = unavailable = 0
        broken: list[PodView] = []
        replaceable: list[PodView] = []
        for node in self.nodes.all():
            if not fits(placing, node)[0]:
                continue
            desired += 1
            pods = [each for each in by_node.get(node.name, []) if each.deleted is None]
            newest = [each for each in pods if each.labels.get(history.HASH_LABEL) == digest]
            outdated = [each for each in pods if each not in newest]
            if not any(available(each, min_ready_s, now_s) for each in pods):
                unavailable += 1
                broken += [] if newest else outdated
            elif not newest:
                replaceable += outdated
        most = percent_of(rolling.get("maxUnavailable", 1), desired, up=True)
        room = max(0, most - unavailable)
        yield from self._sync_nodes(key, owner, digest, [], broken + replaceable[:room])

    # ---- status ------------------------------------------------------------------------------------------------------
    def _write_status(self, key: str, owner: Object, digest: str, *, observe: bool) -> Steps[None]:
        """updateDaemonSetStatus, storeDaemonSetStatus."""
        by_node = yield from self._pods_by_node(owner)
        status = self._status(owner, digest, by_node)
        old = owner.get("status") or {}
        generation = owner["metadata"].get("generation", 0)
        status["observedGeneration"] = generation if observe else old.get("observedGeneration", 0)
        if all(old.get(field, 0) == value for field, value in status.items()):
            return
        metadata = owner["metadata"]
        try:
            response = yield from call(
                self.update(DAEMONSETS, {**owner, "status": {**old, **status}}, "status")
            )
        except ApiError:
            response = yield from call(self.get(DAEMONSETS, metadata["namespace"], metadata["name"]))
            fresh = whole(response.body)
            fresh["status"] = {**(fresh.get("status") or {}), **status}
            response = yield from call(self.update(DAEMONSETS, fresh, "status"))
        self.wrote(key, self.sets, response)
        if status["numberReady"] != status["numberAvailable"]:
            self.add_after(key, owner["spec"].get("minReadySeconds", 0))

    def _status(self, owner: Object, digest: str, by_node: dict[str, list[PodView]]) -> dict[str, int]:
        placing, min_ready_s = _placing(owner), owner["spec"].get("minReadySeconds", 0)
        fields = (
            *("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"),
            *("updatedNumberScheduled", "numberAvailable"),
        )
        counts = dict.fromkeys(fields, 0)
        for node in self.nodes.all():
            pods = by_node.get(node.name, [])
            if not fits(placing, node)[0]:
                counts["numberMisscheduled"] += bool(pods)
                continue
            counts["desiredNumberScheduled"] += 1
            if pods:
                pod = min(pods, key=_seniority)
                counts["currentNumberScheduled"] += 1
                counts["numberReady"] += pod.ready
                counts["numberAvailable"] += available(pod, min_ready_s, self.hub.wall_s())
                counts["updatedNumberScheduled"] += pod.labels.get(history.HASH_LABEL) == digest
        counts["numberUnavailable"] = counts["desiredNumberScheduled"] - counts["numberAvailable"]
        return counts


# ---- helpers ---------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=1024)
def _decode_placing(spec: bytes) -> Placing:
    return msgspec.json.decode(spec, type=Placing)


def _placing(owner: Object) -> Placing:
    spec = owner["spec"]["template"]["spec"]
    found = {name: spec[name] for name in ("nodeSelector", "affinity", "nodeName") if name in spec}
    return _decode_placing(msgspec.json.encode({**found, "tolerations": _tolerations(spec)}))


def fits(placing: Placing, node: NodeView) -> tuple[bool, bool]:
    """Whether a pod should be created there, and whether one that is there may stay (NodeShouldRunDaemonPod)."""
    if placing.node_name and placing.node_name != node.name:
        return False, False
    if not placing.wants(node.name, node.labels):
        return False, False
    return placing.tolerates(node.taints), placing.tolerates(node.taints, ("NoExecute",))


def _tolerations(spec: Object) -> list[Object]:
    given = list(spec.get("tolerations") or ())
    extra = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in _TOLERATED]
    if spec.get("hostNetwork"):
        key = "node.kubernetes.io/network-unavailable"
        extra.append({"key": key, "operator": "Exists", "effect": "NoSchedule"})
    return given + [each for each in extra if each not in given]


def _only_on(affinity: Object, node: str) -> Object:
    """ReplaceDaemonSetPodNodeNameNodeAffinity: the scheduler binds it, to that node only."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    kept = {
        name: value
        for name, value in (affinity.get("nodeAffinity") or {}).items()
        if name.startswith("preferred")
    }
    return {
        **affinity,
        "nodeAffinity": {**kept, "requiredDuringSchedulingIgnoredDuringExecution": required},
    }


def _seniority(pod: PodView) -> tuple[bool, str, str]:
    """Scheduled ones, then older ones first."""
    return not pod.node, pod.created, pod.name
