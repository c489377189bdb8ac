"""A text in a manifest is the same text when it is read."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.manifests.yamltext import argument, block, flow, quoted

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.text(
    "a\n\t :#-|'\"\\\r", max_size=40
)


@given(TEXTS)
def test_any_text_in_quotes_is_one_line_and_comes_back(text: str) -> None:
    written = quoted(text)
    assert "\n" not in written
    assert yaml.safe_load(f"a: {written}") == {"a": text}


@given(TEXTS, st.integers(2, 8))
def test_any_text_as_a_block_comes_back_and_what_follows_is_not_touched(text: str, indent: int) -> None:
    written = f"{' ' * (indent - 2)}a: {block(text, indent)}\n{' ' * (indent - 2)}b: 1\n"
    assert yaml.safe_load(written) == {"a": text, "b": 1}


def test_what_people_write_is_a_block_that_people_read() -> None:
    assert block("a: 1\n\n  b: {{.X}}\n", 4) == "|\n    a: 1\n\n      b: {{.X}}"
    assert block("no newline", 2) == "|-\n  no newline"


@pytest.mark.parametrize(
    "text", ["", "\n", " first", "\tfirst", "a\n\n", "a\r\n", "a\n  \nb\n", "\x00", "\u2028x"]
)
def test_what_a_block_would_change_is_in_quotes(text: str) -> None:
    assert block(text, 2).startswith('"')


def test_dollars_are_doubled_and_lists_are_on_one_line() -> None:
    assert argument("$(A) $") == '"$$(A) $$"'
    assert flow({"a": ["x", "*"], "b": ""}) == "{a: [x, '*'], b: ''}"
