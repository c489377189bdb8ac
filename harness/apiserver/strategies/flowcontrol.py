"""Flow schemas and priority levels (kk/pkg/registry/flowcontrol, kk/pkg/apis/flowcontrol/{v1/defaults.go,validation}).

What the server does with them is `harness.apiserver.flowcontrol`.
"""

from __future__ import annotations

from harness.apiserver.apierrors import (
    FieldError,
    forbidden_value,
    invalid_value,
    not_supported,
    required,
)
from harness.apiserver.strategies.base import Context, Object, Strategy, drop_empty, keep, keep_metadata
from harness.apiserver.strategies.names import dns_label, dns_subdomain, faults_of

_SUBJECTS = ("Group", "ServiceAccount", "User")
_METHODS = ("ByNamespace", "ByUser")
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_DEFAULT_PRECEDENCE = 1000
_MAX_PRECEDENCE = 10000
_MAX_QUEUES = 10_000_000
_QUEUING = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
_NAMESPACES_INTRO = "each member of this list must be '*' or a DNS-1123 label; "


class _FlowControlStrategy(Strategy):
    generations = True

    def default_status(self, new: Object) -> None:
        drop_empty(new.setdefault("status", {}), "conditions")

    def prepare_create(self, new: Object, context: Context) -> None:
        new["status"] = {}

    def prepare_status(self, new: Object, old: Object, context: Context) -> None:
        """Status alone, not even labels."""
        keep(new, old, "spec")
        keep_metadata(new, old)


class FlowSchemaStrategy(_FlowControlStrategy):
    def default(self, new: Object) -> None:
        spec = new.setdefault("spec", {})
        spec.setdefault("priorityLevelConfiguration", {}).setdefault("name", "")
        if not spec.get("matchingPrecedence"):
            spec["matchingPrecedence"] = _DEFAULT_PRECEDENCE
        drop_empty(spec, "rules")
        self.default_status(new)

    def validate(self, new: Object) -> list[FieldError]:
        spec, name = new["spec"], new["metadata"].get("name", "")
        errors = _precedence_errors(spec["matchingPrecedence"], name)
        method = spec.get("distinguisherMethod")
        if method is not None and method.get("type") not in _METHODS:
            errors.append(not_supported("spec.distinguisherMethod.type", method.get("type", ""), _METHODS))
        level, field = spec["priorityLevelConfiguration"]["name"], "spec.priorityLevelConfiguration.name"
        if not level:
            errors.append(required(field, "must reference a priority level"))
        else:
            errors += [invalid_value(field, level, text) for text in faults_of(dns_subdomain, level)]
        for index, rule in enumerate(spec.get("rules") or ()):
            errors += _rule_errors(rule, f"spec.rules[{index}]")
        return errors


class PriorityLevelStrategy(_FlowControlStrategy):
    def default(self, new: Object) -> None:
        spec = new.setdefault("spec", {})
        spec.setdefault("type", "")
        if spec["type"] == "Exempt":
            exempt = spec.setdefault("exempt", {})
            exempt.setdefault("nominalConcurrencyShares", 0)
            exempt.setdefault("lendablePercent", 0)
        elif spec["type"] == "Limited":
            self._default_limited(spec.setdefault("limited", {}))
        self.default_status(new)

    def _default_limited(self, limited: Object) -> None:
        limited.setdefault("nominalConcurrencyShares", 30)
        limited.setdefault("lendablePercent", 0)
        response = limited.setdefault("limitResponse", {})
        response.setdefault("type", "")
        queuing = response.get("queuing")
        if queuing is not None:
            for key, value in _QUEUING.items():
                if not queuing.get(key):
                    queuing[key] = value

    def validate(self, new: Object) -> list[FieldError]:
        spec, kind = new["spec"], new["spec"]["type"]
        errors: list[FieldError] = []
        for key, owner in (("limited", "Limited"), ("exempt", "Exempt")):
            if kind != owner and kind in ("Limited", "Exempt") and spec.get(key) is not None:
                errors.append(forbidden_value(f"spec.{key}", f"must be nil if the type is {kind}"))
        if kind == "Limited":
            return errors + _limited_errors(spec["limited"])
        if kind == "Exempt":
            return errors + _share_errors(spec["exempt"], "spec.exempt")
        return [*errors, not_supported("spec.type", kind, ("Exempt", "Limited"))]


