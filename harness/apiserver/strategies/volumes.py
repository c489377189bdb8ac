"""Persistent volumes and claims (kk/pkg/registry/core/persistentvolume{,claim}, kk/pkg/apis/core/validation).

Left out of the validation: the fields of each in-tree volume source, all of which but CSI's are served by drivers now.
"""

from __future__ import annotations

from harness.apiserver.apierrors import (
    FieldError,
    forbidden_value,
    invalid_value,
    not_supported,
    required,
)
from harness.apiserver.strategies.base import Context, Object, Strategy, drop_empty, keep
from harness.apiserver.strategies.names import dns_subdomain, faults_of
from harness.wire.quantity import parse_quantity

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_RECLAIM = ("Delete", "Recycle", "Retain")
_SOURCES = (
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
)


def claim_class(claim: Object) -> str | None:
    """The storage class that a claim (or volume) asks for; None where it leaves that to the server. The annotation
    comes first, as upstream (kk/pkg/apis/core/v1/helper: GetPersistentVolumeClaimClass)."""
    annotations = (claim.get("metadata") or {}).get("annotations") or {}
    if CLASS_ANNOTATION in annotations:
        named: str = annotations[CLASS_ANNOTATION]
        return named
    asked: str | None = (claim.get("spec") or {}).get("storageClassName")
    return asked


