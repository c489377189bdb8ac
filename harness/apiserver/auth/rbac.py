"""What users may do by role, decided from the roles and bindings that the member has heard of.

kubernetes v1.36 plugin/pkg/auth/authorizer/rbac/rbac.go, staging component-helpers auth/rbac/validation/rule.go (the
rule resolver). Upstream walks all cluster role bindings and the namespace's role bindings for each request. Here
bindings are found by subject, and what they came to is remembered for each identity and kind of request until a role or
a binding changes: 1 us where walking the bootstrap roles of a scheduler took 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

from harness.apiserver.auth.authentication import SERVICE_ACCOUNT_PREFIX, UserInfo
from harness.apiserver.auth.bootstrappolicy import bootstrap_objects
from harness.apiserver.auth.rules import (
    BindingView,
    RoleRef,
    RoleView,
    Rule,
    Subject,
    decode_binding,
    decode_role,
)
from harness.apiserver.flowcontrol.classify import Info

KINDS = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
_MAX_IDENTITIES = 20_000
_MAX_ANSWERS = 2_000  # of one identity: few shapes of requests, but namespaces are among them

Key: TypeAlias = tuple[str, str]
"""(namespace, name); the namespace of cluster roles and their bindings is ""."""

_Answers: TypeAlias = dict[tuple[str, ...], frozenset[str] | None]
"""(verb, group, resource, subresource, namespace) or (verb, path) to the names that are allowed; None is all."""

_UNDECIDED = frozenset({""})
_Compiled: TypeAlias = tuple[dict["Key", tuple[Rule, ...]], tuple[BindingView, ...]]


class Grant(NamedTuple):
    """A binding as its subjects see it. `namespace` "" is everywhere."""

    namespace: str
    role: RoleRef


class RoleNotFound(Exception):
    """A binding refers to a role that is not there; `resource` is ``roles`` or ``clusterroles``."""

    def __init__(self, resource: str, name: str) -> None:
        super().__init__(f'{resource}.rbac.authorization.k8s.io "{name}" not found')
        self.resource = resource
        self.name = name


class Rbac:
    """Roles and bindings, indexed. `put_role` and the like are told of each change; with no bootstrap objects nobody
    may do anything."""

    def __init__(self, *, bootstrap: bool = True) -> None:
        self._roles: dict[Key, tuple[Rule, ...]] = {}
        self._bindings: dict[Key, tuple[tuple[str, ...], Grant]] = {}  # with its subjects
        self._grants: dict[str, dict[Key, Grant]] = {}  # by subject, as `_subject` names it
        self._known: dict[tuple[str, tuple[str, ...]], _Answers] = {}
        if bootstrap:
            roles, bindings = _bootstrap()
            self._roles.update(roles)
            for binding in bindings:
                self.put_binding(binding)

    # ---- what there is -------------------------------------------------------------------------------------------
    def put_role(self, role: RoleView) -> None:
        """A role (or, without a namespace, a cluster role) as it is now."""
        self._roles[role.metadata.namespace, role.metadata.name] = role.compiled()
        self._known.clear()

    def drop_role(self, key: Key) -> None:
        if self._roles.pop(key, None) is not None:
            self._known.clear()

    def put_binding(self, binding: BindingView) -> None:
        """A role binding (or, without a namespace, a cluster role binding) as it is now."""
        namespace = binding.metadata.namespace
        key = namespace, binding.metadata.name
        self.drop_binding(key)
        grant = Grant(namespace, binding.role_ref)
        subjects = tuple(dict.fromkeys(_subject(subject, namespace) for subject in binding.subjects or ()))
        self._bindings[key] = subjects, grant
        for subject in subjects:
            self._grants.setdefault(subject, {})[key] = grant
        self._known.clear()

    def drop_binding(self, key: Key) -> None:
        known = self._bindings.pop(key, None)
        if known is None:
            return
        for subject in known[0]:
            grants = self._grants[subject]
            del grants[key]
            if not grants:
                del self._grants[subject]
        self._known.clear()

    def keys(self) -> tuple[set[Key], set[Key]]:
        """Of all roles and of all bindings."""
        return set(self._roles), set(self._bindings)

    # ---- decisions -----------------------------------------------------------------------------------------------
    def allows(self, user: UserInfo, info: Info) -> bool:
        answers = self._known.get((user.name, user.groups))
        if answers is None:
            answers = self._remember(user)
        key = (
            (info.verb, info.group, info.resource, info.subresource, info.namespace)
            if info.is_resource
            else (info.verb, info.path)
        )
        names = answers.get(key, _UNDECIDED)
        if names is _UNDECIDED:
            if len(answers) >= _MAX_ANSWERS:
                answers.clear()
            names = answers[key] = self._names(user, info)
        return names is None or info.name in names

    def rules_for(self, user: UserInfo, namespace: str) -> list[Rule]:
        """All that an identity may do in a namespace ("" is at the cluster scope alone). Bindings to roles that are not
        there count for nothing."""
        return [rule for grant in self._grants_of(user, namespace) for rule in self._rules_of(grant)]

    def role_rules(self, role: RoleRef, namespace: str) -> tuple[Rule, ...]:
        """The rules of a role that a binding in `namespace` refers to. Raises RoleNotFound."""
        clusterwide = role.kind == "ClusterRole"
        rules = self._roles.get(("" if clusterwide else namespace, role.name))
        if rules is None:
            raise RoleNotFound("clusterroles" if clusterwide else "roles", role.name)
        return rules

    def _remember(self, user: UserInfo) -> _Answers:
        if len(self._known) >= _MAX_IDENTITIES:
            self._known.clear()
        answers: _Answers = {}
        self._known[user.name, user.groups] = answers
        return answers

    def _names(self, user: UserInfo, info: Info) -> frozenset[str] | None:
        rules = self.rules_for(user, info.namespace if info.is_resource else "")
        if not info.is_resource:
            allowed = any(rule.allows_path(info.verb, info.path) for rule in rules)
            return None if allowed else frozenset()
        verb, group, subresource = info.verb, info.group, info.subresource
        resource = f"{info.resource}/{subresource}" if subresource else info.resource
        names: set[str] = set()
        for rule in rules:
            if rule.concerns(verb, group, resource, subresource):
                if not rule.names:
                    return None
                names.update(rule.names)
        return frozenset(names)

    def _grants_of(self, user: UserInfo, namespace: str) -> Iterator[Grant]:
        for subject in (f"user:{user.name}", *(f"group:{group}" for group in user.groups)):
            for grant in self._grants.get(subject, {}).values():
                if not grant.namespace or grant.namespace == namespace:
                    yield grant

    def _rules_of(self, grant: Grant) -> Sequence[Rule]:
        try:
            return self.role_rules(grant.role, grant.namespace)
        except RoleNotFound:
            return ()


@cache
def _bootstrap() -> _Compiled:
    """What the informers will say once the first member has made the objects."""
    roles: dict[Key, tuple[Rule, ...]] = {}
    bindings: list[BindingView] = []
    for item in bootstrap_objects():
        if item.resource.endswith("bindings"):
            bindings.append(decode_binding(item.body))
        else:
            roles[item.namespace, item.name] = decode_role(item.body).compiled()
    return roles, tuple(bindings)


def _subject(subject: Subject, namespace: str) -> str:
    if subject.kind == "ServiceAccount":
        return f"user:{SERVICE_ACCOUNT_PREFIX}{subject.namespace or namespace}:{subject.name}"
    return f"{subject.kind.lower()}:{subject.name}"
