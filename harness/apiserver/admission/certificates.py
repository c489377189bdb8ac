"""What is asked of certificate signing requests: who they are from, and whether approvers and signers may
(kubernetes v1.36 plugin/pkg/admission/certificates, CertificateApproval, CertificateSigning,
CertificateSubjectRestriction; whose request it is: kk/pkg/registry/certificates/certificates/strategy.go)."""

from __future__ import annotations

from collections.abc import Callable

from harness.apiserver.admission.attributes import Attributes, Object
from harness.apiserver.apierrors import forbidden
from harness.apiserver.auth.authentication import MASTERS, UserInfo
from harness.apiserver.certificates.requests import CLIENT, BadRequest, read_request
from harness.wire.gotext import quote
from harness.wire.paths import RequestInfo

GROUP = "certificates.k8s.io"
MayDo = Callable[[UserInfo, RequestInfo], bool]


class CertificateAdmission:
    """`may` is the authorizer."""

    def __init__(self, may: MayDo) -> None:
        self._may = may

    def create(self, attributes: Attributes) -> None:
        """Say whose request it is; refuse certificates of the privileged group. Raises StatusError 403."""
        request, user = attributes.new, attributes.user
        assert request is not None
        spec = request.setdefault("spec", {})
        for key in ("username", "uid", "groups", "extra"):
            spec.pop(key, None)
        spec["username"] = user.name
        if user.uid:
            spec["uid"] = user.uid
        if user.groups:
            spec["groups"] = list(user.groups)
        if user.extra:
            spec["extra"] = {key: list(values) for key, values in user.extra}
        if spec.get("signerName") == CLIENT and MASTERS in _organizations(spec):
            text = f"use of {CLIENT} signer with {MASTERS} group is not allowed"
            raise forbidden(attributes.resource, attributes.shown_name, text)

    def update(self, attributes: Attributes) -> None:
        """Approving and signing need rights on the signer beside those on the request. Raises StatusError 403."""
        new, old = attributes.new or {}, attributes.old or {}
        name = (old.get("spec") or {}).get("signerName", "")
        if attributes.subresource == "approval":
            if not self._may_for(attributes.user, "approve", name):
                text = f"user not permitted to approve requests with signerName {quote(name)}"
                raise forbidden(attributes.resource, attributes.shown_name, text)
        elif (
            attributes.subresource == "status"
            and _signed(new) != _signed(old)
            and not self._may_for(attributes.user, "sign", name)
        ):
            text = f"user not permitted to sign requests with signerName {quote(name)}"
            raise forbidden(attributes.resource, attributes.shown_name, text)

    def _may_for(self, user: UserInfo, verb: str, signer: str) -> bool:
        """On the signer, or on all of its domain (plugin/pkg/admission/certificates/util.go)."""
        domain = signer.partition("/")[0] + "/*"
        return any(self._may(user, _question(verb, name)) for name in (signer, domain))


def _question(verb: str, name: str) -> RequestInfo:
    return RequestInfo("", verb, True, "apis", GROUP, "*", "", "signers", name=name, parts=("signers", name))


def _organizations(spec: Object) -> tuple[str, ...]:
    try:
        return read_request(spec.get("request")).organizations
    except BadRequest:
        return ()  # refused by validation


def _signed(request: Object) -> tuple[object, bool]:
    """What only a signer may set: the certificate, and that signing has failed."""
    status = request.get("status") or {}
    failed = any(item.get("type") == "Failed" for item in status.get("conditions") or ())
    return status.get("certificate"), failed
