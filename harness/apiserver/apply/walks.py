"""Walks over one or two values along their schema: the fields that a value sets, how two values differ, what is left
when fields are removed, what does not fit (smd/typed/{tofieldset,compare,remove,validate}.go)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.apiserver.apply.fieldset import FieldSet, Path, field, shown
from harness.apiserver.apply.structure import (
    ABSENT,
    Shape,
    ShapeError,
    allows,
    declared,
    element_of,
    inner,
    is_atomic,
    item_schema,
    shape_of,
)
from harness.apiserver.schema import Schema


# ---- the fields of a value -----------------------------------------------------------------------------------------
def fields_of(value: Any, schema: Schema | None) -> FieldSet:
    """What somebody who applies `value` owns: leaves, items of lists, keys of maps; not the structs on the way."""
    found = FieldSet()
    _collect(value, schema, (), found)
    return found


def _collect(value: Any, schema: Schema | None, path: Path, found: FieldSet) -> None:
    shape = shape_of(schema, value)
    if shape is Shape.SCALAR or is_atomic(schema, shape):
        found.insert(path)
    elif shape is Shape.LIST:
        if isinstance(value, list):
            _collect_items(value, schema, path, found)
    elif isinstance(value, dict):
        for name, member in value.items():
            below = (*path, field(name))
            _collect(member, inner(schema, name), below, found)
            if member is None or member == {} or not declared(schema, name):
                found.insert(below)


def _collect_items(items: list[Any], schema: Schema | None, path: Path, found: FieldSet) -> None:
    """Of items that occur more than once only the element is owned, nothing below it."""
    assert schema is not None
    elements = [element_of(schema, item) for item in items]
    for element, item in zip(elements, items, strict=True):
        below = (*path, element)
        if elements.count(element) == 1:
            _collect(item, item_schema(schema), below, found)
        found.insert(below)


# ---- how two values differ -----------------------------------------------------------------------------------------
class Comparison:
    """The fields that `new` has and `old` has not, the other way round, and those of both that differ."""

    __slots__ = ("added", "modified", "removed")

    def __init__(
        self,
        added: FieldSet | None = None,
        modified: FieldSet | None = None,
        removed: FieldSet | None = None,
    ) -> None:
        self.added = added if added is not None else FieldSet()
        self.modified = modified if modified is not None else FieldSet()
        self.removed = removed if removed is not None else FieldSet()

    def without(self, fields: FieldSet) -> Comparison:
        if not fields:
            return self
        return Comparison(
            self.added.without(fields), self.modified.without(fields), self.removed.without(fields)
        )


def compare(old: Any, new: Any, schema: Schema | None) -> Comparison:
    found = Comparison()
    _compare(old, new, schema, (), found)
    return found


def _compare(old: Any, new: Any, schema: Schema | None, path: Path, found: Comparison) -> None:
    before, after = shape_of(schema, old), shape_of(schema, new)
    if new is ABSENT:
        after = before
    elif old is ABSENT:
        before = after
    if before is not after:  # only untyped values change their shape
        _compare_as(before, old, new, schema, path, found)
    leaf = _compare_as(after, old, new, schema, path, found)
    if leaf:
        return
    if old is ABSENT:
        found.added.insert(path)
    elif new is ABSENT:
        found.removed.insert(path)


def _compare_as(
    shape: Shape, old: Any, new: Any, schema: Schema | None, path: Path, found: Comparison
) -> bool:
    """True where the two were compared as a whole: scalars, atomic lists and maps, and what is empty on both sides."""
    kind = dict if shape is Shape.MAP else list
    left = old if isinstance(old, kind) else None
    right = new if isinstance(new, kind) else None
    if shape is Shape.SCALAR or is_atomic(schema, shape) or not (left or right):
        if old is ABSENT:
            found.added.insert(path)
        elif new is ABSENT:
            found.removed.insert(path)
        elif old != new:
            found.modified.insert(path)
        return True
    if shape is Shape.MAP:
        _compare_maps(left or {}, right or {}, schema, path, found)
    else:
        _compare_lists(left or [], right or [], schema, path, found)
    return False


def _compare_maps(old: Any, new: Any, schema: Schema | None, path: Path, found: Comparison) -> None:
    for name, value in old.items():
        other = new.get(name, ABSENT)
        if value is not other:
            _compare(value, other, inner(schema, name), (*path, field(name)), found)
    for name, value in new.items():
        if name not in old:
            _compare(ABSENT, value, inner(schema, name), (*path, field(name)), found)


def _compare_lists(old: Any, new: Any, schema: Schema | None, path: Path, found: Comparison) -> None:
    """Item by item, whatever their order; items that occur more than once are compared as one field."""
    assert schema is not None
    before, after = _indexed(old, schema), _indexed(new, schema)
    for element in [*before, *(element for element in after if element not in before)]:
        ours, theirs = before.get(element, []), after.get(element, [])
        below = (*path, element)
        if len(ours) > 1 and len(theirs) > 1:
            if ours != theirs:
                found.modified.insert(below)
            continue
        if len(ours) > 1:
            found.removed.insert(below)
            ours = []
        elif len(theirs) > 1:
            found.added.insert(below)
            theirs = []
        if ours or theirs:
            left, right = (ours[0] if ours else ABSENT), (theirs[0] if theirs else ABSENT)
            _compare(left, right, item_schema(schema), below, found)


def _indexed(items: list[Any], schema: Schema) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(element_of(schema, item), []).append(item)
    return found


# ---- without some fields -------------------------------------------------------------------------------------------
def remove(value: Any, fields: FieldSet, schema: Schema | None) -> Any:
    """`value` without `fields`; None where nothing is left of it. Not changed in place."""
    shape = shape_of(schema, value)
    if shape is Shape.SCALAR:
        return value
    if not value or is_atomic(schema, shape):
        return None
    if shape is Shape.LIST:
        return _remove_items(value, fields, schema) if isinstance(value, list) else None
    return _remove_members(value, fields, schema) if isinstance(value, dict) else None


def _remove_items(items: list[Any], fields: FieldSet, schema: Schema | None) -> list[Any] | None:
    assert schema is not None
    kept = []
    for item in items:
        element = element_of(schema, item)
        if element in fields.members:
            continue
        below = fields.children.get(element)
        kept.append(item if below is None else remove(item, below, item_schema(schema)))
    return kept or None


def _remove_members(value: dict[str, Any], fields: FieldSet, schema: Schema | None) -> dict[str, Any] | None:
    kept = {}
    for name, member in value.items():
        element = field(name)
        if element in fields.members:
            continue
        below = fields.children.get(element)
        kept[name] = member if below is None else remove(member, below, inner(schema, name))
    return kept or None


# ---- what does not fit ---------------------------------------------------------------------------------------------
def check(value: Any, schema: Schema | None) -> None:
    """Whether what is applied fits its schema, without duplicates. Raises ShapeError with upstream's text."""
    faults = list(_faults(value, schema, ""))
    if faults:
        raise ShapeError(faults[0] if len(faults) == 1 else "\n  ".join(["errors:", *faults]))


