"""Pods: creation, binding, status, graceful deletion (kk/pkg/registry/core/pod/strategy.go and storage)."""

from __future__ import annotations

from harness.apiserver.apierrors import (
    FieldError,
    duplicate,
    forbidden_value,
    invalid_value,
    not_supported,
    required,
)
from harness.apiserver.strategies.base import Context, Object, Strategy, drop_empty, keep
from harness.apiserver.strategies.podspec import default_pod, default_spec, qos_class, validate_spec

_MUTABLE = frozenset({"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations"})
_MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


class PodStrategy(Strategy):
    returns_deleted = True
    generations = True
    graceful = True

    def default(self, new: Object) -> None:
        spec = new.get("spec")
        if spec is None:
            new["spec"] = spec = {}
        default_spec(spec)
        default_pod(spec)
        self.default_status(new)

    def default_status(self, new: Object) -> None:
        status = new.get("status")
        if status:
            for condition in status.get("conditions") or ():
                condition.setdefault("lastProbeTime", None)
                condition.setdefault("lastTransitionTime", None)
            drop_empty(
                status, "conditions", "containerStatuses", "initContainerStatuses", "podIPs", "hostIPs"
            )

    def prepare_create(self, new: Object, context: Context) -> None:
        new["status"] = {"phase": "Pending", "qosClass": qos_class(new["spec"])}
        if new["spec"].get("schedulingGates"):
            new["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": context.now,
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            ]

    def prepare_status(self, new: Object, old: Object, context: Context) -> None:
        keep(new, old, "spec")
        meta, before = new["metadata"], old["metadata"]
        keep(meta, before, "ownerReferences")
        status = new.setdefault("status", {})
        if "qosClass" in old["status"]:
            status.setdefault("qosClass", old["status"]["qosClass"])

    def prepare_subresource(self, subresource: str, new: Object, old: Object, context: Context) -> None:
        """ephemeralcontainers adds containers; resize changes what the others ask for; nothing else is taken over
        (podEphemeralContainersStrategy, podResizeStrategy)."""
        wanted, spec = new["spec"], dict(old["spec"])
        if subresource == "ephemeralcontainers":
            keep(spec, wanted, "ephemeralContainers")
        else:
            for key in ("containers", "initContainers"):
                if key in spec:
                    spec[key] = _resized(spec[key], wanted.get(key) or [])
        new["spec"] = spec
        keep(new, old, "status")

    def validate(self, new: Object) -> list[FieldError]:
        return validate_spec(new["spec"])

    def validate_subresource(self, subresource: str, new: Object, old: Object) -> list[FieldError]:
        if subresource == "ephemeralcontainers":
            return _ephemeral_errors(new["spec"], old["spec"])
        after = qos_class(new["spec"])
        if subresource == "resize" and after != old["status"].get("qosClass", after):
            before = old["status"]["qosClass"]
            return [invalid_value("spec", before, "Pod QOS Class may not change as a result of resizing")]
        return []

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        if new["spec"] == old["spec"]:
            return []
        errors = []
        for index, (after, before) in enumerate(
            zip(new["spec"].get("containers", ()), old["spec"]["containers"], strict=False)
        ):
            if not after.get("image") and before.get("image"):
                errors.append(required(f"spec.containers[{index}].image"))
        if _fixed(new["spec"]) != _fixed(old["spec"]):
            errors.append(forbidden_value("spec", _MAY_CHANGE))
        before = old["spec"].get("tolerations") or []
        if any(item not in (new["spec"].get("tolerations") or []) for item in before):
            detail = "existing toleration can not be modified except its tolerationSeconds"
            errors.append(forbidden_value("spec.tolerations", detail))
        return errors

    def grace_s(self, old: Object, requested: int | None) -> int | None:
        """CheckGracefulDelete (strategy.go:178): unscheduled and terminated pods go at once."""
        spec = old["spec"]
        grace = spec.get("terminationGracePeriodSeconds", 30) if requested is None else requested
        if not spec.get("nodeName") or old["status"].get("phase") in ("Succeeded", "Failed"):
            return 0
        return grace if grace >= 0 else 1


def _resized(containers: list[Object], wanted: list[Object]) -> list[Object]:
    """`containers` with the resources that those of the same name in `wanted` have."""
    named = {container.get("name"): container for container in wanted}
    resized = []
    for container in containers:
        changed = dict(container)
        for key in ("resources", "resizePolicy"):
            keep(changed, named.get(container.get("name"), container), key)
        resized.append(changed)
    return resized


def _ephemeral_errors(spec: Object, before: Object) -> list[FieldError]:
    """ValidatePodEphemeralContainersUpdate: they are only ever added."""
    errors = []
    now = {container.get("name", ""): container for container in spec.get("ephemeralContainers") or ()}
    for old in before.get("ephemeralContainers") or ():
        name = old["name"]
        if now.get(name) != old:
            done = "removed" if name not in now else "changed"
            text = f'existing ephemeral containers "{name}" may not be {done}'
            errors.append(forbidden_value("spec.ephemeralContainers", text))
    taken = {item["name"] for key in ("containers", "initContainers") for item in spec.get(key) or ()}
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        at, name = f"spec.ephemeralContainers[{index}]", container.get("name", "")
        if not name:
            errors.append(required(f"{at}.name"))
        elif name in taken:
            errors.append(duplicate(f"{at}.name", name))
        if not container.get("image"):
            errors.append(required(f"{at}.image"))
        taken.add(name)
    return errors


def _fixed(spec: Object) -> Object:
    """The part of a spec that an update must leave alone."""
    fixed = {key: value for key, value in spec.items() if key not in _MUTABLE}
    for key in ("containers", "initContainers"):
        if key in fixed:
            fixed[key] = [{**container, "image": ""} for container in fixed[key]]
    return fixed


def binding_errors(binding: Object) -> list[FieldError]:
    """ValidatePodBinding (kk/pkg/apis/core/validation/validation.go)."""
    target = binding.get("target") or {}
    errors = []
    kind = target.get("kind", "")
    if kind not in ("", "Node"):
        errors.append(not_supported("target.kind", kind, ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(required("target.name"))
    return errors


def bind(pod: Object, binding: Object, now: str) -> str | None:
    """Assign a pod to a node (assignPod, storage.go:250); the reason where that is not possible."""
    meta, spec = pod["metadata"], pod["spec"]
    name = meta["name"]
    if "deletionTimestamp" in meta:
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    spec["nodeName"] = binding["target"]["name"]
    annotations = (binding.get("metadata") or {}).get("annotations")
    if annotations:
        meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
    status = pod["status"]
    conditions = status.setdefault("conditions", [])
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    for index, condition in enumerate(conditions):
        if condition["type"] == "PodScheduled":
            if condition["status"] == "True":
                scheduled["lastTransitionTime"] = condition["lastTransitionTime"]
            conditions[index] = scheduled
            return None
    conditions.append(scheduled)
    return None
