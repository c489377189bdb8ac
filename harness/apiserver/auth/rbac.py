"""What users may do by role: the bootstrap policy, as far as it concerns what is served here.

kubernetes v1.36 plugin/pkg/auth/authorizer/rbac/bootstrappolicy/{policy,controller_policy}.go; matching:
pkg/apis/rbac/v1/evaluation_helpers.go. Roles and bindings are no objects here: they cannot be changed at run time.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.apiserver.auth.authentication import AUTHENTICATED, UNAUTHENTICATED, UserInfo
from harness.apiserver.flowcontrol.classify import Info

_READ = ("get", "list", "watch")
_ANY = ("*",)
_STORAGE = ("storage.k8s.io",)


class Rule(msgspec.Struct, frozen=True):
    """Allows `verbs` on `resources` (``pods``, ``pods/status``, ``*``) of `groups`, or on `urls`; `names` () is all."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def allows(self, info: Info) -> bool:
        if self.verbs != _ANY and info.verb not in self.verbs:
            return False
        if not info.is_resource:
            return any(_matches_url(url, info.path) for url in self.urls)
        if not self.resources or (self.groups != _ANY and info.group not in self.groups):
            return False
        if self.names and info.name not in self.names:
            return False
        if self.resources == _ANY:
            return True
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        return resource in self.resources


def _matches_url(url: str, path: str) -> bool:
    return url == path or (url.endswith("*") and path.startswith(url[:-1]))


class Binding(msgspec.Struct, frozen=True):
    """Gives rules to users and groups, in all namespaces."""

    role: str
    rules: tuple[Rule, ...]
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


_EVENTS = Rule(("create", "patch", "update"), ("", "events.k8s.io"), ("events",))
_LEASES = Rule(("create", "get", "list", "update", "watch"), ("coordination.k8s.io",), ("leases",))
_REVIEWS = (
    Rule(("create",), ("authentication.k8s.io",), ("tokenreviews",)),
    Rule(("create",), ("authorization.k8s.io",), ("subjectaccessreviews",)),
)
_DISCOVERY_URLS = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/")
_HEALTH_URLS = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_SCHEDULER = (
    _EVENTS,
    _LEASES,
    *_REVIEWS,
    Rule(("get", "list", "watch"), ("",), ("nodes", "namespaces", "services", "replicationcontrollers")),
    Rule(("delete", "get", "list", "watch"), ("",), ("pods",)),
    Rule(("create",), ("",), ("bindings", "pods/binding")),
    Rule(("patch", "update"), ("",), ("pods/status",)),
    Rule(("get", "list", "patch", "update", "watch"), ("",), ("persistentvolumeclaims", "persistentvolumes")),
    Rule(_READ, ("apps",), ("replicasets", "statefulsets")),
    Rule(_READ, ("policy",), ("poddisruptionbudgets",)),
    Rule(_READ, _STORAGE, ("csidrivers", "csinodes", "csistoragecapacities", "storageclasses")),
)
# The controllers' own roles. A controller manager that runs all of them as one user is bound to all of these.
_NAMESPACE_CONTROLLER = (
    Rule(("delete", "get", "list", "watch"), ("",), ("namespaces",)),
    Rule(("update",), ("",), ("namespaces/finalize", "namespaces/status")),
    Rule(("delete", "deletecollection", "get", "list"), _ANY, _ANY),
)
_ACCOUNT_CONTROLLER = (
    Rule(("create", "get", "list", "watch"), ("",), ("serviceaccounts",)),
    Rule(_READ, ("",), ("namespaces",)),
    _EVENTS,
)
_ROOT_CA_PUBLISHER = (
    Rule(("create", "get", "list", "update", "watch"), ("",), ("configmaps",)),
    Rule(_READ, ("",), ("namespaces",)),
    _EVENTS,
)
_CONTROLLER_MANAGER = (
    _EVENTS,
    _LEASES,
    *_REVIEWS,
    Rule(("create", "delete", "get", "update"), ("",), ("secrets", "serviceaccounts")),
    Rule(("create",), ("",), ("serviceaccounts/token",)),
    Rule(("get", "update"), ("",), ("configmaps",)),
    Rule(("list", "watch"), _ANY, _ANY),
)

BOOTSTRAP: tuple[Binding, ...] = (
    Binding(
        "cluster-admin",
        (Rule(_ANY, _ANY, _ANY), Rule(_ANY, urls=_ANY)),
        groups=("system:masters",),
    ),
    Binding(
        "system:discovery", (Rule(("get",), urls=(*_DISCOVERY_URLS, *_HEALTH_URLS)),), groups=(AUTHENTICATED,)
    ),
    Binding(
        "system:public-info-viewer",
        (Rule(("get",), urls=_HEALTH_URLS),),
        groups=(AUTHENTICATED, UNAUTHENTICATED),
    ),
    Binding(
        "system:basic-user",
        (
            Rule(
                ("create",),
                ("authorization.k8s.io",),
                ("selfsubjectaccessreviews", "selfsubjectrulesreviews"),
            ),
            Rule(("create",), ("authentication.k8s.io",), ("selfsubjectreviews",)),
        ),
        groups=(AUTHENTICATED,),
    ),
    Binding(
        "system:monitoring",
        (Rule(("get",), urls=(*_HEALTH_URLS, "/metrics")),),
        groups=("system:monitoring",),
    ),
    Binding("system:kube-scheduler", _SCHEDULER, users=("system:kube-scheduler",)),
    Binding(
        "system:kube-controller-manager",
        (*_CONTROLLER_MANAGER, *_NAMESPACE_CONTROLLER, *_ACCOUNT_CONTROLLER, *_ROOT_CA_PUBLISHER),
        users=("system:kube-controller-manager",),
    ),
    Binding(
        "system:controller:namespace-controller",
        _NAMESPACE_CONTROLLER,
        users=("system:serviceaccount:kube-system:namespace-controller",),
    ),
    Binding(
        "system:controller:service-account-controller",
        _ACCOUNT_CONTROLLER,
        users=("system:serviceaccount:kube-system:service-account-controller",),
    ),
    Binding(
        "system:controller:root-ca-cert-publisher",
        _ROOT_CA_PUBLISHER,
        users=("system:serviceaccount:kube-system:root-ca-cert-publisher",),
    ),
    Binding(
        "system:node-proxier",
        (
            Rule(("list", "watch"), ("",), ("endpoints", "services")),
            Rule(("get", "list", "watch"), ("",), ("nodes",)),
            Rule(("list", "watch"), ("discovery.k8s.io",), ("endpointslices",)),
            _EVENTS,
        ),
        users=("system:kube-proxy",),
    ),
)


class Rbac:
    """Decides by bindings, found by the user's name and groups."""

    def __init__(self, bindings: Sequence[Binding] = BOOTSTRAP) -> None:
        self._by_user: dict[str, list[Rule]] = {}
        self._by_group: dict[str, list[Rule]] = {}
        for binding in bindings:
            for user in binding.users:
                self._by_user.setdefault(user, []).extend(binding.rules)
            for group in binding.groups:
                self._by_group.setdefault(group, []).extend(binding.rules)

    def allows(self, user: UserInfo, info: Info) -> bool:
        for rule in self._by_user.get(user.name, ()):
            if rule.allows(info):
                return True
        return any(rule.allows(info) for group in user.groups for rule in self._by_group.get(group, ()))
