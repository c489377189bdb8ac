"""Leases, CSI nodes and drivers, and runtime classes."""

from __future__ import annotations

from harness.apiserver.apierrors import FieldError, forbidden_value, invalid_value, required
from harness.apiserver.strategies.base import Object, Strategy


class LeaseStrategy(Strategy):
    """kk/pkg/registry/coordination/lease/strategy.go: a PUT creates, and needs a resourceVersion otherwise."""

    fields = ("spec",)
    unconditional_update = False
    create_on_update = True

    def default(self, new: Object) -> None:
        if new.get("spec") is None:
            new["spec"] = {}

    def validate(self, new: Object) -> list[FieldError]:
        spec = new["spec"]
        errors = []
        duration = spec.get("leaseDurationSeconds")
        if duration is not None and duration <= 0:
            errors.append(invalid_value("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        transitions = spec.get("leaseTransitions")
        if transitions is not None and transitions < 0:
            detail = "must be greater than or equal to 0"
            errors.append(invalid_value("spec.leaseTransitions", transitions, detail))
        return errors


class CSINodeStrategy(Strategy):
    fields = ("spec",)
    unconditional_update = False
    returns_deleted = True

    def default(self, new: Object) -> None:
        spec = new.setdefault("spec", {})
        spec.setdefault("drivers", None)

    def validate(self, new: Object) -> list[FieldError]:
        errors = []
        for index, driver in enumerate(new["spec"]["drivers"] or ()):
            if not driver.get("nodeID"):
                errors.append(required(f"spec.drivers[{index}].nodeID"))
            if not driver.get("name"):
                errors.append(required(f"spec.drivers[{index}].name"))
        return errors


class CSIDriverStrategy(Strategy):
    fields = ("spec",)
    unconditional_update = False
    returns_deleted = True

    def default(self, new: Object) -> None:
        spec = new.setdefault("spec", {})
        spec.setdefault("attachRequired", True)
        spec.setdefault("podInfoOnMount", False)
        spec.setdefault("volumeLifecycleModes", ["Persistent"])
        spec.setdefault("storageCapacity", False)
        spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
        spec.setdefault("requiresRepublish", False)
        spec.setdefault("seLinuxMount", False)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        changed = new["spec"]["attachRequired"] != old["spec"]["attachRequired"]
        return (
            [invalid_value("spec.attachRequired", new["spec"]["attachRequired"], "field is immutable")]
            if changed
            else []
        )


class RuntimeClassStrategy(Strategy):
    fields = ("handler", "overhead", "scheduling")
    unconditional_update = False

    def validate(self, new: Object) -> list[FieldError]:
        return [] if new.get("handler") else [required("handler")]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        if new.get("handler") != old.get("handler"):
            return [forbidden_value("handler", "field is immutable")]
        return []
