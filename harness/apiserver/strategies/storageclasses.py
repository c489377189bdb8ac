"""The rest of storage.k8s.io: classes, attachments, attributes classes and capacities (kk/pkg/registry/storage,
kk/pkg/apis/storage/validation)."""

from __future__ import annotations

from harness.apiserver.apierrors import (
    FieldError,
    forbidden_value,
    invalid_value,
    not_supported,
    required,
)
from harness.apiserver.strategies.base import Context, Object, Strategy, drop_empty, keep, keep_metadata
from harness.apiserver.strategies.names import dns_subdomain, faults_of, qualified_name

_RECLAIM = ("Delete", "Retain")
_BINDING = ("Immediate", "WaitForFirstConsumer")
_PARAMETERS_MAX = 512
_DRIVER_NAME_MAX = 63


class StorageClassStrategy(Strategy):
    fields = (
        "provisioner",
        "parameters",
        "reclaimPolicy",
        "mountOptions",
        "allowVolumeExpansion",
        "volumeBindingMode",
        "allowedTopologies",
    )
    returns_deleted = True

    def default(self, new: Object) -> None:
        new.setdefault("provisioner", "")
        new.setdefault("reclaimPolicy", "Delete")
        new.setdefault("volumeBindingMode", "Immediate")
        drop_empty(new, "parameters", "mountOptions", "allowedTopologies")

    def validate(self, new: Object) -> list[FieldError]:
        provisioner = new["provisioner"]
        errors = [] if provisioner else [required("provisioner")]
        if provisioner:
            errors += [
                invalid_value("provisioner", provisioner, text)
                for text in faults_of(qualified_name, provisioner.lower())
            ]
        errors += _parameter_errors(new.get("parameters") or {})
        for key, allowed in (("reclaimPolicy", _RECLAIM), ("volumeBindingMode", _BINDING)):
            if new[key] not in allowed:
                errors.append(not_supported(key, new[key], allowed))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = [
            forbidden_value(key, f"updates to {key} are forbidden.")
            for key in ("parameters", "provisioner", "reclaimPolicy")
            if new.get(key) != old.get(key)
        ]
        return errors + immutable(new, old, "volumeBindingMode")


class VolumeAttachmentStrategy(Strategy):
    unconditional_update = False
    returns_deleted = True

    def default(self, new: Object) -> None:
        spec = new.setdefault("spec", {})
        for key, empty in (("attacher", ""), ("source", {}), ("nodeName", "")):
            spec.setdefault(key, empty)
        self.default_status(new)

    def default_status(self, new: Object) -> None:
        new.setdefault("status", {}).setdefault("attached", False)

    def prepare_create(self, new: Object, context: Context) -> None:
        new["status"] = {"attached": False}

    def prepare_status(self, new: Object, old: Object, context: Context) -> None:
        """Status alone, not even labels."""
        keep(new, old, "spec")
        keep_metadata(new, old)

    def validate(self, new: Object) -> list[FieldError]:
        spec = new["spec"]
        errors = driver_name_errors("spec.attacher", spec["attacher"])
        named, inline = spec["source"].get("persistentVolumeName"), spec["source"].get("inlineVolumeSpec")
        if named and inline:
            detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
            errors.append(forbidden_value("spec.source", detail))
        elif inline is None and named is None:
            detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
            errors.append(required("spec.source", detail))
        elif named is not None:
            errors += [
                invalid_value("spec.source.persistentVolumeName", named, text)
                for text in faults_of(dns_subdomain, named)
            ]
        node = spec["nodeName"]
        return errors + [
            invalid_value("spec.nodeName", node, text) for text in faults_of(dns_subdomain, node)
        ]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable(new, old, "spec")


class VolumeAttributesClassStrategy(Strategy):
    fields = ("driverName", "parameters")
    returns_deleted = True

    def default(self, new: Object) -> None:
        new.setdefault("driverName", "")
        drop_empty(new, "parameters")

    def validate(self, new: Object) -> list[FieldError]:
        errors = driver_name_errors("driverName", new["driverName"])
        if not new.get("parameters"):
            return [*errors, required("parameters", "must contain at least one key/value pair")]
        return errors + _parameter_errors(new["parameters"])

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable(new, old, "driverName") + immutable(new, old, "parameters")


class CSIStorageCapacityStrategy(Strategy):
    fields = ("nodeTopology", "storageClassName", "capacity", "maximumVolumeSize")
    unconditional_update = False

    def default(self, new: Object) -> None:
        new.setdefault("storageClassName", "")

    def validate(self, new: Object) -> list[FieldError]:
        name = new["storageClassName"]
        return [invalid_value("storageClassName", name, text) for text in faults_of(dns_subdomain, name)]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable(new, old, "nodeTopology") + immutable(new, old, "storageClassName")


def immutable(new: Object, old: Object, key: str) -> list[FieldError]:
    """ValidateImmutableField."""
    if new.get(key) == old.get(key):
        return []
    return [invalid_value(key, new.get(key), "field is immutable")]


def driver_name_errors(field: str, name: str) -> list[FieldError]:
    """ValidateCSIDriverName (kk/pkg/apis/core/validation)."""
    if not name:
        return [required(field)]
    errors = []
    if len(name) > _DRIVER_NAME_MAX:
        detail = f"may not be more than {_DRIVER_NAME_MAX} bytes"
        errors.append(FieldError("FieldValueTooLong", f"Too long: {detail}", field))
    return errors + [invalid_value(field, name, text) for text in faults_of(dns_subdomain, name.lower())]


def _parameter_errors(parameters: Object) -> list[FieldError]:
    errors = []
    if len(parameters) > _PARAMETERS_MAX:
        detail = f"Too many: {len(parameters)}: must have at most {_PARAMETERS_MAX} items"
        errors.append(FieldError("FieldValueTooMany", detail, "parameters"))
    if "" in parameters:
        errors.append(invalid_value("parameters", "", "field can not be empty."))
    return errors
