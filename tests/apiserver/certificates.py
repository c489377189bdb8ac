"""Certificate signing requests for tests."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@cache
def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def request(name: str, groups: tuple[str, ...] = (), alternatives: Sequence[str] = ()) -> str:
    """spec.request: base64 of a PEM request with this CN, these Os and DNS names."""
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    if name:
        names.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    if alternatives:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(item) for item in alternatives]), critical=False
        )
    signed = builder.sign(key(), hashes.SHA256())
    return base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()
