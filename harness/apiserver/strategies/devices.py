"""Devices and claims on them, resource.k8s.io/v1 (kk/pkg/apis/resource/v1/defaults.go, kk/pkg/registry/resource)."""

from __future__ import annotations

from collections.abc import Iterator

from harness.apiserver.apierrors import FieldError, invalid_value, required
from harness.apiserver.strategies.apps import WorkloadStrategy
from harness.apiserver.strategies.base import Context, Object, Strategy, section
from harness.apiserver.strategies.podtemplates import immutable


def default_claim_spec(spec: Object) -> None:
    devices = section(spec, "devices")
    devices.setdefault("requests", None)
    for request in _requests(devices):
        if request.setdefault("allocationMode", "ExactCount") == "ExactCount" and not request.get("count"):
            request["count"] = 1
        for toleration in request.get("tolerations") or ():
            toleration.setdefault("operator", "Equal")


def _requests(devices: Object) -> Iterator[Object]:
    """What is asked for, alternatives one by one."""
    for request in devices.get("requests") or ():
        if request.get("exactly") is not None:
            yield request["exactly"]
        yield from request.get("firstAvailable") or ()


def _claim_errors(spec: Object, path: str) -> list[FieldError]:
    errors = []
    for index, request in enumerate(spec["devices"].get("requests") or ()):
        at = f"{path}.devices.requests[{index}]"
        if not request.get("name"):
            errors.append(required(f"{at}.name"))
        exactly = request.get("exactly")
        if exactly is None and not request.get("firstAvailable"):
            detail = "exactly one of `exactly` or `firstAvailable` is required"
            errors.append(required(at, detail))
        elif exactly is not None and not exactly.get("deviceClassName"):
            errors.append(required(f"{at}.exactly.deviceClassName"))
    return errors


class ResourceClaimStrategy(WorkloadStrategy):
    generations = False
    returns_deleted = True

    def default(self, new: Object) -> None:
        default_claim_spec(section(new, "spec"))
        self.default_status(new)

    def validate(self, new: Object) -> list[FieldError]:
        return _claim_errors(new["spec"], "spec")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return _fixed(new, old)


def _fixed(new: Object, old: Object) -> list[FieldError]:
    """The whole spec is immutable."""
    if new["spec"] == old["spec"]:
        return []
    return [invalid_value("spec", new["spec"], "field is immutable")]


class ResourceClaimTemplateStrategy(Strategy):
    fields = ("spec",)
    returns_deleted = True

    def default(self, new: Object) -> None:
        spec = section(new, "spec")
        section(spec, "metadata")
        default_claim_spec(section(spec, "spec"))

    def validate(self, new: Object) -> list[FieldError]:
        return _claim_errors(new["spec"]["spec"], "spec.spec")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return _fixed(new, old)


class ResourceSliceStrategy(Strategy):
    fields = ("spec",)
    generations = True
    returns_deleted = True

    def default(self, new: Object) -> None:
        spec = section(new, "spec")
        spec.setdefault("driver", "")
        pool = section(spec, "pool")
        for key, zero in (("name", ""), ("generation", 0), ("resourceSliceCount", 0)):
            pool.setdefault(key, zero)

    def prepare_create(self, new: Object, context: Context) -> None:
        _date_taints(new, context)

    def prepare_update(self, new: Object, old: Object, context: Context) -> None:
        _date_taints(new, context)

    def validate(self, new: Object) -> list[FieldError]:
        spec, errors = new["spec"], []
        if not spec["driver"]:
            errors.append(required("spec.driver"))
        if not spec["pool"]["name"]:
            errors.append(required("spec.pool.name"))
        if spec["pool"]["resourceSliceCount"] <= 0:
            count, detail = spec["pool"]["resourceSliceCount"], "must be greater than zero"
            errors.append(invalid_value("spec.pool.resourceSliceCount", count, detail))
        where = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
        if not any(spec.get(key) for key in where):
            listed = "`nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`"
            errors.append(required("spec", f"exactly one of {listed} is required"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        after, before = new["spec"], old["spec"]
        errors = immutable(new, old, "driver", "nodeName")
        if after["pool"]["name"] != before["pool"]["name"]:
            errors.append(invalid_value("spec.pool.name", after["pool"]["name"], "field is immutable"))
        return errors


def _date_taints(new: Object, context: Context) -> None:
    """SetDefaults_DeviceTaint: a taint without a time was added now."""
    for device in new["spec"].get("devices") or ():
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", context.now)


class DeviceClassStrategy(Strategy):
    fields = ("spec",)
    generations = True
    returns_deleted = True

    def default(self, new: Object) -> None:
        section(new, "spec")
