"""Label and field selectors: parse, match, print; errors word for word as a real apiserver's.

Mirrors am/labels/selector.go and am/fields/selector.go of Kubernetes v1.36, ``gt`` and ``lt`` (``>`` and ``<``)
included. A parsed selector is immutable; matching allocates nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from functools import lru_cache

import msgspec

from harness.wire.errors import SwarmletError
from harness.wire.gotext import parse_int, quote
from harness.wire.labels import check_key, check_value


class SelectorError(SwarmletError):
    """A selector that does not parse; a real server answers 400 with str() as the message."""


class Operator(Enum):
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    NOT_EXISTS = "!"
    GREATER = ">"
    LESS = "<"


# As plain names: looking up a member, or hashing one, costs more than the whole match.
_EQUALS, _DOUBLE_EQUALS, _IN = Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN
_NOT_EQUALS, _NOT_IN = Operator.NOT_EQUALS, Operator.NOT_IN
_EXISTS, _NOT_EXISTS, _GREATER = Operator.EXISTS, Operator.NOT_EXISTS, Operator.GREATER
_BINARY = "in, notin, =, ==, !=, gt, lt"  # as upstream prints what it would have taken


class Requirement(msgspec.Struct, frozen=True):
    """One term of a label selector; `values` is sorted and without repeats, empty for the unary operators."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def match(self, labels: Mapping[str, str]) -> bool:
        operator = self.operator
        value = labels.get(self.key)
        if operator is _EQUALS or operator is _IN or operator is _DOUBLE_EQUALS:
            return value is not None and value in self.values
        if operator is _NOT_EQUALS or operator is _NOT_IN:
            return value is None or value not in self.values
        if operator is _EXISTS:
            return value is not None
        if operator is _NOT_EXISTS:
            return value is None
        number = None if value is None else parse_int(value)
        bound = parse_int(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if operator is _GREATER else number < bound

    def __str__(self) -> str:
        operator = self.operator
        if operator is Operator.EXISTS:
            return self.key
        if operator is Operator.NOT_EXISTS:
            return f"!{self.key}"
        joined = ",".join(self.values)
        if operator in (Operator.IN, Operator.NOT_IN):
            return f"{self.key} {operator.value} ({joined})"
        return f"{self.key}{operator.value}{joined}"


class LabelSelector(msgspec.Struct, frozen=True):
    """All of its requirements, sorted by key; none matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def match(self, labels: Mapping[str, str]) -> bool:
        for requirement in self.requirements:  # noqa: SIM110  # a generator would double the time
            if not requirement.match(labels):
                return False
        return True

    def required(self, key: str) -> str | None:
        """The one value that `key` must have; None if several do or it is not asked for."""
        for requirement in self.requirements:
            if requirement.key == key:
                exact = (
                    requirement.operator in (_EQUALS, _DOUBLE_EQUALS, _IN) and len(requirement.values) == 1
                )
                return requirement.values[0] if exact else None
        return None

    @property
    def empty(self) -> bool:
        return not self.requirements

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


class FieldTerm(msgspec.Struct, frozen=True):
    field: str
    value: str
    equal: bool = True

    def __str__(self) -> str:
        value = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{'=' if self.equal else '!='}{value}"


class FieldSelector(msgspec.Struct, frozen=True):
    """All of its terms, in the order of their text; a field that an object lacks counts as ""."""

    terms: tuple[FieldTerm, ...] = ()

    def match(self, fields: Mapping[str, str]) -> bool:
        for term in self.terms:  # noqa: SIM110
            if (fields.get(term.field, "") == term.value) is not term.equal:
                return False
        return True

    def required(self, field: str) -> str | None:
        """The value that `field` must have; None if it is not asked for."""
        for term in self.terms:
            if term.equal and term.field == field:
                return term.value
        return None

    @property
    def empty(self) -> bool:
        return not self.terms

    def check(self, selectable: Collection[str] = ()) -> None:
        """Raise SelectorError where a field is neither metadata.name, metadata.namespace nor one of `selectable`.

        Kinds with selectable fields of their own answer otherwise than kinds without (recorded of v1.36.2).
        """
        for term in self.terms:
            if term.field in ("metadata.name", "metadata.namespace") or term.field in selectable:
                continue
            if selectable:
                raise SelectorError(f"field label not supported: {term.field}")
            raise SelectorError(
                f"{quote(term.field)} is not a known field selector: only "
                '"metadata.name", "metadata.namespace"'
            )

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


EVERY_LABEL = LabelSelector()
EVERY_FIELD = FieldSelector()


# ---- field selectors -----------------------------------------------------------------------------------------------
_TERM = re.compile(r"(?s)(.*?)(!=|==|=)(.*)\Z")


@lru_cache(maxsize=4096)  # by-name watches of a fleet come back with the same text on every re-watch
def parse_fields(text: str) -> FieldSelector:
    """Read a field selector: terms ``field=value``, ``==`` or ``!=`` joined by commas; ``\\`` escapes in values.

    Whether the fields exist is another question (`FieldSelector.check`). Raises SelectorError.
    """
    if not text:
        return EVERY_FIELD
    terms = []
    for part in sorted(_split_terms(text)):
        if not part:
            continue
        found = _TERM.match(part)
        if found is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        field, operator, value = found.groups()
        terms.append(FieldTerm(field, _unescape(value), operator != "!="))
    return FieldSelector(tuple(terms))


def _split_terms(text: str) -> Iterator[str]:
    if "\\" not in text:
        yield from text.split(",")
        return
    start, escaped = 0, False
    for at, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _unescape(value: str) -> str:
    if "\\" not in value and "=" not in value:
        return value
    plain: list[str] = []
    characters = iter(value)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            if following not in ("\\", ",", "="):
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{following}")
            plain.append(following)
        elif character in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            plain.append(character)
    return "".join(plain)


# ---- label selectors -----------------------------------------------------------------------------------------------
_SYMBOLS = {"=": Operator.EQUALS, "==": Operator.DOUBLE_EQUALS, "!=": Operator.NOT_EQUALS}
_BINARY_TOKENS = {
    **_SYMBOLS,
    ">": Operator.GREATER,
    "<": Operator.LESS,
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
}
_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|=|!=|!|\(|\)|,|>|<)|([^=!(),>< \t\r\n]+))")
_END = ""


@lru_cache(maxsize=4096)
def parse_labels(text: str) -> LabelSelector:
    """Read a label selector, for example ``x in (a,b),y,!z,w!=1``. Raises SelectorError."""
    if not text:
        return EVERY_LABEL
    parser = _LabelParser(text)
    return LabelSelector(tuple(sorted(parser.parse(), key=lambda requirement: requirement.key)))


class _LabelParser:
    """The grammar of am/labels/selector.go:881-905, over a list of tokens that ends with `_END`."""

    def __init__(self, text: str) -> None:
        self._items: list[str] = [symbol or word for symbol, word in _TOKEN.findall(text)]
        self._items.append(_END)
        self._at = 0

    def parse(self) -> Iterator[Requirement]:
        while True:
            item = self._peek()
            if item == _END:
                return
            if not (_is_word(item) or item == "!"):
                raise SelectorError(f"found '{item}', expected: !, identifier, or 'end of string'")
            try:
                requirement = self._requirement()
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            yield requirement
            item = self._next()
            if item == _END:
                return
            if item != ",":
                raise SelectorError(f"found '{item}', expected: ',' or 'end of string'")
            item = self._peek()
            if not (_is_word(item) or item == "!"):
                raise SelectorError(f"found '{item}', expected: identifier after ','")

    def _peek(self) -> str:
        return self._items[self._at]

    def _next(self) -> str:
        item = self._items[self._at]
        if item != _END:
            self._at += 1
        return item

    def _requirement(self) -> Requirement:
        item = self._next()
        negated = item == "!"
        if negated:
            item = self._next()
        if not _is_word(item):
            raise SelectorError(f"found '{item}', expected: identifier")
        if problem := check_key(item):
            raise SelectorError(f"<nil>: Invalid value: {quote(item)}: {problem}")
        if negated:
            return Requirement(item, Operator.NOT_EXISTS)
        if self._peek() in (_END, ","):
            return Requirement(item, Operator.EXISTS)
        return self._binary(item)

    def _binary(self, key: str) -> Requirement:
        item = self._next()
        operator = _BINARY_TOKENS.get(item)
        if operator is None:
            raise SelectorError(f"found '{item}', expected: {_BINARY}")
        if operator in (Operator.IN, Operator.NOT_IN):
            values = self._values()
        else:
            values = {self._exact_value()}
        requirement = Requirement(key, operator, tuple(sorted(values)))
        _check_values(requirement)
        return requirement

    def _exact_value(self) -> str:
        if self._peek() in (_END, ","):
            return ""
        item = self._next()
        if not _is_word(item):
            raise SelectorError(f"found '{item}', expected: identifier")
        return item

    def _values(self) -> set[str]:
        item = self._next()
        if item != "(":
            raise SelectorError(f"found '{item}' expected: '('")
        item = self._peek()
        if item == ")":
            self._next()
            return {""}
        if not (_is_word(item) or item == ","):
            raise SelectorError(f"found '{item}', expected: ',', ')' or identifier")
        values = self._identifiers()
        self._next()  # the ")" that ended them
        return values

    def _identifiers(self) -> set[str]:
        values: set[str] = set()
        while True:
            item = self._next()
            if _is_word(item):
                values.add(item)
                if self._peek() == ")":
                    return values
                if self._peek() != ",":
                    raise SelectorError(f"found '{self._peek()}', expected: ',' or ')'")
            elif item == ",":
                if not values:
                    values.add("")
                if self._peek() == ")":
                    return values | {""}
                if self._peek() == ",":
                    values.add("")
            else:
                raise SelectorError(f"found '{item}', expected: ',', or identifier")


def _is_word(item: str) -> bool:
    return item != _END and item[0] not in "=!(),><"


def _check_values(requirement: Requirement) -> None:
    problems = []
    for at, value in enumerate(requirement.values):
        if requirement.operator in (Operator.GREATER, Operator.LESS) and parse_int(value) is None:
            problems.append(
                f"values[{at}]: Invalid value: {quote(value)}: "
                "for 'Gt', 'Lt' operators, the value must be an integer"
            )
    for at, value in enumerate(requirement.values):
        if problem := check_value(value):
            problems.append(f"values[{at}][{requirement.key}]: Invalid value: {quote(value)}: {problem}")
    if problems:
        raise SelectorError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