def _precedence_errors(precedence: int, name: str) -> list[FieldError]:
    field = "spec.matchingPrecedence"
    if precedence <= 0:
        return [invalid_value(field, precedence, "must be a positive value")]
    if precedence > _MAX_PRECEDENCE:
        return [invalid_value(field, precedence, f"must not be greater than {_MAX_PRECEDENCE}")]
    if precedence == 1 and name != "exempt":
        return [
            invalid_value(field, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")
        ]
    return []


def _rule_errors(rule: Object, field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    subjects = rule.get("subjects") or []
    if not subjects:
        errors.append(required(f"{field}.subjects", "subjects must contain at least one value"))
    for index, subject in enumerate(subjects):
        errors += _subject_errors(subject, f"{field}.subjects[{index}]")
    resources, urls = rule.get("resourceRules") or [], rule.get("nonResourceRules") or []
    if not resources and not urls:
        detail = "at least one of resourceRules and nonResourceRules has to be non-empty"
        errors.append(required(field, detail))
    for index, item in enumerate(resources):
        errors += _resource_rule_errors(item, f"{field}.resourceRules[{index}]")
    for index, item in enumerate(urls):
        at = f"{field}.nonResourceRules[{index}]"
        errors += _verb_errors(item, at)
        errors += _list_errors(item, at, "nonResourceURLs", "nonResourceURLs", "non-resource URLs")
    return errors


def _subject_errors(subject: Object, field: str) -> list[FieldError]:
    kind = subject.get("kind", "")
    if kind not in _SUBJECTS:
        return [not_supported(f"{field}.kind", kind, _SUBJECTS)]
    key = kind[0].lower() + kind[1:]
    value = subject.get(key)
    if value is None:
        return [required(f"{field}.{key}", f"{key} is required when subject kind is '{kind}'")]
    errors = [] if value.get("name") else [required(f"{field}.{key}.name")]
    if kind == "ServiceAccount" and not value.get("namespace"):
        errors.append(required(f"{field}.{key}.namespace", "must specify namespace for service account"))
    for other in _SUBJECTS:
        name = other[0].lower() + other[1:]
        if other != kind and subject.get(name) is not None:
            detail = f"{name} is forbidden when subject kind is not '{other}'"
            errors.append(forbidden_value(f"{field}.{name}", detail))
    return errors


def _resource_rule_errors(rule: Object, field: str) -> list[FieldError]:
    errors = _verb_errors(rule, field)
    errors += _list_errors(rule, field, "apiGroups", "resource rules", "api groups", "api group")
    errors += _list_errors(rule, field, "resources", "resource rules", "resources", "resource")
    namespaces, at = rule.get("namespaces") or [], f"{field}.namespaces"
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        return [*errors, required(at, detail)]
    if "*" in namespaces:
        if len(namespaces) > 1:
            errors.append(
                invalid_value(at, namespaces, "if '*' is present, must not specify other namespaces")
            )
        return errors
    for index, name in enumerate(namespaces):
        errors += [
            invalid_value(f"{at}[{index}]", name, _NAMESPACES_INTRO + text)
            for text in faults_of(dns_label, name)
        ]
    return errors


def _verb_errors(rule: Object, field: str) -> list[FieldError]:
    verbs, at = rule.get("verbs") or [], f"{field}.verbs"
    if not verbs:
        return [required(at, "verbs must contain at least one value")]
    if "*" in verbs:
        detail = "if '*' is present, must not specify other verbs"
        return [invalid_value(at, verbs, detail)] if len(verbs) > 1 else []
    return [] if set(verbs) <= set(_VERBS) else [not_supported(at, verbs, _VERBS)]


def _list_errors(
    rule: Object, field: str, key: str, who: str, plural: str, singular: str = ""
) -> list[FieldError]:
    values, at = rule.get(key) or [], f"{field}.{key}"
    if not values:
        what = (
            f"{who} must supply at least one {singular}"
            if singular
            else f"{who} must contain at least one value"
        )
        return [required(at, what)]
    if "*" in values and len(values) > 1:
        return [invalid_value(at, values, f"if '*' is present, must not specify other {plural}")]
    return []


def _share_errors(part: Object, field: str, least: int = 0) -> list[FieldError]:
    shares, lendable = part["nominalConcurrencyShares"], part["lendablePercent"]
    errors = []
    if shares < least:
        errors.append(
            invalid_value(f"{field}.nominalConcurrencyShares", shares, "must be a non-negative integer")
        )
    if not 0 <= lendable <= 100:
        detail = "must be between 0 and 100, inclusive"
        errors.append(invalid_value(f"{field}.lendablePercent", lendable, detail))
    return errors


def _limited_errors(limited: Object) -> list[FieldError]:
    errors = _share_errors(limited, "spec.limited")
    borrowing = limited.get("borrowingLimitPercent")
    if borrowing is not None and borrowing < 0:
        field = "spec.limited.borrowingLimitPercent"
        errors.append(invalid_value(field, borrowing, "if specified, must be a non-negative integer"))
    response, field = limited["limitResponse"], "spec.limited.limitResponse"
    queuing = response.get("queuing")
    if response["type"] == "Reject":
        if queuing is not None:
            detail = "must be nil if limited.limitResponse.type is not Limited"
            errors.append(forbidden_value(f"{field}.queuing", detail))
    elif response["type"] == "Queue":
        if queuing is None:
            errors.append(
                required(f"{field}.queuing", "must not be empty if limited.limitResponse.type is Limited")
            )
        else:
            errors += _queuing_errors(queuing, f"{field}.queuing")
    else:
        errors.append(not_supported(f"{field}.type", response["type"], ("Queue", "Reject")))
    return errors


def _queuing_errors(queuing: Object, field: str) -> list[FieldError]:
    queues, hand, length = (queuing[key] for key in _QUEUING)
    errors = []
    if length <= 0:
        errors.append(invalid_value(f"{field}.queueLengthLimit", length, "must be positive"))
    if queues <= 0:
        errors.append(invalid_value(f"{field}.queues", queues, "must be positive"))
    elif queues > _MAX_QUEUES:
        errors.append(invalid_value(f"{field}.queues", queues, f"must not be greater than {_MAX_QUEUES}"))
    if hand <= 0:
        errors.append(invalid_value(f"{field}.handSize", hand, "must be positive"))
    elif hand > queues:
        detail = f"should not be greater than queues ({queues})"
        errors.append(invalid_value(f"{field}.handSize", hand, detail))
    return errors
