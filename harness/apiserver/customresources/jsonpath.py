"""The part of kubectl's JSONPath that definitions use: fields, indices, and lists filtered by one equality
(client-go/util/jsonpath)."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

_STEP = re.compile(
    r"""\.(?P<field>(?:[^.\[\]\\'"]|\\.)+)
    |\[(?P<index>-?\d+)\]
    |\[(?P<all>\*)\]
    |\[(?P<quote>['"])(?P<key>.*?)(?P=quote)\]
    |\[\?\(@\.(?P<by>[\w.]+)\s*==\s*(?P<q>['"])(?P<value>.*?)(?P=q)\)\]""",
    re.VERBOSE,
)
Step = tuple[str, str, str]
"""(kind, first, second): ("field", name, ""), ("index", number, ""), ("all", "", ""), ("filter", field, value)."""


@lru_cache(maxsize=512)
def parse_path(text: str) -> tuple[Step, ...] | None:
    """None of a path that is not of this kind."""
    steps: list[Step] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            return None
        at = found.end()
        if found["field"] is not None:
            steps.append(("field", re.sub(r"\\(.)", r"\1", found["field"]), ""))
        elif found["index"] is not None:
            steps.append(("index", found["index"], ""))
        elif found["all"]:
            steps.append(("all", "", ""))
        elif found["key"] is not None:
            steps.append(("field", found["key"], ""))
        else:
            steps.append(("filter", found["by"], found["value"]))
    return tuple(steps)


def is_simple_path(text: str) -> bool:
    """Whether it names one field, as subresources demand."""
    steps = parse_path(text)
    return bool(steps) and all(kind == "field" for kind, _, _ in steps or ())


def find(text: str, value: Any) -> list[Any]:
    """What the path leads to, in order; nothing where something is missing on the way."""
    found = [value]
    for kind, first, second in parse_path(text) or (("index", "0", ""),):
        found = [inner for item in found for inner in _step(item, kind, first, second)]
    return found


def _step(value: Any, kind: str, first: str, second: str) -> list[Any]:
    if kind == "field":
        return [value[first]] if isinstance(value, dict) and first in value else []
    if not isinstance(value, list):
        return list(value.values()) if kind == "all" and isinstance(value, dict) else []
    if kind == "all":
        return list(value)
    if kind == "index":
        at = int(first)
        return [value[at]] if -len(value) <= at < len(value) else []
    path = "." + first
    return [item for item in value if [str(part) for part in find(path, item)] == [second]]


def replaced(text: str, value: Any, new: Any) -> Any:
    """A copy of `value` in which the simple path leads to `new`."""
    copied = json.loads(json.dumps(value))
    place = copied
    names = [name for _, name, _ in parse_path(text) or ()]
    for name in names[:-1]:
        inner = place.get(name)
        if not isinstance(inner, dict):
            inner = place[name] = {}
        place = inner
    place[names[-1]] = new
    return copied


def printed(value: Any) -> str:
    """As PrintResults writes it (client-go/util/jsonpath/jsonpath.go evalToText)."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, separators=(",", ":")) if isinstance(value, dict | list) else str(value)
