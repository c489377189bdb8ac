"""YAML as sigs.k8s.io/yaml reads and writes it: values of JSON, and keys that occur twice."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

import msgspec
import yaml

_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SAFE_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_STRING = "tag:yaml.org,2002:str"
_OPEN = -1  # a node whose children are being looked at
_WORDS: dict[str, bool | None] = {
    **{
        form: value
        for value, words in ((True, "y yes true on"), (False, "n no false off"), (None, "null"))
        for word in words.split()
        for form in (word, word.capitalize(), word.upper())
    },
    "": None,
    "~": None,
}
_NOT_IN_JSON = {
    **dict.fromkeys((".nan", ".NaN", ".NAN"), "NaN"),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), "+Inf"),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), "-Inf"),
}
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)$")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_WHOLE_BELOW = 1e21  # from where on encoding/json writes an exponent
_MAX_ALIASED = 400_000  # nodes of an expanded document; go.yaml.in/yaml lets none with more have many aliases


class YamlError(ValueError):
    """Text that is no YAML, with upstream's words before the parser's own."""


class _Loader(_SAFE):  # type: ignore[misc]  # one of two classes
    """Plain scalars are what `resolved` says, keys are strings."""

    yaml_implicit_resolvers: ClassVar[dict[str | None, list[tuple[str, re.Pattern[str]]]]] = {
        "<": [("tag:yaml.org,2002:merge", re.compile("<<$"))],
        None: [("plain", re.compile(""))],
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        return {_key(key): value for key, value in super().construct_mapping(node, deep).items()}


_Loader.add_constructor("plain", lambda _, node: resolved(node.value))


class _Dumper(_SAFE_DUMPER):  # type: ignore[misc]  # one of two classes
    """Strings are quoted that a reader would take for something else: PyYAML's, or go-yaml."""

    def resolve(self, kind: Any, value: Any, implicit: tuple[bool, bool]) -> Any:
        tag = super().resolve(kind, value, implicit)
        if (
            tag == _STRING
            and kind is yaml.ScalarNode
            and implicit[0]
            and not isinstance(resolved(value), str)
        ):
            return "plain"
        return tag


def to_yaml(value: Any) -> bytes:
    """Keys in order."""
    text: bytes = yaml.dump(value, Dumper=_Dumper, sort_keys=True, encoding="utf-8", allow_unicode=True)
    return text


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int | float):
        return str(key)
    kind = "<nil>" if key is None else type(key).__name__
    raise YamlError(f"error converting YAML to JSON: unsupported map key of type: {kind}")


def resolved(text: str) -> Any:
    """What a scalar without quotes is: YAML 1.1's words for true and false (y and n too), Go's forms of numbers, and no
    times (sigs.k8s.io/yaml/goyaml.v2/resolve.go, decode.go). Raises YamlError for what JSON cannot hold."""
    if text in _WORDS:
        return _WORDS[text]
    if text in _NOT_IN_JSON:
        raise YamlError(f"error converting YAML to JSON: json: unsupported value: {_NOT_IN_JSON[text]}")
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    whole = _INTEGER.match(digits)
    if whole is not None:
        octal = whole[1].isdecimal() and whole[1][0] == "0"
        number = int(digits, 8 if octal else 0)
        if -(1 << 63) <= number < 1 << 64:
            return number
    if _FLOAT.match(digits):
        value = float(digits)
        return int(value) if value.is_integer() and abs(value) < _WHOLE_BELOW else value
    return text


def from_yaml(body: bytes) -> Any:
    """The value of JSON or YAML. Raises YamlError."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # JSON is the usual case, and many times faster
    try:
        value = yaml.load(body, _Loader)  # noqa: S506  # a safe loader
        if b"*" in body:
            check_aliases(value)
        return msgspec.json.decode(msgspec.json.encode(value))
    except YamlError:
        raise
    except (yaml.YAMLError, TypeError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        text = " ".join(str(error).split())
        raise YamlError(f"error converting YAML to JSON: yaml: {text}") from None


def check_aliases(value: Any) -> None:
    """Refuse a YAML document whose aliases make it far larger than it is written, or contain itself, in the words of
    go.yaml.in/yaml (decode.go, alias_ratio). Raises yaml.YAMLError."""
    sizes: dict[int, int] = {}

    def size(node: Any) -> int:
        if not isinstance(node, dict | list):
            return 1
        known = sizes.get(id(node))
        if known == _OPEN:
            raise yaml.YAMLError("anchor value contains itself")
        if known is None:
            sizes[id(node)] = _OPEN
            known = sizes[id(node)] = 1 + sum(map(size, node.values() if isinstance(node, dict) else node))
            if known > _MAX_ALIASED:
                raise yaml.YAMLError("document contains excessive aliasing")
        return known

    size(value)


def duplicate_keys(body: bytes) -> str:
    """What yaml.UnmarshalStrict says of keys that occur twice in an object, "" where there are none."""
    if _is_json_without_duplicates(body):
        return ""
    try:
        root = yaml.compose(body, _Loader)
    except (yaml.YAMLError, RecursionError):
        return ""
    found: list[str] = []
    _find(root, found)
    if not found:
        return ""
    listed = "".join(f"\n  {text}" for text in found)
    return f"error converting YAML to JSON: yaml: unmarshal errors:{listed}"


def _is_json_without_duplicates(body: bytes) -> bool:
    """The usual case, found out thirty times faster than by looking at YAML's nodes."""
    clean = True

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal clean
        if len(dict(pairs)) != len(pairs):
            clean = False

    try:
        json.loads(body, object_pairs_hook=look)
    except (ValueError, RecursionError):
        return False
    return clean


def _find(node: Any, found: list[str]) -> None:
    waiting = [node]
    while waiting:
        at = waiting.pop()
        if isinstance(at, yaml.SequenceNode):
            waiting += reversed(at.value)
        elif isinstance(at, yaml.MappingNode):
            seen: set[str] = set()
            for key, _ in at.value:
                name = str(key.value)
                if name in seen:
                    found.append(f'line {key.start_mark.line + 1}: key "{name}" already set in map')
                seen.add(name)
            waiting += [value for _, value in reversed(at.value)]
