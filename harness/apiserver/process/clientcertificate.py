"""The client's certificate of a TLS connection, as the core sees it."""

from __future__ import annotations

import hashlib
import ssl
from typing import Any

from harness.apiserver.exchange import ClientCertificate


def client_certificate(connection: ssl.SSLObject) -> ClientCertificate | None:
    """None where the client has shown none."""
    encoded = connection.getpeercert(binary_form=True)
    if encoded is None:
        return None
    decoded: dict[str, Any] = connection.getpeercert() or {}
    names = [pair for group in decoded.get("subject", ()) for pair in group]
    return ClientCertificate(
        next((value for key, value in names if key == "commonName"), ""),
        tuple(value for key, value in names if key == "organizationName"),
        float(ssl.cert_time_to_seconds(decoded["notBefore"])),
        float(ssl.cert_time_to_seconds(decoded["notAfter"])),
        hashlib.sha256(encoded).hexdigest(),
    )
