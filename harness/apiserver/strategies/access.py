"""RBAC's four kinds (kk/pkg/registry/rbac, kk/pkg/apis/rbac/validation/validation.go). Whether somebody may grant what
they write is asked by `auth.escalation`."""

from __future__ import annotations

from harness.apiserver.apierrors import FieldError, invalid_value, not_supported, required
from harness.apiserver.strategies.base import Object, Strategy, drop_empty
from harness.apiserver.strategies.names import dns_subdomain, faults_of

GROUP = "rbac.authorization.k8s.io"


def path_segment(name: str) -> list[str]:
    """IsValidPathSegmentName (am/api/validation/path/name.go): whatever can stand in a URL."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in name]


class _RbacStrategy(Strategy):
    name_check = staticmethod(path_segment)
    create_on_update = True


class RoleStrategy(_RbacStrategy):
    fields: tuple[str, ...] = ("rules",)

    def default(self, new: Object) -> None:
        new.setdefault("rules", None)

    def validate(self, new: Object) -> list[FieldError]:
        errors = []
        for index, rule in enumerate(new["rules"] or ()):
            errors += _rule_errors(rule, self.resource.namespaced, f"rules[{index}]")
        return errors


class ClusterRoleStrategy(RoleStrategy):
    fields = ("rules", "aggregationRule")

    def validate(self, new: Object) -> list[FieldError]:
        errors = super().validate(new)
        rule = new.get("aggregationRule")
        if rule is not None and not rule.get("clusterRoleSelectors"):
            detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            errors.append(required("aggregationRule.clusterRoleSelectors", detail))
        return errors


class BindingStrategy(_RbacStrategy):
    """Role bindings and cluster role bindings."""

    fields = ("subjects", "roleRef")

    def default(self, new: Object) -> None:
        drop_empty(new, "subjects")
        for subject in new.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = GROUP
        reference = new.setdefault("roleRef", {})
        new["roleRef"] = {
            "apiGroup": reference.get("apiGroup") or GROUP,
            "kind": reference.get("kind", ""),
            "name": reference.get("name", ""),
        }

    def validate(self, new: Object) -> list[FieldError]:
        reference = new["roleRef"]
        errors = []
        if reference["apiGroup"] != GROUP:
            errors.append(not_supported("roleRef.apiGroup", reference["apiGroup"], (GROUP,)))
        kinds = ("Role", "ClusterRole") if self.resource.namespaced else ("ClusterRole",)
        if reference["kind"] not in kinds:
            errors.append(not_supported("roleRef.kind", reference["kind"], kinds))
        if not reference["name"]:
            errors.append(required("roleRef.name"))
        else:
            errors += [
                invalid_value("roleRef.name", reference["name"], text)
                for text in path_segment(reference["name"])
            ]
        for index, subject in enumerate(new.get("subjects") or ()):
            errors += _subject_errors(subject, self.resource.namespaced, f"subjects[{index}]")
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        if new["roleRef"] == old["roleRef"]:
            return []
        return [invalid_value("roleRef", new["roleRef"], "cannot change roleRef")]


def _rule_errors(rule: Object, namespaced: bool, field: str) -> list[FieldError]:
    errors = []
    if not rule.get("verbs"):
        errors.append(required(f"{field}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        at = f"{field}.nonResourceURLs"
        if namespaced:
            errors.append(invalid_value(at, urls, "namespaced rules cannot apply to non-resource URLs"))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid_value(at, urls, detail))
        return errors
    if not rule.get("apiGroups"):
        errors.append(required(f"{field}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(required(f"{field}.resources", "resource rules must supply at least one resource"))
    return errors


def _subject_errors(subject: Object, namespaced: bool, field: str) -> list[FieldError]:
    kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup", "")
    errors = [] if name else [required(f"{field}.name")]
    if kind == "ServiceAccount":
        if name:
            errors += [invalid_value(f"{field}.name", name, text) for text in faults_of(dns_subdomain, name)]
        if group:
            errors.append(not_supported(f"{field}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            errors.append(required(f"{field}.namespace"))
    elif kind in ("User", "Group"):
        if not name:
            errors.append(invalid_value(f"{field}.name", name, f"{kind.lower()} name cannot be empty"))
        if group != GROUP:
            errors.append(not_supported(f"{field}.apiGroup", group, (GROUP,)))
    else:
        errors.append(not_supported(f"{field}.kind", kind, ("ServiceAccount", "User", "Group")))
    return errors
