"""The roles and bindings that every cluster begins with, as objects: Kubernetes' own (kubernetes v1.36
plugin/pkg/auth/authorizer/rbac/bootstrappolicy) and those of kubeadm that concern kubelets' certificates.

``admin``, ``edit`` and ``view`` are given the rules that the aggregation controller would give them, so that they mean
something where none runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec

from harness.apiserver.auth.bootstraproles import CLUSTER_ROLES, CONTROLLER_ROLES, NAMESPACE_ROLES

Object = dict[str, Any]

GROUP = "rbac.authorization.k8s.io"
_READ = "get list watch"
_WRITE = "create update patch delete deletecollection"
_META: dict[str, dict[str, str]] = {
    "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
}
_CONTROLLER = "system:controller:"
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
# What is gathered from which roles, from the least to the most.
_AGGREGATED = {"view": ("view",), "edit": ("edit", "view"), "admin": ("admin", "edit", "view")}

# A cluster role to its subjects; ``user:``, ``group:`` or ``account:`` of kube-system. Bindings bear the role's name.
_BINDINGS = {
    "cluster-admin": ("group:system:masters",),
    "system:monitoring": ("group:system:monitoring",),
    "system:discovery": ("group:system:authenticated",),
    "system:basic-user": ("group:system:authenticated",),
    "system:public-info-viewer": ("group:system:authenticated", "group:system:unauthenticated"),
    "system:node-proxier": ("user:system:kube-proxy",),
    "system:kube-controller-manager": ("user:system:kube-controller-manager",),
    "system:kube-dns": ("account:kube-dns",),
    "system:kube-scheduler": ("user:system:kube-scheduler",),
    "system:volume-scheduler": ("user:system:kube-scheduler",),
    "system:node": (),
    "system:service-account-issuer-discovery": ("group:system:serviceaccounts",),
    "swarmlet:shared-informers": ("account:service-account-controller", "account:root-ca-cert-publisher"),
}
# kubeadm's (cmd/kubeadm/app/phases/bootstraptoken): a cluster role bound under another name.
_KUBEADM = {
    "kubeadm:cluster-admins": ("cluster-admin", "group:kubeadm:cluster-admins"),
    "kubeadm:kubelet-bootstrap": (
        "system:node-bootstrapper",
        "group:system:bootstrappers:kubeadm:default-node-token",
    ),
    "kubeadm:node-autoapprove-bootstrap": (
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        "group:system:bootstrappers:kubeadm:default-node-token",
    ),
    "kubeadm:node-autoapprove-certificate-rotation": (
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        "group:system:nodes",
    ),
}
# (namespace, name of the binding) to its role, which is in that namespace, and its subjects.
_ROLE_BINDINGS = {
    ("kube-system", "system::extension-apiserver-authentication-reader"): (
        "extension-apiserver-authentication-reader",
        ("user:system:kube-controller-manager", "user:system:kube-scheduler"),
    ),
    ("kube-system", "system::leader-locking-kube-controller-manager"): (
        "system::leader-locking-kube-controller-manager",
        ("user:system:kube-controller-manager", "account:kube-controller-manager"),
    ),
    ("kube-system", "system::leader-locking-kube-scheduler"): (
        "system::leader-locking-kube-scheduler",
        ("user:system:kube-scheduler", "account:kube-scheduler"),
    ),
    **{
        (namespace, f"{_CONTROLLER}{name}"): (f"{_CONTROLLER}{name}", (f"account:{name}",))
        for namespace, name in (
            ("kube-system", "bootstrap-signer"),
            ("kube-system", "cloud-provider"),
            ("kube-system", "token-cleaner"),
            ("kube-public", "bootstrap-signer"),
        )
    },
}


class BootstrapObject(NamedTuple):
    """`resource` is the plural of one of RBAC's four kinds, `body` the object's JSON."""

    resource: str
    namespace: str
    name: str
    body: bytes


@cache
def bootstrap_objects() -> tuple[BootstrapObject, ...]:
    """All of them, roles before what binds them."""
    return tuple(_roles()) + tuple(_bindings())


def _roles() -> Iterator[BootstrapObject]:
    roles = _parsed(CLUSTER_ROLES)
    for name, rules in roles.items():
        body: Object = {"rules": rules}
        aggregate = name.removeprefix("system:aggregate-to-")
        labels = {f"{_AGGREGATE}{aggregate}": "true"} if aggregate != name else {}
        yield _object("clusterroles", "", name, body, labels)
    for name, parts in _AGGREGATED.items():
        selector = {"matchLabels": {f"{_AGGREGATE}{name}": "true"}}
        rules = [rule for part in parts for rule in roles[f"system:aggregate-to-{part}"]]
        labels = {"view": {f"{_AGGREGATE}edit": "true"}, "edit": {f"{_AGGREGATE}admin": "true"}}.get(name, {})
        body = {"rules": rules, "aggregationRule": {"clusterRoleSelectors": [selector]}}
        yield _object("clusterroles", "", name, body, labels)
    for name, rules in _parsed(CONTROLLER_ROLES).items():
        yield _object("clusterroles", "", _CONTROLLER + name, {"rules": rules})
    for path, rules in _parsed(NAMESPACE_ROLES).items():
        namespace, _, name = path.partition("/")
        yield _object("roles", namespace, name, {"rules": rules})


def _bindings() -> Iterator[BootstrapObject]:
    for name, subjects in _BINDINGS.items():
        yield _object("clusterrolebindings", "", name, _binding("ClusterRole", name, subjects))
    for name, (role, subject) in _KUBEADM.items():
        yield _object("clusterrolebindings", "", name, _binding("ClusterRole", role, (subject,)))
    for name in _parsed(CONTROLLER_ROLES):
        body = _binding("ClusterRole", _CONTROLLER + name, (f"account:{name}",))
        yield _object("clusterrolebindings", "", _CONTROLLER + name, body)
    for (namespace, name), (role, subjects) in _ROLE_BINDINGS.items():
        yield _object("rolebindings", namespace, name, _binding("Role", role, subjects))


def _object(
    resource: str, namespace: str, name: str, body: Object, labels: dict[str, str] | None = None
) -> BootstrapObject:
    metadata: Object = {"name": name, "namespace": namespace} if namespace else {"name": name}
    metadata |= {**_META, "labels": {**_META["labels"], **(labels or {})}}
    return BootstrapObject(resource, namespace, name, msgspec.json.encode({"metadata": metadata, **body}))


def _binding(kind: str, role: str, subjects: tuple[str, ...]) -> Object:
    reference = {"apiGroup": GROUP, "kind": kind, "name": role}
    body: Object = {"roleRef": reference}
    return {"subjects": [_subject(subject) for subject in subjects], **body} if subjects else body


def _subject(text: str) -> Object:
    kind, _, name = text.partition(":")
    if kind == "account":
        return {"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}
    return {"apiGroup": GROUP, "kind": kind.capitalize(), "name": name}


def _parsed(text: str) -> dict[str, list[Object]]:
    """Role to rules, of one of the texts above."""
    roles: dict[str, list[Object]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("  "):
            roles[name].append(_rule(line.strip()))
        elif line:
            name = line
            roles[name] = []
    return roles


def _rule(line: str) -> Object:
    if line == "events":
        line = "create patch update | - events.k8s.io | events"
    verbs, groups, what, *names = (part.strip() for part in line.split("|"))
    allowed = sorted(verbs.replace("READ", _READ).replace("WRITE", _WRITE).split())
    if groups == "url":
        return {"verbs": allowed, "nonResourceURLs": sorted(what.split())}
    rule: Object = {
        "verbs": allowed,
        "apiGroups": sorted("" if group == "-" else group for group in groups.split()),
        "resources": sorted(what.split()),
    }
    return {**rule, "resourceNames": names[0].split()} if names else rule
