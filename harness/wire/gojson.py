"""What Go's encoding/json says about a document that is not JSON (scanner.go), because apiservers pass it on."""

from __future__ import annotations

import re

from harness.wire.gotext import quote

_SPACE = " \t\r\n"
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_END = "unexpected end of JSON input"


def syntax_error(document: bytes) -> str:
    """The message for the first error, "" for a document without one. Invalid UTF-8 is taken as Go takes it: bytes."""
    return _Scanner(document.decode("latin-1")).run()


class _Scanner:
    """A scanner over characters with a stack of what is open; `_at` stands at the character to be judged."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._open: list[str] = []

    def run(self) -> str:
        while True:
            problem = self._value()
            if problem is not None:
                return problem
            done, problem = self._after_value()
            if done or problem:
                return problem

    def _bad(self, context: str) -> str:
        """The message about the present character, or about the end."""
        if self._at >= len(self._text):
            return _END
        character = self._text[self._at]
        if character == "'":
            shown = "'\\''"
        elif character == '"':
            shown = "'\"'"
        elif ord(character) >= 0x80:  # a byte, to Go
            shown = f"'\\x{ord(character):02x}'"
        else:
            shown = f"'{quote(character)[1:-1]}'"
        return f"invalid character {shown} {context}"

    def _skip(self) -> str:
        while self._at < len(self._text) and self._text[self._at] in _SPACE:
            self._at += 1
        return self._text[self._at] if self._at < len(self._text) else ""

    def _value(self) -> str | None:
        """Read one scalar, an empty container, or the opening of a container up to its first value."""
        while True:
            character = self._skip()
            if character == '"':
                return self._string()
            if character in ("{", "["):
                self._at += 1
                following = self._skip()
                if following == ("}" if character == "{" else "]"):
                    self._at += 1
                    return None
                self._open.append(character)
                if character == "{" and (problem := self._key()):
                    return problem
                continue
            if character and character in "-0123456789":
                return self._number()
            for literal in ("true", "false", "null"):
                if character and literal.startswith(character):
                    return self._literal(literal)
            return self._bad("looking for beginning of value")

    def _key(self) -> str | None:
        if self._skip() != '"':
            return self._bad("looking for beginning of object key string")
        if problem := self._string():
            return problem
        if self._skip() != ":":
            return self._bad("after object key")
        self._at += 1
        return None

    def _after_value(self) -> tuple[bool, str]:
        """Close what ends here; (True, "") at the end of the document, (False, "") where another value follows."""
        while True:
            character = self._skip()
            if not self._open:
                return (True, self._bad("after top-level value") if character else "")
            kind = self._open[-1]
            if character == ("}" if kind == "{" else "]"):
                self._open.pop()
                self._at += 1
                continue
            if character != ",":
                context = "after object key:value pair" if kind == "{" else "after array element"
                return False, self._bad(context)
            self._at += 1
            return False, (self._key() or "") if kind == "{" else ""

    def _string(self) -> str | None:
        found = _STRING.match(self._text, self._at)
        assert found is not None  # at least the opening quote
        self._at = found.end()
        if self._text[self._at : self._at + 1] == '"':
            self._at += 1
            return None
        if self._text[self._at : self._at + 1] != "\\":
            return self._bad("in string literal")
        self._at += 1
        if self._text[self._at : self._at + 1] != "u":
            return self._bad("in string escape code")
        self._at += 1
        while self._text[self._at : self._at + 1] in set("0123456789abcdefABCDEF"):
            self._at += 1
        return self._bad("in \\u hexadecimal character escape")

    def _number(self) -> str | None:
        found = _NUMBER.match(self._text, self._at)
        if found is None:  # a minus sign alone
            self._at += 1
            return self._bad("in numeric literal")
        self._at = found.end()
        following = self._text[self._at : self._at + 1]
        if following == "." and not re.search(r"[.eE]", found[0]):
            self._at += 1
            return self._bad("after decimal point in numeric literal")
        if following in ("e", "E") and not re.search(r"[eE]", found[0]):
            self._at += 1
            if self._text[self._at : self._at + 1] in ("+", "-"):
                self._at += 1
            return self._bad("in exponent of numeric literal")
        return None

    def _literal(self, literal: str) -> str | None:
        for expected in literal:
            if self._text[self._at : self._at + 1] != expected:
                return self._bad(f"in literal {literal} (expecting '{expected}')")
            self._at += 1
        return None
