"""RBAC's rules: what each allows, and whether some rules cover others.

kubernetes v1.36 pkg/apis/rbac/v1/evaluation_helpers.go (matching), staging component-helpers
auth/rbac/validation/policy_comparator.go (covering), pkg/registry/rbac/validation/policy_compact.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from harness.apiserver.flowcontrol.classify import Info
from harness.wire.gotext import quote

_ANY = ("*",)


class Rule(msgspec.Struct, frozen=True):
    """Allows `verbs` on `resources` (``pods``, ``pods/status``, ``*/scale``, ``*``) of `groups`, or on `urls`; `names`
    () is all."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    def allows(self, info: Info) -> bool:
        if not info.is_resource:
            return self.allows_path(info.verb, info.path)
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        if not self.concerns(info.verb, info.group, resource, info.subresource):
            return False
        return not self.names or info.name in self.names

    def concerns(self, verb: str, group: str, resource: str, subresource: str) -> bool:
        """Whether it allows the verb on some objects; `resource` is with its subresource."""
        if "*" not in self.verbs and verb not in self.verbs:
            return False
        if "*" not in self.groups and group not in self.groups:
            return False
        resources = self.resources
        return (
            "*" in resources
            or resource in resources
            or (bool(subresource) and f"*/{subresource}" in resources)
        )

    def allows_path(self, verb: str, path: str) -> bool:
        if "*" not in self.verbs and verb not in self.verbs:
            return False
        return any(matches_url(url, path) for url in self.urls)

    def covers(self, other: Rule) -> bool:
        """Whether it allows all that `other`, one part of `parts`, does."""
        return (
            _has_all(self.verbs, other.verbs)
            and _has_all(self.groups, other.groups)
            and _has_all(self.resources, other.resources)
            and (not self.names or (bool(other.names) and set(other.names) <= set(self.names)))
            and all(any(matches_url(own, url) for own in self.urls) for url in other.urls)
        )

    def parts(self) -> Iterator[Rule]:
        """Rules of one verb, one group, one resource and one name each, or of one verb and one URL."""
        for group in self.groups:
            for resource in self.resources:
                for verb in self.verbs:
                    if not self.names:
                        yield Rule((verb,), (group,), (resource,))
                    for name in self.names:
                        yield Rule((verb,), (group,), (resource,), (name,))
        for url in self.urls:
            for verb in self.verbs:
                yield Rule((verb,), urls=(url,))

    def __str__(self) -> str:
        """As refusals show it: ``{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`` (CompactString)."""
        shown = (
            ("APIGroups", self.groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.urls),
            ("ResourceNames", self.names),
            ("Verbs", self.verbs),
        )
        return "{" + ", ".join(f"{key}:{quoted(values)}" for key, values in shown if values) + "}"


def matches_url(url: str, path: str) -> bool:
    """Whether a rule's URL, maybe ending in ``*``, stands for the path."""
    return url == path or (url.endswith("*") and path.startswith(url.rstrip("*")))


def quoted(values: Iterable[str]) -> str:
    """Go's %q of a slice of strings."""
    return "[" + " ".join(quote(value) for value in values) + "]"


def uncovered(owned: Sequence[Rule], wanted: Sequence[Rule]) -> list[Rule]:
    """The parts of `wanted` that no rule of `owned` covers, put together where they differ by their verb alone."""
    missing = [part for rule in wanted for part in rule.parts() if not any(own.covers(part) for own in owned)]
    together: dict[Rule, list[str]] = {}
    for part in missing:
        verbs = together.setdefault(msgspec.structs.replace(part, verbs=()), [])
        if part.verbs[0] not in verbs:
            verbs.append(part.verbs[0])
    return [msgspec.structs.replace(rest, verbs=tuple(verbs)) for rest, verbs in together.items()]


class _PolicyRule(msgspec.Struct, rename="camel"):
    verbs: list[str] | None = None
    api_groups: list[str] | None = None
    resources: list[str] | None = None
    resource_names: list[str] | None = None
    non_resource_urls: list[str] | None = msgspec.field(default=None, name="nonResourceURLs")


def rule_of(rule: _PolicyRule) -> Rule:
    """A rule as the API has it."""
    return Rule(
        tuple(rule.verbs or ()),
        tuple(rule.api_groups or ()),
        tuple(rule.resources or ()),
        tuple(rule.resource_names or ()),
        tuple(rule.non_resource_urls or ()),
    )


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class RoleView(msgspec.Struct):
    """What of a role or cluster role is needed."""

    metadata: _Metadata
    rules: list[_PolicyRule] | None = None

    def compiled(self) -> tuple[Rule, ...]:
        return tuple(map(rule_of, self.rules or ()))


class Subject(msgspec.Struct):
    kind: str = ""
    name: str = ""
    namespace: str = ""


class RoleRef(msgspec.Struct):
    kind: str = ""
    name: str = ""


class BindingView(msgspec.Struct, rename="camel"):
    """What of a role binding or cluster role binding is needed."""

    metadata: _Metadata
    role_ref: RoleRef
    subjects: list[Subject] | None = None


decode_role = msgspec.json.Decoder(RoleView).decode
decode_binding = msgspec.json.Decoder(BindingView).decode


def rules_in(rules: Any) -> tuple[Rule, ...]:
    """The rules of a role's decoded JSON. Raises msgspec.ValidationError where they are none."""
    return tuple(map(rule_of, msgspec.convert(rules or [], list[_PolicyRule])))


def _has_all(owned: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return "*" in owned or set(wanted) <= set(owned)
