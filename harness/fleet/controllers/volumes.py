"""Claims and volumes: which claim gets which volume, and what becomes of it. kk/pkg/controller/volume/persistentvolume.

One key at a time, as upstream's single goroutines. Beside what the binder of kube-controller-manager does, this one
stands in for what else a cluster runs, unless that is told to be there (`Hub.provisioned_elsewhere`): for a class with
a provisioner it makes the volume that an external provisioner would, and it deletes volumes whose reclaim policy is
Delete. A claim of a class that waits for its first consumer is bound once the scheduler's annotation names a node.

Keys: ``claim|namespace/name``, ``volume|name``.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.client.requests import ResourceRef
from harness.client.store import Change
from harness.fleet.claimnotes import BIND_COMPLETED, LATE, PROVISIONED_BY, waits_for_node
from harness.fleet.controllers.api import CLAIMS, STORAGECLASSES, VOLUMES, Steps, SyncError, call, call_all
from harness.fleet.controllers.controller import Controller
from harness.fleet.controllers.podcontrol import selector_of
from harness.fleet.controllers.views import Object, WholeView, whole
from harness.wire.quantity import parse_quantity

BOUND_BY = "pv.kubernetes.io/bound-by-controller"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_ALL = "written"  # one worker writes, so one key is enough
_RESYNC_S = 15.0  # pvclaimbinder-sync-period


class VolumeBinder(Controller):
    name = "persistent-volume-binder"
    component = "persistentvolume-controller"
    workers = 1
    period_s = _RESYNC_S

    def pump(self) -> None:
        """Nothing before the informers show what was written: upstream writes that into its own caches. The event of
        the write, which makes its object due again, is what it waits for."""
        try:
            self.check_fresh(_ALL)
        except SyncError:
            return
        super().pump()

    def subscribe(self) -> None:
        self.claims = self.watch(CLAIMS, self.claim_changed)
        self.volumes = self.watch(VOLUMES, self.volume_changed)
        self.classes = self.watch(STORAGECLASSES)
        self._unbound: set[str] = set()  # claims that wait
        self._free: dict[str, None] = {}  # volumes without a claim

    # ---- what is heard -----------------------------------------------------------------------------------------------
    def claim_changed(self, change: Change, new: WholeView, old: WholeView | None) -> None:
        if change is Change.DELETED:
            self._unbound.discard(new.key)
            volume = whole(new)["spec"].get("volumeName")
            if volume:
                self.queue.add(f"volume|{volume}")
            return
        self.queue.add(f"claim|{new.key}")

    def volume_changed(self, change: Change, new: WholeView, old: WholeView | None) -> None:
        self._free.pop(new.name, None)
        if change is Change.DELETED:
            return
        claimed = whole(new)["spec"].get("claimRef") is not None
        if not claimed:
            self._free[new.name] = None
        self.queue.add(f"volume|{new.name}")

    def tick(self) -> None:
        """The periodic sync: claims that nothing fitted are looked at again."""
        for key in self._unbound:
            self.queue.add(f"claim|{key}")

    # ---- a sync ------------------------------------------------------------------------------------------------------
    def sync(self, key: str) -> Steps[None]:
        what, _, name = key.partition("|")
        if what == "claim":
            yield from self._sync_claim(name)
        else:
            yield from self._sync_volume(name)

    def _sync_claim(self, key: str) -> Steps[None]:
        """syncUnboundClaim, syncBoundClaim."""
        view: WholeView | None = self.claims.get(key)
        if view is None:
            return
        claim = whole(view)
        notes = claim["metadata"].get("annotations") or {}
        if BIND_COMPLETED in notes:
            self._unbound.discard(key)
            yield from self._check_bound(claim)
            return
        self._unbound.add(key)
        wanted = claim["spec"].get("volumeName")
        if wanted:
            found: WholeView | None = self.volumes.get(wanted)
            if found is None:
                return
            volume = whole(found)
            reference = volume["spec"].get("claimRef")
            if reference is None or _is_for(reference, claim):
                yield from self._bind(volume, claim)
            return
        found_class = self._class_of(claim)
        if found_class is not None and waits_for_node(claim, found_class):
            self.recorder.normal(claim, LATE, "waiting for first consumer to be created before binding")
            return
        match = self._match(claim)
        if match is not None:
            yield from self._bind(match, claim)
        else:
            yield from self._provision(claim)

    def _class_of(self, claim: Object) -> Object | None:
        name = claim["spec"].get("storageClassName")
        found: WholeView | None = self.classes.get(name) if name else None
        return None if found is None else whole(found)

    def _match(self, claim: Object) -> Object | None:
        """FindMatchingVolume: a volume that names the claim, else the smallest that suffices."""
        best: Object | None = None
        spec = claim["spec"]
        wanted = parse_quantity(spec["resources"]["requests"]["storage"]) or 0
        modes, name = set(spec.get("accessModes") or ()), spec.get("storageClassName") or ""
        selector = selector_of(spec["selector"]) if spec.get("selector") else None
        for each in self.volumes.all():
            if each.name not in self._free and claim["metadata"]["name"].encode() not in each.raw:
                continue
            volume = whole(each)
            held = volume["spec"]
            reference = held.get("claimRef")
            if reference is not None:
                if _is_for(reference, claim):
                    return volume
                continue
            size = parse_quantity(held["capacity"]["storage"]) or 0
            if (held.get("storageClassName") or "") != name or size < wanted or each.deleted is not None:
                continue
            if not modes <= set(held.get("accessModes") or ()):
                continue
            if held.get("volumeMode", "Filesystem") != spec.get("volumeMode", "Filesystem"):
                continue
            if selector is not None and not selector.match(each.labels):
                continue
            if best is None or size < (parse_quantity(best["spec"]["capacity"]["storage"]) or 0):
                best = volume
        return best

    # ---- binding -----------------------------------------------------------------------------------------------------
    def _bind(self, volume: Object, claim: Object) -> Steps[None]:
        """bind(): four writes, each left out where it has been done."""
        reference = volume["spec"].get("claimRef")
        if reference is None or reference.get("uid") != claim["metadata"]["uid"]:
            if reference is None:
                volume["metadata"].setdefault("annotations", {})[BOUND_BY] = "yes"
            volume["spec"]["claimRef"] = _reference(claim)
            volume = yield from self._put(VOLUMES, volume)
            self._free.pop(volume["metadata"]["name"], None)
        if (volume.get("status") or {}).get("phase") != "Bound":
            volume["status"] = {"phase": "Bound"}
            volume = yield from self._put(VOLUMES, volume, "status")
        name = volume["metadata"]["name"]
        notes = claim["metadata"].setdefault("annotations", {})
        if not claim["spec"].get("volumeName"):
            notes[BOUND_BY] = "yes"
        if claim["spec"].get("volumeName") != name or BIND_COMPLETED not in notes:
            claim["spec"]["volumeName"] = name
            notes[BIND_COMPLETED] = "yes"
            claim = yield from self._put(CLAIMS, claim)
        if (claim.get("status") or {}).get("phase") != "Bound":
            claim["status"] = {
                "phase": "Bound",
                "accessModes": volume["spec"].get("accessModes") or [],
                "capacity": volume["spec"]["capacity"],
            }
            yield from self._put(CLAIMS, claim, "status")
        self._unbound.discard(f"{claim['metadata']['namespace']}/{claim['metadata']['name']}")

    def _check_bound(self, claim: Object) -> Steps[None]:
        """A claim whose volume has gone is lost."""
        name = claim["spec"].get("volumeName", "")
        found: WholeView | None = self.volumes.get(name)
        phase = (claim.get("status") or {}).get("phase")
        if found is None:
            if phase != "Lost" and claim["metadata"].get("deletionTimestamp") is None:
                claim["status"] = {"phase": "Lost"}
                yield from self._put(CLAIMS, claim, "status")
                self.recorder.warning(
                    claim,
                    "ClaimLost",
                    "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
                )
            return
        volume = whole(found)
        if phase != "Bound" or (volume.get("status") or {}).get("phase") != "Bound":
            reference = volume["spec"].get("claimRef")
            if reference is not None and _is_for(reference, claim):
                yield from self._bind(volume, claim)

    def _provision(self, claim: Object) -> Steps[None]:
        """provisionClaim for an external provisioner, and what that then does."""
        found = self._class_of(claim)
        if found is None or found["provisioner"] == _NO_PROVISIONER:
            if not claim["spec"].get("storageClassName"):
                text = "no persistent volumes available for this claim and no storage class is set"
                self.recorder.normal(claim, "FailedBinding", text)
            return
        provisioner = found["provisioner"]
        notes = claim["metadata"].setdefault("annotations", {})
        if notes.get(PROVISIONER) != provisioner:
            notes[PROVISIONER] = provisioner
            notes[f"volume.beta.kubernetes.io/{PROVISIONER.partition('/')[2]}"] = provisioner
            claim = yield from self._put(CLAIMS, claim)
        text = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by "
            "the system administrator. If volume creation is delayed, please verify that the provisioner is running "
            "and correctly registered."
        )
        self.recorder.normal(claim, "ExternalProvisioning", text)
        if provisioner in self.hub.provisioned_elsewhere:
            return
        yield from call(self.create(VOLUMES, None, _provisioned(claim, found, self.hub.labels)))

    # ---- volumes -----------------------------------------------------------------------------------------------------
    def _sync_volume(self, name: str) -> Steps[None]:
        """syncVolume."""
        view: WholeView | None = self.volumes.get(name)
        if view is None:
            return
        volume = whole(view)
        reference = volume["spec"].get("claimRef")
        phase = (volume.get("status") or {}).get("phase")
        if reference is None or not reference.get("uid"):
            if phase != "Available" and view.deleted is None:
                volume["status"] = {"phase": "Available"}
                yield from self._put(VOLUMES, volume, "status")
            for key in self._unbound:
                self.queue.add(f"claim|{key}")
            return
        key = f"{reference['namespace']}/{reference['name']}"
        claim: WholeView | None = self.claims.get(key)
        if claim is not None and claim.uid == reference["uid"]:
            if key in self._unbound:
                self.queue.add(f"claim|{key}")
            return
        yield from self._reclaim(volume, phase)

    def _reclaim(self, volume: Object, phase: str | None) -> Steps[None]:
        """Its claim is gone."""
        if phase not in ("Released", "Failed"):
            volume["status"] = {"phase": "Released"}
            volume = yield from self._put(VOLUMES, volume, "status")
        notes = volume["metadata"].get("annotations") or {}
        if notes.get(PROVISIONED_BY) in self.hub.provisioned_elsewhere:
            return
        policy = volume["spec"].get("persistentVolumeReclaimPolicy")
        if policy == "Delete" and "deletionTimestamp" not in volume["metadata"]:
            (error,) = yield from call_all([self.delete(VOLUMES, None, volume["metadata"]["name"])])
            if error is not None and not error.not_found:
                raise error

    def _put(self, ref: ResourceRef, obj: Object, subresource: str = "") -> Steps[Object]:
        response = yield from call(self.update(ref, obj, subresource))
        self.wrote(_ALL, self.volumes if ref is VOLUMES else self.claims, response)
        return whole(response.body)


def _reference(claim: Object) -> Object:
    metadata = claim["metadata"]
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }


def _is_for(reference: Object, claim: Object) -> bool:
    """IsVolumeBoundToClaim; a reference without a uid is for whichever claim has the name."""
    metadata = claim["metadata"]
    if (reference.get("namespace"), reference.get("name")) != (metadata["namespace"], metadata["name"]):
        return False
    return not reference.get("uid") or bool(reference["uid"] == metadata["uid"])


def _provisioned(claim: Object, found: Object, labels: Mapping[str, str]) -> Object:
    """What a CSI provisioner makes."""
    spec = claim["spec"]
    metadata: Object = {
        "name": f"pvc-{claim['metadata']['uid']}",
        "annotations": {PROVISIONED_BY: found["provisioner"]},
    }
    if labels:
        metadata["labels"] = dict(labels)
    return {
        "kind": "PersistentVolume",
        "apiVersion": "v1",
        "metadata": metadata,
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": found.get("reclaimPolicy", "Delete"),
            "storageClassName": found["metadata"]["name"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "claimRef": _reference(claim),
            "csi": {"driver": found["provisioner"], "volumeHandle": claim["metadata"]["uid"]},
        },
    }
