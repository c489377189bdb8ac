"""FieldsV1: a field set as the JSON that managedFields hold (smd/fieldpath/serialize.go, serialize-pe.go)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from harness.apiserver.apply.fieldset import FieldSet, keyed, order, valued

_decode = msgspec.json.Decoder().decode
_KINDS = "fkvi"


class FieldsError(ValueError):
    """Text that is no FieldsV1."""


def to_fields(fields: FieldSet, itself: bool = False) -> dict[str, Any]:
    """The JSON object of a set; `itself` says that what it is below is a member too."""
    found: dict[str, Any] = {".": {}} if itself else {}
    for element in sorted(fields.members | fields.children.keys(), key=order):
        below = fields.children.get(element)
        found[element] = {} if below is None else to_fields(below, element in fields.members)
    return found


def from_fields(value: Any) -> FieldSet:
    """Raises FieldsError."""
    return _read(value)[0]


def _read(value: Any) -> tuple[FieldSet, bool]:
    """(what is below, whether the element itself is a member): one that has nothing below is."""
    if not isinstance(value, dict):
        raise FieldsError(f"expected an object, got {value!r}")
    found, member = FieldSet(), False
    for text, inner in value.items():
        if text == ".":
            member = True
            continue
        element = _canonical(text)
        if element is None:
            continue
        below, itself = _read(inner)
        if itself:
            found.members.add(element)
        if below:
            found.children[element] = found.below(element) | below
    return found, member or not found


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str | None:
    """None for a kind of element that is not known: a later version may know it. Raises FieldsError."""
    if len(text) < 2 or text[1] != ":":
        raise FieldsError(f"no element of a path: {text!r}")
    kind = text[0]
    if kind == "f" or kind not in _KINDS:
        return text if kind == "f" else None
    try:
        if kind == "i":
            return f"i:{int(text[2:])}"
        value = _decode(text[2:].encode())
    except (ValueError, msgspec.DecodeError) as error:
        raise FieldsError(f"no element of a path: {text!r}: {error}") from None
    if kind == "v":
        return valued(value)
    if not isinstance(value, dict):
        raise FieldsError(f"no element of a path: {text!r}")
    return keyed(value)
