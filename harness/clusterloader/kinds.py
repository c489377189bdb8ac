"""From apiVersion and kind to the resource that a path names.

ClusterLoader2 guesses the plural instead of asking the server (pkg/framework/client/objects.go: pluralResource, which
uses gengo's AllLowercasePluralNamer); so do we, for the same requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.client.requests import ResourceRef


class Kind(NamedTuple):
    """A kind and the resource that serves it."""

    ref: ResourceRef
    kind: str


def plural(kind: str) -> str:
    """``Pod`` -> ``pods``, ``NetworkPolicy`` -> ``networkpolicies``, ``Ingress`` -> ``ingresses``."""
    singular = kind.lower()
    if singular.endswith("endpoints") or len(singular) < 2:
        return singular
    last, before = singular[-1], singular[-2]
    if last in "sxz" or (last == "h" and before in "cs"):
        return singular + "es"
    if last == "y" and before not in "aeiou":
        return singular[:-1] + "ies"
    if last == "f":
        return singular[:-1] + "ves"
    if last == "e" and before == "f":
        return singular[:-2] + "ves"
    return singular + "s"


def kind_of(api_version: str, kind: str) -> Kind:
    group, _, version = api_version.rpartition("/")
    return Kind(ResourceRef(group, version, plural(kind)), kind)


def kind_of_object(obj: Mapping[str, object]) -> Kind:
    """The kind of an object that has apiVersion and kind (TemplateProvider checks that)."""
    return kind_of(str(obj["apiVersion"]), str(obj["kind"]))
