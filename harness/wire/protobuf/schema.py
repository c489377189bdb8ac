"""The table of message types, compiled at first use.

A line of `objects.py` and its neighbours is ``Name: number jsonName type; ...``. Types: ``string int bool bytes Time
MicroTime Quantity IntOrString FieldsV1`` or another message; ``*T`` a pointer, whose zero value is kept; ``[]T``
repeated; ``{T}`` a map from string to a scalar; ``!T`` without omitempty, in JSON even if zero (null for a pointer or
a list); ``~T`` with omitzero. A field named ``.`` is embedded: its fields are in JSON the message's own.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Any

from harness.wire.protobuf import access, network, objects, pods, storage
from harness.wire.protobuf.wireformat import LENGTH, VARINT, put_varint

_ZEROS: dict[str, Any] = {"string": "", "int": 0, "bool": False}
SCALARS = frozenset({*_ZEROS, "bytes", "Time", "MicroTime", "Quantity", "IntOrString", "FieldsV1"})
LIST = "List"
ANY_VERSION = frozenset({"DeleteOptions"})
"""Registered in every group version (am/apis/meta/v1/register.go)."""
_KINDS = {
    "v1": frozenset(
        {
            "Binding",
            "ConfigMap",
            "Event",
            "Namespace",
            "Node",
            "PersistentVolumeClaim",
            "Pod",
            "Secret",
            "Service",
            "ServiceAccount",
            "Status",
        }
    ),
    "authentication.k8s.io/v1": frozenset({"TokenRequest"}),
    "coordination.k8s.io/v1": frozenset({"Lease"}),
    "node.k8s.io/v1": frozenset({"RuntimeClass"}),
    "policy/v1": frozenset({"Eviction"}),
    "storage.k8s.io/v1": frozenset({"CSIDriver", "CSINode"}),
}
_TABLES = (_KINDS, access.KINDS, network.KINDS, storage.KINDS)
KINDS = {
    version: frozenset[str]().union(*(table.get(version, ()) for table in _TABLES))
    for version in sorted({version for table in _TABLES for version in table})
}


class Shape(Enum):
    ONE = "T"
    MANY = "[]T"
    MAP = "{T}"


class Field:
    """One field; `message` None for a scalar, `embedded` where its fields are the parent's in JSON."""

    __slots__ = ("embedded", "keeps_zero", "kind", "message", "name", "pointer", "shape", "tag", "wire")

    def __init__(self, number: int, name: str, kind: str, shape: Shape, pointer: bool, always: bool) -> None:
        self.name = name
        self.kind = kind
        self.shape = shape
        self.pointer = pointer
        self.embedded = name == "."
        self.message = None if kind in SCALARS else message(kind)
        self.keeps_zero = pointer or always or kind not in _ZEROS
        self.wire = VARINT if shape is not Shape.MAP and kind in ("int", "bool") else LENGTH
        self.tag = put_varint(number << 3 | self.wire)


class Message:
    """`required`: what JSON shows of absent fields, by name."""

    __slots__ = ("fields", "name", "ordered", "required")

    def __init__(self, name: str, line: str) -> None:
        self.name = name
        self.fields: dict[int, Field] = {}
        self.required: dict[str, Any] = {}
        for column in filter(None, line.split(";")):
            number, json_name, kind = column.split()
            always, kind = kind[0] == "!", kind.lstrip("!")
            omitzero, kind = kind[0] == "~", kind.lstrip("~")
            shape = Shape.MANY if kind.startswith("[]") else Shape.MAP if kind[0] == "{" else Shape.ONE
            pointer, kind = kind[0] == "*", kind.strip("*[]{}")
            self.fields[int(number)] = Field(int(number), json_name, kind, shape, pointer, always)
            if always:
                self.required[json_name] = None if pointer or shape is not Shape.ONE else _ZEROS[kind]
            elif kind in ("Time", "MicroTime") and not pointer and not omitzero:
                self.required[json_name] = None  # a struct is never empty to encoding/json
        self.ordered = tuple(self.fields.values())


@cache
def _lines() -> dict[str, str]:
    tables = (objects.MESSAGES, pods.MESSAGES, access.MESSAGES, network.MESSAGES, storage.MESSAGES)
    text = "".join(tables).replace("\n    ", " ")
    return dict(line.split(":", 1) for line in text.splitlines() if line)


@cache
def message(name: str) -> Message:
    """The message type `name`. Raises KeyError."""
    return Message(name, _lines()[name])


@cache
def message_of(api_version: str, kind: str) -> Message | None:
    """The message type of an object, a list or options; None for what the table lacks."""
    kinds = KINDS.get(api_version, frozenset())
    if kind in kinds or kind in ANY_VERSION:
        return message(kind)
    if kind.endswith(LIST) and kind.removesuffix(LIST) in kinds:
        return Message(kind, f"1 metadata ListMeta; 2 items ![]{kind.removesuffix(LIST)}")
    return None
