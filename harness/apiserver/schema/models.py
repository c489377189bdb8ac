"""The generated models of the installed Kubernetes client, read as text.

Importing the package would cost a second and 60 MB; one model's file is read in a tenth of a millisecond.
"""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

import msgspec

_TABLE = r"    %s: ClassVar\[Dict\[str, str\]\] = (\{.*?\n    \})"
_TYPES = re.compile(_TABLE % "openapi_types", re.DOTALL)
_NAMES = re.compile(_TABLE % "attribute_map", re.DOTALL)
_WORD = re.compile(r"(.)([A-Z][a-z]+)")
_CAPITAL = re.compile(r"([a-z0-9])([A-Z])")
_VERSIONED = re.compile(r"^([A-Z][a-z]+)?V[0-9]+(?:(?:alpha|beta)[0-9]+)?(?=[A-Z])")


@cache
def folder() -> Path | None:
    """Where the models are, None where the package is not installed."""
    spec = importlib.util.find_spec("kubernetes")
    places = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(places))) / "client" / "models" if places else None


def read(model: str) -> dict[str, str] | None:
    """The types of a model's fields, by JSON name; None where there is no such model."""
    text = source(model)
    if text is None:
        return None
    types, names = _TYPES.search(text), _NAMES.search(text)
    if types is None or names is None:
        return None
    by_attribute = msgspec.json.decode(types[1])
    return {name: by_attribute[key] for key, name in msgspec.json.decode(names[1]).items()}


def source(model: str) -> str | None:
    """The text of a model's file."""
    place = folder()
    if place is None:
        return None
    try:
        return (place / f"{_file_name(model)}.py").read_text()
    except FileNotFoundError:
        return None


def _file_name(model: str) -> str:
    return _CAPITAL.sub(r"\1_\2", _WORD.sub(r"\1_\2", model)).lower()


def go_name(model: str) -> str:
    """``V1PodSpec`` and ``CoreV1Event`` as Go calls the types: PodSpec, Event."""
    return _VERSIONED.sub("", model)


def version_of(model: str) -> str:
    """The API version in a model's name: v1, v1beta1."""
    found = _VERSIONED.match(model)
    prefix = found[1] or "" if found else ""
    return found[0].removeprefix(prefix).lower() if found else ""


def candidates(group: str, version: str, kind: str) -> tuple[str, str]:
    """What the model of a kind may be called: by its group where several groups have the kind, else plainly."""
    head = group.split(".")[0] or "core"
    versioned = f"V{version[1:]}{kind}"
    return head.capitalize() + versioned, versioned


class Details(msgspec.Struct, frozen=True, gc=False):
    """What a model says in words, and which fields it demands, by JSON name."""

    description: str
    fields: dict[str, str]
    required: tuple[str, ...]


_FIELD = re.compile(r'^    (\w+): (Optional\[)?.*?(?:description="((?:[^"\\]|\\.)*)"\))?$', re.MULTILINE)
_CLASS = re.compile(r'^class \w+\(BaseModel\):\n    """\n    (.*?)\n', re.MULTILINE)


def details(model: str) -> Details:
    """Read anew each time: nobody asks twice."""
    text = source(model) or ""
    names = _NAMES.search(text)
    if names is None:
        return Details("", {}, ())
    by_attribute = msgspec.json.decode(names[1])
    body = text[: names.start()]
    at = body.find("openapi_types: ClassVar")
    described: dict[str, str] = {}
    required = []
    for found in _FIELD.finditer(body[:at]):
        name = by_attribute.get(found[1])
        if name is None:
            continue
        if found[3]:
            described[name] = _ESCAPE.sub(
                lambda escape: {"n": "\n", "t": "\t"}.get(escape[1], escape[1]), found[3]
            )
        if not found[2]:
            required.append(name)
    title = _CLASS.search(body)
    return Details(title[1] if title is not None else "", described, tuple(required))


_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def group_of(model: str) -> str:
    """The group in a model's name ("core" of CoreV1Event), core where there is none."""
    found = _VERSIONED.match(model)
    return (found[1] or "core").lower() if found else "core"
