"""Who asks: client certificates, bearer tokens, service-account tokens, anonymous.

k8s.io/apiserver v1.36 pkg/endpoints/filters/authentication.go,
pkg/authentication/request/{union,x509,bearertoken,anonymous}; metrics: pkg/endpoints/filters/metrics.go:128-170.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from harness.apiserver.exchange import ClientCertificate
from harness.apiserver.metrics.families import Metrics

if TYPE_CHECKING:
    from harness.apiserver.auth.accounttokens import AccountTokens

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
NODES = "system:nodes"
NODE_PREFIX = "system:node:"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
_CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
_MAX_CERTIFIED = 20_000
_KNOWN_USERNAMES = frozenset(
    {"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"}
)


class UserInfo(msgspec.Struct, frozen=True):
    """An identity, as authentication (or impersonation) made it out."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def node_name(self) -> str | None:
        """The node that this identity stands for; None if it is none (kk/pkg/auth/nodeidentifier/default.go)."""
        if self.name.startswith(NODE_PREFIX) and NODES in self.groups:
            return self.name[len(NODE_PREFIX) :]
        return None


ANONYMOUS_USER = UserInfo(ANONYMOUS, (UNAUTHENTICATED,))


def admin_user(name: str = "kubernetes-admin") -> UserInfo:
    """A member of system:masters, whom nothing is refused."""
    return UserInfo(name, (MASTERS, AUTHENTICATED))


def account_user(namespace: str, name: str, uid: str = "") -> UserInfo:
    """A service account, in the groups that all of them are in."""
    return UserInfo(
        f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}",
        ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED),
        uid,
    )


def certified_user(certificate: ClientCertificate) -> UserInfo | None:
    """CN is the name, each O a group (as/authentication/request/x509/x509.go, CommonNameUserConversion); None without
    a CN."""
    if not certificate.common_name:
        return None
    groups = tuple(dict.fromkeys((*certificate.organizations, AUTHENTICATED)))
    extra = ((_CREDENTIAL_ID, (f"X509SHA256={certificate.fingerprint}",)),)
    return UserInfo(certificate.common_name, groups, extra=extra)


class Authenticator:
    """`tokens` are those given at the start; `accounts` knows those that the server issued, None if it issues none;
    `wall` gives seconds since 1970."""

    def __init__(
        self,
        metrics: Metrics,
        tokens: Mapping[str, UserInfo],
        accounts: AccountTokens | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._tokens = dict(tokens)
        self._accounts = accounts
        self._wall = wall
        self._headers = {f"Bearer {token}": user for token, user in tokens.items() if token}
        self._certified: dict[str, UserInfo | None] = {}  # by the certificate's fingerprint
        self._attempts = {
            result: metrics.authentication_attempts.labels(result) for result in ("success", "error")
        }
        self._users = metrics.authenticated_user_requests

    def authenticate(
        self, headers: Mapping[str, str], certificate: ClientCertificate | None = None
    ) -> UserInfo | None:
        """The user of a request with these headers (names in lower case); None is 401. No credentials: anonymous.

        A good certificate comes before a token, a token before a certificate that is not good."""
        user = None if certificate is None else self._certificate_user(certificate)
        if user is None:
            user = self._user(headers.get("authorization", ""))
            if user is ANONYMOUS_USER and certificate is not None and not self._in_time(certificate):
                user = None
        if user is None:
            self._attempts["error"].inc()
            return None
        self._attempts["success"].inc()
        self._users.labels(_compressed(user.name)).inc()
        return user

    def review(self, token: str, audiences: Sequence[str] = ()) -> tuple[UserInfo, Sequence[str]] | None:
        """Whom a token stands for, and for which of these audiences (none given: the server's own) it is good; None
        where it is not."""
        wanted = audiences or (() if self._accounts is None else (self._accounts.issuer,))
        user = self._tokens.get(token)
        if user is not None:
            return user, wanted
        if self._accounts is None:
            return None
        return self._accounts.review(token, wanted)

    def _in_time(self, certificate: ClientCertificate) -> bool:
        return certificate.not_before <= self._wall() < certificate.not_after

    def _certificate_user(self, certificate: ClientCertificate) -> UserInfo | None:
        """None where it is not good now, or names nobody."""
        if not self._in_time(certificate):
            return None
        known, fingerprint = self._certified, certificate.fingerprint
        if fingerprint not in known:
            if len(known) >= _MAX_CERTIFIED:
                known.clear()
            known[fingerprint] = certified_user(certificate)
        return known[fingerprint]

    def _user(self, header: str) -> UserInfo | None:
        known = self._headers.get(header)
        if known is not None:
            return known
        scheme, _, token = header.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return ANONYMOUS_USER
        user = self._tokens.get(token)
        if user is None and self._accounts is not None:
            user = self._accounts.user(token)
        return user


def _compressed(name: str) -> str:
    """The few values that the label takes, as upstream (compressUsername)."""
    if name in _KNOWN_USERNAMES:
        return name
    return "email_id" if "@" in name else "other"
