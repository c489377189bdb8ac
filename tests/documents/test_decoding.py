"""Keys to fields: which case counts, what is passed over, what is taken for a slip."""

from __future__ import annotations

import msgspec
import pytest

from harness.documents.decoding import decode_struct
from harness.wire.errors import ConfigError


class Inner(msgspec.Struct, rename="camel"):
    max_retries: int = 0
    tags: list[str] = []


class Outer(msgspec.Struct):
    rate: float = 1.0
    inner: list[Inner] = []
    extra: Inner | None = None


def where(key: str) -> str:
    return f"f:{key}"


def test_in_any_case_as_json_or_exactly_as_yaml() -> None:
    assert decode_struct({"RATE": 2, "Inner": [{"MAXRETRIES": 3}]}, Outer, where).inner[0].max_retries == 3
    with pytest.raises(ConfigError, match=r"^f:RATE: RATE: no such key; did you mean rate\?$"):
        decode_struct({"RATE": 2}, Outer, where, any_case=False)
    assert decode_struct({"rate": 2}, Outer, where, any_case=False).rate == 2.0


def test_null_leaves_the_default_and_whole_floats_are_integers() -> None:
    found = decode_struct({"rate": None, "extra": {"maxRetries": 5.0}}, Outer, where)
    assert found.rate == 1.0
    assert found.extra is not None
    assert found.extra.max_retries == 5


def test_what_means_nothing_is_named() -> None:
    ignored: list[str] = []
    decode_struct({"owner": 1, "inner": [{"color": 2}]}, Outer, where, ignored)
    assert ignored == ["f:owner: owner", "f:inner[0].color: inner[0].color"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"rates": 1}, "f:rates: rates: no such key; did you mean rate?"),
        (
            {"inner": [{"maxRetries": "x"}]},
            "f:inner[0].maxRetries: inner[0].maxRetries: expected `int`, got `str` ('x')",
        ),
        ({"inner": 5}, "f:inner: inner: expected `array`, got `int` (5)"),
        (5, "f:: the document: expected `object`, got `int` (5)"),
    ],
)
def test_a_mistake_is_one_line(document: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        decode_struct(document, Outer, where)
    assert str(caught.value) == message
