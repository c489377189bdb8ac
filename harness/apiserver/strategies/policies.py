"""What limits and steers workloads: disruption budgets, autoscalers, quotas, limit ranges, priority classes.

kk/pkg/apis/{core,policy,autoscaling/v2,scheduling}/v1/defaults.go and validation; kk/pkg/registry/*/strategy.go.
"""

from __future__ import annotations

from typing import ClassVar

from harness.apiserver.apierrors import FieldError, forbidden_value, invalid_value, not_supported, required
from harness.apiserver.strategies.apps import WorkloadStrategy
from harness.apiserver.strategies.base import Context, Object, Strategy, drop_empty, section
from harness.apiserver.strategies.labelselectors import selector_errors

HIGHEST_USER_PRIORITY = 1_000_000_000  # kk/pkg/apis/scheduling/types.go HighestUserDefinablePriority
SYSTEM_PREFIX = "system-"
SYSTEM_CLASSES = {
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
}
"""The classes of every cluster, with value and description (kk/pkg/apis/scheduling/v1/helpers.go)."""
PREEMPTS = "PreemptLowerPriority"
_CPU_PERCENT = 80  # kk/pkg/apis/autoscaling/types.go DefaultCPUUtilization
_PERIOD_S = 15
_IDENTITY = ("kind", "name")
_UP_POLICIES = (("Pods", 4), ("Percent", 100))
_DOWN_POLICIES = (("Percent", 100),)


class DisruptionBudgetStrategy(WorkloadStrategy):
    unconditional_update = False
    zero_status: ClassVar[Object] = {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    }

    def default(self, new: Object) -> None:
        section(new, "spec")
        self.default_status(new)

    def validate(self, new: Object) -> list[FieldError]:
        spec = new["spec"]
        errors = []
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if least is not None and most is not None:
            detail = "minAvailable and maxUnavailable cannot be both set"
            errors.append(invalid_value("spec", spec, detail))
        for field in ("minAvailable", "maxUnavailable"):
            value = spec.get(field)
            if isinstance(value, int) and value < 0:
                detail = "must be greater than or equal to 0"
                errors.append(invalid_value(f"spec.{field}", value, detail))
            elif isinstance(value, str) and not (value.endswith("%") and value[:-1].isdecimal()):
                detail = "a valid percent string must be a numeric string followed by an ending '%'"
                errors.append(invalid_value(f"spec.{field}", value, detail))
        eviction = spec.get("unhealthyPodEvictionPolicy")
        allowed = ("AlwaysAllow", "IfHealthyBudget")
        if eviction is not None and eviction not in allowed:
            errors.append(not_supported("spec.unhealthyPodEvictionPolicy", eviction, allowed))
        return errors + selector_errors(spec.get("selector") or {}, "spec.selector")


class AutoscalerStrategy(WorkloadStrategy):
    """autoscaling/v2, the version that is stored."""

    generations = False

    def default(self, new: Object) -> None:
        spec = section(new, "spec")
        target = section(spec, "scaleTargetRef")
        for key in _IDENTITY:
            target.setdefault(key, "")
        spec.setdefault("minReplicas", 1)
        spec.setdefault("maxReplicas", 0)
        if not spec.get("metrics"):
            spec["metrics"] = [cpu_metric(_CPU_PERCENT)]
        behavior = spec.get("behavior")
        if behavior is not None:
            up, down = section(behavior, "scaleUp"), section(behavior, "scaleDown")
            up.setdefault("stabilizationWindowSeconds", 0)
            for rules, policies in ((up, _UP_POLICIES), (down, _DOWN_POLICIES)):
                rules.setdefault("selectPolicy", "Max")
                rules.setdefault("policies", [_scaling(kind, value) for kind, value in policies])
        self.default_status(new)

    def default_status(self, new: Object) -> None:
        status = section(new, "status")
        status.setdefault("desiredReplicas", 0)
        status.setdefault("currentMetrics", None)

    def prepare_create(self, new: Object, context: Context) -> None:
        new["status"] = {"desiredReplicas": 0, "currentMetrics": None}

    def validate(self, new: Object) -> list[FieldError]:
        spec = new["spec"]
        errors = []
        least, most = spec["minReplicas"], spec["maxReplicas"]
        if least < 1:
            errors.append(invalid_value("spec.minReplicas", least, "must be greater than or equal to 1"))
        if most < 1:
            errors.append(invalid_value("spec.maxReplicas", most, "must be greater than 0"))
        elif most < least:
            detail = "must be greater than or equal to `minReplicas`"
            errors.append(invalid_value("spec.maxReplicas", most, detail))
        for key in _IDENTITY:
            if not spec["scaleTargetRef"][key]:
                errors.append(required(f"spec.scaleTargetRef.{key}"))
        return errors


