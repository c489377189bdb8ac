"""Path elements, sets of fields and FieldsV1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.apiserver.apply.encoding import FieldsError, from_fields, to_fields
from harness.apiserver.apply.fieldset import FieldSet, field, keyed, order, shown, valued

ELEMENTS = st.sampled_from(
    [
        field("a"),
        field("b"),
        field("Z"),
        keyed({"name": "x"}),
        keyed({"port": 80, "protocol": "TCP"}),
        valued("s"),
        valued(2),
        valued(True),
        "i:0",
        "i:11",
    ]
)
PATHS = st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple)
SETS = st.lists(PATHS, max_size=8).map(lambda paths: FieldSet.of(*paths))


def test_elements_are_written_as_upstream_writes_them() -> None:
    assert field("a:b") == "f:a:b"
    assert keyed({"protocol": "TCP", "port": 80}) == 'k:{"port":80,"protocol":"TCP"}'
    assert valued("ä") == 'v:"ä"'
    assert valued(1.0) == valued(1) == "v:1"


def test_a_path_reads_as_in_messages() -> None:
    path = (field("spec"), field("ports"), keyed({"port": 80, "protocol": "TCP"}), field("name"))
    assert shown(path) == '.spec.ports[port=80,protocol="TCP"].name'
    assert shown((field("f"), valued("x"))) == '.f[="x"]'
    assert shown((field("f"), "i:3")) == ".f[3]"


def test_elements_are_ordered_by_kind_then_value() -> None:
    elements = [
        *(
            "f:a",
            "f:b",
            'k:{"a":1}',
            'k:{"a":2}',
            'k:{"a":10}',
            'k:{"a":10,"b":1}',
            'k:{"a":"x"}',
            'k:{"b":1}',
        ),
        *("v:2", "v:10", 'v:"a"', "v:false", "v:true", "i:2", "i:10"),
    ]
    assert sorted(elements, key=order) == elements


def test_a_member_with_members_below_it_is_marked_by_a_dot() -> None:
    fields = FieldSet.of(("f:a",), ("f:a", "f:b"), ("f:c", "f:d"))
    assert to_fields(fields) == {"f:a": {".": {}, "f:b": {}}, "f:c": {"f:d": {}}}
    assert list(to_fields(FieldSet.of(('v:"x"',), ("f:z",)))) == ["f:z", 'v:"x"']


def test_reading_puts_elements_into_their_canonical_form() -> None:
    assert from_fields({'k:{"b": 1, "a": 2}': {}}) == FieldSet.of(('k:{"a":2,"b":1}',))
    assert from_fields({"f:a": {".": {}, "f:b": {}}}) == FieldSet.of(("f:a",), ("f:a", "f:b"))
    assert from_fields({}) == FieldSet()


def test_elements_of_kinds_unknown_are_left_out() -> None:
    assert from_fields({"x:new": {}, "f:a": {}}) == FieldSet.of(("f:a",))


@pytest.mark.parametrize(
    "value",
    [
        *([], "x", 1, {"f:a": 1}, {"f:a": None}, {"fa": {}}, {"": {}}, {"f": {}}),
        *({"k:[]": {}}, {"k:{": {}}, {"v:nope": {}}, {"i:x": {}}),
    ],
)
def test_what_is_no_fieldsv1_is_refused(value: object) -> None:
    with pytest.raises(FieldsError):
        from_fields(value)


@given(SETS)
def test_a_set_survives_its_encoding(fields: FieldSet) -> None:
    assert from_fields(to_fields(fields)) == fields


@given(SETS, SETS)
def test_operations_are_those_of_sets_of_paths(one: FieldSet, two: FieldSet) -> None:
    assert set(one | two) == set(one) | set(two)
    assert set(one & two) == set(one) & set(two)
    assert set(one - two) == set(one) - set(two)
    covered = {path for path in one if any(path[:length] in set(two) for length in range(1, len(path) + 1))}
    assert set(one.without(two)) == set(one) - covered
    for path in one:
        assert path in one
    assert bool(one - one) is False
    assert bool(one) is bool(set(one))


@given(SETS)
def test_iterating_lists_each_path_once(fields: FieldSet) -> None:
    paths = list(fields)
    assert len(paths) == len(set(paths))
    assert FieldSet.of(*paths) == fields


def test_an_empty_path_is_never_a_member() -> None:
    fields = FieldSet.of((), ("f:a",))
    assert () not in fields
    assert list(fields) == [("f:a",)]
    assert ("f:x", "f:y") not in fields
    assert repr(fields) == "<FieldSet .a>"
