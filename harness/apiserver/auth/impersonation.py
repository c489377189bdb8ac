"""Acting as somebody else: Impersonate-* headers.

k8s.io/apiserver v1.36 pkg/endpoints/filters/impersonation/{constrained_impersonation,mode}.go. Constrained modes are
tried before the legacy one; of a requestor whom none allows, the first refusal is the answer. Groups come as one
header value, joined by commas, as the serving shell joins what a client sent more than once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from harness.apiserver.auth.authentication import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    NODE_PREFIX,
    NODES,
    SERVICE_ACCOUNT_PREFIX,
    UNAUTHENTICATED,
    UserInfo,
    account_user,
)
from harness.apiserver.auth.authorization import Authorizer, forbidden_status
from harness.apiserver.metrics.families import Metrics
from harness.wire import status
from harness.wire.gotext import quote
from harness.wire.paths import RequestInfo
from harness.wire.status import Status, StatusError

_Headers = tuple[tuple[str, str], ...]
_PREFIX = "impersonate-"
_USER = "impersonate-user"
_GROUP = "impersonate-group"
_UID = "impersonate-uid"
_EXTRA = "impersonate-extra-"
_AUTHENTICATION = "authentication.k8s.io"
_MAX_CACHED = 100_000


class _Wanted(NamedTuple):
    """Whom the headers name, nothing added."""

    name: str
    uid: str
    groups: tuple[str, ...]
    extra: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def name_only(self) -> bool:
        return not (self.uid or self.groups or self.extra)


class Impersonation:
    """Turns the authenticated user into the impersonated one."""

    def __init__(self, metrics: Metrics, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._attempts = metrics.apiserver_impersonation_attempts_total
        self._checks = metrics.apiserver_impersonation_authorization_attempts_total
        # Members of the privileged group pass every check, so the answer depends on the headers alone.
        self._privileged: dict[_Headers, tuple[UserInfo, str, int]] = {}

    def impersonate(self, user: UserInfo, info: RequestInfo, headers: Mapping[str, str]) -> UserInfo:
        """The user to go on with; `user` where no header asks otherwise.

        Raises StatusError: 400 for groups without a user name, 403 for what `user` may not impersonate.
        """
        given = [(name, value) for name, value in headers.items() if name.startswith(_PREFIX)]
        if not given:
            return user
        if MASTERS not in user.groups:
            wanted = _wanted(given)
            return user if wanted is None else self._as_permitted(user, info, wanted)
        key = tuple(given)
        known = self._privileged.get(key)
        if known is None:
            wanted = _wanted(given)
            if wanted is None:
                return user
            known = self._as_privileged(key, wanted)
        impersonated, mode, checks = known
        if checks:
            self._checks.labels(mode, "allowed").inc(checks)
        self._attempts.labels(mode, "allowed").inc()
        return impersonated

    def _as_privileged(self, key: _Headers, wanted: _Wanted) -> tuple[UserInfo, str, int]:
        """(user, mode, checks that each request costs upstream); remembered."""
        # The privileged group itself can only be impersonated in the legacy mode.
        modes = () if MASTERS in wanted.groups else _MODES
        mode = next((mode for mode in modes if _applies(mode, wanted)), "legacy")
        checks = (
            sum(1 for _ in _checks(mode, wanted)) if mode == "legacy" else 0
        )  # others are cached upstream
        if len(self._privileged) >= _MAX_CACHED:
            self._privileged.clear()
        known = self._privileged[key] = (_impersonated(mode, wanted), mode, checks)
        return known

    def _as_permitted(self, user: UserInfo, info: RequestInfo, wanted: _Wanted) -> UserInfo:
        refusal: Status | None = None
        for mode in (*(mode for mode in _MODES if _applies(mode, wanted)), "legacy"):
            failed = self._refusal(user, info, mode, wanted)
            if failed is None:
                self._attempts.labels(mode, "allowed").inc()
                return _impersonated(mode, wanted)
            refusal = refusal or failed
        self._attempts.labels("", "denied").inc()
        assert refusal is not None, "the legacy mode applies to everybody"
        raise StatusError(refusal)

    def _refusal(self, user: UserInfo, info: RequestInfo, mode: str, wanted: _Wanted) -> Status | None:
        """The answer to the first check that fails; None if the mode allows it."""
        checks = _checks(mode, wanted)
        if mode != "legacy":
            checks = iter((msgspec.structs.replace(info, verb=f"impersonate-on:{mode}:{info.verb}"), *checks))
        for check in checks:
            decision = self._authorizer.decide(user, check)
            self._checks.labels(mode, "allowed" if decision.allowed else "denied").inc()
            if not decision.allowed:
                return forbidden_status(user, check, decision.reason)
        if mode != "legacy" and MASTERS in wanted.groups:
            check = _check(f"impersonate:{mode}", _AUTHENTICATION, "groups", MASTERS)
            return forbidden_status(user, check, "impersonating the system:masters group is not allowed")
        return None


# Constrained modes in upstream's order; that of a pod's own node is left out: it needs its token to name the node.
_MODES = ("arbitrary-node", "serviceaccount", "user-info")


def _applies(mode: str, wanted: _Wanted) -> bool:
    node = wanted.name.startswith(NODE_PREFIX) and len(wanted.name) > len(NODE_PREFIX)
    account = _account(wanted.name) is not None
    if mode == "user-info":
        return not node and not account
    return wanted.name_only and (node if mode == "arbitrary-node" else account)


def _checks(mode: str, wanted: _Wanted) -> Iterator[RequestInfo]:
    """What the requestor must be allowed, each as the request that authorization is asked about."""
    legacy = mode == "legacy"
    verb = "impersonate" if legacy else f"impersonate:{mode}"
    group = "" if legacy else _AUTHENTICATION
    account = _account(wanted.name)
    if account is not None:
        yield _check(verb, group, "serviceaccounts", account[1], account[0])
    elif mode == "arbitrary-node":
        yield _check(verb, group, "nodes", wanted.name[len(NODE_PREFIX) :])
    else:
        yield _check(verb, group, "users", wanted.name)
    if wanted.uid:
        yield _check(verb, _AUTHENTICATION, "uids", wanted.uid)
    for name in wanted.groups:
        yield _check(verb, group, "groups", name)
    for key, values in wanted.extra:
        for value in values:
            yield _check(verb, _AUTHENTICATION, "userextras", value, subresource=key)


def _check(
    verb: str, group: str, resource: str, name: str, namespace: str = "", subresource: str = ""
) -> RequestInfo:
    return RequestInfo(
        "",
        verb,
        True,
        group=group,
        version="v1",
        namespace=namespace,
        resource=resource,
        subresource=subresource,
        name=name,
    )


def _impersonated(mode: str, wanted: _Wanted) -> UserInfo:
    """The groups that follow from a name, and the one that everybody is in."""
    groups = wanted.groups
    account = _account(wanted.name)
    if mode == "arbitrary-node":
        groups = (NODES,)
    elif account is not None and not groups:
        groups = account_user(*account).groups[:2]
    if wanted.name == ANONYMOUS:
        everybody = UNAUTHENTICATED
    else:
        everybody = "" if UNAUTHENTICATED in groups else AUTHENTICATED
    if everybody and everybody not in groups:
        groups = (*groups, everybody)
    return UserInfo(wanted.name, groups, wanted.uid, wanted.extra)


def _account(name: str) -> tuple[str, str] | None:
    """(namespace, name) of a service account's user name."""
    if not name.startswith(SERVICE_ACCOUNT_PREFIX):
        return None
    parts = name[len(SERVICE_ACCOUNT_PREFIX) :].split(":")
    return (parts[0], parts[1]) if len(parts) == 2 and all(parts) else None


