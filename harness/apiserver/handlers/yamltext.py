"""YAML bodies as sigs.k8s.io/yaml reads them: values of JSON, and keys that occur twice."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OPEN = -1  # a node whose children are being looked at
_MAX_ALIASED = 400_000  # nodes of an expanded document; go.yaml.in/yaml lets none with more have many aliases


class YamlError(ValueError):
    """Text that is no YAML, with upstream's words before the parser's own."""


def from_yaml(body: bytes) -> Any:
    """The value of JSON or YAML. Raises YamlError."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # JSON is the usual case, and many times faster
    try:
        value = yaml.load(body, _LOADER)  # noqa: S506  # a safe loader
        if b"*" in body:
            check_aliases(value)
        return msgspec.json.decode(msgspec.json.encode(value))
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
        root = yaml.compose(body, _LOADER)
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
