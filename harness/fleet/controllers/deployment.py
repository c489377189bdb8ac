"""Deployments: their ReplicaSets, and how many pods each may have. kk/pkg/controller/deployment.

`rollout` has the two strategies, `deploymentstatus` what is written back.
"""

from __future__ import annotations

from harness.client.store import Change
from harness.fleet.controllers import deploymentstatus as status_of
from harness.fleet.controllers.api import DEPLOYMENTS, REPLICASETS, ApiError, Steps, SyncError, call
from harness.fleet.controllers.claims import claim
from harness.fleet.controllers.controller import Controller
from harness.fleet.controllers.deploymentsets import (
    HASH,
    REVISION,
    age_of,
    annotate,
    is_scaling,
    new_replicas,
    replace,
    revision_of,
    set_revision,
    sizes,
    with_hash,
    without_hash,
)
from harness.fleet.controllers.podcontrol import (
    find_condition,
    owner_reference,
    selector_of,
    template_hash,
)
from harness.fleet.controllers.replicaset import owner_of
from harness.fleet.controllers.rollout import Rollout
from harness.fleet.controllers.views import Object, PodView, WholeView, whole


class DeploymentController(Controller):
    name = "deployment-controller"
    most_retries = 15

    def subscribe(self) -> None:
        self.deployments = self.watch(DEPLOYMENTS, self.enqueue)
        self.sets = self.watch(REPLICASETS, self.set_changed)
        self.pods = self.watch_pods(self.pod_changed)

    # ---- what is heard -----------------------------------------------------------------------------------------------
    def set_changed(self, change: Change, new: WholeView, old: WholeView | None) -> None:
        for each in (new, old):
            if each is not None:
                owner = owner_of(each, "Deployment")
                if owner is not None:
                    self._enqueue(each.namespace, owner.name, owner.uid)
        if new.controller is not None or change is Change.DELETED:
            return
        if old is None or old.labels is not new.labels or old.controller is not None:
            for each in self.deployments.in_namespace(new.namespace):
                if selector_of(whole(each)["spec"]["selector"]).match(new.labels):
                    self.queue.add(each.key)

    def pod_changed(self, change: Change, new: PodView, old: PodView | None) -> None:
        """deletePod: only a Recreate rollout waits for the last pod to go."""
        if change is not Change.DELETED:
            return
        owner = owner_of(new, "ReplicaSet")
        found = None if owner is None else self.sets.get(f"{new.namespace}/{owner.name}")
        top = None if found is None else owner_of(found, "Deployment")
        if top is None:
            return
        deployment = self.deployments.get(f"{new.namespace}/{top.name}")
        if deployment is not None and b'"Recreate"' in deployment.raw:
            sets = self.sets.owned_by(deployment.uid)
            if not any(self.pods.owned_by(each.uid) for each in sets):
                self.queue.add(deployment.key)

    def _enqueue(self, namespace: str, name: str, uid: str) -> None:
        found = self.deployments.get(f"{namespace}/{name}")
        if found is not None and found.uid == uid:
            self.queue.add(found.key)

    # ---- a sync ------------------------------------------------------------------------------------------------------
    def sync(self, key: str) -> Steps[None]:
        view = self.deployments.get(key)
        if view is None:
            return
        deployment = whole(view)
        spec = deployment["spec"]
        selector = selector_of(spec["selector"])
        candidates = self.sets.owned_by(view.uid) + self.sets.orphans_in(view.namespace)
        claimed = yield from claim(self, deployment, DEPLOYMENTS, REPLICASETS, candidates, selector)
        sets = [whole(each) for each in claimed]
        if "deletionTimestamp" in deployment["metadata"]:
            yield from self.write_status(deployment, sets, self.find_new(deployment, sets))
            return
        yield from self._check_paused(deployment)
        if spec.get("paused") or is_scaling(deployment, sets):
            yield from self._scale_only(deployment, sets)
            return
        rollout = Rollout(self, deployment, sets)
        if spec["strategy"]["type"] == "Recreate":
            yield from rollout.recreate()
        else:
            yield from rollout.rolling()

    def _scale_only(self, deployment: Object, sets: list[Object]) -> Steps[None]:
        """sync(): proportionally, as a paused or a just rescaled Deployment is."""
        new = yield from self.new_set(deployment, sets, create=False)
        rollout = Rollout(self, deployment, sets, new)
        yield from rollout.scale()
        if deployment["spec"].get("paused"):
            yield from rollout.clean_up()
        yield from self.write_status(deployment, rollout.all_sets, new)

    def _check_paused(self, deployment: Object) -> Steps[None]:
        """checkPausedConditions: estimating progress stops while a Deployment is paused."""
        if not status_of.has_deadline(deployment):
            return
        status = deployment.setdefault("status", {})
        progressing = find_condition(status, "Progressing")
        if progressing is not None and progressing["reason"] == "ProgressDeadlineExceeded":
            return
        paused = deployment["spec"].get("paused", False)
        was = progressing is not None and progressing["reason"] == "DeploymentPaused"
        if paused is was:
            return
        reason = "DeploymentPaused" if paused else "DeploymentResumed"
        text = "Deployment is paused" if paused else "Deployment is resumed"
        status_of.put(status, status_of.new("Progressing", "Unknown", reason, text, self.hub.stamp()))
        yield from call(self.update(DEPLOYMENTS, deployment, "status"))

    def write_status(self, deployment: Object, sets: list[Object], new: Object | None) -> Steps[None]:
        """syncDeploymentStatus: counts and the availability, without judging progress."""
        status = status_of.calculate(deployment, sets, new, self.hub.stamp())
        if status != (deployment.get("status") or {}):
            yield from call(self.update(DEPLOYMENTS, {**deployment, "status": status}, "status"))

    # ---- the new ReplicaSet ------------------------------------------------------------------------------------------
    def find_new(self, deployment: Object, sets: list[Object]) -> Object | None:
        """FindNewReplicaSet: the oldest with the Deployment's template."""
        wanted = without_hash(deployment["spec"]["template"])
        by_age = sorted(sets, key=age_of)
        return next((each for each in by_age if without_hash(each["spec"]["template"]) == wanted), None)

    def new_set(self, deployment: Object, sets: list[Object], *, create: bool) -> Steps[Object | None]:
        """getNewReplicaSet: found and brought up to date, or made; None where it is neither."""
        found = self.find_new(deployment, sets)
        others = [each for each in sets if each is not found]
        revision = str(max((revision_of(each) for each in others), default=0) + 1)
        if found is not None:
            return (yield from self._refresh(deployment, found, revision))
        return (yield from self._make(deployment, sets, revision)) if create else None

    def _refresh(self, deployment: Object, found: Object, revision: str) -> Steps[Object]:
        changed = annotate(deployment, found, revision, exists=True)
        if found["spec"].get("minReadySeconds", 0) != deployment["spec"].get("minReadySeconds", 0):
            found["spec"]["minReadySeconds"] = deployment["spec"].get("minReadySeconds", 0)
            changed = True
        if changed:
            response = yield from call(self.update(REPLICASETS, found))
            return replace(found, whole(response.body))
        changed = set_revision(deployment, found["metadata"]["annotations"][REVISION])
        status = deployment.setdefault("status", {})
        if status_of.has_deadline(deployment) and find_condition(status, "Progressing") is None:
            text = f'Found new replica set "{found["metadata"]["name"]}"'
            status_of.put(
                status, status_of.new("Progressing", "True", "FoundNewReplicaSet", text, self.hub.stamp())
            )
            changed = True
        if changed:
            yield from call(self.update(DEPLOYMENTS, deployment, "status"))
        return found

    def _make(self, deployment: Object, sets: list[Object], revision: str) -> Steps[Object]:
        spec, status = deployment["spec"], deployment.setdefault("status", {})
        made = self._new_object(deployment, sets, revision)
        exists = False
        try:
            response = yield from call(self.create(REPLICASETS, deployment["metadata"]["namespace"], made))
            created = whole(response.body)
        except ApiError as error:
            if error.exists:
                created = yield from self._taken(deployment, made)
                exists = True
            else:
                yield from self._create_failed(deployment, made, error)
                raise
        count = made["spec"]["replicas"]
        name = created["metadata"]["name"]
        if not exists and count > 0:
            self.recorder.normal(
                deployment, "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {count}"
            )
        changed = set_revision(deployment, revision)
        if not exists and spec.get("progressDeadlineSeconds") is not None:
            text = f'Created new replica set "{name}"'
            status_of.put(
                status, status_of.new("Progressing", "True", "NewReplicaSetCreated", text, self.hub.stamp())
            )
            changed = True
        if changed:
            yield from call(self.update(DEPLOYMENTS, deployment, "status"))
        return created

    def _new_object(self, deployment: Object, sets: list[Object], revision: str) -> Object:
        spec = deployment["spec"]
        digest = template_hash(spec["template"], (deployment.get("status") or {}).get("collisionCount", 0))
        template = with_hash(spec["template"], digest)
        selector = {
            **spec["selector"],
            "matchLabels": {**(spec["selector"].get("matchLabels") or {}), HASH: digest},
        }
        made: Object = {
            "kind": "ReplicaSet",
            "apiVersion": "apps/v1",
            "metadata": {
                "name": f"{deployment['metadata']['name']}-{digest}",
                "namespace": deployment["metadata"]["namespace"],
                "labels": template["metadata"]["labels"],
                "ownerReferences": [owner_reference(deployment)],
            },
            "spec": {
                "replicas": new_replicas(deployment, sets, 0),
                "minReadySeconds": spec.get("minReadySeconds", 0),
                "selector": selector,
                "template": template,
            },
        }
        annotate(deployment, made, revision, exists=False)
        return made

    def _taken(self, deployment: Object, made: Object) -> Steps[Object]:
        """The name exists: a set of ours that the informer has not shown yet, or a collision of hashes."""
        metadata = deployment["metadata"]
        found = self.sets.get(f"{metadata['namespace']}/{made['metadata']['name']}")
        if found is None:
            raise SyncError(f"{made['metadata']['name']} exists and is not in the informer yet")
        owner = found.controller
        existing = whole(found)
        same = without_hash(existing["spec"]["template"]) == without_hash(deployment["spec"]["template"])
        if owner is not None and owner.uid == metadata["uid"] and same:
            return existing
        status = deployment["status"]
        status["collisionCount"] = status.get("collisionCount", 0) + 1
        yield from call(self.update(DEPLOYMENTS, deployment, "status"))
        raise SyncError(f"{made['metadata']['name']} is another's")

    def _create_failed(self, deployment: Object, made: Object, error: ApiError) -> Steps[None]:
        """An error is shown in the status, except that of a namespace that is going away."""
        if error.terminating or deployment["spec"].get("progressDeadlineSeconds") is None:
            return
        text = f'Failed to create new replica set "{made["metadata"]["name"]}": {error}'
        status_of.put(
            deployment["status"],
            status_of.new("Progressing", "False", "ReplicaSetCreateError", text, self.hub.stamp()),
        )
        try:
            yield from call(self.update(DEPLOYMENTS, deployment, "status"))
        except ApiError:
            return  # the creation's own error is what counts

    def scale_set(self, deployment: Object, found: Object, count: int) -> Steps[Object]:
        """scaleReplicaSetAndRecordEvent; also where only its annotations are behind."""
        before = found["spec"]["replicas"]
        wanted = sizes(deployment)
        notes = found["metadata"].setdefault("annotations", {})
        if before == count and wanted.items() <= notes.items():
            return found
        notes.update(wanted)
        found["spec"]["replicas"] = count
        response = yield from call(self.update(REPLICASETS, found))
        if before != count:
            name = found["metadata"]["name"]
            way = "up" if count > before else "down"
            text = f"Scaled {way} replica set {name} from {before} to {count}"
            self.recorder.normal(deployment, "ScalingReplicaSet", text)
        return replace(found, whole(response.body))
