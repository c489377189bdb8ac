"""What custom resources are made of: paths, versions in order, pruning and defaults, rules of schemas."""

import copy
from typing import Any

import pytest

from harness.apiserver.customresources.columns import printer_of
from harness.apiserver.customresources.jsonpath import find, is_simple_path, printed, replaced
from harness.apiserver.customresources.served import _priority as priority
from harness.apiserver.customresources.served import served_of
from harness.apiserver.customresources.structure import default, pruned
from harness.apiserver.customresources.validation import schema_errors

OBJECT: dict[str, Any] = {
    "metadata": {"name": "a", "annotations": {"x.io/y": "z"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"list": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}], "n": 1.5},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".metadata.name", ["a"]),
        (".metadata.annotations.x\\.io/y", ["z"]),
        (".metadata.annotations['x.io/y']", ["z"]),
        (".spec.list[0].type", ["Ready"]),
        (".spec.list[-1].type", ["Other"]),
        (".spec.list[2].type", []),
        (".spec.list[*].status", ["True", "False"]),
        ('.spec.list[?(@.type=="Ready")].status', ["True"]),
        (".spec.missing.deeper", []),
        ("spec", []),
    ],
)
def test_paths_lead_to_values(path: str, found: list[Any]) -> None:
    assert find(path, OBJECT) == found


def test_a_simple_path_can_be_set() -> None:
    assert is_simple_path(".spec.replicas")
    assert not is_simple_path(".spec.list[0]")
    assert not is_simple_path("")
    assert replaced(".spec.a.b", OBJECT, 3)["spec"]["a"] == {"b": 3}
    assert "a" not in OBJECT["spec"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "<nil>"), (True, "true"), (2, "2"), ("x", "x"), ({"a": [1]}, '{"a":[1]}')],
)
def test_values_are_printed_as_kubectl_prints_them(value: object, text: str) -> None:
    assert printed(value) == text


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ({"type": "string", "jsonPath": ".spec.list"}, '[{"type":"Ready","status":"True"},'),
        ({"type": "integer", "jsonPath": ".spec.n"}, 1),
        ({"type": "number", "jsonPath": ".spec.n"}, 1.5),
        ({"type": "boolean", "jsonPath": ".spec.n"}, None),
        ({"type": "integer", "jsonPath": ".metadata.name"}, None),
        ({"type": "date", "jsonPath": ".spec.n"}, None),
        ({"type": "string", "jsonPath": ".spec.missing"}, None),
    ],
)
def test_cells_have_the_type_of_their_column(column: dict[str, Any], cell: Any) -> None:
    found = printer_of([{"name": "X", **column}]).cells(OBJECT, 0.0)[1]
    assert found.startswith(cell) if isinstance(cell, str) else found == cell


def test_without_columns_there_is_the_age() -> None:
    printer = printer_of([])
    assert [column["name"] for column in printer.columns] == ["Name", "Age"]
    assert printer.cells(OBJECT, 1767225600.0 + 5) == ["a", "5s"]


def test_versions_are_in_upstream_s_order() -> None:
    names = ["foo10", "v1beta1", "v2", "v11alpha2", "v1", "v3beta1", "v10", "v11beta2", "foo1", "v12alpha1"]
    assert sorted(names, key=priority) == [
        *("v10", "v2", "v1", "v11beta2", "v3beta1", "v1beta1", "v12alpha1", "v11alpha2", "foo1", "foo10")
    ]


def test_what_is_not_established_is_not_served() -> None:
    assert served_of({"metadata": {}, "spec": {}, "status": {}}) is None
    assert served_of({"metadata": {}, "spec": {}}) is None


SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "a": {"type": "string", "default": "x"},
                "b": {
                    "type": "object",
                    "default": {},
                    "properties": {"c": {"type": "integer", "default": 1}},
                },
                "list": {"type": "array", "items": {"type": "object", "properties": {"k": {"default": 2}}}},
                "map": {
                    "type": "object",
                    "additionalProperties": {"type": "object", "properties": {"d": {"type": "string"}}},
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "properties": {"spec": {"type": "object"}},
                },
                "nullable": {"type": "string", "nullable": True},
            },
        }
    },
}


