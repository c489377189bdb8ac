"""Views of objects in protobuf: only the fields that a msgspec Struct has are read, everything else is skipped.

`decode_object` builds all of an object, as a server must. A client that keeps a few fields of each of a million events
needs those few: the plan of a view is made once for each kind that it meets, a message's table narrowed to the view's
fields, and what it finds is converted to the Struct as JSON would be.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import inspect

from harness.wire.protobuf.decoding import READERS, Object, envelope_of
from harness.wire.protobuf.schema import LIST, Message, Shape, message, message_of
from harness.wire.protobuf.wireformat import (
    FIXED64,
    LENGTH,
    MAGIC,
    VARINT,
    ProtobufError,
    UnknownKind,
    length,
    put_varint,
    signed,
    skip,
    varint,
)

T = TypeVar("T")
_Put: TypeAlias = Callable[[bytes, int, int, Object], None]
_Plan: TypeAlias = dict[int, _Put]
"""What to do with a field, by its tag: for a length-delimited one its start and stop, for a number (number, 0)."""

_KIND_FIELD, _RAW_FIELD = 1 << 3 | LENGTH, 2 << 3 | LENGTH


class ViewDecoder(Generic[T]):
    """Decodes objects in an envelope (``k8s\\0``...) to `view`. Raises ProtobufError, UnknownKind for a kind that the
    table lacks, msgspec.ValidationError for what the view does not allow."""

    __slots__ = ("_plans", "_view")

    def __init__(self, view: type[T]) -> None:
        self._view = view
        self._plans: dict[bytes, _Plan] = {}

    def decode(self, body: bytes) -> T:
        start = 6 + body[5] if len(body) > 6 else 0
        plan = self._plans.get(body[:start])
        if plan is None or len(body) <= start or body[start] != _RAW_FIELD:
            plan, at, end = self._look_up(body, start)
        else:
            at, end = length(body, start + 1, len(body))
        found: Object = {}
        _read(body, at, end, plan, found)
        return msgspec.convert(found, self._view)

    def _look_up(self, body: bytes, start: int) -> tuple[_Plan, int, int]:
        kind, at, end = _message(body)
        view: Any = self._view
        plan = _plan(kind, view)
        if len(body) > start and body[start] == _RAW_FIELD and body[len(MAGIC)] == _KIND_FIELD:
            self._plans[body[:start]] = plan
        return plan, at, end


def split_list(body: bytes) -> tuple[Object, list[bytes]]:
    """A list's metadata, and each of its items in an envelope of its own. Raises ProtobufError."""
    api_version, kind, at, end = envelope_of(body)
    if not kind.endswith(LIST):
        raise ProtobufError(f"no list: {kind[:100]!r}")
    types = _sized(1, api_version.encode()) + _sized(2, kind.removesuffix(LIST).encode())
    head = MAGIC + _sized(1, types)
    items: list[bytes] = []
    plan: _Plan = {
        1 << 3 | LENGTH: _one(_whole(message("ListMeta")), "metadata"),
        2 << 3 | LENGTH: lambda data, start, stop, into: items.append(head + _sized(2, data[start:stop])),
    }
    found: Object = {"metadata": {}}
    _read(body, at, end, plan, found)
    return found["metadata"], items


def _message(body: bytes) -> tuple[Message, int, int]:
    """The type of what is in an envelope, and where it starts and stops."""
    if not body.startswith(MAGIC):
        raise ProtobufError(f"no protobuf envelope: {body[:16]!r}")
    api_version, kind, at, end = envelope_of(body)
    found = message_of(api_version, kind)
    if found is None:
        raise UnknownKind(f"no protobuf message for kind {kind[:100]!r} in version {api_version[:100]!r}")
    return found, at, end


def _sized(number: int, data: bytes) -> bytes:
    return put_varint(number << 3 | LENGTH) + put_varint(len(data)) + data


# ---- reading -------------------------------------------------------------------------------------------------------
def _read(data: bytes, at: int, end: int, plan: _Plan, into: Object) -> None:
    while at < end:
        tag = data[at]
        at += 1
        if tag >= 0x80:
            tag, at = varint(data, at - 1, end)
        wire = tag & 7
        if wire == LENGTH:
            if at >= end:
                raise ProtobufError("unexpected EOF")
            size = data[at]
            at += 1
            if size >= 0x80:
                size, at = varint(data, at - 1, end)
            stop = at + size
            if stop > end:
                raise ProtobufError("unexpected EOF")
            put = plan.get(tag)
            if put is not None:
                put(data, at, stop, into)
            at = stop
        elif wire == VARINT:
            number, at = varint(data, at, end)
            put = plan.get(tag)
            if put is not None:
                put(data, number, 0, into)
        else:
            at = skip(data, at, end, wire)


