"""Who asks: bearer tokens, service-account tokens, anonymous.

k8s.io/apiserver v1.36 pkg/endpoints/filters/authentication.go, pkg/authentication/request/{bearertoken,anonymous};
metrics: pkg/endpoints/filters/metrics.go:128-170. Client certificates are not looked at: TLS ends in the shell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

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


class Authenticator:
    """`tokens` are those given at the start; `accounts` knows those that the server issued, None if it issues none."""

    def __init__(
        self, metrics: Metrics, tokens: Mapping[str, UserInfo], accounts: AccountTokens | None = None
    ) -> None:
        self._tokens = dict(tokens)
        self._accounts = accounts
        self._attempts = {
            result: metrics.authentication_attempts.labels(result) for result in ("success", "error")
        }
        self._users = metrics.authenticated_user_requests

    def authenticate(self, headers: Mapping[str, str]) -> UserInfo | None:
        """The user of a request with these headers (names in lower case); None is 401. No credentials: anonymous."""
        user = self._user(headers.get("authorization", ""))
        if user is None:
            self._attempts["error"].inc()
            return None
        self._attempts["success"].inc()
        self._users.labels(_compressed(user.name)).inc()
        return user

    def _user(self, header: str) -> UserInfo | None:
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
