"""What is applied, merged into what is there (smd/typed/merge.go): the applied side wins at every leaf; maps and keyed
lists are united, and shared items of a list come in the applied order."""

from __future__ import annotations

from typing import Any

from harness.apiserver.apply.structure import (
    ABSENT,
    Shape,
    element_of,
    inner,
    is_atomic,
    item_schema,
    shape_of,
)
from harness.apiserver.schema import Schema


def merge(live: Any, applied: Any, schema: Schema | None) -> Any:
    """ABSENT where nothing is left. Neither side is changed; the result shares parts with both."""
    if applied is ABSENT or live is ABSENT:
        return live if applied is ABSENT else applied
    shape = shape_of(schema, applied)
    if shape is Shape.SCALAR or is_atomic(schema, shape):
        return applied
    kind = dict if shape is Shape.MAP else list
    left: Any = live if isinstance(live, kind) else None
    right: Any = applied if isinstance(applied, kind) else None
    if not left and not right:  # keeps an empty value apart from a null
        return applied
    merged: Any
    if shape is Shape.MAP:
        merged = _merge_maps(left or {}, right or {}, schema)
    else:
        assert schema is not None
        merged = _merge_lists(left or [], right or [], schema)
    return merged or ABSENT


def _merge_maps(live: Any, applied: Any, schema: Schema | None) -> dict[str, Any]:
    found = {}
    for name in [*live, *(name for name in applied if name not in live)]:
        value = merge(live.get(name, ABSENT), applied.get(name, ABSENT), inner(schema, name))
        if value is not ABSENT:
            found[name] = value
    return found


def _merge_lists(live: list[Any], applied: list[Any], schema: Schema) -> list[Any]:
    """Items of both in the applied order; those of the live side alone stay before what followed them."""
    ours = [element_of(schema, item) for item in live]
    theirs = [element_of(schema, item) for item in applied]
    wanted = dict(zip(theirs, applied, strict=True))
    there: dict[str, Any] = {}
    for element, item in zip(ours, live, strict=True):
        there[element] = None if element in there else item  # duplicates are replaced, not merged into
    shared = iter([element for element in theirs if element in there])
    following = next(shared, None)
    merged: list[Any] = []
    done: set[str] = set()
    items = item_schema(schema)
    left = right = 0
    while left < len(ours) or right < len(theirs):
        if left < len(ours) and right < len(theirs):
            element = ours[left]
            if element == theirs[right]:
                done.add(element)
                merged.append(merge(there[element], wanted[element], items))
                left, right, following = left + 1, right + 1, next(shared, None)
                continue
            if element in wanted and following is not None and following != element:
                left += 1  # shared, but its turn comes later
                continue
        if left < len(ours):
            element = ours[left]
            if element not in wanted:
                merged.append(live[left])
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(theirs):
            element = theirs[right]
            done.add(element)
            merged.append(merge(there.get(element, ABSENT), wanted[element], items))
            right += 1
            if following == element:
                following = next(shared, None)
    return [item for item in merged if item is not ABSENT]
