"""PATCH bodies of the three kinds, applied as an apiserver applies them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire.jsonpatch import JsonPatchError, Operation, json_patch
from harness.wire.patch import PatchError, apply_patch, diff_merge, merge_patch
from harness.wire.request import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH

CONFIGMAP = {
    "kind": "ConfigMap",
    "metadata": {"name": "a", "labels": {"x": "y"}},
    "data": {"k": "1", "l": "2"},
}


def _apply(
    content_type: str, body: Any, original: dict[str, Any] = CONFIGMAP, kind: str = "ConfigMap"
) -> Any:
    before = copy.deepcopy(original)
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    patched = apply_patch(content_type, original, raw, kind)
    assert original == before
    return patched


# Recorded of kube-apiserver v1.36.2.
def test_a_merge_patch_sets_deletes_and_adds() -> None:
    patched = _apply(MERGE_PATCH, {"data": {"k": "9", "l": None, "m": "3"}})
    assert patched == {**CONFIGMAP, "data": {"k": "9", "m": "3"}}


def test_a_strategic_patch_merges_maps() -> None:
    patched = _apply(STRATEGIC_MERGE_PATCH, {"metadata": {"labels": {"x": None, "z": "1"}}})
    assert patched["metadata"] == {"name": "a", "labels": {"z": "1"}}


def test_a_json_patch_tests_and_replaces() -> None:
    patched = _apply(
        f"{JSON_PATCH}; charset=utf-8",
        [
            {"op": "test", "path": "/data/k", "value": "1"},
            {"op": "replace", "path": "/data/k", "value": "10"},
        ],
    )
    assert patched["data"] == {"k": "10", "l": "2"}


@pytest.mark.parametrize(
    ("content_type", "body", "code", "reason", "message"),
    [
        (
            JSON_PATCH,
            b'[{"op":"test","path":"/data/k","value":"nope"}]',
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        ),
        (
            JSON_PATCH,
            b'[{"op":"remove","path":"/data/zz"}]',
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        ),
        (
            JSON_PATCH,
            b'[{"op":"replace","path":"","value":1}]',
            422,
            "Invalid",
            "the server rejected our request",
        ),
        ("application/json", b'{"data":{}}', 415, "UnsupportedMediaType", "415: Unsupported Media Type"),
        (
            MERGE_PATCH,
            b"{bad",
            400,
            "BadRequest",
            "error decoding patch: invalid character 'b' looking for beginning of object key string",
        ),
        (
            STRATEGIC_MERGE_PATCH,
            b"{bad",
            400,
            "BadRequest",
            "invalid character 'b' looking for beginning of object key string",
        ),
        (
            MERGE_PATCH,
            b"[]",
            400,
            "BadRequest",
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            JSON_PATCH,
            b"{}",
            400,
            "BadRequest",
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        (JSON_PATCH, b'[{"op":5}]', 400, "BadRequest", "error decoding patch: "),
        (
            JSON_PATCH,
            b"[" + b",".join([b"{}"] * 10_001) + b"]",
            413,
            "RequestEntityTooLarge",
            "Request entity too",
        ),
        (STRATEGIC_MERGE_PATCH, b'{"$patch":"bogus"}', 500, "", "unknown patch type: bogus in map"),
        (
            STRATEGIC_MERGE_PATCH,
            b'{"$retainKeys":5}',
            400,
            "BadRequest",
            "invalid patch format of retainKeys",
        ),
    ],
)
def test_a_patch_that_cannot_be_applied_has_the_answer_of_a_real_server(
    content_type: str, body: bytes, code: int, reason: str, message: str
) -> None:
    with pytest.raises(PatchError) as caught:
        _apply(content_type, body)
    found = caught.value.status
    assert (found.code, found.reason) == (code, reason)
    assert found.message.startswith(message)


def test_null_is_an_empty_patch() -> None:
    assert _apply(MERGE_PATCH, b"null") == CONFIGMAP


# RFC 7386, appendix A
@pytest.mark.parametrize(
    ("original", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_rfc_7386(original: Any, patch: Any, result: Any) -> None:
    assert merge_patch(original, patch) == result


def _op(op: str, path: str, source: str = "", **value: Any) -> Operation:
    return Operation(op, path, source, **value)


# RFC 6902, appendix A, and evanphx/json-patch
@pytest.mark.parametrize(
    ("original", "operations", "result"),
    [
        ({"foo": "bar"}, [_op("add", "/baz", value="qux")], {"foo": "bar", "baz": "qux"}),
        ({"foo": ["bar", "baz"]}, [_op("add", "/foo/1", value="qux")], {"foo": ["bar", "qux", "baz"]}),
        ({"foo": ["bar"]}, [_op("add", "/foo/-", value="qux")], {"foo": ["bar", "qux"]}),
        ({"foo": ["bar"]}, [_op("add", "/foo/1", value="qux")], {"foo": ["bar", "qux"]}),
        ({"baz": "qux", "foo": "bar"}, [_op("remove", "/baz")], {"foo": "bar"}),
        ({"foo": ["bar", "qux", "baz"]}, [_op("remove", "/foo/1")], {"foo": ["bar", "baz"]}),
        ({"foo": ["bar", "qux"]}, [_op("remove", "/foo/-1")], {"foo": ["bar"]}),
        ({"foo": ["bar", "qux"]}, [_op("replace", "/foo/0", value=None)], {"foo": [None, "qux"]}),
        ({"foo": {"a": 1}, "q": {}}, [_op("move", "/q/t", "/foo/a")], {"foo": {}, "q": {"t": 1}}),
        ({"foo": ["a", "b", "c"]}, [_op("move", "/foo/2", "/foo/0")], {"foo": ["b", "c", "a"]}),
        (
            {"a": {"b": [1]}},
            [_op("copy", "/c", "/a"), _op("add", "/c/b/0", value=0)],
            {"a": {"b": [1]}, "c": {"b": [0, 1]}},
        ),
        ({"/": 9, "~1": 10}, [_op("test", "/~01", value=10), _op("remove", "/~1")], {"~1": 10}),
        ({"a": 1}, [_op("test", "/missing", value=None)], {"a": 1}),
        ({"a": 1.0}, [_op("test", "/a", value=1)], {"a": 1.0}),
        (
            {"a": {"x": [1, {"y": 2}]}},
            [_op("test", "/a", value={"x": [1, {"y": 2}]})],
            {"a": {"x": [1, {"y": 2}]}},
        ),
        ({"a": 1}, [_op("add", "", value={"b": 2})], {"b": 2}),
        ({"a": 1}, [_op("replace", "", value={"b": 2})], {"b": 2}),
        ({"a": {"b": 1}}, [_op("move", "/a", "/a")], {"a": {"b": 1}}),
    ],
)
def test_json_patch_operations(original: Any, operations: list[Operation], result: Any) -> None:
    before = copy.deepcopy(original)
    assert json_patch(original, operations) == result
    assert original == before


@pytest.mark.parametrize(
    "operation",
    [
        _op("remove", "/missing"),
        _op("remove", ""),
        _op("remove", "/list/5"),
        _op("remove", "/list/-"),
        _op("remove", "/text/x"),
        _op("replace", "/missing", value=1),
        _op("replace", "/list/2", value=1),
        _op("add", "/missing/x", value=1),
        _op("add", "/list/3", value=1),
        _op("add", "/list/01", value=1),
        _op("add", "/list/x", value=1),
        _op("add", "/text/x", value=1),
        _op("add", "no-slash", value=1),
        _op("move", "/map/inner/x", "/map"),
        _op("copy", "/x", "/missing"),
        _op("test", "/list/0", value=True),
        _op("test", "/missing", value=1),
        _op("test", "/map", value={"inner": {}, "more": 1}),
        _op("test", "/list", value=[1]),
        _op("frobnicate", "/list"),
    ],
)
def test_an_operation_that_does_not_apply_is_an_error(operation: Operation) -> None:
    document = {"list": [1, 2], "map": {"inner": {}}, "text": "t"}
    with pytest.raises(JsonPatchError, match="does not apply"):
        json_patch(document, [operation])


_VALUES = st.recursive(
    st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(st.sampled_from("abcde"), _VALUES, max_size=4)


@given(_OBJECTS, _OBJECTS)
def test_a_merge_diff_leads_to_its_target(original: dict[str, Any], modified: dict[str, Any]) -> None:
    patch = diff_merge(original, modified)
    result = apply_patch(MERGE_PATCH, original, json.dumps(patch).encode(), "ConfigMap")
    assert json.dumps(result, sort_keys=True) == json.dumps(modified, sort_keys=True)
    assert diff_merge(modified, modified) == {}


@given(_OBJECTS, st.binary(max_size=30) | _VALUES.map(lambda value: json.dumps(value).encode()))
def test_only_the_declared_error_escapes(original: dict[str, Any], body: bytes) -> None:
    for content_type in (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH):
        try:
            apply_patch(content_type, original, body, "Pod")
        except PatchError as error:
            assert error.status.code  # noqa: PT017
