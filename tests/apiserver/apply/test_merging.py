"""Merging what is applied into what is there, list order included (the cases of smd/merge's tests, restated)."""

from typing import Any

import pytest

from harness.apiserver.apply.merging import merge
from harness.apiserver.apply.structure import ABSENT
from tests.apiserver.apply.schemas import everything

SCHEMA = everything()


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        ({}, {"text": "x"}, {"text": "x"}),
        ({"text": "x"}, {}, {"text": "x"}),
        ({"text": "x"}, {"text": "y"}, {"text": "y"}),
        ({"text": "x"}, {"text": None}, {"text": None}),
        ({"inner": {"a": "1"}}, {"inner": {"b": "2"}}, {"inner": {"a": "1", "b": "2"}}),
        ({"inner": {"a": "1"}}, {"inner": None}, {"inner": {"a": "1"}}),
        ({"inner": {"a": "1"}}, {"inner": {}}, {"inner": {"a": "1"}}),
        ({"inner": {}}, {"inner": None}, {"inner": None}),
        ({"atom": {"a": "1", "b": "2"}}, {"atom": {"a": "3"}}, {"atom": {"a": "3"}}),
        ({"labels": {"a": "1"}}, {"labels": {"b": "2"}}, {"labels": {"a": "1", "b": "2"}}),
        ({"selector": {"a": "1"}}, {"selector": {"b": "2"}}, {"selector": {"b": "2"}}),
        ({"words": ["a"]}, {"words": ["b"]}, {"words": ["b"]}),
        ({"words": ["a"]}, {"words": []}, {"words": []}),
        (
            {"ports": [{"port": 80, "protocol": "TCP", "name": "a"}]},
            {"ports": [{"port": 80, "name": "b"}]},
            {"ports": [{"port": 80, "protocol": "TCP", "name": "b"}]},
        ),
        (
            {"ports": [{"port": 80, "protocol": "UDP"}]},
            {"ports": [{"port": 80}]},
            {"ports": [{"port": 80, "protocol": "UDP"}, {"port": 80}]},
        ),
        ({"free": {"a": [1], "b": 1}}, {"free": {"a": [2]}}, {"free": {"a": [2], "b": 1}}),
        ({"free": [1]}, {"free": {"a": 1}}, {"free": {"a": 1}}),
    ],
)
def test_what_is_applied_wins_and_the_rest_stays(live: Any, applied: Any, merged: Any) -> None:
    before = repr((live, applied))
    assert merge(live, applied, SCHEMA) == merged
    assert repr((live, applied)) == before


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        ("abc", "", "abc"),
        ("", "abc", "abc"),
        ("abc", "abc", "abc"),
        ("abc", "cba", "cba"),
        ("ab", "c", "abc"),
        ("abcde", "ec", "abdec"),
        ("acd", "abd", "acbd"),
        ("bd", "abcd", "abcd"),
        ("xay", "a", "xay"),
        ("axb", "ba", "xba"),
        ("12345", "54321", "54321"),
    ],
)
def test_sets_keep_live_items_in_place_and_take_the_applied_order(
    live: str, applied: str, merged: str
) -> None:
    found = merge({"finalizers": list(live)}, {"finalizers": list(applied)}, SCHEMA)
    assert "".join(found["finalizers"]) == merged


def test_live_duplicates_are_replaced_where_they_are_applied_and_stay_where_not() -> None:
    twice = [{"name": "n", "value": "1"}, {"name": "n", "value": "2"}]
    other = {"name": "o"}
    assert merge({"items": twice}, {"items": [other]}, SCHEMA)["items"] == [*twice, other]
    new = {"name": "n", "value": "3"}
    assert merge({"items": twice}, {"items": [new]}, SCHEMA)["items"] == [new]


def test_nothing_merged_with_something_is_that() -> None:
    assert merge(ABSENT, {"text": "x"}, SCHEMA) == {"text": "x"}
    assert merge({"text": "x"}, ABSENT, SCHEMA) == {"text": "x"}
