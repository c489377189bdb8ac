"""Workloads that keep pods running: the kinds of apps, replication controllers and pod templates.

kk/pkg/apis/{apps,core}/v1/defaults.go, kk/pkg/apis/apps/validation/validation.go, kk/pkg/registry/apps/*/strategy.go.
"""

from __future__ import annotations

from typing import ClassVar

from harness.apiserver.apierrors import FieldError, forbidden_value, invalid_value, not_supported, required
from harness.apiserver.strategies.base import Context, Object, Strategy, drop_empty, keep, section, zeros
from harness.apiserver.strategies.podspec import validate_spec
from harness.apiserver.strategies.podtemplates import (
    count_errors,
    default_template,
    immutable,
    selected_errors,
    template_errors,
    template_labels,
    workload_errors,
)

_ROLLING = "RollingUpdate"
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_STATEFUL_MAY_CHANGE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_STATEFUL_TEXT = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


class WorkloadStrategy(Strategy):
    """What they have in common: a status that only controllers write, and a generation that counts specs."""

    generations = True
    zero_status: ClassVar[Object] = {}  # what Go writes of an empty status

    def default_status(self, new: Object) -> None:
        zeros(section(new, "status"), self.zero_status)

    def prepare_create(self, new: Object, context: Context) -> None:
        new["status"] = dict(self.zero_status)


