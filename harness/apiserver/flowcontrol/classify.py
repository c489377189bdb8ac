"""Which flow schema a request belongs to, and which flow within it.

k8s.io/apiserver v1.36 pkg/util/flowcontrol/rule.go:28-200, apf_controller.go:1035-1060 (fallback), 1125-1150
(hashFlowID) and pkg/util/shufflesharding/shufflesharding.go:77-100.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from harness.apiserver.flowcontrol.config import (
    ALL,
    CATCH_ALL,
    Distinguisher,
    FlowSchema,
    ResourceRule,
    Rule,
    UrlRule,
)

SERVICE_ACCOUNT = "system:serviceaccount:"


class User(Protocol):
    """Who asks (after impersonation). `groups` is hashed, hence a tuple."""

    @property
    def name(self) -> str: ...
    @property
    def groups(self) -> tuple[str, ...]: ...


class Info(Protocol):
    """What a request is about; `harness.wire.paths.RequestInfo` is one."""

    @property
    def path(self) -> str: ...
    @property
    def verb(self) -> str: ...
    @property
    def is_resource(self) -> bool: ...
    @property
    def group(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def resource(self) -> str: ...
    @property
    def subresource(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def query(self) -> dict[str, str]: ...


def classify(schemas: Sequence[FlowSchema], user: User, info: Info) -> FlowSchema:
    """The first schema that matches; catch-all if none does, for users without any group."""
    for schema in schemas:
        for rule in schema.rules:
            if _matches_user(rule, user) and _matches_request(rule, info):
                return schema
    return next(schema for schema in schemas if schema.name == CATCH_ALL)


class Names(NamedTuple):
    """The names that some rule looks at: what two requests must have in common beside groups, verb and resource, so
    that the same schema is theirs. Names of service accounts count too."""

    users: frozenset[str]
    namespaces: frozenset[str]


def names_in(schemas: Sequence[FlowSchema]) -> Names:
    """Those of the schemas' rules."""
    rules = [rule for schema in schemas for rule in schema.rules]
    return Names(
        frozenset(name for rule in rules for name in rule.users),
        frozenset(namespace for rule in rules for each in rule.resources for namespace in each.namespaces),
    )


def flow_of(schema: FlowSchema, user: User, info: Info) -> str:
    """The flow distinguisher: requests of one schema that share it share their queues."""
    if schema.distinguisher is Distinguisher.USER:
        return user.name
    if schema.distinguisher is Distinguisher.NAMESPACE:
        return info.namespace
    return ""


def hash_flow(schema: str, distinguisher: str) -> int:
    """64 bits that pick the flow's hand of queues."""
    digest = hashlib.sha256(f"{schema}\0{distinguisher}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


def deal(value: int, deck: int, hand: int) -> tuple[int, ...]:
    """`hand` different cards of `deck`, drawn from the bits of `value`."""
    remainders: list[int] = []
    cards: list[int] = []
    for i in range(hand):
        value, remainder = divmod(value, deck - i)
        remainders.append(remainder)
        card = remainder
        for j in range(i, 0, -1):
            if card >= remainders[j - 1]:
                card += 1
        cards.append(card)
    return tuple(cards)


def _matches_user(rule: Rule, user: User) -> bool:
    groups = user.groups
    for group in rule.groups:
        if group in groups or group == "*":
            return True
    if user.name in rule.users or "*" in rule.users:
        return True
    return any(_is_account(user.name, namespace, name) for namespace, name in rule.accounts)


def _is_account(user: str, namespace: str, name: str) -> bool:
    prefix = f"{SERVICE_ACCOUNT}{namespace}:"
    return user.startswith(prefix) if name == "*" else user == prefix + name


def _matches_request(rule: Rule, info: Info) -> bool:
    if info.is_resource:
        return any(_matches_resource(each, info) for each in rule.resources)
    return any(_matches_url(each, info) for each in rule.urls)


def _matches_resource(rule: ResourceRule, info: Info) -> bool:
    if rule.verbs != ALL and info.verb not in rule.verbs:
        return False
    if rule.resources != ALL:
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        if resource not in rule.resources:
            return False
    if rule.groups != ALL and info.group not in rule.groups:
        return False
    if not info.namespace:
        return rule.cluster_scope
    return rule.namespaces == ALL or info.namespace in rule.namespaces


def _matches_url(rule: UrlRule, info: Info) -> bool:
    if rule.verbs != ALL and info.verb not in rule.verbs:
        return False
    return any(_is_below(info.path, url) for url in rule.urls)


def _is_below(path: str, url: str) -> bool:
    if url in ("*", path):
        return True
    prefix = url.removesuffix("*")
    return path.startswith(prefix if prefix.endswith("/") else prefix + "/")
