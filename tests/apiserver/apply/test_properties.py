"""What holds for any objects: apply is idempotent, gives back what it took, and owners own what is there."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.apiserver.apply.encoding import from_fields
from harness.apiserver.apply.fieldmanager import FieldManager
from harness.apiserver.apply.fieldset import FieldSet
from harness.apiserver.apply.merging import merge
from harness.apiserver.apply.structure import ABSENT, with_structs
from harness.apiserver.apply.walks import compare, fields_of, remove
from harness.apiserver.handlers.bodies import without_nulls
from harness.wire.status import StatusError
from tests.apiserver.apply.schemas import everything

NOW = "2026-11-29T10:00:00Z"
SCHEMA = everything()
MANAGER = FieldManager("example.com/v1", "Thing", SCHEMA, "", FieldSet())

WORD = st.sampled_from(["a", "b", "c"])


def optional(**fields: Any) -> Any:
    return st.fixed_dictionaries({}, optional=fields)


def unique(items: Any, *keys: str) -> Any:
    return st.lists(items, min_size=1, max_size=3, unique_by=lambda item: tuple(item[key] for key in keys))


INNER = optional(a=WORD, b=WORD).filter(bool)
ITEM = st.fixed_dictionaries(
    {"name": WORD},
    optional={"value": WORD, "tags": st.lists(WORD, min_size=1, max_size=3, unique=True), "inner": INNER},
)
PORT = st.fixed_dictionaries(
    {"port": st.integers(1, 3), "protocol": st.sampled_from(["TCP", "UDP"])}, optional={"name": WORD}
)
FIELDS = optional(
    text=WORD,
    number=st.integers(0, 3),
    inner=INNER,
    atom=INNER,
    labels=st.dictionaries(WORD, WORD, min_size=1, max_size=3),
    selector=st.dictionaries(WORD, WORD, min_size=1, max_size=3),
    words=st.lists(WORD, min_size=1, max_size=3),
    finalizers=st.lists(WORD, min_size=1, max_size=3, unique=True),
    items=unique(ITEM, "name"),
    ports=unique(PORT, "port", "protocol"),
    free=st.dictionaries(
        WORD, st.one_of(WORD, st.lists(WORD), st.dictionaries(WORD, WORD, min_size=1)), min_size=1
    ),
)


def thing(fields: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, **fields}


def apply(live: Any, fields: Any, name: str, force: bool = True) -> Any:
    return without_nulls(MANAGER.apply(live, thing(fields), name, force, NOW))


def plain(obj: Any) -> Any:
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}


def owned(obj: Any) -> dict[str, FieldSet]:
    entries = obj["metadata"].get("managedFields") or ()
    return {f"{entry['manager']}/{entry['operation']}": from_fields(entry["fieldsV1"]) for entry in entries}


@given(FIELDS, FIELDS)
def test_apply_is_idempotent(before: Any, applied: Any) -> None:
    once = apply(thing(before), applied, "one")
    assert apply(once, applied, "one", force=False) == once


@given(FIELDS, FIELDS, FIELDS)
def test_what_is_applied_is_there_and_owned(before: Any, other: Any, applied: Any) -> None:
    live = apply(apply(thing(before), other, "two"), applied, "one")
    assert merge(live, thing(applied), SCHEMA) == live
    fields = fields_of(applied, SCHEMA)
    assert owned(live).get("one/Apply", FieldSet()) == fields


@given(FIELDS, FIELDS)
def test_applying_and_then_nothing_gives_back_what_was_there(before: Any, applied: Any) -> None:
    """Where the two set different fields, or the same to the same values."""
    first = compare(merge(before, applied, SCHEMA), before, SCHEMA)
    if first.modified:
        return
    live = apply(apply(thing(before), applied, "one"), {}, "one")
    left = compare(before, plain(live), SCHEMA)
    assert not fields_of(before, SCHEMA) & (left.modified | left.removed)
    assert not left.added
    assert "one/Apply" not in owned(live)


@given(FIELDS, FIELDS)
def test_the_first_apply_replaces_as_the_object_had_been_made_by_it(one: Any, two: Any) -> None:
    assert plain(apply(apply(None, one, "one"), two, "one")) == plain(apply(None, two, "one")) or _order_only(
        one, two
    )


def _order_only(one: Any, two: Any) -> bool:
    """Shared items of sets and keyed lists may stand in another order."""
    made = plain(apply(apply(None, one, "one"), two, "one"))
    difference = compare(made, two, SCHEMA)
    return not (difference.added or difference.modified or difference.removed)


@settings(max_examples=60)
@example(
    [
        ({"text": "a"}, "one", False),
        ({"inner": {"a": "a"}, "free": {"a": "a"}}, "one", False),
        ({"text": "a", "free": {"a": {"a": "a"}}}, "three", True),
        ({}, "three", True),
    ]
)
@given(st.lists(st.tuples(FIELDS, st.sampled_from(["one", "two", "three"]), st.booleans()), max_size=6))
def test_owners_own_only_what_is_there_and_every_leaf_that_is_there_is_somebodys(steps: Any) -> None:
    """But for maps that an apply emptied: it leaves null there, which goes after ownership was settled, so who added
    the map by an update still owns it (smd/typed/remove.go, doMap)."""
    live: Any = None
    emptied = FieldSet()
    for fields, name, applies in steps:
        if applies or live is None:
            applied = MANAGER.apply(live, thing(fields), name, True, NOW)
            live = without_nulls(applied)
            emptied |= fields_of(plain(applied), SCHEMA) - fields_of(plain(live), SCHEMA)
            if "managedFields" not in live["metadata"]:
                live = None  # an empty apply: nobody tracks it
        else:
            new = {**thing(fields), "metadata": dict(live["metadata"])}
            MANAGER.update(live, new, name, NOW)
            live = new if "managedFields" in new["metadata"] else None
    if live is None:
        return
    everything_there = fields_of(plain(live), SCHEMA)
    union = FieldSet()
    for fields in owned(live).values():
        union |= fields
    there = with_structs(everything_there, SCHEMA) | _structs(plain(live)) | emptied
    assert not with_structs(union, SCHEMA) - there
    assert not everything_there - with_structs(union, SCHEMA)


def _structs(value: Any) -> FieldSet:
    """Structs that are there, which an updater owns where it added them."""
    added = compare({}, value, SCHEMA).added
    return FieldSet.of(*added)


@given(FIELDS, FIELDS)
def test_a_comparison_tells_all_that_removing_and_adding_must_do(old: Any, new: Any) -> None:
    difference = compare(old, new, SCHEMA)
    kept = remove(old, difference.removed | difference.modified, SCHEMA)
    again = compare({} if kept is None else without_nulls(kept), new, SCHEMA)
    assert not again.removed
    assert not again.modified
    assert compare(ABSENT, old, SCHEMA).added == compare({}, old, SCHEMA).added


NAMES = st.sampled_from(
    (
        *("text", "number", "inner", "atom", "labels", "selector", "words", "finalizers", "items", "ports"),
        *("free", "name", "value", "port", "tags", "a", "nope"),
    )
)
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.floats(allow_nan=False), WORD),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, ANYTHING, max_size=5)


@settings(max_examples=200)
@given(OBJECTS, OBJECTS, OBJECTS)
def test_whatever_is_applied_is_taken_or_refused(before: Any, first: Any, second: Any) -> None:
    live = thing(before)
    for fields in (first, second):
        try:
            live = apply(live, fields, "one")
        except StatusError as error:
            assert error.status.code in (409, 500)  # noqa: PT017  # either is an answer
        new = {**thing(fields), "metadata": dict(live["metadata"])}
        MANAGER.update(live, new, "two", NOW)
