"""Which claims and volumes are a provisioner's, and the volume that it makes of a claim."""

from __future__ import annotations

from collections.abc import Mapping

from harness.fleet.claimnotes import PROVISIONED_BY, notes_of
from harness.fleet.controllers.views import Object

PROVISIONERS = (
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
)
FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"


def asks(claim: Object, driver: str) -> bool:
    """Whether the controller manager has left the claim to this driver, and it has no volume yet."""
    notes = notes_of(claim)
    return not claim["spec"].get("volumeName") and driver in (notes.get(name) for name in PROVISIONERS)


def to_delete(volume: Object, driver: str) -> bool:
    """shouldDelete: its claim is gone, it is ours, and it is not gone itself but for others' finalizers."""
    metadata, spec = volume["metadata"], volume["spec"]
    if metadata.get("deletionTimestamp") and FINALIZER not in (metadata.get("finalizers") or ()):
        return False
    return (
        (volume.get("status") or {}).get("phase") == "Released"
        and spec.get("persistentVolumeReclaimPolicy") == "Delete"
        and notes_of(volume).get(PROVISIONED_BY) == driver
    )


def volume_name(claim: Object) -> str:
    return f"pvc-{claim['metadata']['uid']}"


def volume_of(claim: Object, storage_class: Object, *, finalizer: bool, labels: Mapping[str, str]) -> Object:
    """The volume as it is saved."""
    metadata, spec = claim["metadata"], claim["spec"]
    made: Object = {
        "name": volume_name(claim),
        "annotations": {PROVISIONED_BY: storage_class["provisioner"]},
    }
    if labels:
        made["labels"] = dict(labels)
    if finalizer:
        made["finalizers"] = [FINALIZER]
    return {
        "kind": "PersistentVolume",
        "apiVersion": "v1",
        "metadata": made,
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "storageClassName": storage_class["metadata"]["name"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "csi": {"driver": storage_class["provisioner"], "volumeHandle": metadata["uid"]},
        },
    }
