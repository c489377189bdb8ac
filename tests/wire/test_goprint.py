"""Values as Go's fmt prints them."""

import pytest

from harness.wire.goprint import go_value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "<nil>"),
        (True, "true"),
        ("a b", "a b"),
        (5, "5"),
        (1.5, "1.5"),
        (2.0, "2"),
        (1e21, "1e+21"),
        (1.5e-7, "1.5e-07"),
        ([], "[]"),
        ([1, "x", None], "[1 x <nil>]"),
        ({"b": {"y": 1}, "a": [{}]}, "map[a:[map[]] b:map[y:1]]"),
    ],
)
def test_values(value: object, text: str) -> None:
    assert go_value(value) == text
