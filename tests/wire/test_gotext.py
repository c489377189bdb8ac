"""Go's quoting, durations, integers and JSON errors."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire.gojson import syntax_error
from harness.wire.gotext import duration, parse_int, quote


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a", '"a"'),
        ("", '""'),
        ('say "a\\b"', '"say \\"a\\\\b\\""'),
        ("a\n\t\x00\x7f", '"a\\n\\t\\x00\\x7f"'),
        ("é\u0085\u2028", '"é\\u0085\\u2028"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_quote(text: str, quoted: str) -> None:
    assert quote(text) == quoted


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1e-9, "1ns"),
        (1.5e-6, "1.5µs"),
        (0.5, "500ms"),
        (0.0015, "1.5ms"),
        (1, "1s"),
        (1.25, "1.25s"),
        (10, "10s"),
        (60, "1m0s"),
        (432, "7m12s"),
        (3260, "54m20s"),
        (3600, "1h0m0s"),
        (3661.5, "1h1m1.5s"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("+5", 5),
        ("-5", -5),
        ("007", 7),
        (str(2**63 - 1), 2**63 - 1),
        (str(2**63), None),
        ("", None),
        ("-", None),
        (" 5", None),
        ("5s", None),
        ("1_0", None),
        ("٣", None),
    ],
)
def test_parse_int(text: str, value: int | None) -> None:
    assert parse_int(text) == value


@pytest.mark.parametrize(
    ("document", "message"),
    [
        # recorded of v1.36.2
        (b"{bad", "invalid character 'b' looking for beginning of object key string"),
        (b"{not json", "invalid character 'n' looking for beginning of object key string"),
        (b"", "unexpected end of JSON input"),
        (b"\x81garbage", "invalid character '\\x81' looking for beginning of value"),
        # scanner.go
        (b'{"a":1', "unexpected end of JSON input"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b"1 2", "invalid character '2' after top-level value"),
        (b'"a\nb"', "invalid character '\\n' in string literal"),
        (b'"\\x"', "invalid character 'x' in string escape code"),
        (b'"\\u12g"', "invalid character 'g' in \\u hexadecimal character escape"),
        (b'"a', "unexpected end of JSON input"),
        (b"-x", "invalid character 'x' in numeric literal"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"1e+x", "invalid character 'x' in exponent of numeric literal"),
        (b"01", "invalid character '1' after top-level value"),
        (b"trux", "invalid character 'x' in literal true (expecting 'e')"),
        (b"nul", "unexpected end of JSON input"),
        (b"'a'", "invalid character '\\'' looking for beginning of value"),
        (b"[[[", "unexpected end of JSON input"),
    ],
)
def test_json_errors(document: bytes, message: str) -> None:
    assert syntax_error(document) == message


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(_JSON, st.booleans(), st.integers(min_value=0, max_value=200))
def test_json_has_no_error_and_a_cut_document_has_one(value: object, ascii_only: bool, cut: int) -> None:
    document = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert syntax_error(document) == ""
    if isinstance(value, dict | list) and cut < len(document):
        assert syntax_error(document[:cut]) == "unexpected end of JSON input"
