"""YAML is read as sigs.k8s.io/yaml reads it, whose YAML 1.1 is not PyYAML's."""

from __future__ import annotations

from typing import Any

import pytest

from harness.apiserver.handlers.yamltext import YamlError, from_yaml, to_yaml


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("y Y yes Yes YES true True TRUE on On ON", True),
        ("n N no No NO false False FALSE off Off OFF", False),
        ("null Null NULL ~", None),
        ("017 0o17 0xF 0b1111 +15 15. 1.5e1 1_5", 15),
        ("08 8.0 0x8", 8),
        ("-0x1F -31", -31),
        ("1e3 1000", 1000),
        (".5 0.5 5e-1", 0.5),
    ],
)
def test_a_plain_scalar_is_what_go_makes_of_it(words: str, value: Any) -> None:
    for word in words.split():
        found = from_yaml(b"a: " + word.encode())["a"]
        assert (found, type(found)) == (value, type(value)), word


@pytest.mark.parametrize(
    "word", ["yEs", "nil", "1:30", "2001-01-01", "2001-01-01T10:00:00Z", "=", ".", "+", "1.2.3", "0x", "1Gi"]
)
def test_other_words_are_strings(word: str) -> None:
    assert from_yaml(b"a: " + word.encode()) == {"a": word}


def test_quoted_scalars_and_blocks_are_strings() -> None:
    assert from_yaml(b"a: 'y'\nb: \"1\"\nc: |\n  no\nd: !!str yes") == {
        "a": "y",
        "b": "1",
        "c": "no\n",
        "d": "yes",
    }
    assert from_yaml(b"a:\nb: ''") == {"a": None, "b": ""}


def test_keys_are_strings() -> None:
    found = from_yaml(b"{2: a, yes: b, 1.5: c, no: d, e: e}")
    assert found == {"2": "a", "true": "b", "1.5": "c", "false": "d", "e": "e"}


def test_a_mapping_is_merged_into_another() -> None:
    assert from_yaml(b"base: &b {x: 1}\nmore:\n  <<: *b\n  y: 2")["more"] == {"x": 1, "true": 2}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"{~: 1}", "unsupported map key of type: <nil>"),
        (b"a: .inf", "json: unsupported value: +Inf"),
        (b"a: -.INF", "json: unsupported value: -Inf"),
        (b"a: .nan", "json: unsupported value: NaN"),
        (b"a: [", "yaml: "),
        (b"? [a]\n: b", "yaml: "),
    ],
)
def test_what_json_cannot_hold_is_refused(text: bytes, fault: str) -> None:
    with pytest.raises(YamlError) as caught:
        from_yaml(text)
    assert str(caught.value).startswith("error converting YAML to JSON: " + fault)


def test_what_is_written_is_read_back() -> None:
    words = (
        "y",
        "N",
        "on",
        "1e3",
        "08",
        "0o17",
        "1:30",
        "2001-01-01",
        "null",
        "",
        "<<",
        "=",
        "ü",
        "a: b",
        "x",
    )
    value = {word: word for word in words} | {"n": 1, "f": 0.5, "t": True, "none": None, "list": ["yes", 2]}
    text = to_yaml(value)
    assert from_yaml(text) == value
    assert b"\nx: x\n" in text
    assert b"2001-01-01: " not in text
