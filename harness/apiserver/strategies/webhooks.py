"""Admission that clients configure (kk/pkg/apis/admissionregistration/v1/defaults.go).

Objects are kept as a real server keeps them; nothing calls the webhooks or evaluates the policies.
"""

from __future__ import annotations

from harness.apiserver.apierrors import FieldError, required
from harness.apiserver.resources import Resource
from harness.apiserver.strategies.apps import WorkloadStrategy
from harness.apiserver.strategies.base import Context, Object, Strategy, section

_HTTPS_PORT = 443
_TIMEOUT_S = 10


class WebhookStrategy(Strategy):
    fields = ("webhooks",)
    generations = True
    unconditional_update = False

    def default(self, new: Object) -> None:
        for webhook in new.get("webhooks") or ():
            _default_webhook(webhook)
            if self.resource.kind == "MutatingWebhookConfiguration":
                webhook.setdefault("reinvocationPolicy", "Never")

    def changed(self, new: Object, old: Object) -> bool:
        return bool(new.get("webhooks") != old.get("webhooks"))

    def validate(self, new: Object) -> list[FieldError]:
        errors = []
        for index, webhook in enumerate(new.get("webhooks") or ()):
            at = f"webhooks[{index}]"
            if not webhook.get("admissionReviewVersions"):
                detail = "must specify one of v1, v1beta1"
                errors.append(required(f"{at}.admissionReviewVersions", detail))
            if webhook.get("sideEffects") is None:
                errors.append(required(f"{at}.sideEffects", "must specify one of None, NoneOnDryRun"))
        return errors


def _default_webhook(webhook: Object) -> None:
    service = section(webhook, "clientConfig").get("service")
    if service is not None:
        service.setdefault("port", _HTTPS_PORT)
    for rule in webhook.get("rules") or ():
        rule.setdefault("scope", "*")
    webhook.setdefault("failurePolicy", "Fail")
    _default_matching(webhook)
    webhook.setdefault("timeoutSeconds", _TIMEOUT_S)


def _default_matching(value: Object) -> None:
    value.setdefault("matchPolicy", "Equivalent")
    section(value, "namespaceSelector")
    section(value, "objectSelector")


class AdmissionPolicyStrategy(WorkloadStrategy):
    """ValidatingAdmissionPolicy has a status, MutatingAdmissionPolicy has none."""

    unconditional_update = False

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource)
        if "status" not in resource.subresources:
            self.fields = ("spec",)

    def default(self, new: Object) -> None:
        spec = section(new, "spec")
        spec.setdefault("failurePolicy", "Fail")
        constraints = spec.get("matchConstraints")
        if constraints is not None:
            _default_constraints(constraints)
        if "status" in self.fields:
            self.default_status(new)

    def prepare_create(self, new: Object, context: Context) -> None:
        if "status" in self.fields:
            super().prepare_create(new, context)


def _default_constraints(constraints: Object) -> None:
    _default_matching(constraints)
    for key in ("resourceRules", "excludeResourceRules"):
        for rule in constraints.get(key) or ():
            rule.setdefault("scope", "*")


class AdmissionBindingStrategy(Strategy):
    fields = ("spec",)
    generations = True
    unconditional_update = False

    def default(self, new: Object) -> None:
        resources = section(new, "spec").get("matchResources")
        if resources is not None:
            _default_constraints(resources)