def cpu_metric(percent: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _scaling(kind: str, value: int) -> Object:
    return {"type": kind, "value": value, "periodSeconds": _PERIOD_S}


class LimitRangeStrategy(Strategy):
    fields = ("spec",)
    create_on_update = True

    def default(self, new: Object) -> None:
        for item in section(new, "spec").setdefault("limits", None) or ():
            if item.get("type") != "Container":
                continue
            limit, request = section(item, "default"), section(item, "defaultRequest")
            for name, amount in (item.get("max") or {}).items():
                limit.setdefault(name, amount)
            for source in (limit, item.get("min") or {}):
                for name, amount in source.items():
                    request.setdefault(name, amount)
            drop_empty(item, "default", "defaultRequest")

    def validate(self, new: Object) -> list[FieldError]:
        seen: set[str] = set()
        errors = []
        for index, item in enumerate(new["spec"]["limits"] or ()):
            kind = item.get("type", "")
            if not kind:
                errors.append(required(f"spec.limits[{index}].type"))
            elif kind in seen:
                duplicate = f'Duplicate value: "{kind}"'
                errors.append(FieldError("FieldValueDuplicate", duplicate, f"spec.limits[{index}].type"))
            seen.add(kind)
        return errors


class ResourceQuotaStrategy(WorkloadStrategy):
    generations = False
    returns_deleted = True

    def default(self, new: Object) -> None:
        drop_empty(section(new, "spec"), "hard", "scopes")
        self.default_status(new)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        after, before = new["spec"].get("scopes") or [], old["spec"].get("scopes") or []
        if sorted(after) != sorted(before):
            return [invalid_value("spec.scopes", after, "field is immutable")]
        return []


class PriorityClassStrategy(Strategy):
    """Only description and globalDefault may change."""

    fields = ("value", "globalDefault", "description", "preemptionPolicy")
    generations = True

    def default(self, new: Object) -> None:
        new.setdefault("value", 0)
        drop_empty(new, "globalDefault", "description")
        if not new.get("preemptionPolicy"):
            new["preemptionPolicy"] = PREEMPTS

    def changed(self, new: Object, old: Object) -> bool:
        return False  # strategy.go: the generation is always 1

    def validate(self, new: Object) -> list[FieldError]:
        name, value = new["metadata"]["name"], new["value"]
        errors = []
        if name.startswith(SYSTEM_PREFIX):
            errors += _system_errors(new)
        elif value > HIGHEST_USER_PRIORITY:
            detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
            errors.append(forbidden_value("value", detail))
        policy = new["preemptionPolicy"]
        allowed = ("Never", PREEMPTS)
        if policy not in allowed:
            errors.append(not_supported("preemptionPolicy", policy, allowed))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = []
        if new["value"] != old["value"]:
            errors.append(forbidden_value("value", "may not be changed in an update."))
        if new["preemptionPolicy"] != old.get("preemptionPolicy", PREEMPTS):
            errors.append(invalid_value("preemptionPolicy", new["preemptionPolicy"], "field is immutable"))
        return errors


def _system_errors(new: Object) -> list[FieldError]:
    """IsKnownSystemPriorityClass: names with the reserved prefix are for the two that there are."""
    name = new["metadata"]["name"]
    known = SYSTEM_CLASSES.get(name)
    if known is None:
        why = f"{name} is not a known system priority class"
    elif new["value"] != known[0]:
        why = f"value of {name} PriorityClass must be {known[0]}"
    elif new.get("globalDefault"):
        why = f"globalDefault of {name} PriorityClass must be false"
    else:
        return []
    detail = (
        f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {why}"
    )
    return [forbidden_value("metadata.name", detail)]
