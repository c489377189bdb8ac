"""A node's client certificate renewed by its kubelet (`harness.fleet.certificates`): the key and the request are made
here, the certificate that comes of it is shown by the connections from then on."""

from __future__ import annotations

from collections.abc import Sequence

from harness.transport.pool import Transport
from harness.transport.tls import ClientTls


class Renewal:
    """Of one client. `life_s` is how long its present certificate lives from its beginning to its end."""

    __slots__ = ("_groups", "_key_pem", "_tls", "_user", "life_s")

    def __init__(self, tls: ClientTls, user: str, groups: Sequence[str]) -> None:
        from cryptography import x509

        self._tls = tls
        self._user = user
        self._groups = tuple(groups)
        self._key_pem = b""
        certificate = x509.load_pem_x509_certificate(tls.pem[tls.pem.index(b"-----BEGIN CERTIFICATE") :])
        life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
        self.life_s = life.total_seconds()

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
