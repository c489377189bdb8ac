"""Objects in another version than the one that is stored: what a row with a `hub` shows of the hub's objects.

Conversion happens at the boundary: `viewregistry` turns what is written into the hub's form before anything else looks
at it, and handlers make what is answered from the stored bytes. Caches, admission and the other registries know the
stored form alone. Mirrors kk/pkg/apis/*/v*/conversion.go; defaults and validation are the strategies'.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from harness.apiserver.conversion import autoscalers, events
from harness.apiserver.resources import EVENT_FIELDS, Resource
from harness.wire.selectors import FieldSelector

Object = dict[str, Any]
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class _Conversion(NamedTuple):
    to_hub: Callable[[Object], Object]
    from_hub: Callable[[Object], Object]


def _same(obj: Object) -> Object:
    """Custom resources (without a webhook): what differs between versions is what they are called."""
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


_CUSTOM = _Conversion(_same, _same)


_CONVERSIONS = {
    "events.k8s.io/v1": _Conversion(events.to_core, events.from_core),
    "autoscaling/v1": _Conversion(autoscalers.to_v2, autoscalers.from_v2),
}


def _conversion(resource: Resource) -> _Conversion:
    return _CUSTOM if resource.custom else _CONVERSIONS[resource.api_version]


def to_hub(resource: Resource, obj: Object) -> Object:
    """`obj` in the form that is stored, a new object; itself where that is its own form."""
    if resource.hub is None:
        return obj
    return {
        "kind": resource.kind,
        "apiVersion": resource.hub.api_version,
        **_conversion(resource).to_hub(obj),
    }


def from_hub(resource: Resource, obj: Object) -> Object:
    """An object as it is stored, in the form of `resource`."""
    if resource.hub is None:
        return obj
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        **_conversion(resource).from_hub(obj),
    }


def shown(resource: Resource, body: bytes) -> bytes:
    """As `from_hub`, of an object's JSON."""
    return body if resource.hub is None else _encode(from_hub(resource, _decode(body)))


def hub_fields(resource: Resource, selector: FieldSelector) -> FieldSelector:
    """A field selector in the names of the form that is stored."""
    if resource.hub is None or selector.empty:
        return selector
    terms = tuple(
        msgspec.structs.replace(term, field=EVENT_FIELDS.get(term.field, term.field))
        for term in selector.terms
    )
    return FieldSelector(terms)
