"""YAML is read as go-yaml reads it, not as YAML 1.1 has it."""

from __future__ import annotations

import pytest

from harness.documents.yamltext import YamlError, documents, first_document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("0x1F", 31),
        ("010", 8),
        ("1.5", 1.5),
        ("1e+06", 1e6),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("yes", True),
        ("Off", False),
        ("y", True),
        ("~", None),
        ("null", None),
        ("'5'", "5"),
        ("10:20", "10:20"),
        ("2001-12-14", "2001-12-14"),
        ("5m", "5m"),
        ("<no value>", "<no value>"),
        ("group = latency", "group = latency"),
    ],
)
def test_a_plain_scalar_has_gos_type(text: str, value: object) -> None:
    assert first_document(f"a: {text}\n") == {"a": value}


def test_empty_documents_are_passed_over() -> None:
    assert list(documents("---\n---\na: 1\n---\n{}\n---\nb: 2\n")) == [{"a": 1}, {"b": 2}]
    assert first_document("# nothing\n") is None


def test_a_broken_second_document_does_not_hide_the_first() -> None:
    assert first_document("a: 1\n---\n{{{ no yaml\n") == {"a": 1}


def test_a_mistake_names_its_line() -> None:
    with pytest.raises(YamlError) as caught:
        first_document("a: 1\nb: [1\nc: 2\n")
    assert caught.value.line == 3


def test_aliases_and_merge_keys_work() -> None:
    assert first_document("a: &x {b: 1}\nc: {<<: *x, d: 2}\n") == {"a": {"b": 1}, "c": {"b": 1, "d": 2}}
