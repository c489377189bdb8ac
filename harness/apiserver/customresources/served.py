"""A definition as rows of resources: one for each version that it serves, and the one that is stored."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.apiserver.customresources.names import ESTABLISHED, Object, is_true
from harness.apiserver.resources import Resource


class Served(msgspec.Struct, frozen=True):
    """`stored` is where objects are; `versions` are (row, its part of the definition), the preferred one first."""

    stored: Resource
    versions: tuple[tuple[Resource, Any], ...]


def served_of(definition: Object) -> Served | None:
    """None of one that is not established (ae/pkg/apiserver/customresource_handler.go:287)."""
    if not is_true(definition, ESTABLISHED):
        return None
    versions = definition["spec"]["versions"]
    stored = _row(definition, next(version for version in versions if version.get("storage")), None)
    rows = tuple(
        (stored if version.get("storage") else _row(definition, version, stored), version)
        for version in sorted(versions, key=lambda item: _priority(item["name"]))
        if version.get("served")
    )
    return Served(stored, rows)


def _row(definition: Object, version: Object, hub: Resource | None) -> Resource:
    spec, names = definition["spec"], definition["status"]["acceptedNames"]
    subresources = tuple(sorted(version.get("subresources") or ()))
    fields = (item.get("jsonPath", "").removeprefix(".") for item in version.get("selectableFields") or ())
    return Resource(
        spec["group"],
        version["name"],
        names["plural"],
        names["kind"],
        names.get("singular") or names["kind"].lower(),
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=subresources,
        selectable=tuple(sorted(fields)),
        hub=hub,
        custom=msgspec.json.encode(version.get("additionalPrinterColumns") or []),
    )


def _priority(version: str) -> tuple[int, int, int, str]:
    """Order of versions (am/version/helpers.go CompareKubeAwareVersionStrings): stable ones first, each the newest
    first; what is no version of this form comes last, by name."""
    head, _, rest = version.removeprefix("v").partition("alpha" if "alpha" in version else "beta")
    if not version.startswith("v") or not head.isdecimal() or (rest and not rest.isdecimal()):
        return (3, 0, 0, version)
    stability = 2 if "alpha" in version else 1 if "beta" in version else 0
    return (stability, -int(head), -int(rest or 0), "")