def requested_storage(claim: Object) -> object:
    """The size that a claim asks for, as it is written; None where it asks for none."""
    return (((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage")


class PersistentVolumeClaimStrategy(Strategy):
    returns_deleted = True

    def default(self, new: Object) -> None:
        spec = new.setdefault("spec", {})
        spec.setdefault("volumeMode", "Filesystem")
        if "resources" not in spec:
            spec["resources"] = {}
        _same_source(spec)
        self.default_status(new)

    def default_status(self, new: Object) -> None:
        status = new.setdefault("status", {})
        status.setdefault("phase", "Pending")
        drop_empty(status, "accessModes", "capacity", "conditions")

    def prepare_create(self, new: Object, context: Context) -> None:
        new["status"] = {"phase": "Pending"}

    def validate(self, new: Object) -> list[FieldError]:
        spec = new["spec"]
        errors = _access_mode_errors(spec, "at least 1 access mode is required")
        storage = requested_storage(new)
        if storage is None:
            errors.append(required("spec.resources[storage]"))
        else:
            errors += _positive("spec.resources[storage]", storage)
        errors += _class_name_errors(spec)
        return errors + _volume_mode_errors(spec)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = dict(new["spec"]), dict(old["spec"])
        if not before.get("volumeName"):
            before["volumeName"] = spec.get("volumeName")
        if before.get("storageClassName") is None:  # a default class may come later than the claim
            before["storageClassName"] = spec.get("storageClassName")
        bound = (new.get("status") or {}).get("phase") == "Bound"
        if bound:
            for each in (spec, before):
                each["resources"] = {**(each.get("resources") or {}), "requests": None}
                each["volumeAttributesClassName"] = None
        errors = []
        if _compact(spec) != _compact(before):
            detail = (
                "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
                "claims"
            )
            errors.append(forbidden_value("spec", detail))
        return errors + self._shrink_errors(new, old)

    def _shrink_errors(self, new: Object, old: Object) -> list[FieldError]:
        """A claim may be asked to be smaller again, but not smaller than it is."""
        wanted, before = parse_quantity(requested_storage(new)), parse_quantity(requested_storage(old))
        actual = parse_quantity(((old.get("status") or {}).get("capacity") or {}).get("storage")) or 0
        if wanted is None or before is None or wanted >= before or (actual and wanted > actual):
            return []
        return [
            forbidden_value("spec.resources.requests.storage", "field can not be less than status.capacity")
        ]


class PersistentVolumeStrategy(Strategy):
    returns_deleted = True

    def default(self, new: Object) -> None:
        spec = new.setdefault("spec", {})
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")
        if isinstance(spec.get("hostPath"), dict):
            spec["hostPath"].setdefault("type", "")
        self.default_status(new)

    def default_status(self, new: Object) -> None:
        new.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare_create(self, new: Object, context: Context) -> None:
        new["status"] = {"phase": "Pending", "lastPhaseTransitionTime": context.now}

    def prepare_status(self, new: Object, old: Object, context: Context) -> None:
        keep(new, old, "spec")
        status, before = new["status"], old.get("status") or {}
        if status.get("phase") != before.get("phase"):
            since = status.get("lastPhaseTransitionTime")
            if since in (None, before.get("lastPhaseTransitionTime")):
                status["lastPhaseTransitionTime"] = context.now

    def validate(self, new: Object) -> list[FieldError]:
        spec = new["spec"]
        errors = _access_mode_errors(spec, "")
        errors += _capacity_errors(spec.get("capacity") or {})
        if spec["persistentVolumeReclaimPolicy"] not in _RECLAIM:
            policy = spec["persistentVolumeReclaimPolicy"]
            errors.append(not_supported("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM))
        errors += _source_errors(spec)
        errors += _class_name_errors(spec)
        return errors + _volume_mode_errors(spec)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new["spec"], old["spec"]
        errors = []
        if any(spec.get(source) != before.get(source) for source in _SOURCES):
            detail = "spec.persistentvolumesource is immutable after creation"
            errors.append(forbidden_value("spec.persistentvolumesource", detail))
        if spec.get("volumeMode") != before.get("volumeMode"):
            errors.append(invalid_value("volumeMode", spec.get("volumeMode"), "field is immutable"))
        if before.get("nodeAffinity") and spec.get("nodeAffinity") != before["nodeAffinity"]:
            detail = "field is immutable, except for updating from beta label to GA"
            errors.append(invalid_value("spec.nodeAffinity", spec.get("nodeAffinity"), detail))
        return errors


def _same_source(spec: Object) -> None:
    """dataSource and dataSourceRef say the same where only one is given (NormalizeDataSources)."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and not reference:
        spec["dataSourceRef"] = dict(source)
    elif reference and not source and not reference.get("namespace"):
        spec["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}


def _access_mode_errors(spec: Object, none_text: str) -> list[FieldError]:
    modes = spec.get("accessModes") or []
    if not modes:
        return [required("spec.accessModes", none_text)]
    errors = [
        not_supported("spec.accessModes", mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES
    ]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        detail = "may not use ReadWriteOncePod with other access modes"
        errors.append(forbidden_value("spec.accessModes", detail))
    return errors


def _capacity_errors(capacity: Object) -> list[FieldError]:
    if not capacity:
        return [required("spec.capacity")]
    if list(capacity) != ["storage"]:
        return [not_supported("spec.capacity", capacity, ("storage",))]
    return _positive("spec.capacity[storage]", capacity["storage"])


def _positive(field: str, value: object) -> list[FieldError]:
    size = parse_quantity(value)
    if size is None:
        detail = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        return [invalid_value(field, value, detail)]
    return [] if size > 0 else [invalid_value(field, value, "must be greater than zero")]


def _class_name_errors(spec: Object) -> list[FieldError]:
    name = spec.get("storageClassName")
    if not name:
        return []
    return [invalid_value("spec.storageClassName", name, text) for text in faults_of(dns_subdomain, name)]


def _volume_mode_errors(spec: Object) -> list[FieldError]:
    mode = spec["volumeMode"]
    return [] if mode in _VOLUME_MODES else [not_supported("spec.volumeMode", mode, _VOLUME_MODES)]


def _source_errors(spec: Object) -> list[FieldError]:
    sources = [source for source in _SOURCES if spec.get(source) is not None]
    if not sources:
        return [required("spec", "must specify a volume type")]
    detail = "may not specify more than 1 volume type"
    errors = [forbidden_value(f"spec.{source}", detail) for source in sources[1:]]
    csi = spec.get("csi")
    if csi is not None:
        errors += [required(f"spec.csi.{key}") for key in ("driver", "volumeHandle") if not csi.get(key)]
    if "local" in sources and not spec.get("nodeAffinity"):
        errors.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    return errors


def _compact(spec: Object) -> Object:
    return {key: value for key, value in spec.items() if value not in (None, "", [], {})}
