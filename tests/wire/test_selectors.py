"""Selectors parse, match and print as k8s.io/apimachinery's, errors included."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire.labels import check_key, check_label, check_subdomain, check_value
from harness.wire.selectors import (
    FieldSelector,
    FieldTerm,
    LabelSelector,
    Operator,
    Requirement,
    SelectorError,
    parse_fields,
    parse_labels,
)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        ("x=a,y=b,z=c", "x=a,y=b,z=c"),
        ("z=c, x = a", "x=a,z=c"),
        ("x==a", "x==a"),
        ("x!=a,y=b", "x!=a,y=b"),
        ("x=", "x="),
        ("x= ,y", "x=,y"),
        ("x in (b,a,a)", "x in (a,b)"),
        ("x notin (a)", "x notin (a)"),
        ("x in ()", "x in ()"),
        ("x in (,)", "x in ()"),
        ("x in (a,,b)", "x in (,a,b)"),
        ("!x", "!x"),
        ("! x,y", "!x,y"),
        ("x>1,y<2", "x>1,y<2"),
        ("in in (in),notin", "in in (in),notin"),
        ("a,", "a"),
    ],
)
def test_label_selectors_print_what_they_mean(text: str, printed: str) -> None:
    if text == "a,":
        with pytest.raises(SelectorError, match="found '', expected: identifier after ','"):
            parse_labels(text)
    else:
        assert str(parse_labels(text)) == printed


@pytest.mark.parametrize(
    ("text", "matches", "misses"),
    [
        ("", [{}, {"a": "b"}], []),
        ("x=a", [{"x": "a"}, {"x": "a", "y": ""}], [{}, {"x": "b"}]),
        ("x!=a", [{}, {"x": "b"}], [{"x": "a"}]),
        ("x in (a,b)", [{"x": "a"}, {"x": "b"}], [{}, {"x": "c"}]),
        ("x notin (a,b)", [{}, {"x": "c"}], [{"x": "a"}]),
        ("x notin ()", [{}, {"x": "c"}], [{"x": ""}]),
        ("x", [{"x": ""}], [{}]),
        ("!x", [{}], [{"x": ""}]),
        ("x>1", [{"x": "2"}], [{}, {"x": "1"}, {"x": "a"}]),
        ("x<1", [{"x": "0"}, {"x": "-5"}], [{"x": "1"}]),
        ("x=a,!y", [{"x": "a"}], [{"x": "a", "y": ""}, {}]),
    ],
)
def test_label_selectors_match(
    text: str, matches: list[dict[str, str]], misses: list[dict[str, str]]
) -> None:
    selector = parse_labels(text)
    assert all(selector.match(labels) for labels in matches)
    assert not any(selector.match(labels) for labels in misses)


# The first two are recorded of kube-apiserver v1.36.2.
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b c", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("==", "found '==', expected: !, identifier, or 'end of string'"),
        ("x in a", "unable to parse requirement: found 'a' expected: '('"),
        ("x in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("x in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("x in (a,=)", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("x=a=b", "found '=', expected: ',' or 'end of string'"),
        ("!x=a", "found '=', expected: ',' or 'end of string'"),
        ("x=(", "unable to parse requirement: found '(', expected: identifier"),
        ("!,x", "unable to parse requirement: found ',', expected: identifier"),
        (",x", "found ',', expected: !, identifier, or 'end of string'"),
        (
            "-x",
            (
                'unable to parse requirement: <nil>: Invalid value: "-x": name part must consist of alphanumeric '
                "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  "
                "or 'my.name',  or '123-abc', regex used for validation is "
                "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            ),
        ),
        (
            "x>a",
            (
                "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value "
                "must be an integer"
            ),
        ),
        (
            "x=-",
            (
                'unable to parse requirement: values[0][x]: Invalid value: "-": a valid label must be an empty string '
                "or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
                "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ),
        ),
    ],
)
def test_a_bad_label_selector_says_what_upstream_says(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_labels(text)
    assert str(caught.value) == message


def test_the_one_value_that_a_label_must_have() -> None:
    selector = parse_labels("a=1,b in (2),c in (3,4),d!=5")
    assert [selector.required(key) for key in "abcde"] == ["1", "2", None, None, None]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        ("a=1", "a=1"),
        ("b!=1,a==2", "a=2,b!=1"),
        ("a=", "a="),
        ("a=x\\,y\\=z\\\\", "a=x\\,y\\=z\\\\"),
        (",a=1,,", "a=1"),
    ],
)
def test_field_selectors_print_what_they_mean(text: str, printed: str) -> None:
    assert str(parse_fields(text)) == printed


def test_an_empty_selector_is_said_to_be_empty() -> None:
    assert parse_labels("").empty
    assert parse_fields(",").empty
    assert not parse_labels("a").empty


def test_field_selectors_match_and_a_missing_field_is_empty() -> None:
    selector = parse_fields("spec.nodeName=n1,status.phase!=Running")
    assert selector.match({"spec.nodeName": "n1"})
    assert not selector.match({"spec.nodeName": "n1", "status.phase": "Running"})
    assert not selector.match({})
    assert parse_fields("spec.nodeName=").match({})
    assert parse_fields("a=x\\,y").match({"a": "x,y"})
    assert (selector.required("spec.nodeName"), selector.required("status.phase")) == ("n1", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a=\\b", "invalid field selector: invalid escape sequence: \\b"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_bad_field_selector_says_what_upstream_says(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_fields(text)
    assert str(caught.value) == message


def test_fields_that_cannot_be_selected_are_named_as_recorded() -> None:
    parse_fields("metadata.name=a,metadata.namespace=b,spec.nodeName=c").check(("spec.nodeName",))
    with pytest.raises(SelectorError, match=r"^field label not supported: spec\.nosuch$"):
        parse_fields("spec.nosuch=x").check(("spec.nodeName",))
    with pytest.raises(SelectorError) as caught:
        parse_fields("data.k=x").check()
    assert str(caught.value) == (
        '"data.k" is not a known field selector: only "metadata.name", "metadata.namespace"'
    )


_KEY = st.from_regex(r"([a-z0-9]{1,8}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,10}[A-Za-z0-9])?", fullmatch=True)
_VALUE = st.from_regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,10}[A-Za-z0-9])?)?", fullmatch=True)


def _requirement(key: str, operator: Operator, values: list[str], number: int) -> Requirement:
    if operator in (Operator.EXISTS, Operator.NOT_EXISTS):
        return Requirement(key, operator)
    if operator in (Operator.IN, Operator.NOT_IN):
        return Requirement(key, operator, tuple(sorted(set(values))))
    if operator in (Operator.GREATER, Operator.LESS):
        return Requirement(key, operator, (str(number),))
    return Requirement(key, operator, (values[0],))


_REQUIREMENTS = st.lists(
    st.builds(
        _requirement,
        _KEY,
        st.sampled_from(Operator),
        st.lists(_VALUE, min_size=1, max_size=3),
        st.integers(min_value=0, max_value=99),
    ),
    max_size=4,
)


@given(_REQUIREMENTS)
def test_a_printed_label_selector_parses_to_the_same(requirements: list[Requirement]) -> None:
    selector = LabelSelector(tuple(sorted(requirements, key=lambda requirement: requirement.key)))
    assert parse_labels(str(selector)) == selector


@given(st.lists(st.builds(FieldTerm, _KEY, st.text(max_size=8), st.booleans()), max_size=4))
def test_a_printed_field_selector_matches_the_same(terms: list[FieldTerm]) -> None:
    selector = FieldSelector(tuple(terms))
    again = parse_fields(str(selector))
    assert sorted(again.terms, key=str) == sorted(selector.terms, key=str)


@given(st.text(alphabet="ab=!(),<> in\\\n-", max_size=16))
def test_only_the_declared_error_escapes(text: str) -> None:
    for parse in (parse_labels, parse_fields):
        try:
            parse(text)
        except SelectorError as error:
            assert str(error)  # noqa: PT017


def test_names_and_labels_follow_the_rules() -> None:
    assert (
        check_key("example.com/My_name.1")
        == check_value("")
        == check_subdomain("a.b-c")
        == check_label("a-b")
        == ""
    )
    assert check_key("a/b/c").startswith("a valid label key must consist of")
    assert check_key("/a").startswith("prefix part must be non-empty")
    assert check_key("A_/a").startswith("prefix part a lowercase RFC 1123 subdomain must consist of")
    assert check_key("a/").startswith("name part must be non-empty; name part must consist of")
    assert (
        check_key("a" * 63)
        == check_value("a" * 63)
        == check_label("a" * 63)
        == check_subdomain("a" * 253)
        == ""
    )
    assert check_key("a" * 64) == "name part must be no more than 63 bytes"
    assert check_value("a" * 64) == check_label("a" * 64) == "must be no more than 63 bytes"
    assert check_subdomain("a" * 254) == "must be no more than 253 bytes"
    assert check_label("a.b") == "must not contain dots"
    assert check_label("A").startswith("a lowercase RFC 1123 label must consist of")
