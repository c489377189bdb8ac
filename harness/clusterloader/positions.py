"""Where a line of a rendered config stands in the template that it came from.

Found only once something is wrong, by rendering the template once more with a mark at the start of each line; the line
of a key in the rendered text is what `harness.documents.places` knows.
"""

from __future__ import annotations

import re

_MARK, _END = "\ue000", "\ue001"  # of Unicode's private use area, so that no config has them
_MARKS = re.compile(f"{_MARK}(\\d+){_END}")
_COMMENT = r"\{\{-?\s*/\*.*?\*/\s*-?\}\}"
_ACTION = r"\{\{(?:\"(?:\\.|[^\"\\])*\"|`[^`]*`|(?!\}\}).)*\}\}"
_ACTIONS = re.compile(f"{_COMMENT}|{_ACTION}", re.DOTALL)
_WORD = re.compile(r"\{\{-?\s*(\w+)")
_BLOCKS = ("if", "range", "with", "define", "block")
_INDENT = re.compile(r"[ \t]*")


def marked(source: str) -> str:
    """A template whose every line that gives text begins with its own number, in marks; renders as before otherwise.

    A mark goes behind the indentation, which an action may trim, and not in front of an action that trims.
    """
    spans = [match.span() for match in _ACTIONS.finditer(source)]
    parts, at, span = [], 0, 0
    for number, line in enumerate(source.splitlines(keepends=True), 1):
        while span < len(spans) and spans[span][1] <= at:
            span += 1
        inside = span < len(spans) and spans[span][0] < at
        indent = _INDENT.match(line)
        assert indent is not None
        rest = line[indent.end() :]
        if inside or not rest.strip() or rest.startswith("{{-"):
            parts.append(line)
        else:
            parts.append(f"{indent[0]}{_MARK}{number}{_END}{rest}")
        at += len(line)
    return "".join(parts)


def unclosed(source: str) -> int:
    """The line of the innermost block (if, range, with, ...) that no ``{{end}}`` closes; 0 where all are closed."""
    open_at: list[int] = []
    for match in _ACTIONS.finditer(source):
        word = _WORD.match(match[0])
        if word is None:
            continue
        if word[1] in _BLOCKS:
            open_at.append(source.count("\n", 0, match.start()) + 1)
        elif word[1] == "end" and open_at:
            open_at.pop()
    return open_at[-1] if open_at else 0


def origin(rendered: str, line: int) -> int:
    """The template's line that a line of the rendered, marked text came from; 0 where no mark stands before it."""
    found = 0
    for text in rendered.splitlines()[:line]:
        marks = _MARKS.findall(text)
        found = int(marks[-1]) if marks else found
    return found
