"""StatefulSets: pods with numbers, in order or all at once. kk/pkg/controller/statefulset.

What one sync does with the pods is `statefulpods`.
"""

from __future__ import annotations

from harness.client.requests import PODS
from harness.client.store import Change
from harness.fleet.controllers import history
from harness.fleet.controllers.api import CLAIMS, REVISIONS, STATEFULSETS, ApiError, Steps, call
from harness.fleet.controllers.claims import claim
from harness.fleet.controllers.controller import Controller
from harness.fleet.controllers.podcontrol import selector_of
from harness.fleet.controllers.replicaset import alike, owner_of
from harness.fleet.controllers.statefulpods import Turn, ordinal_of
from harness.fleet.controllers.views import Object, PodView, WholeView, whole

_CONFLICT_TRIES = 5  # retry.DefaultRetry


class StatefulSetController(Controller):
    name = "statefulset-controller"

    def subscribe(self) -> None:
        self.sets = self.watch(STATEFULSETS, self.enqueue)
        self.pods = self.watch_pods(self.pod_changed)
        self.claims = self.watch(CLAIMS)
        self.revisions = self.watch(REVISIONS)

    def pod_changed(self, change: Change, new: PodView, old: PodView | None) -> None:
        if old is not None and change is Change.MODIFIED and alike(old, new):
            return
        for each in (new, old):
            if each is not None:
                owner = owner_of(each, "StatefulSet")
                found = None if owner is None else self.sets.get(f"{each.namespace}/{owner.name}")
                if owner is not None and found is not None and found.uid == owner.uid:
                    self.queue.add(found.key)
                    if new.ready and b'"minReadySeconds"' in found.raw:
                        self.add_after(found.key, whole(found)["spec"].get("minReadySeconds", 0) + 1)
        if new.controller is None and change is not Change.DELETED and new.labels:
            for found in self.sets.in_namespace(new.namespace):
                if selector_of(whole(found)["spec"]["selector"]).match(new.labels):
                    self.queue.add(found.key)

    # ---- a sync ------------------------------------------------------------------------------------------------------
    def sync(self, key: str) -> Steps[None]:
        view = self.sets.get(key)
        if view is None:
            return
        self.check_fresh(key)
        owner = whole(view)
        selector = selector_of(owner["spec"]["selector"])
        candidates = self.revisions.owned_by(view.uid) + self.revisions.orphans_in(view.namespace)
        found = yield from claim(self, owner, STATEFULSETS, REVISIONS, candidates, selector)
        pods = self.pods.owned_by(view.uid) + self.pods.orphans_in(view.namespace)
        name = owner["metadata"]["name"]
        pods = yield from claim(
            self, owner, STATEFULSETS, PODS, pods, selector, lambda pod: ordinal_of(pod.name, name) >= 0
        )
        yield from self._update(key, owner, [whole(each) for each in found], pods)

    def _update(self, key: str, owner: Object, revisions: list[Object], pods: list[PodView]) -> Steps[None]:
        """UpdateStatefulSet: what was done shows in the status, an error too."""
        old = owner.get("status") or {}
        update = yield from self._update_revision(owner, revisions, old.get("collisionCount", 0))
        wanted = old.get("currentRevision", "")
        current = next((each for each in revisions if each["metadata"]["name"] == wanted), update)
        turn = Turn(self, owner, current, update, pods)
        error: ApiError | None = None
        try:
            yield from turn.run()
        except ApiError as failed:
            error = failed
        status = turn.finished_status()
        yield from self._write_status(owner, status)
        if error is not None:
            raise error
        spec = owner["spec"]
        if spec.get("minReadySeconds", 0) > 0 and status["availableReplicas"] != status["readyReplicas"]:
            self.add_after(key, spec["minReadySeconds"])
        live = {each["metadata"]["labels"].get(history.HASH_LABEL, "") for each in (current, update)}
        live |= {pod.labels.get(history.HASH_LABEL, "") for pod in pods}
        yield from history.truncate(self, owner, revisions, live)

    def _update_revision(self, owner: Object, revisions: list[Object], collisions: int) -> Steps[Object]:
        """getStatefulSetRevisions: the template's revision, the newest of all."""
        equal = history.equal_to(revisions, owner["spec"]["template"])
        newest = history.newest_number(revisions)
        if equal is None:
            return (yield from history.create_revision(self, owner, newest + 1, collisions))
        if equal["revision"] == newest:
            return equal
        equal["revision"] = newest + 1  # a rollback
        response = yield from call(self.update(REVISIONS, equal))
        return whole(response.body)

    def _write_status(self, owner: Object, status: Object) -> Steps[None]:
        """UpdateStatefulSetStatus, with what the informer has after a conflict."""
        old = owner.get("status") or {}
        if all(
            old.get(field, 0 if isinstance(value, int) else "") == value for field, value in status.items()
        ):
            return
        metadata = owner["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        for tries in range(_CONFLICT_TRIES):
            try:
                body = {**owner, "status": {**old, **status}}
                response = yield from call(self.update(STATEFULSETS, body, "status"))
                self.wrote(key, self.sets, response)
                return
            except ApiError as error:
                found: WholeView | None = self.sets.get(key)
                if not error.conflict or found is None or tries + 1 == _CONFLICT_TRIES:
                    raise
                owner = whole(found)
