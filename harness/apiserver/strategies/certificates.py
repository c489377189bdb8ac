"""Certificate signing requests (kk/pkg/registry/certificates/certificates/strategy.go,
kk/pkg/apis/certificates/validation/validation.go).

Who asks (spec.username, groups, uid, extra) is filled in by `admission.certificates`, which knows the user.
"""

from __future__ import annotations

from harness.apiserver.apierrors import (
    FieldError,
    duplicate,
    forbidden_value,
    invalid_value,
    not_supported,
    required,
)
from harness.apiserver.certificates.requests import BadRequest, check_certificates, read_request
from harness.apiserver.strategies.base import Context, Object, Strategy, drop_empty, keep
from harness.apiserver.strategies.names import dns_subdomain, faults_of
from harness.wire.gotext import quote

APPROVAL = ("Approved", "Denied")
_FINAL = (*APPROVAL, "Failed")
_STATUSES = ("False", "True", "Unknown")
_MIN_EXPIRATION_S = 600
USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)


def any_name(name: str) -> list[str]:
    """Requests may be called anything."""
    return []


class CertificateSigningRequestStrategy(Strategy):
    """Nothing of a request changes but by its subresources: conditions by approval, the certificate by status."""

    name_check = staticmethod(any_name)

    def default(self, new: Object) -> None:
        new.setdefault("spec", {}).setdefault("request", None)
        self.default_status(new)

    def default_status(self, new: Object) -> None:
        status = new.setdefault("status", {})
        drop_empty(status, "conditions", "certificate")
        for condition in status.get("conditions") or ():
            if not condition.get("status"):
                condition["status"] = "True"

    def prepare_create(self, new: Object, context: Context) -> None:
        new["status"] = {}

    def prepare_update(self, new: Object, old: Object, context: Context) -> None:
        keep(new, old, "spec")
        keep(new, old, "status")

    def prepare_status(self, new: Object, old: Object, context: Context) -> None:
        """Approval stays as it was; the rest of the conditions and the certificate are the signer's."""
        keep(new, old, "spec")
        before = conditions(old)
        kept = [item for item in before if item.get("type") in APPROVAL]
        others = [item for item in conditions(new) if item.get("type") not in APPROVAL]
        _set_conditions(new, _stamped(kept + others, before, context.now))

    def prepare_subresource(self, subresource: str, new: Object, old: Object, context: Context) -> None:
        """Approval: conditions only; the certificate stays as it was."""
        keep(new, old, "spec")
        wanted = conditions(new)
        new["status"] = dict(old.get("status") or {})
        _set_conditions(new, _stamped(wanted, conditions(old), context.now))

    def validate(self, new: Object) -> list[FieldError]:
        spec = new["spec"]
        errors = _request_errors(spec.get("request"))
        usages = spec.get("usages") or []
        if not usages:
            errors.append(required("spec.usages"))
        for index, usage in enumerate(usages):
            if usage not in USAGES:
                errors.append(not_supported(f"spec.usages[{index}]", usage, USAGES))
            if usage in usages[:index]:
                errors.append(duplicate(f"spec.usages[{index}]", usage))
        errors += _signer_errors(spec.get("signerName", ""))
        seconds = spec.get("expirationSeconds")
        if seconds is not None and seconds < _MIN_EXPIRATION_S:
            detail = "may not specify a duration less than 600 seconds (10 minutes)"
            errors.append(invalid_value("spec.expirationSeconds", seconds, detail))
        return errors

    def validate_subresource(self, subresource: str, new: Object, old: Object) -> list[FieldError]:
        errors = _condition_errors(conditions(new))
        for kind in _FINAL:
            if _count(new, kind) < _count(old, kind):
                detail = f"updates may not remove a condition of type {quote(kind)}"
                errors.append(forbidden_value("status.conditions", detail))
        before = (old.get("status") or {}).get("certificate")
        certificate = (new.get("status") or {}).get("certificate")
        if certificate != before:
            if before:
                detail = "updates may not modify existing certificate content"
                errors.append(forbidden_value("status.certificate", detail))
            elif (why := check_certificates(certificate)) is not None:
                errors.append(invalid_value("status.certificate", "<certificate data>", why))
        return errors


def conditions(request: Object) -> list[Object]:
    """The conditions of a request's status."""
    return (request.get("status") or {}).get("conditions") or []


def _count(request: Object, kind: str) -> int:
    return sum(item.get("type") == kind for item in conditions(request))


def _set_conditions(new: Object, values: list[Object]) -> None:
    status = new.setdefault("status", {})
    if values:
        new["status"] = {"conditions": values, **{k: v for k, v in status.items() if k != "conditions"}}
    else:
        status.pop("conditions", None)


def _stamped(values: list[Object], before: list[Object], now: str) -> list[Object]:
    """With the times that were left out: of the last update, and of the last change of status
    (strategy.go, populateConditionTimestamps)."""
    stamped = []
    for value in values:
        same = [
            item
            for item in before
            if (item.get("type"), item.get("status")) == (value.get("type"), value["status"])
        ]
        since = same[0].get("lastTransitionTime") if same else None
        stamped.append(
            {
                **value,
                "lastUpdateTime": value.get("lastUpdateTime") or now,
                "lastTransitionTime": value.get("lastTransitionTime") or since or now,
            }
        )
    return stamped


def _request_errors(request: object) -> list[FieldError]:
    try:
        read_request(request)
    except BadRequest as error:
        return [invalid_value("spec.request", request, str(error))]
    return []


def _signer_errors(name: str) -> list[FieldError]:
    """ValidateSignerName (kk/pkg/apis/core/validation)."""
    field = "spec.signerName"
    if not name:
        return [required(field)]
    if name == "kubernetes.io/legacy-unknown":
        detail = "the legacy signerName is not allowed via this API version"
        return [invalid_value(field, name, detail)]
    domain, _, path = name.partition("/")
    if not path or "/" in path:
        detail = 'must be a fully qualified domain and path of the form "example.com/signer-name"'
        return [invalid_value(field, name, detail)]
    errors = [invalid_value(field, domain, text) for text in faults_of(dns_subdomain, domain)]
    if "." not in domain:
        errors.append(
            invalid_value(field, domain, "should be a domain with at least two segments separated by dots")
        )
    return errors + [invalid_value(field, path, text) for text in faults_of(dns_subdomain, path)]


def _condition_errors(values: list[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, value in enumerate(values):
        kind, field = value.get("type", ""), f"status.conditions[{index}]"
        if not kind:
            errors.append(required(f"{field}.type"))
        allowed = ("True",) if kind in _FINAL else _STATUSES
        if value["status"] not in allowed:
            errors.append(not_supported(f"{field}.status", value["status"], allowed))
        if kind in APPROVAL and seen & (set(APPROVAL) - {kind}):
            detail = "Approved and Denied conditions are mutually exclusive"
            errors.append(invalid_value(f"{field}.type", kind, detail))
        if kind in seen:
            errors.append(duplicate(f"{field}.type", kind))
        seen.add(kind)
    return errors
