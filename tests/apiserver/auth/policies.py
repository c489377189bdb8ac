"""Roles and bindings for tests."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.apiserver.auth.rbac import Rbac
from harness.apiserver.auth.rules import Rule, decode_binding, decode_role


def policy_rule(rule: Rule) -> dict[str, Any]:
    """A rule as the API has it."""
    fields = {
        "verbs": rule.verbs,
        "apiGroups": rule.groups,
        "resources": rule.resources,
        "resourceNames": rule.names,
        "nonResourceURLs": rule.urls,
    }
    return {key: list(values) for key, values in fields.items() if values}


def role(name: str, *rules: Rule, namespace: str = "") -> bytes:
    """A role; without a namespace a cluster role."""
    metadata = {"name": name, "namespace": namespace}
    return msgspec.json.encode({"metadata": metadata, "rules": [policy_rule(rule) for rule in rules]})


def binding(name: str, role: str, *subjects: str, namespace: str = "", kind: str = "ClusterRole") -> bytes:
    """Subjects are written ``User:u``, ``Group:g`` or ``ServiceAccount:name`` (``ServiceAccount:ns/name``)."""
    listed = []
    for subject in subjects:
        what, _, who = subject.partition(":")
        home, _, account = who.rpartition("/")
        listed.append({"kind": what, "name": account if home else who, "namespace": home})
    body = {
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"kind": kind, "name": role},
        "subjects": listed,
    }
    return msgspec.json.encode(body)


def granting(*rules: Rule, subject: str = "User:someone") -> Rbac:
    """A policy of one cluster role, bound everywhere."""
    rbac = Rbac(bootstrap=False)
    rbac.put_role(decode_role(role("r", *rules)))
    rbac.put_binding(decode_binding(binding("b", "r", subject)))
    return rbac
