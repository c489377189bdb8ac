"""A node's client certificate renewed by its kubelet (`harness.fleet.certificates`): the key and the request are made
here, the certificate that comes of it is shown by the connections from then on."""

from __future__ import annotations

from collections.abc import Sequence

from harness.fleet.certificates import Validity
from harness.transport.pool import Transport
from harness.transport.tls import ClientTls

_BEGIN = b"-----BEGIN CERTIFICATE-----"


class Renewal:
    """Of one client (`harness.fleet.certificates.OwnCertificate`)."""

    __slots__ = ("_groups", "_key_pem", "_tls", "_user")

    def __init__(self, tls: ClientTls, user: str, groups: Sequence[str]) -> None:
        self._tls = tls
        self._user = user
        self._groups = tuple(groups)
        self._key_pem = b""

    def validity(self, certificate: bytes = b"") -> Validity | None:
        from cryptography import x509

        pem = certificate or self._tls.pem
        try:
            found = x509.load_pem_x509_certificate(pem[pem.index(_BEGIN) :])
        except ValueError:
            return None
        return Validity(found.not_valid_before_utc.timestamp(), found.not_valid_after_utc.timestamp())

    def request(self) -> bytes:
        """PEM of a signing request for a new key, which is kept for `accept`. Takes 0.2 ms of CPU."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        from harness.load.identity.authority import private_pem, subject_of

        key = ec.generate_private_key(ec.SECP256R1())
        self._key_pem = private_pem(key)
        builder = x509.CertificateSigningRequestBuilder().subject_name(subject_of(self._user, self._groups))
        return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def accept(self, certificate: bytes) -> None:
        """Show this certificate (PEM) from the next connection on."""
        self._tls.pem = self._key_pem + certificate


def renewal_of(transport: Transport, user: str, groups: Sequence[str]) -> Renewal | None:
    """None for a client that shows no certificate of its own."""
    tls = transport.tls
    return Renewal(tls, user, groups) if isinstance(tls, ClientTls) else None