class DeploymentStrategy(WorkloadStrategy):
    def default(self, new: Object) -> None:
        spec = section(new, "spec")
        default_template(spec)
        spec.setdefault("replicas", 1)
        strategy = section(spec, "strategy")
        if strategy.setdefault("type", _ROLLING) == _ROLLING:
            rolling = section(strategy, "rollingUpdate")
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        drop_empty(spec, "minReadySeconds", "paused")
        self.default_status(new)

    def changed(self, new: Object, old: Object) -> bool:
        return super().changed(new, old) or _annotations(new) != _annotations(old)

    def validate(self, new: Object) -> list[FieldError]:
        spec = new["spec"]
        errors = workload_errors(spec, "deployment")
        kind = spec["strategy"]["type"]
        at = "spec.strategy"
        if kind not in ("Recreate", _ROLLING):
            errors.append(not_supported(f"{at}.type", kind, ("Recreate", _ROLLING)))
        elif kind == "Recreate" and spec["strategy"].get("rollingUpdate") is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            errors.append(forbidden_value(f"{at}.rollingUpdate", detail))
        errors += count_errors(spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
        deadline, ready = spec["progressDeadlineSeconds"], spec.get("minReadySeconds", 0)
        if isinstance(deadline, int) and isinstance(ready, int) and deadline <= ready:
            detail = "must be greater than minReadySeconds"
            errors.append(invalid_value("spec.progressDeadlineSeconds", deadline, detail))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable(new, old, "selector")


def _annotations(obj: Object) -> Object:
    return obj["metadata"].get("annotations") or {}


class ReplicaSetStrategy(WorkloadStrategy):
    zero_status: ClassVar[Object] = {"replicas": 0}

    def default(self, new: Object) -> None:
        spec = section(new, "spec")
        default_template(spec)
        spec.setdefault("replicas", 1)
        drop_empty(spec, "minReadySeconds")
        self.default_status(new)

    def validate(self, new: Object) -> list[FieldError]:
        return workload_errors(new["spec"], "replicaset") + count_errors(new["spec"], "minReadySeconds")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable(new, old, "selector")


class ReplicationControllerStrategy(WorkloadStrategy):
    """The selector is a plain map; without one it is the template's labels, and so are the controller's own."""

    orphans = True
    zero_status: ClassVar[Object] = {"replicas": 0}

    def default(self, new: Object) -> None:
        spec = section(new, "spec")
        if spec.get("template") is not None:
            default_template(spec)
            labels = template_labels(spec)
            if labels and not spec.get("selector"):
                spec["selector"] = dict(labels)
            if labels and not new["metadata"].get("labels"):
                new["metadata"]["labels"] = dict(labels)
        drop_empty(spec, "selector")
        spec.setdefault("replicas", 1)
        spec.setdefault("minReadySeconds", 0)
        drop_empty(spec, "minReadySeconds")
        self.default_status(new)

    def validate(self, new: Object) -> list[FieldError]:
        spec = new["spec"]
        errors = count_errors(spec, "minReadySeconds")
        selector = spec.get("selector")
        if not selector:
            errors.append(required("spec.selector"))
        errors += count_errors(spec, "replicas")
        if spec.get("template") is None:
            return [*errors, required("spec.template")]
        if selector:
            labels = template_labels(spec)
            errors += selected_errors(spec, all(labels.get(key) == value for key, value in selector.items()))
        return errors + template_errors(spec["template"], "spec.template")


class StatefulSetStrategy(WorkloadStrategy):
    zero_status: ClassVar[Object] = {"replicas": 0, "availableReplicas": 0}

    def default(self, new: Object) -> None:
        spec = section(new, "spec")
        default_template(spec)
        for claim in spec.get("volumeClaimTemplates") or ():
            _default_claim(claim)
        spec.setdefault("serviceName", "")
        spec.setdefault("podManagementPolicy", "OrderedReady")
        strategy = section(spec, "updateStrategy")
        if not strategy.get("type"):
            strategy["type"] = _ROLLING
            section(strategy, "rollingUpdate")
        if strategy["type"] == _ROLLING and strategy.get("rollingUpdate") is not None:
            strategy["rollingUpdate"].setdefault("partition", 0)
        retention = section(spec, "persistentVolumeClaimRetentionPolicy")
        retention.setdefault("whenDeleted", "Retain")
        retention.setdefault("whenScaled", "Retain")
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        drop_empty(spec, "volumeClaimTemplates", "minReadySeconds")
        self.default_status(new)

    def validate(self, new: Object) -> list[FieldError]:
        spec = new["spec"]
        errors = []
        policy, kind = spec["podManagementPolicy"], spec["updateStrategy"]["type"]
        if policy not in ("OrderedReady", "Parallel"):
            detail = 'must be "OrderedReady" or "Parallel"'
            errors.append(invalid_value("spec.podManagementPolicy", policy, detail))
        if kind not in (_ROLLING, "OnDelete"):
            detail = f"must be '{_ROLLING}' or 'OnDelete'"
            errors.append(invalid_value("spec.updateStrategy", spec["updateStrategy"], detail))
        mounted = _with_claims(spec)
        return errors + workload_errors(mounted, "statefulset") + count_errors(spec, "minReadySeconds")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        if _fixed(new["spec"]) != _fixed(old["spec"]):
            return [forbidden_value("spec", _STATEFUL_TEXT)]
        return []


def _fixed(spec: Object) -> Object:
    return {key: value for key, value in spec.items() if key not in _STATEFUL_MAY_CHANGE}


def _with_claims(spec: Object) -> Object:
    """`spec` with its claims among the template's volumes, which is how its pods get them: a container mounts either
    (the union that ValidatePodTemplateSpecForStatefulSet, kk/pkg/apis/apps/validation, looks at)."""
    claims = [{"name": claim["metadata"].get("name", "")} for claim in spec.get("volumeClaimTemplates") or ()]
    if not claims:
        return spec
    template = spec["template"]
    names = {claim["name"] for claim in claims}
    volumes = [each for each in template["spec"].get("volumes") or () if each.get("name") not in names]
    return {**spec, "template": {**template, "spec": {**template["spec"], "volumes": [*volumes, *claims]}}}


def _default_claim(claim: Object) -> None:
    """A claim in a template has its kind, its defaults and a status (kk/pkg/apis/apps/v1/zz_generated.defaults.go)."""
    claim.setdefault("kind", "PersistentVolumeClaim")
    claim.setdefault("apiVersion", "v1")
    section(claim, "metadata")
    spec = section(claim, "spec")
    section(spec, "resources")
    spec.setdefault("volumeMode", "Filesystem")
    section(claim, "status").setdefault("phase", "Pending")


class DaemonSetStrategy(WorkloadStrategy):
    zero_status: ClassVar[Object] = {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }

    def default(self, new: Object) -> None:
        spec = section(new, "spec")
        default_template(spec)
        strategy = section(spec, "updateStrategy")
        if strategy.setdefault("type", _ROLLING) == _ROLLING:
            rolling = section(strategy, "rollingUpdate")
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", 10)
        drop_empty(spec, "minReadySeconds")
        self.default_status(new)

    def prepare_create(self, new: Object, context: Context) -> None:
        super().prepare_create(new, context)
        _count_template(new, 1)

    def prepare_update(self, new: Object, old: Object, context: Context) -> None:
        """The generation of the template is an internal field, which v1 shows as an annotation."""
        keep(new, old, "status")
        before = int(_annotations(old).get(_TEMPLATE_GENERATION) or 0)
        _count_template(new, before + (new["spec"]["template"] != old["spec"]["template"]))

    def validate(self, new: Object) -> list[FieldError]:
        spec = new["spec"]
        errors = workload_errors(spec, "daemonset")
        kind = spec["updateStrategy"]["type"]
        if kind not in (_ROLLING, "OnDelete"):
            errors.append(not_supported("spec.updateStrategy.type", kind, ("OnDelete", _ROLLING)))
        return errors + count_errors(spec, "minReadySeconds", "revisionHistoryLimit")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return immutable(new, old, "selector")


def _count_template(new: Object, generation: int) -> None:
    section(new["metadata"], "annotations")[_TEMPLATE_GENERATION] = str(generation)


class ControllerRevisionStrategy(Strategy):
    fields = ("data", "revision")
    unconditional_update = False

    def default(self, new: Object) -> None:
        new.setdefault("revision", 0)

    def validate(self, new: Object) -> list[FieldError]:
        errors = []
        if new["revision"] < 0:
            errors.append(invalid_value("revision", new["revision"], "must be greater than or equal to 0"))
        return errors if new.get("data") is not None else [*errors, required("data", "data is mandatory")]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        if new.get("data") != old.get("data"):
            return [invalid_value("data", new.get("data"), "field is immutable")]
        return []


class PodTemplateStrategy(Strategy):
    fields = ("template",)
    generations = True
    returns_deleted = True

    def default(self, new: Object) -> None:
        default_template(new)

    def changed(self, new: Object, old: Object) -> bool:
        return bool(new["template"] != old["template"])

    def validate(self, new: Object) -> list[FieldError]:
        return validate_spec(new["template"]["spec"], "template.spec")
