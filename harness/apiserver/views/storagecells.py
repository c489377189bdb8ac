"""What a Table shows of volumes, claims and their classes (kk/pkg/printers/internalversion/printers.go)."""

from __future__ import annotations

from harness.apiserver.strategies.volumes import claim_class
from harness.apiserver.views.printer import AGE, NAME, UNSET, Cells, Object, Printer, age, column, named

_SHORT = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_DEFAULTS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_VOLUME_MODE = column(
    "VolumeMode", priority=1, text="Whether it is used as a file system or as a block device."
)
_ATTRIBUTES_CLASS = column("VolumeAttributesClass", text="The class of the volume's attributes.")


def _modes(modes: list[str] | None) -> str:
    """In upstream's order, each once."""
    return ",".join(short for mode, short in _SHORT.items() if mode in (modes or ()))


def _phase(obj: Object) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    phase: str = (obj.get("status") or {}).get("phase", "")
    return phase


def _volume(obj: Object, now: float) -> Cells:
    spec, claim = obj["spec"], obj["spec"].get("claimRef") or {}
    return [
        obj["metadata"]["name"],
        (spec.get("capacity") or {}).get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        claim_class(obj) or "",
        spec.get("volumeAttributesClassName") or UNSET,
        (obj.get("status") or {}).get("reason", ""),
        age(obj, now),
        spec.get("volumeMode", UNSET),
    ]


def _claim(obj: Object, now: float) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    bound = bool(spec.get("volumeName"))
    return [
        obj["metadata"]["name"],
        _phase(obj),
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "0") if bound else "",
        _modes(status.get("accessModes")) if bound else "",
        claim_class(obj) or "",
        spec.get("volumeAttributesClassName") or UNSET,
        age(obj, now),
        spec.get("volumeMode", UNSET),
    ]


def _class(obj: Object, now: float) -> Cells:
    annotations = obj["metadata"].get("annotations") or {}
    default = any(annotations.get(key) == "true" for key in _DEFAULTS)
    return [
        obj["metadata"]["name"] + (" (default)" if default else ""),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", UNSET),
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _attachment(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    return [
        obj["metadata"]["name"],
        spec.get("attacher", ""),
        (spec.get("source") or {}).get("persistentVolumeName", ""),
        spec.get("nodeName", ""),
        bool((obj.get("status") or {}).get("attached")),
        age(obj, now),
    ]


STORAGE: dict[str, Printer] = {
    "persistentvolumes": Printer(
        [
            NAME,
            column("Capacity", text="The size of the volume."),
            column("Access Modes", text="The ways in which it can be mounted."),
            column("Reclaim Policy", text="What becomes of it once its claim has gone."),
            column("Status", text="Its phase."),
            column("Claim", text="The claim that it is bound to."),
            column("StorageClass", text="The class that it is of."),
            _ATTRIBUTES_CLASS,
            column("Reason", text="Why it is in this phase."),
            AGE,
            _VOLUME_MODE,
        ],
        _volume,
    ),
    "persistentvolumeclaims": Printer(
        [
            NAME,
            column("Status", text="The phase of the claim."),
            column("Volume", text="The volume that it is bound to."),
            column("Capacity", text="The size of that volume."),
            column("Access Modes", text="The ways in which that volume can be mounted."),
            column("StorageClass", text="The class that it asks for."),
            _ATTRIBUTES_CLASS,
            AGE,
            _VOLUME_MODE,
        ],
        _claim,
    ),
    "storageclasses.storage.k8s.io": Printer(
        [
            NAME,
            column("Provisioner", text="Who makes volumes of this class."),
            column("ReclaimPolicy", text="What becomes of its volumes."),
            column("VolumeBindingMode", text="When volumes are made and bound."),
            column("AllowVolumeExpansion", text="Whether its volumes may grow."),
            AGE,
        ],
        _class,
    ),
    "volumeattachments.storage.k8s.io": Printer(
        [
            NAME,
            column("Attacher", "string", text="The driver that attaches the volume.", format_="name"),
            column("PV", text="The volume."),
            column("Node", text="The node that it is attached to."),
            column("Attached", "boolean", text="Whether it is attached."),
            AGE,
        ],
        _attachment,
    ),
    "volumeattributesclasses.storage.k8s.io": Printer(
        [NAME, column("DriverName", text="The driver whose volumes have these attributes."), AGE],
        named(lambda obj: obj.get("driverName", "")),
    ),
}