# ---- plans ---------------------------------------------------------------------------------------------------------
@cache
def _plan(kind: Message, view: Any) -> _Plan:
    """`view` is a Struct class."""
    info = inspect.type_info(view)
    assert isinstance(info, inspect.StructType)
    return _struct_plan(kind, info)


def _struct_plan(of: Message, info: inspect.StructType) -> _Plan:
    wanted = {field.encode_name: field.type for field in info.fields}
    plan: _Plan = {}
    for field in of.ordered:
        tag = varint(field.tag, 0, len(field.tag))[0]
        if field.embedded:
            assert field.message is not None
            inner = _struct_plan(field.message, info)
            plan[tag] = lambda data, start, stop, into, inner=inner: _read(data, start, stop, inner, into)  # type: ignore[misc]
        elif field.name in wanted and field.wire != FIXED64:  # a double: no view has one
            kind = _struct_of(wanted[field.name])
            if field.message is not None:
                inner = _struct_plan(field.message, kind) if kind is not None else _whole(field.message)
                plan[tag] = _PUTS[field.shape](inner, field.name)
            elif field.shape is Shape.MAP:
                plan[tag] = _pair(_text(READERS[field.kind], "value"), field.name, "")
            elif field.wire == VARINT:
                plan[tag] = _number(field.name, field.kind == "bool")
            else:
                read = READERS[field.kind]
                plan[tag] = _texts(read, field.name) if field.shape is Shape.MANY else _text(read, field.name)
    return plan


def _whole(of: Message) -> _Plan:
    """Every scalar of a message that the view keeps as a plain dict."""
    plan: _Plan = {}
    for field in of.ordered:
        tag = varint(field.tag, 0, len(field.tag))[0]
        if field.message is None and field.shape is Shape.ONE and field.wire != FIXED64:
            plan[tag] = (
                _number(field.name, field.kind == "bool")
                if field.wire == VARINT
                else _text(READERS[field.kind], field.name)
            )
    return plan


def _struct_of(kind: inspect.Type) -> inspect.StructType | None:
    """The Struct in an annotation: itself, optional, or the items of a tuple or list."""
    if isinstance(kind, inspect.StructType):
        return kind
    if isinstance(kind, inspect.UnionType):
        return next(filter(None, map(_struct_of, kind.types)), None)
    if isinstance(kind, inspect.VarTupleType | inspect.ListType):
        return _struct_of(kind.item_type)
    return None


def _one(plan: _Plan, name: str) -> _Put:
    def put(data: bytes, start: int, stop: int, into: Object) -> None:
        inner = into.get(name)
        if inner is None:
            inner = into[name] = {}
        _read(data, start, stop, plan, inner)

    return put


def _many(plan: _Plan, name: str) -> _Put:
    def put(data: bytes, start: int, stop: int, into: Object) -> None:
        inner: Object = {}
        into.setdefault(name, []).append(inner)
        _read(data, start, stop, plan, inner)

    return put


def _text(read: Callable[[bytes, int, int], Any], name: str) -> _Put:
    def put(data: bytes, start: int, stop: int, into: Object) -> None:
        value = read(data, start, stop)
        if value is not None:  # Go's zero time
            into[name] = value

    return put


def _texts(read: Callable[[bytes, int, int], Any], name: str) -> _Put:
    return lambda data, start, stop, into: into.setdefault(name, []).append(read(data, start, stop))


def _number(name: str, truth: bool) -> _Put:
    def put(data: bytes, number: int, _: int, into: Object) -> None:
        into[name] = bool(number) if truth else signed(number)

    return put


def _pair(value: _Put, name: str, absent: Any) -> _Put:
    """`absent` is a value of which no byte speaks."""
    entry: _Plan = {
        1 << 3 | LENGTH: _text(READERS["string"], "key"),
        2 << 3 | LENGTH: value,
    }

    def put(data: bytes, start: int, stop: int, into: Object) -> None:
        found: Object = {}
        _read(data, start, stop, entry, found)
        into.setdefault(name, {})[found.get("key", "")] = found.get("value", absent)

    return put


def _pairs(plan: _Plan, name: str) -> _Put:
    return _pair(_one(plan, "value"), name, {})


_PUTS = {Shape.ONE: _one, Shape.MANY: _many, Shape.MAP: _pairs}
