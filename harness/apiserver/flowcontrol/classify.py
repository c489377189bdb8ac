"""Which flow schema a request belongs to, and which flow within it.

k8s.io/apiserver v1.36 pkg/util/flowcontrol/rule.go:28-200, apf_controller.go:1125-1150 (hashFlowID) and
pkg/util/shufflesharding/shufflesharding.go:77-100.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

from harness.apiserver.flowcontrol.bootstrap import Distinguisher, FlowSchema, ResourceRule

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
    """The first schema that matches; the last one (catch-all) if none does, as upstream."""
    for schema in schemas:
        if _matches_user(schema, user) and _matches_request(schema, info):
            return schema
    return schemas[-1]


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


def _matches_user(schema: FlowSchema, user: User) -> bool:
    groups = user.groups
    for group in schema.groups:
        if group in groups:
            return True
    if user.name in schema.users:
        return True
    return bool(schema.service_accounts_in) and any(
        user.name.startswith(f"{SERVICE_ACCOUNT}{namespace}:") for namespace in schema.service_accounts_in
    )


def _matches_request(schema: FlowSchema, info: Info) -> bool:
    if info.is_resource:
        return any(_matches_rule(rule, info) for rule in schema.resources)
    if schema.url_verbs != ("*",) and info.verb not in schema.url_verbs:
        return False
    return any(_matches_url(url, info.path) for url in schema.urls)


def _matches_rule(rule: ResourceRule, info: Info) -> bool:
    if not info.namespace and not rule.cluster_scope:
        return False
    if rule.verbs != ("*",) and info.verb not in rule.verbs:
        return False
    if rule.resources != ("*",):
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        if resource not in rule.resources:
            return False
    return rule.groups == ("*",) or info.group in rule.groups


def _matches_url(url: str, path: str) -> bool:
    if url in ("*", path):
        return True
    prefix = url.removesuffix("*")
    return path.startswith(prefix if prefix.endswith("/") else prefix + "/")