@pytest.mark.parametrize(
    ("spec", "kept", "unknown"),
    [
        ({"a": "b"}, {"a": "b"}, []),
        ({"z": 1}, {}, ["spec.z"]),
        ({"list": [{"k": 1}, {"y": 1}]}, {"list": [{"k": 1}, {}]}, ["spec.list[1].y"]),
        ({"map": {"m": {"d": "1", "e": 2}}}, {"map": {"m": {"d": "1"}}}, ["spec.map.m.e"]),
        ({"free": {"any": {"thing": 1}}}, {"free": {"any": {"thing": 1}}}, []),
        (
            {"template": {"kind": "K", "metadata": {"name": "n"}, "spec": {}, "no": 1}},
            {"template": {"kind": "K", "metadata": {"name": "n"}, "spec": {}}},
            ["spec.template.no"],
        ),
    ],
)
def test_pruning_leaves_what_the_schema_knows(spec: Any, kept: Any, unknown: list[str]) -> None:
    given = {"kind": "W", "metadata": {"name": "n"}, "spec": spec}
    before = copy.deepcopy(given)
    assert pruned(given, SCHEMA) == ({**given, "spec": kept}, unknown)
    assert given == before


@pytest.mark.parametrize(
    ("spec", "filled"),
    [
        ({}, {"a": "x", "b": {"c": 1}}),
        ({"a": None, "b": {}}, {"a": "x", "b": {"c": 1}}),
        ({"a": "y", "b": {"c": 3}, "list": [{}]}, {"a": "y", "b": {"c": 3}, "list": [{"k": 2}]}),
        ({"a": "y", "b": {"c": 3}, "nullable": None}, {"a": "y", "b": {"c": 3}, "nullable": None}),
    ],
)
def test_defaults_are_filled_in_at_any_depth(spec: Any, filled: Any) -> None:
    value = {"spec": spec}
    default(value, SCHEMA)
    assert value == {"spec": filled}


def test_defaults_are_not_shared_between_objects() -> None:
    first: dict[str, Any] = {"spec": {}}
    default(first, SCHEMA)
    first["spec"]["b"]["c"] = 9
    second: dict[str, Any] = {"spec": {}}
    default(second, SCHEMA)
    assert second["spec"]["b"] == {"c": 1}


@pytest.mark.parametrize(
    ("rule", "value", "message"),
    [
        (
            {"type": "string", "minLength": 2},
            "a",
            'Invalid value: "a": f in body should be at least 2 chars long',
        ),
        ({"type": "string", "minLength": 1}, "a", None),
        ({"type": "string", "maxLength": 1}, "ä", None),
        (
            {"type": "string", "format": "date-time"},
            "soon",
            'Invalid value: "soon": f in body must be of type date-time: "soon"',
        ),
        (
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            1,
            "Invalid value: 1: f in body should be greater than 1",
        ),
        (
            {"type": "number", "maximum": 1.5, "exclusiveMaximum": True},
            1.5,
            "Invalid value: 1.5: f in body should be less than 1.5",
        ),
        ({"type": "integer", "multipleOf": 5}, 6, "Invalid value: 6: f in body should be a multiple of 5"),
        ({"type": "number"}, 1, None),
        ({"type": "integer"}, 1.0, None),
        ({"type": "integer"}, True, 'Invalid value: "boolean": f in body must be of type integer: "boolean"'),
        ({"type": "array", "minItems": 1}, [], "Invalid value: 0: f in body should have at least 1 items"),
        ({"type": "object", "maxProperties": 1}, {"a": 1, "b": 1}, "Too many: 2: must have at most 1 items"),
        (
            {"type": "object", "minProperties": 1},
            {},
            "Invalid value: 0: f in body should have at least 1 properties",
        ),
        ({"type": "string", "nullable": True}, None, None),
        ({"type": "string"}, None, 'Invalid value: "null": f in body must be of type string: "null"'),
        ({"type": "string", "pattern": "(?P<n>"}, "anything", None),
        (
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "type": "array"},
            [{"k": 1, "v": 1}, {"k": 1, "v": 2}],
            'Duplicate value: {"k":1}',
        ),
        (
            {"allOf": [{"type": "string"}]},
            1,
            'Invalid value: "integer": f in body must be of type string: "integer"',
        ),
        (
            {"anyOf": [{"type": "string"}, {"minimum": 5}]},
            1,
            'Invalid value: "": "f" must validate at least one schema (anyOf)',
        ),
        (
            {"oneOf": [{"minimum": 1}, {"maximum": 5}]},
            3,
            'Invalid value: "": "f" must validate one and only one schema (oneOf). Found 2 valid alternatives',
        ),
        ({"not": {"minimum": 1}}, 3, 'Invalid value: "": "f" must not validate the schema (not)'),
    ],
)
def test_rules_are_told_in_upstream_s_words(rule: Any, value: Any, message: str | None) -> None:
    errors = schema_errors({"f": value}, {"type": "object", "properties": {"f": rule}})
    assert [error.message for error in errors] == ([] if message is None else [message])
