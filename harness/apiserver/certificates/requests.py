"""PKCS#10 requests as CertificateSigningRequests carry them: base64 of PEM (kk/pkg/apis/certificates/helpers.go)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cryptography import x509

KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
CLIENT = "kubernetes.io/kube-apiserver-client"
_BEGIN = b"-----BEGIN CERTIFICATE REQUEST-----"
_KUBELET_USAGES = frozenset({"digital signature", "client auth"})
_KEY_ENCIPHERMENT = "key encipherment"


class BadRequest(Exception):
    """What is wrong with a request, in upstream's words."""


class Request(msgspec.Struct, frozen=True):
    """What matters of a request; `parsed` has the rest."""

    common_name: str
    organizations: tuple[str, ...]
    alternatives: tuple[str, ...]
    parsed: x509.CertificateSigningRequest


def read_request(encoded: object) -> Request:
    """Read spec.request and check its signature. Raises BadRequest."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        pem = base64.b64decode(encoded if isinstance(encoded, str) else "", validate=True)
    except (ValueError, binascii.Error):
        raise BadRequest("illegal base64 data") from None
    if not pem.lstrip().startswith(_BEGIN):
        raise BadRequest("PEM block type must be CERTIFICATE REQUEST")
    try:
        parsed = x509.load_pem_x509_csr(pem)
        if not parsed.is_signature_valid:
            raise BadRequest("x509: signature verification failed")
        subject = parsed.subject
        names = tuple(str(item.value) for item in subject.get_attributes_for_oid(NameOID.COMMON_NAME))
        organizations = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        return Request(
            names[0] if names else "",
            tuple(str(item.value) for item in organizations),
            _alternatives(parsed),
            parsed,
        )
    except ValueError as error:
        raise BadRequest(f"x509: malformed certificate request: {error}") from None


def _alternatives(parsed: x509.CertificateSigningRequest) -> tuple[str, ...]:
    from cryptography import x509

    try:
        names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(name) for name in names)


def kubelet_client_fault(request: Request, usages: Sequence[str]) -> str | None:
    """Why a request is not that of a kubelet for its client certificate, None if it is
    (helpers.go, ValidateKubeletClientCSR)."""
    if request.organizations != ("system:nodes",):
        return "subject organization is not system:nodes"
    if request.alternatives:
        return "DNS, IP, email or URI subjectAltNames are not allowed"
    if not request.common_name.startswith("system:node:"):
        return "subject common name does not begin with system:node:"
    if set(usages) - {_KEY_ENCIPHERMENT} != _KUBELET_USAGES:
        return "usages did not match [client auth digital signature], [client auth digital signature key encipherment]"
    return None


def client_fault(usages: Sequence[str]) -> str | None:
    """Why usages are not those of a client certificate (signer.go, validAPIServerClientUsages)."""
    for usage in usages:
        if usage not in ("digital signature", _KEY_ENCIPHERMENT, "client auth"):
            return f"invalid usage for client certificate: {usage}"
    return None if "client auth" in usages else "missing required usage for client certificate: client auth"


def check_certificates(encoded: object) -> str | None:
    """Why status.certificate is not a chain of PEM certificates, None if it is, or is empty."""
    from cryptography import x509

    if not encoded:
        return None
    try:
        pem = base64.b64decode(encoded if isinstance(encoded, str) else "", validate=True)
        x509.load_pem_x509_certificates(pem)
    except ValueError:
        return "must contain at least one CERTIFICATE PEM block"
    return None
