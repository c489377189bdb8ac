"""The table of message types, compiled at first use.

A line of `objects.py` and its neighbours is ``Name: number jsonName type; ...``. Types: those of `SCALARS` or another
message; ``*T`` a pointer, whose zero value is kept; ``[]T`` repeated; ``{T}`` a map from string; ``!T`` without
omitempty, in JSON even if zero (null for a pointer, bytes or a list); ``~T`` with omitzero. A field named ``.`` is
embedded: its fields are in JSON the message's own. A message may hold itself.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any

from harness.wire.protobuf import (
    access,
    definitions,
    devices,
    network,
    objects,
    pods,
    scaling,
    storage,
    webhooks,
    workloads,
)
from harness.wire.protobuf.wireformat import FIXED64, LENGTH, VARINT, put_varint

_ZEROS: dict[str, Any] = {"string": "", "int": 0, "bool": False}
_WIRES = {"int": VARINT, "bool": VARINT, "double": FIXED64}
SCALARS = frozenset(
    {
        *_ZEROS,
        *("double", "bytes", "Time", "MicroTime", "Quantity", "IntOrString"),
        *("FieldsV1", "JSON", "RawExtension"),  # JSON within
        "Strings",  # a list of strings as a map's value
        *("JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray"),
    }
)
"""Types whose JSON is not an object of their fields."""
LIST = "List"
ANY_VERSION = frozenset({"DeleteOptions"})
"""Registered in every group version (am/apis/meta/v1/register.go)."""
RENAMED = {
    ("autoscaling/v1", "HorizontalPodAutoscaler"): "HorizontalPodAutoscalerV1",
    ("events.k8s.io/v1", "Event"): "EventsEvent",
    ("resource.k8s.io/v1", "ResourceClaim"): "DynamicResourceClaim",
}
"""The messages of kinds whose name another message has."""
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
    "events.k8s.io/v1": frozenset({"Event"}),
    "meta.k8s.io/v1": frozenset({"PartialObjectMetadata"}),
    "node.k8s.io/v1": frozenset({"RuntimeClass"}),
    "policy/v1": frozenset({"Eviction"}),
    "storage.k8s.io/v1": frozenset({"CSIDriver", "CSINode"}),
}
_MODULES = (access, definitions, devices, network, scaling, storage, webhooks, workloads)
_TABLES = (_KINDS, *(module.KINDS for module in _MODULES))
KINDS = {
    version: frozenset[str]().union(*(table.get(version, ()) for table in _TABLES))
    for version in sorted({version for table in _TABLES for version in table})
}


_NEVER_EMPTY = ("Time", "MicroTime", "RawExtension")
"""Structs that are null in JSON where they are zero."""


Put = Callable[[bytes, int, int, dict[str, Any]], None]
"""(bytes, where a value starts, where it stops, the object that it goes into)"""


class Shape(Enum):
    ONE = "T"
    MANY = "[]T"
    MAP = "{T}"


class Field:
    """One field; `message` None for a scalar, `embedded` where its fields are the parent's in JSON."""

    __slots__ = ("embedded", "keeps_zero", "kind", "message", "name", "pointer", "shape", "tag", "wire")

    def __init__(
        self,
        number: int,
        name: str,
        kind: str,
        shape: Shape,
        pointer: bool,
        always: bool,
        of: Message | None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.shape = shape
        self.pointer = pointer
        self.embedded = name == "."
        self.message = of
        self.keeps_zero = pointer or always or kind not in _ZEROS
        self.wire = LENGTH if shape is Shape.MAP else _WIRES.get(kind, LENGTH)
        self.tag = put_varint(number << 3 | self.wire)


class Message:
    """`required`: what JSON shows of absent fields, by name. `plan` is the encoder's and `puts` the decoder's, by
    tag, each None before it is needed. `known`: messages that are there, those being made too."""

    __slots__ = ("fields", "name", "ordered", "plan", "puts", "required")

    def __init__(self, name: str, line: str, known: dict[str, Message]) -> None:
        known[name] = self
        self.name = name
        self.fields: dict[int, Field] = {}
        self.required: dict[str, Any] = {}
        self.plan: tuple[tuple[str, Callable[[Any], bytes], bytes], ...] | None = None
        self.puts: dict[int, Put] | None = None
        for column in filter(None, line.split(";")):
            number, json_name, kind = column.split()
            always, kind = kind[0] == "!", kind.lstrip("!")
            omitzero, kind = kind[0] == "~", kind.lstrip("~")
            shape = Shape.MANY if kind.startswith("[]") else Shape.MAP if kind[0] == "{" else Shape.ONE
            pointer, kind = kind[0] == "*", kind.strip("*[]{}")
            of = None if kind in SCALARS else known.get(kind) or Message(kind, _lines()[kind], known)
            self.fields[int(number)] = Field(int(number), json_name, kind, shape, pointer, always, of)
            if always:
                self.required[json_name] = None if pointer or shape is not Shape.ONE else _ZEROS.get(kind)
            elif kind in _NEVER_EMPTY and shape is Shape.ONE and not pointer and not omitzero:
                self.required[json_name] = None  # a struct is never empty to encoding/json
        self.ordered = tuple(self.fields.values())


@cache
def _lines() -> dict[str, str]:
    text = "".join(module.MESSAGES for module in (objects, pods, *_MODULES)).replace("\n    ", " ")
    return dict(line.split(":", 1) for line in text.splitlines() if line)


_compiled: dict[str, Message] = {}


def message(name: str) -> Message:
    """The message type `name`. Raises KeyError."""
    found = _compiled.get(name)
    if found is None:
        known = dict(_compiled)  # other threads see a message only when it is whole
        found = Message(name, _lines()[name], known)
        _compiled.update(known)
    return found


@cache
def message_of(api_version: str, kind: str) -> Message | None:
    """The message type of an object, a list or options; None for what the table lacks."""
    kinds = KINDS.get(api_version, frozenset())
    if kind in kinds or kind in ANY_VERSION:
        return message(RENAMED.get((api_version, kind), kind))
    item = kind.removesuffix(LIST)
    if kind != item and item in kinds:
        of = RENAMED.get((api_version, item), item)
        known = {name: message(name) for name in ("ListMeta", of)}
        return Message(kind, f"1 metadata ListMeta; 2 items ![]{of}", known)
    return None
