"""What a value is to server-side apply: a scalar, a list or a map, and how its parts are told apart
(smd/typed/helpers.go, smd/schema).

A schema of None stands for an untyped value: its maps are granular, its lists atomic, all the way down
(``__untyped_deduced_`` of upstream's schemas).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from harness.apiserver.apply.fieldset import FieldSet, keyed, valued
from harness.apiserver.schema import Schema

_MAPS = frozenset({"object", "map"})
# Defaults of keys: an item without the field is the item with this one (OpenAPI's `default` of
# ContainerPort.protocol and ServicePort.protocol).
KEY_DEFAULTS: Mapping[str, Any] = {"protocol": "TCP"}


class Absent(Enum):
    """No value, which is not the same as a null."""

    ABSENT = 0


ABSENT: Final = Absent.ABSENT


class Shape(Enum):
    SCALAR = 0
    LIST = 1
    MAP = 2


class ShapeError(ValueError):
    """A value that does not fit its schema; the text is upstream's."""


def shape_of(schema: Schema | None, value: Any) -> Shape:
    """What the schema says; of an untyped value, what the value is (null: a map)."""
    if schema is not None and schema.type != "any":
        return Shape.MAP if schema.type in _MAPS else Shape.LIST if schema.type == "list" else Shape.SCALAR
    if isinstance(value, list):
        return Shape.LIST
    return Shape.MAP if isinstance(value, dict) or value is None or value is ABSENT else Shape.SCALAR


def is_atomic(schema: Schema | None, shape: Shape) -> bool:
    """Whether a list or map is one field as a whole."""
    if schema is None or schema.type == "any":
        return shape is Shape.LIST
    return schema.list_type == "atomic" if shape is Shape.LIST else schema.atomic


def declared(schema: Schema | None, name: str) -> bool:
    """Whether `name` is a field of a struct, as opposed to a key of a map."""
    return schema is not None and schema.type == "object" and name in schema.fields


def allows(schema: Schema | None, name: str) -> bool:
    """Whether an object of this schema may have the field or key."""
    if schema is None or schema.type != "object":
        return True
    return name in schema.fields or schema.preserve_unknown


def inner(schema: Schema | None, name: str) -> Schema | None:
    """The schema of a field or a map's value."""
    if schema is None:
        return None
    return schema.fields.get(name) if schema.type == "object" else schema.items


def item_schema(schema: Schema | None) -> Schema | None:
    return None if schema is None else schema.items


def element_of(schema: Schema, item: Any) -> str:
    """The path element of a set's or map list's item. Raises ShapeError."""
    if schema.list_type == "map":
        return _by_keys(schema.keys, item)
    if isinstance(item, dict):
        raise ShapeError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise ShapeError("not supported: associative list with lists as elements")
    if item is None:
        raise ShapeError("associative list without keys has an element that's an explicit null")
    return valued(item)


def _by_keys(names: tuple[str, ...], item: Any) -> str:
    if item is None:
        raise ShapeError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ShapeError("associative list with keys may not have non-map elements")
    keys = {}
    for name in names:
        if name in item:
            keys[name] = item[name]
        elif name in KEY_DEFAULTS:
            keys[name] = KEY_DEFAULTS[name]
    if not keys:
        listed = " ".join(f'"{name}"' for name in names)
        raise ShapeError(
            f"associative list with keys has an element that omits all key fields [{listed}] "
            "(and doesn't have default values for any key fields)"
        )
    return keyed(keys)


def with_structs(fields: FieldSet, schema: Schema | None) -> FieldSet:
    """`fields` with every struct's field that has members below it (smd/fieldpath/set.go:113)."""
    members, children = set(fields.members), {}
    typed = schema is not None and schema.type != "any"
    for element, below in fields.children.items():
        name = element[2:] if element[0] == "f" else None
        at: Schema | None = None
        if name is not None:
            if declared(schema, name):
                members.add(element)
            at = inner(schema, name) if typed else None
        elif element[0] == "k" and typed:
            at = item_schema(schema)
        children[element] = with_structs(below, at)
    return FieldSet(members, children)
