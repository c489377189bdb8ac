"""A certificate authority, serving certificates and clients', made for one pool and thrown away with it."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=7)  # longer than any run, short enough that a forgotten folder is harmless


class ServingFiles(msgspec.Struct, frozen=True):
    """Paths of what a member serves with, of what its clients verify it by, and of the authority's own key, which signs
    clients."""

    ca: str
    cert: str
    key: str
    ca_key: str


class ClientFiles(msgspec.Struct, frozen=True):
    """Paths of a client's certificate and key."""

    cert: str
    key: str


def make_serving_files(folder: Path, names: Sequence[str], addresses: Sequence[str]) -> ServingFiles:
    """Write ca.crt, ca.key, apiserver.crt and apiserver.key to `folder` (keys 0600); ECDSA P-256, as Kubernetes' own
    tools. `names` are DNS names, `addresses` IP addresses that the certificate is good for."""
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "swarmlet-pool-ca")])
    ca = (
        _builder(ca_name, ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    alternatives = [*map(x509.DNSName, names), *(x509.IPAddress(ipaddress.ip_address(a)) for a in addresses)]
    unsigned = _leaf(subject, ca_name, key, ca_key, ExtendedKeyUsageOID.SERVER_AUTH)
    certificate = unsigned.add_extension(x509.SubjectAlternativeName(alternatives), critical=False).sign(
        ca_key, hashes.SHA256()
    )
    paths = [str(folder / name) for name in ("ca.crt", "apiserver.crt", "apiserver.key", "ca.key")]
    files = ServingFiles(*paths)
    Path(files.ca).write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    write_private(Path(files.ca_key), _pem(ca_key))
    Path(files.cert).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    write_private(Path(files.key), _pem(key))
    return files


def make_client_files(
    files: ServingFiles,
    folder: Path,
    name: str,
    groups: Sequence[str],
    ends_in: datetime.timedelta = LIFETIME,
) -> ClientFiles:
    """Write client.crt and client.key (0600) to `folder`: a client whom the authority of `files` vouches for. `name` is
    its CN, each of `groups` an O; `ends_in` may lie in the past, but not before its beginning, an hour ago."""
    ca_key = serialization.load_pem_private_key(Path(files.ca_key).read_bytes(), None)
    if not isinstance(ca_key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{files.ca_key} is no ECDSA key")
    issuer = x509.load_pem_x509_certificate(Path(files.ca).read_bytes()).subject
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
    unsigned = _leaf(subject, issuer, key, ca_key, ExtendedKeyUsageOID.CLIENT_AUTH, ends_in)
    certificate = unsigned.sign(ca_key, hashes.SHA256())
    client = ClientFiles(str(folder / "client.crt"), str(folder / "client.key"))
    Path(client.cert).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    write_private(Path(client.key), _pem(key))
    return client


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, from its first byte on."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_bytes(data)


def _leaf(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    ca_key: ec.EllipticCurvePrivateKey,
    usage: x509.ObjectIdentifier,
    ends_in: datetime.timedelta = LIFETIME,
) -> x509.CertificateBuilder:
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return (
        _builder(subject, issuer, key.public_key(), ends_in)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(authority, critical=False)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    ends_in: datetime.timedelta = LIFETIME,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + ends_in)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
