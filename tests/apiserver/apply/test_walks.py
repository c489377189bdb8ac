"""Fields of values, comparisons, removals and faults along a schema: tables."""

from typing import Any

import pytest

from harness.apiserver.apply.fieldset import FieldSet, shown
from harness.apiserver.apply.structure import ABSENT, ShapeError
from harness.apiserver.apply.walks import check, compare, fields_of, remove
from tests.apiserver.apply.schemas import everything

SCHEMA = everything()


def shown_fields(fields: FieldSet) -> list[str]:
    return [shown(path) for path in fields]


@pytest.mark.parametrize(
    ("value", "owned"),
    [
        ({}, []),
        ({"text": "x"}, [".text"]),
        ({"text": None}, [".text"]),
        ({"inner": {"a": "x"}}, [".inner.a"]),
        ({"inner": {}}, [".inner"]),
        ({"inner": None}, [".inner"]),
        ({"atom": {"a": "x"}}, [".atom"]),
        ({"labels": {"a": "x", "b": "y"}}, [".labels.a", ".labels.b"]),
        ({"labels": {}}, [".labels"]),
        ({"selector": {"a": "x"}}, [".selector"]),
        ({"words": ["x", "x"]}, [".words"]),
        ({"finalizers": ["x", "y"]}, ['.finalizers[="x"]', '.finalizers[="y"]']),
        ({"finalizers": []}, []),
        (
            {"items": [{"name": "n", "value": "v"}]},
            ['.items[name="n"]', '.items[name="n"].name', '.items[name="n"].value'],
        ),
        (
            {"ports": [{"port": 80}]},
            ['.ports[port=80,protocol="TCP"]', '.ports[port=80,protocol="TCP"].port'],
        ),
        ({"free": {"a": {"b": 1}, "c": [1]}}, [".free.a", ".free.c", ".free.a.b"]),
        ({"free": {"a": {}}}, [".free.a"]),
        ({"items": [{"name": "n", "value": "1"}, {"name": "n"}]}, ['.items[name="n"]']),
    ],
)
def test_the_fields_that_a_value_sets(value: Any, owned: list[str]) -> None:
    assert shown_fields(fields_of(value, SCHEMA)) == owned


@pytest.mark.parametrize(
    ("old", "new", "added", "modified", "removed"),
    [
        ({}, {}, [], [], []),
        ({"text": "x"}, {"text": "x"}, [], [], []),
        ({"text": "x"}, {"text": "y"}, [], [".text"], []),
        ({}, {"text": "y"}, [".text"], [], []),
        ({"text": "x"}, {}, [], [], [".text"]),
        ({}, {"inner": {"a": "x"}}, [".inner", ".inner.a"], [], []),
        ({"inner": {}}, {"inner": {"a": "x"}}, [".inner.a"], [], []),
        ({"inner": {}}, {"inner": None}, [], [".inner"], []),
        ({"inner": {"a": "x"}}, {}, [], [], [".inner", ".inner.a"]),
        ({"inner": {"a": "x"}}, {"inner": {}}, [], [], [".inner.a"]),
        ({"atom": {"a": "x"}}, {"atom": {"a": "y"}}, [], [".atom"], []),
        ({"words": ["a", "b"]}, {"words": ["b", "a"]}, [], [".words"], []),
        ({"finalizers": ["a", "b"]}, {"finalizers": ["b", "a"]}, [], [], []),
        ({"finalizers": ["a"]}, {"finalizers": ["b"]}, ['.finalizers[="b"]'], [], ['.finalizers[="a"]']),
        (
            {"items": [{"name": "n", "value": "1"}]},
            {"items": [{"name": "n", "value": "2"}]},
            [],
            ['.items[name="n"].value'],
            [],
        ),
        (
            {"ports": [{"port": 80}]},
            {"ports": [{"port": 80, "protocol": "TCP"}]},
            ['.ports[port=80,protocol="TCP"].protocol'],
            [],
            [],
        ),
        ({"ports": None}, {"ports": [{"port": 1}]}, ['.ports[port=1,protocol="TCP"]'], [], []),
        ({"free": [1]}, {"free": {"a": 1}}, [".free.a"], [".free"], []),
        ({"free": {"a": 1}}, {"free": 7}, [], [".free"], [".free.a"]),
    ],
)
def test_how_two_values_differ(
    old: Any, new: Any, added: list[str], modified: list[str], removed: list[str]
) -> None:
    found = compare(old, new, SCHEMA)
    if "ports" in old and old["ports"] is None:
        added = [*added, '.ports[port=1,protocol="TCP"].port']
    assert shown_fields(found.added) == added
    assert shown_fields(found.modified) == modified
    assert shown_fields(found.removed) == removed


