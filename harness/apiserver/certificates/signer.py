"""Signing what has been approved, as kube-controller-manager's csrsigning controllers do
(kk/pkg/controller/certificates/{signer/signer.go,authority/policies.go})."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from harness.apiserver.certificates.requests import Request

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes

_LEAST_S = 600
_BACKDATE = datetime.timedelta(minutes=5)
_SHORT_S = 8 * 3600  # what lives no longer than this is not made shorter by its backdating
_KEY_USAGES = {
    "digital signature": "digital_signature",
    "signing": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "data encipherment": "data_encipherment",
    "key agreement": "key_agreement",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
}
_EXTENDED = {"client auth": "CLIENT_AUTH", "server auth": "SERVER_AUTH", "any": "ANY_EXTENDED_KEY_USAGE"}


class Signer:
    """An authority, given as PEM; read on its first use. `wall` gives seconds since 1970, `duration_s` is the longest
    that a certificate lives (--cluster-signing-duration), 5 min before its making not counted."""

    def __init__(self, certificate: bytes, key: bytes, wall: Callable[[], float], duration_s: float) -> None:
        self._duration_s = duration_s
        self._pem = certificate
        self._key_pem = key
        self._wall = wall

    def sign(self, request: Request, usages: Sequence[str], seconds: int | None) -> bytes:
        """A PEM certificate for the request's key and subject, good for `seconds` (None: as long as may be)."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization

        issuer, key = self._authority
        now = datetime.datetime.fromtimestamp(self._wall(), datetime.UTC)
        longest_s = self._duration_s
        life_s = longest_s if seconds is None else min(longest_s, max(_LEAST_S, seconds))
        begins = now - _BACKDATE
        ends = (begins if life_s > _SHORT_S else now) + datetime.timedelta(seconds=life_s)
        builder = (
            x509.CertificateBuilder()
            .subject_name(request.parsed.subject)
            .issuer_name(issuer.subject)
            .public_key(request.parsed.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(min(ends, issuer.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key()),  # type: ignore[arg-type]
                critical=False,
            )
        )
        if set(_KEY_USAGES) & set(usages):  # one without any use would forbid every use
            builder = builder.add_extension(_key_usage(usages), critical=True)
        extended = _extended_usages(usages)
        if extended:
            builder = builder.add_extension(x509.ExtendedKeyUsage(extended), critical=False)
        if request.alternatives:
            names = request.parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM)

    @cached_property
    def _authority(self) -> tuple[x509.Certificate, CertificateIssuerPrivateKeyTypes]:
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(self._key_pem, None)
        return x509.load_pem_x509_certificate(self._pem), key  # type: ignore[return-value]


def _key_usage(usages: Sequence[str]) -> x509.KeyUsage:
    from cryptography import x509

    given = dict.fromkeys(_KEY_USAGES.values(), False)
    given |= {_KEY_USAGES[usage]: True for usage in usages if usage in _KEY_USAGES}
    return x509.KeyUsage(**given, encipher_only=False, decipher_only=False)


def _extended_usages(usages: Sequence[str]) -> list[x509.ObjectIdentifier]:
    from cryptography.x509.oid import ExtendedKeyUsageOID

    return [getattr(ExtendedKeyUsageOID, _EXTENDED[usage]) for usage in usages if usage in _EXTENDED]
