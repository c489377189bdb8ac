"""Whether a pod may be on a node: node selectors, affinity, taints. staging component-helpers scheduling/corev1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from harness.wire.gotext import parse_int


class Taint(msgspec.Struct, frozen=True, gc=False):
    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(msgspec.Struct, frozen=True, gc=False):
    """`key` "" with Exists tolerates every taint; `effect` "" every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """v1.Toleration.ToleratesTaint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or (bool(self.key) and self.value == taint.value)


class Expression(msgspec.Struct, frozen=True, gc=False):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()

    def matches(self, found: str | None) -> bool:
        """`found` is what the node has under `key`, None for nothing."""
        operator = self.operator
        if operator == "In":
            return found is not None and found in self.values
        if operator == "NotIn":
            return found is None or found not in self.values
        if operator == "Exists":
            return found is not None
        if operator == "DoesNotExist":
            return found is None
        number = None if found is None else parse_int(found)
        bound = parse_int(self.values[0]) if len(self.values) == 1 else None
        if number is None or bound is None:
            return False
        return number > bound if operator == "Gt" else operator == "Lt" and number < bound


class Term(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    match_expressions: tuple[Expression, ...] = ()
    match_fields: tuple[Expression, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """A term without any requirement matches nothing."""
        if not (self.match_expressions or self.match_fields):
            return False
        return all(each.matches(labels.get(each.key)) for each in self.match_expressions) and all(
            each.key == "metadata.name" and each.matches(name) for each in self.match_fields
        )


class Terms(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Any of them is enough."""

    node_selector_terms: tuple[Term, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        return any(each.matches(name, labels) for each in self.node_selector_terms)


class NodeAffinity(msgspec.Struct, frozen=True, gc=False):
    """Only what is required; preferences are not looked at."""

    required: Terms | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )


class Affinity(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_affinity: NodeAffinity | None = None


class Placing(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The part of a pod's spec that says where it may be."""

    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    node_name: str = ""

    def wants(self, name: str, labels: Mapping[str, str]) -> bool:
        """Selector and required affinity (GetRequiredNodeAffinity)."""
        if self.node_selector and not self.node_selector.items() <= labels.items():
            return False
        if self.affinity is None or self.affinity.node_affinity is None:
            return True
        required = self.affinity.node_affinity.required
        return required is None or required.matches(name, labels)

    def tolerates(
        self, taints: Iterable[Taint], effects: tuple[str, ...] = ("NoSchedule", "NoExecute")
    ) -> bool:
        """No taint with one of `effects` keeps it away."""
        tolerations = self.tolerations or ()
        return all(
            taint.effect not in effects or any(each.tolerates(taint) for each in tolerations)
            for taint in taints
        )