def test_items_that_occur_twice_are_compared_as_one_field() -> None:
    one, two = {"name": "n", "value": "1"}, {"name": "n", "value": "2"}
    twice, thrice = {"items": [one, two]}, {"items": [one, two, two]}
    assert shown_fields(compare(twice, thrice, SCHEMA).modified) == ['.items[name="n"]']
    assert not compare(twice, twice, SCHEMA).modified
    fewer = compare(twice, {"items": [one]}, SCHEMA)
    assert '.items[name="n"]' in shown_fields(fewer.removed)
    assert '.items[name="n"].value' in shown_fields(fewer.added)
    more = compare({"items": [one]}, twice, SCHEMA)
    assert '.items[name="n"]' in shown_fields(more.added)
    assert '.items[name="n"].value' in shown_fields(more.removed)


def test_nothing_at_all_can_be_compared() -> None:
    assert shown_fields(compare(ABSENT, {"text": "x"}, SCHEMA).added) == [".text"]
    assert shown_fields(compare({"text": "x"}, ABSENT, SCHEMA).removed) == [".text"]


@pytest.mark.parametrize(
    ("value", "gone", "left"),
    [
        ({"text": "x", "number": 1}, [("f:text",)], {"number": 1}),
        ({"text": "x"}, [("f:text",)], None),
        ({"inner": {"a": "x", "b": "y"}}, [("f:inner", "f:a")], {"inner": {"b": "y"}}),
        ({"inner": {"a": "x"}}, [("f:inner", "f:a")], {"inner": None}),
        ({"finalizers": ["a", "b"]}, [("f:finalizers", 'v:"a"')], {"finalizers": ["b"]}),
        ({"items": [{"name": "n"}]}, [("f:items", 'k:{"name":"n"}')], {"items": None}),
        (
            {"items": [{"name": "n", "value": "v"}]},
            [("f:items", 'k:{"name":"n"}', "f:value")],
            {"items": [{"name": "n"}]},
        ),
        ({"atom": {"a": "x"}}, [("f:atom", "f:a")], {"atom": None}),
        ({"text": "x"}, [("f:other",)], {"text": "x"}),
        ({"inner": {}}, [("f:inner", "f:a")], {"inner": None}),
    ],
)
def test_what_is_left_without_some_fields(value: Any, gone: Any, left: Any) -> None:
    before = repr(value)
    assert remove(value, FieldSet.of(*gone), SCHEMA) == left
    assert repr(value) == before


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"nope": 1}, ".nope: field not declared in schema"),
        ({"inner": {"x": 1}}, ".inner.x: field not declared in schema"),
        ({"text": 1}, ".text: expected string, got &value.valueUnstructured{Value:1}"),
        ({"number": "1"}, ".number: expected numeric (int or float), got string"),
        ({"number": True}, ".number: expected numeric (int or float), got bool"),
        ({"inner": "x"}, ".inner: expected map, got &{x}"),
        ({"words": "x"}, ".words: expected list, got &{x}"),
        ({"words": {"a": [1, None]}}, ".words: expected list, got &{map[a:[1 <nil>]]}"),
        ({"words": ["x", 1]}, ".words[1]: expected string, got &value.valueUnstructured{Value:1}"),
        (
            {"items": [{"value": "v"}]},
            (
                '.items: element 0: associative list with keys has an element that omits all key fields ["name"] '
                "(and doesn't have default values for any key fields)"
            ),
        ),
        ({"items": [{"name": "n"}, {"name": "n"}]}, '.items: duplicate entries for key [name="n"]'),
        ({"items": [None]}, ".items: element 0: associative list with keys may not have a null element"),
        ({"items": ["x"]}, ".items: element 0: associative list with keys may not have non-map elements"),
        ({"finalizers": ["a", "a"]}, '.finalizers: duplicate entries for key [="a"]'),
        (
            {"finalizers": [{}]},
            ".finalizers: element 0: associative list without keys has an element that's a map type",
        ),
        (
            {"finalizers": [[]]},
            ".finalizers: element 0: not supported: associative list with lists as elements",
        ),
        (
            {"finalizers": [None]},
            ".finalizers: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            {"text": 1, "number": "x"},
            (
                "errors:\n  .text: expected string, got &value.valueUnstructured{Value:1}\n"
                "  .number: expected numeric (int or float), got string"
            ),
        ),
    ],
)
def test_what_does_not_fit_its_schema_is_said_in_upstreams_words(value: Any, text: str) -> None:
    with pytest.raises(ShapeError) as raised:
        check(value, SCHEMA)
    assert str(raised.value) == text


def test_nulls_and_untyped_values_fit() -> None:
    check({"text": None, "inner": None, "words": None, "free": {"a": [{"b": 1}]}}, SCHEMA)
    check({"anything": [1, {"x": None}]}, None)