def _faults(value: Any, schema: Schema | None, at: str) -> Iterator[str]:
    shape = shape_of(schema, value)
    if value is None:
        return
    if shape is Shape.SCALAR:
        fault = _scalar_fault(value, schema)
        if fault:
            yield f"{at}: {fault}" if at else fault
    elif shape is Shape.LIST:
        if isinstance(value, list):
            yield from _faults_of_items(value, schema, at)
        else:
            yield f"{at}: expected list, got {_go(value)}"
    elif not isinstance(value, dict):
        yield f"{at}: expected map, got {_go(value)}"
    else:
        for name, member in value.items():
            below = f"{at}.{name}"
            if not allows(schema, name):
                yield f"{below}: field not declared in schema"
                return
            yield from _faults(member, inner(schema, name), below)


def _faults_of_items(items: list[Any], schema: Schema | None, at: str) -> Iterator[str]:
    atomic, seen = is_atomic(schema, Shape.LIST), set()
    for index, item in enumerate(items):
        element = f"i:{index}"
        if not atomic:
            assert schema is not None
            try:
                element = element_of(schema, item)
            except ShapeError as error:
                yield f"{at}: element {index}: {error}"
                return
            if element in seen:
                yield f"{at}: duplicate entries for key {shown((element,))}"
            seen.add(element)
        yield from _faults(item, item_schema(schema), at + shown((element,)))


_UNTYPED = frozenset({"quantity", "int-or-string", "time"})
_NUMERIC = frozenset({"integer", "number"})


def _scalar_fault(value: Any, schema: Schema | None) -> str:
    kind = "any" if schema is None else schema.type
    if kind in _NUMERIC:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"expected numeric (int or float), got {_go_type(value)}"
    elif kind == "boolean":
        if not isinstance(value, bool):
            return f"expected boolean, got {_go(value)}"
    elif kind in _UNTYPED or kind == "any":
        if isinstance(value, dict | list):
            return f"expected any scalar, got {_go(value)}"
    elif not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{_go_inner(value)}}}"
    return ""


def _go_type(value: Any) -> str:
    if isinstance(value, bool | str):
        return "bool" if isinstance(value, bool) else "string"
    if isinstance(value, int | float):
        return "int64" if isinstance(value, int) else "float64"
    return "map[string]interface {}" if isinstance(value, dict) else "[]interface {}"


def _go(value: Any) -> str:
    return "&{" + _go_inner(value) + "}"


def _go_inner(value: Any) -> str:
    """A value as %v prints it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_go_inner(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_go_inner, value)) + "]"
    return "<nil>" if value is None else str(value)
