"""Pod templates and the selectors beside them, as every workload has them.

Mirrors the defaults of a PodTemplateSpec (kk/pkg/apis/core/v1/zz_generated.defaults.go) and
ValidatePodTemplateSpecForReplicaSet (kk/pkg/apis/apps/validation/validation.go).
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.apiserver.apierrors import (
    FieldError,
    forbidden_value,
    invalid_value,
    not_supported,
    required,
)
from harness.apiserver.strategies.base import Object, drop_empty, section
from harness.apiserver.strategies.labelselectors import is_empty, parsed, selector_errors
from harness.apiserver.strategies.podspec import default_spec, validate_spec

_AT_LEAST_0 = "must be greater than or equal to 0"


def default_template(owner: Object) -> Object:
    """Complete `owner["template"]`, which is made where it is missing, and return it."""
    template = section(owner, "template")
    meta = section(template, "metadata")
    drop_empty(meta, "labels", "annotations", "ownerReferences", "finalizers")
    default_spec(section(template, "spec"))
    return template


def template_labels(owner: Object) -> Mapping[str, str]:
    labels: Mapping[str, str] | None = owner["template"]["metadata"].get("labels")
    return labels or {}


def workload_errors(spec: Object, kind: str) -> list[FieldError]:
    """Faults of `spec`: number of replicas, selector, and a template that the selector selects."""
    errors = count_errors(spec, "replicas")
    selector = spec.get("selector")
    found: list[FieldError] = []
    if selector is None:
        errors.append(required("spec.selector"))
    else:
        found = selector_errors(selector, "spec.selector")
        errors += found
        if is_empty(selector):
            errors.append(invalid_value("spec.selector", selector, f"empty selector is invalid for {kind}"))
    if selector is not None and not found:
        errors += selected_errors(spec, parsed(selector).match(template_labels(spec)))
    return errors + template_errors(spec["template"], "spec.template")


def selected_errors(spec: Object, selected: bool) -> list[FieldError]:
    if selected:
        return []
    labels = template_labels(spec)
    detail = "`selector` does not match template `labels`"
    return [invalid_value("spec.template.metadata.labels", labels, detail)]


def template_errors(template: Object, path: str) -> list[FieldError]:
    """Of a template whose pods are to run for ever."""
    spec = template["spec"]
    errors = validate_spec(spec, f"{path}.spec")
    if spec["restartPolicy"] != "Always":
        errors.append(not_supported(f"{path}.spec.restartPolicy", spec["restartPolicy"], ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in ReplicaSet is not Supported"
        errors.append(forbidden_value(f"{path}.spec.activeDeadlineSeconds", detail))
    return errors


def count_errors(spec: Object, *fields: str) -> list[FieldError]:
    """Fields that must not be negative."""
    errors = []
    for field in fields:
        value = spec.get(field)
        if isinstance(value, int) and value < 0:
            errors.append(invalid_value(f"spec.{field}", value, _AT_LEAST_0))
    return errors


def immutable(new: Object, old: Object, *fields: str) -> list[FieldError]:
    """Fields of spec that an update must leave alone."""
    after, before = new["spec"], old["spec"]
    return [
        invalid_value(f"spec.{field}", after.get(field), "field is immutable")
        for field in fields
        if after.get(field) != before.get(field)
    ]
