"""TLS contexts of clients, one for each kind of target in a process, and where their material comes from."""

from __future__ import annotations

import os
import ssl
import tempfile
from functools import lru_cache
from typing import Any

from harness.transport.options import HttpMode
from harness.wire.errors import ConfigError

_ALPN: dict[HttpMode, list[str]] = {
    "auto": ["h2", "http/1.1"],
    "h2": ["h2"],
    "http/1.1": ["http/1.1"],
}


@lru_cache(maxsize=64)
def client_context(
    ca: bytes | None = None,
    certificate: bytes | None = None,
    key: bytes | None = None,
    *,
    insecure: bool = False,
    http: HttpMode = "auto",
    source: str = "the given TLS files",
    purpose: str = "",
) -> ssl.SSLContext:
    """A context for clients; the same arguments give the same object, as a fresh one with the system's authorities
    costs 29 ms and 0.8 MB (with one authority 0.4 ms and 25 KB). `purpose` keeps contexts apart that are alike.

    `ca`, `certificate` and `key` are PEM. Without `ca` the system's roots count; `insecure` checks nothing. The context
    offers HTTP/2 and HTTP/1.1 as `http` says, so it must be used with the same `http`. `source` only names where the
    material came from in a ConfigError, which is raised where OpenSSL refuses it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(_ALPN[http])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca is None:
        context.load_default_certs()
    else:
        try:
            context.load_verify_locations(cadata=ca.decode("ascii"))
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"{source}: the certificate authority is not PEM: {_reason(error)}") from error
    if certificate is not None or key is not None:
        _load_certificate(context, certificate, key, source)
    return context


def _load_certificate(
    context: ssl.SSLContext, certificate: bytes | None, key: bytes | None, source: str
) -> None:
    if certificate is None or key is None:
        missing = "the client certificate" if certificate is None else "the client key"
        raise ConfigError(f"{source}: {missing} is missing; a client certificate needs both")
    try:
        _load(context, key.rstrip(b"\n") + b"\n" + certificate)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{source}: client certificate and key cannot be used: {_reason(error)}") from error


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    # The ssl module takes a chain only from a file; mkstemp makes one that nobody else can read.
    descriptor, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
        context.load_cert_chain(path, password=lambda: b"")
    finally:
        os.unlink(path)


class ClientTls:
    """One client's certificate on a context that thousands of clients share.

    A connection takes the certificate that its context has at the time of its making (OpenSSL's ``SSL_new`` copies it),
    so it is enough to put the client's own there just before. That costs 0.8 ms of CPU a connection, and saves the
    25 KB of a context for each client. All certificates of one context must be of the same kind of key: OpenSSL keeps
    one of each kind. `pem` is a key and its certificate; it may be replaced, for connections yet to come.
    """

    __slots__ = ("_context", "pem")

    def __init__(self, context: ssl.SSLContext, pem: bytes) -> None:
        self._context = context
        self.pem = pem

    def __repr__(self) -> str:
        return f"<ClientTls on {self._context!r}>"

    def check(self, source: str) -> None:
        """Raises ConfigError where OpenSSL does not take the certificate."""
        try:
            _load(self._context, self.pem)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(
                f"{source}: client certificate and key cannot be used: {_reason(error)}"
            ) from error

    def _wrap_socket(self, sock: Any, server_side: bool, name: str) -> Any:
        """As `SSLContext._wrap_socket`, which has no other name either. Nothing else runs between the two calls."""
        _load(self._context, self.pem)
        context: Any = self._context
        return context._wrap_socket(sock, server_side, name)


def _reason(error: Exception) -> str:
    return (getattr(error, "reason", None) or str(error)).lower().replace("_", " ")
