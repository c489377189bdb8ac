"""Client certificates made on the spot by an authority that the apiserver trusts (its --client-ca-file)."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from harness.wire.errors import ConfigError

LIFETIME = datetime.timedelta(days=7)  # longer than any run
_BACKDATE = datetime.timedelta(minutes=5)  # clocks differ; the signer of Kubernetes does the same


class Authority:
    """`certificate` and `key` are PEM; `source` names them in a ConfigError; what it makes lives `life_s` from now, 0:
    longer than any run. `wall` is the time of day by which they are checked. One certificate takes 0.2 ms of CPU."""

    def __init__(
        self,
        certificate: bytes,
        key: bytes,
        source: str,
        life_s: float = 0.0,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._wall = wall
        self._life = datetime.timedelta(seconds=life_s) if life_s else LIFETIME
        try:
            self._certificate = x509.load_pem_x509_certificate(certificate)
        except ValueError as error:
            raise ConfigError(f"{source}: the authority's certificate is not PEM: {error}") from error
        try:
            loaded = serialization.load_pem_private_key(key, None)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{source}: the authority's key cannot be read: {error}") from error
        public = loaded.public_key()
        if _spki(public) != _spki(self._certificate.public_key()):
            raise ConfigError(f"{source}: the authority's key does not belong to its certificate")
        self._key: CertificateIssuerPrivateKeyTypes = loaded  # type: ignore[assignment]
        # Its own key for every node would cost 0.03 ms more and show the server nothing else.
        self._client_key = ec.generate_private_key(ec.SECP256R1())
        self._client_pem = private_pem(self._client_key)

    def make(self, user: str, groups: Sequence[str]) -> bytes:
        """PEM: a key, and a certificate for it by which a server knows `user` in `groups`."""
        now = datetime.datetime.fromtimestamp(self._wall(), datetime.UTC)
        issuer = self._certificate
        made = (
            x509.CertificateBuilder()
            .subject_name(subject_of(user, groups))
            .issuer_name(issuer.subject)
            .public_key(self._client_key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATE)
            .not_valid_after(min(now + self._life, issuer.not_valid_after_utc))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return self._client_pem + made.public_bytes(serialization.Encoding.PEM)


def subject_of(user: str, groups: Sequence[str]) -> x509.Name:
    """CN is the user, each O a group."""
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _spki(key: object) -> bytes:
    public: ec.EllipticCurvePublicKey = key  # type: ignore[assignment]  # of any kind; all have this method
    return public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
