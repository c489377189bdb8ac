"""Claims and volumes that are in use are not taken away: their finalizers. kk/pkg/controller/volume/pvcprotection,
pvprotection. Admission adds the finalizers; here they go once nothing uses the object."""

from __future__ import annotations

import msgspec

from harness.client.requests import PODS, list_
from harness.client.store import Change
from harness.fleet.controllers.api import CLAIMS, VOLUMES, Steps, call
from harness.fleet.controllers.controller import Controller
from harness.fleet.controllers.views import PodView, WholeView, decode_pod, whole

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"


class _Pods(msgspec.Struct, gc=False):
    items: list[msgspec.Raw] | None = None


_decode_pods = msgspec.json.Decoder(_Pods).decode


class ClaimProtection(Controller):
    name = "pvc-protection-controller"
    workers = 1

    def subscribe(self) -> None:
        self.claims = self.watch(CLAIMS, self.claim_changed)
        self.pods = self.watch_pods(self.pod_changed)
        self._users: dict[str, set[str]] = {}  # claims to the uids of pods that use them

    def claim_changed(self, change: Change, new: WholeView, old: WholeView | None) -> None:
        if change is not Change.DELETED and new.deleted is not None:
            self.queue.add(new.key)

    def pod_changed(self, change: Change, new: PodView, old: PodView | None) -> None:
        for name in new.claims:
            key = f"{new.namespace}/{name}"
            if change is Change.DELETED or new.ended:
                users = self._users.get(key)
                if users is not None:
                    users.discard(new.uid)
                    if not users:
                        del self._users[key]
                found = self.claims.get(key)
                if found is not None and found.deleted is not None:
                    self.queue.add(key)
            else:
                self._users.setdefault(key, set()).add(new.uid)

    def sync(self, key: str) -> Steps[None]:
        claim: WholeView | None = self.claims.get(key)
        if claim is None or claim.deleted is None or CLAIM_FINALIZER not in claim.finalizers:
            return
        if key in self._users or (yield from self._used_by_server(claim)):
            return
        body = whole(claim)
        body["metadata"]["finalizers"] = [each for each in claim.finalizers if each != CLAIM_FINALIZER]
        yield from call(self.update(CLAIMS, body))

    def _used_by_server(self, claim: WholeView) -> Steps[bool]:
        """askAPIServer: the informer may be behind a pod that has just been created."""
        response = yield from call(list_(PODS, claim.namespace, client=self.name))
        pods = [decode_pod(bytes(each)) for each in _decode_pods(response.body).items or ()]
        return any(claim.name in pod.claims and not pod.ended for pod in pods)


class VolumeProtection(Controller):
    name = "pv-protection-controller"
    workers = 1

    def subscribe(self) -> None:
        self.volumes = self.watch(VOLUMES, self.volume_changed)

    def volume_changed(self, change: Change, new: WholeView, old: WholeView | None) -> None:
        if change is not Change.DELETED and new.deleted is not None:
            self.queue.add(new.key)

    def sync(self, key: str) -> Steps[None]:
        volume: WholeView | None = self.volumes.get(key)
        if volume is None or volume.deleted is None or VOLUME_FINALIZER not in volume.finalizers:
            return
        body = whole(volume)
        if (body.get("status") or {}).get("phase") == "Bound":
            return
        body["metadata"]["finalizers"] = [each for each in volume.finalizers if each != VOLUME_FINALIZER]
        yield from call(self.update(VOLUMES, body))