def _wanted(given: Iterable[tuple[str, str]]) -> _Wanted | None:
    """What the headers ask for; None if nothing. Raises StatusError (400) for anything without a user's name."""
    headers = dict(given)
    groups = headers.get(_GROUP)
    extra = tuple(
        (unquote(header[len(_EXTRA) :]), tuple(_values(value)))
        for header, value in headers.items()
        if header.startswith(_EXTRA)
    )
    names = tuple(_values(groups)) if groups is not None else ()
    wanted = _Wanted(headers.get(_USER, ""), headers.get(_UID, ""), names, extra)
    if wanted.name:
        return wanted
    if wanted.name_only:
        return None
    raise StatusError(status.bad_request(f"requested {_go_user(wanted)} without impersonating a user name"))


def _values(joined: str) -> list[str]:
    return [value.strip() for value in joined.split(",")]


def _go_user(wanted: _Wanted) -> str:
    """As ``%#v`` prints user.DefaultInfo."""
    groups = _go_strings(wanted.groups) if wanted.groups else "[]string(nil)"
    pairs = ", ".join(f"{quote(key)}:{_go_strings(values)}" for key, values in wanted.extra)
    extra = f"map[string][]string{{{pairs}}}" if pairs else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quote(wanted.uid)}, Groups:{groups}, Extra:{extra}}}'


def _go_strings(values: tuple[str, ...]) -> str:
    return "[]string{" + ", ".join(map(quote, values)) + "}"
