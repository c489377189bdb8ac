"""What a client shows for itself, by the identity that a run's plan chose."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import gevent

from harness.load.connect import Connector
from harness.load.identity.tokens import NODE_USER, token_of
from harness.load.plan import Identity
from harness.transport.credentials import Bearer
from harness.transport.dialing import Tls
from harness.transport.sinks import Answer
from harness.transport.tls import ClientTls
from harness.wire.errors import ConfigError
from harness.wire.request import Request

_NOBODY = Bearer()


class Shown(NamedTuple):
    """Arguments of `Connector.transport`; None for what is the run's own."""

    headers: Mapping[str, str | Sequence[str]]
    tls: Tls | None = None
    bearer: Bearer | None = None


class Identities:
    """`ask` sends a request with the run's own credentials and waits; `run` is the run's label; `life_s` is
    that of certificates, 0: as the signer gives; `wall` is the servers' time of day, `sleep` waits in it. Raises
    ConfigError for an authority that cannot be used."""

    def __init__(
        self,
        identity: Identity,
        connector: Connector,
        run: str,
        ask: Callable[[Request], Answer],
        life_s: int = 0,
        *,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], object] = gevent.sleep,
    ) -> None:
        self._identity = identity
        self._connector = connector
        self._authority = self._signing = None
        # `cryptography` takes 70 ms to import: never where nobody has a certificate, and not while nodes are spawned.
        if identity.ca_key:
            from harness.load.identity.authority import Authority

            source = "--ca-cert and --ca-key"
            cert, key = identity.ca_cert.encode(), identity.ca_key.encode()
            self._authority = Authority(cert, key, source, life_s, wall)
        elif identity.kind == "certificate":
            from harness.load.identity.signing import SigningRequest

            self._signing = SigningRequest(ask, run, life_s, sleep)

    def of(self, user: str, groups: Sequence[str]) -> Shown:
        """How `user` shows who it is. May wait, the calling greenlet alone; raises SwarmletError where a node gets
        nothing to show. Whoever is no node and has neither token nor certificate is impersonated."""
        kind, node = self._identity.kind, user.startswith(NODE_USER)
        if kind == "token":
            token = token_of(self._identity.tokens, user)
            if token is not None:
                return Shown({}, self._connector.anonymous_tls(), Bearer(token))
            if node:
                raise ConfigError(f"--tokens: there is none for {user}")
        if self._authority is not None:
            return self._certified(self._authority.make(user, groups))
        if self._signing is not None and node:
            return self._certified(self._signing.obtain(user, groups))
        return impersonated(user, groups)

    def _certified(self, pem: bytes) -> Shown:
        context = self._connector.anonymous_tls()
        if context is None:
            raise ConfigError("--identity certificate: an http:// server asks for no certificate")
        return Shown({}, ClientTls(context, pem), _NOBODY)


def impersonated(user: str, groups: Sequence[str]) -> Shown:
    """Both headers, as a server gives a user that is impersonated by name alone no groups of its own."""
    headers: dict[str, str | Sequence[str]] = {"impersonate-user": user}
    if groups:
        headers["impersonate-group"] = tuple(groups)
    return Shown(headers)
