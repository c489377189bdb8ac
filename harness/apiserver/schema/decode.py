"""What Go's decoder makes of a document: the object that a typed decode leaves, and everything it says on the way.

The slow and exact way, for documents that `checked` did not pass: mirrors sigs.k8s.io/json's UnmarshalStrict
(internal/golang/encoding/json/decode.go, kubernetes_patch.go). Fields are compared in their case, unknown ones are
skipped with all they hold, a null is the zero value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from harness.apiserver.schema.gotypes import go_type
from harness.apiserver.schema.scalars import WRITTEN_AS_NULL
from harness.apiserver.schema.tree import (
    ANY,
    BOOLEAN,
    BYTES,
    INT_OR_STRING,
    INTEGER,
    LIST,
    MAP,
    NUMBER,
    OBJECT,
    QUANTITY,
    STRING,
    TIME,
    Schema,
)
from harness.wire.gotext import quote

MAX_STRICT_ERRORS = 100
_ZEROS: dict[str, Any] = {
    STRING: "",
    INTEGER: 0,
    NUMBER: 0,
    BOOLEAN: False,
    QUANTITY: "0",
    INT_OR_STRING: 0,
    TIME: None,
}
_JSON_KINDS = {dict: "object", list: "array", str: "string", bool: "bool"}
_GO_KINDS = {dict: "map", list: "slice", str: "string", bool: "bool", float: "float64"}
_QUANTITY = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_LAYOUT = "2006-01-02T15:04:05Z07:00"
_LAYOUT_MICRO = "2006-01-02T15:04:05.000000Z07:00"
_decode_time = msgspec.json.Decoder(datetime).decode


class Pairs(list[tuple[str, Any]]):
    """An object as it is written, with what stands twice."""


class Decoded(msgspec.Struct, gc=False):
    """`strict` are faults that only strict decoding minds; `fatal` is the one that ends any, "" for none, `converting`
    the same in the words of a conversion (am/runtime/converter.go), as which a strategic merge patch ends."""

    value: Any
    strict: list[str]
    fatal: str = ""
    converting: str = ""


def decode_strictly(document: bytes, schema: Schema) -> Decoded:
    """A document that is JSON, with what stands twice told."""
    try:
        return _Decoder().run(json.loads(document, object_pairs_hook=Pairs), schema)
    except RecursionError:
        return Decoded(None, [], "exceeded max depth")


def decode_value(value: Any, schema: Schema) -> Decoded:
    """As `decode_strictly`, of what has been read already. `value` is left as it is."""
    return _Decoder().run(value, schema)


def repeated_keys(document: bytes) -> list[str]:
    """What is said of keys that stand twice, in a document without a type (a patch)."""
    return decode_strictly(document, Schema(ANY, preserve_unknown=True)).strict


class _Fatal(Exception):
    """An error of a type that reads itself (quantities, times): nothing is decoded after it.

    `got` and `wanted` are those of a mismatch, else there is a text.
    """

    def __init__(self, text: str, got: str = "", wanted: str = "") -> None:
        super().__init__(text)
        self.got = got
        self.wanted = wanted


class _Decoder:
    def __init__(self) -> None:
        self._strict: dict[str, None] = {}
        self._converting = ""
        self._saved = ""  # the first error of a type, after which decoding goes on
        self._path: list[str] = []  # as strict errors have it, with keys of maps and indices of lists
        self._fields: list[str] = []  # names of fields only, as errors of types have it
        self._struct: Schema | None = None

    def run(self, value: Any, schema: Schema) -> Decoded:
        try:
            plain = self._value(value, schema, "", "")
        except _Fatal as error:
            text = self._mismatch(error.got, error.wanted) if error.got else str(error)
            return Decoded(None, [], text, text)
        return Decoded(plain, list(self._strict), self._saved, self._converting or self._saved)

    # ---- what is found -----------------------------------------------------------------------------------------
    def _mind(self, what: str, name: str) -> None:
        if len(self._strict) < MAX_STRICT_ERRORS:
            path = "".join(self._path)
            self._strict[f"{what} {quote(f'{path}.{name}' if path else name)}"] = None

    def _mismatch(self, got: str, wanted: str) -> str:
        if self._struct is None:
            return f"json: cannot unmarshal {got} into Go value of type {wanted}"
        field = f"{self._struct.name}.{'.'.join(self._fields)}"
        return f"json: cannot unmarshal {got} into Go struct field {field} of type {wanted}"

    def _save(self, error: str) -> None:
        self._saved = self._saved or error

    # ---- values ------------------------------------------------------------------------------------------------
    def _value(self, value: Any, schema: Schema, owner: str, field: str) -> Any:
        """`owner` and `field` are the struct's field that `value` is in, for the name of its Go type."""
        type = schema.type
        if value is None:
            return None
        if type == ANY:
            return self._untyped(value) if schema.preserve_unknown else _plain(value)
        if type == OBJECT and isinstance(value, dict | Pairs):
            return self._object(value, schema)
        if type == MAP and isinstance(value, dict | Pairs):
            return self._map(value, schema, owner, field)
        if type == LIST and type_of(value) is list:
            return self._list(value, schema, owner, field)
        return self._scalar(value, schema, owner, field)

    def _object(self, value: dict[str, Any] | Pairs, schema: Schema) -> dict[str, Any]:
        known, result = schema.fields, {}
        outer, self._struct = self._struct, schema
        for key, item in _items(value):
            inner = known.get(key)
            if inner is None:
                if schema.preserve_unknown:
                    result[key] = _plain(item)
                else:
                    self._mind("unknown field", key)
                continue
            if key in result:
                self._mind("duplicate field", key)
            self._struct = schema
            self._enter(key)
            self._fields.append(key)
            result[key] = self._value(item, inner, schema.name, key)
            self._fields.pop()
            self._leave()
        self._struct = outer
        return {key: item for key, item in result.items() if item is not None or key in WRITTEN_AS_NULL}

    def _map(self, value: dict[str, Any] | Pairs, schema: Schema, owner: str, field: str) -> dict[str, Any]:
        assert schema.items is not None
        result: dict[str, Any] = {}
        for key, item in _items(value):
            if key in result:
                self._mind("duplicate field", key)
            self._enter(key)
            result[key] = _or_zero(self._value(item, schema.items, owner, field), schema.items)
            self._leave()
        return result

    def _list(self, value: list[Any], schema: Schema, owner: str, field: str) -> list[Any]:
        assert schema.items is not None
        result = []
        for at, item in enumerate(value):
            self._path.append(f"[{at}]")
            result.append(_or_zero(self._value(item, schema.items, owner, field), schema.items))
            self._path.pop()
        return result

    def _untyped(self, value: Any) -> Any:
        """A value for an interface: all is known, but keys that stand twice are minded."""
        if isinstance(value, dict | Pairs):
            result: dict[str, Any] = {}
            for key, item in _items(value):
                if key in result:
                    self._mind("duplicate field", key)
                self._enter(key)
                result[key] = self._untyped(item)
                self._leave()
            return result
        if not isinstance(value, list):
            return value
        items = []
        for at, item in enumerate(value):
            self._path.append(f"[{at}]")
            items.append(self._untyped(item))
            self._path.pop()
        return items

    def _enter(self, key: str) -> None:
        self._path.append(f".{key}" if self._path else key)

    def _leave(self) -> None:
        self._path.pop()

    # ---- scalars -----------------------------------------------------------------------------------------------
    def _scalar(self, value: Any, schema: Schema, owner: str, field: str) -> Any:
        type = schema.type
        got = _JSON_KINDS.get(type_of(value), "number")
        if type == QUANTITY:
            return _quantity(value, got)
        if type == TIME:
            return _time(value, got, schema.format)
        if type == INT_OR_STRING:
            return value if got == "string" else self._int_or_string(value, got)
        if type == BYTES and got == "string":
            return self._bytes(value)
        if (type, got) in ((STRING, "string"), (BOOLEAN, "bool"), (NUMBER, "number")):
            return value
        if type == INTEGER and got == "number":
            bits = 63 if schema.format == "int64" else 31
            if isinstance(value, int) and -(1 << bits) <= value < 1 << bits:
                return value
            got = f"number {value}"
        self._converting = self._converting or _unconvertible(value, schema, owner, field)
        self._save(self._mismatch(got, go_type(schema, owner, field)))
        return None

    def _int_or_string(self, value: Any, got: str) -> Any:
        if got == "number" and isinstance(value, int) and -(1 << 31) <= value < 1 << 31:
            return value
        shown = f"number {value}" if got == "number" else got
        raise _Fatal("", shown, "int32")

    def _bytes(self, value: str) -> Any:
        bare = value.replace("\n", "").replace("\r", "")
        if _BASE64.fullmatch(bare):
            return value
        good = re.match(r"[A-Za-z0-9+/]*", bare)
        at = good.end() if good is not None and good.end() < len(bare) else len(bare) // 4 * 4
        self._save(f"illegal base64 data at input byte {at}")
        return None


def _unconvertible(value: Any, schema: Schema, owner: str, field: str) -> str:
    """What a conversion says of a value that is not of a field's type."""
    restored = {
        OBJECT: "cannot restore struct from: ",
        LIST: "cannot restore slice from ",
        MAP: "cannot restore map from ",
    }
    kind = _GO_KINDS.get(type_of(value), "int64")
    if schema.type in restored:
        return restored[schema.type] + kind
    wanted = go_type(schema, owner, field)
    numbers = schema.type in (INTEGER, NUMBER) and kind in ("int64", "float64")
    if numbers or (schema.type == STRING and kind == "int64"):  # Go converts between these, JSON does not
        return f"cannot convert {kind} to {wanted}"
    return f"unrecognized type: {'string' if schema.type == STRING else wanted}"


def type_of(value: Any) -> type:
    """The type of a JSON value, an object that keeps its pairs being one."""
    return dict if isinstance(value, Pairs) else type(value)


def _items(value: dict[str, Any] | Pairs) -> Iterable[tuple[str, Any]]:
    return value if isinstance(value, Pairs) else value.items()


def _plain(value: Any) -> Any:
    """Without pairs."""
    if isinstance(value, dict | Pairs):
        return {key: _plain(item) for key, item in _items(value)}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _or_zero(value: Any, schema: Schema) -> Any:
    """What a null is as an element."""
    if value is not None:
        return value
    return {} if schema.type == OBJECT else _ZEROS.get(schema.type)


def _quantity(value: Any, got: str) -> Any:
    if got == "number" or (got == "string" and (not value or _QUANTITY.fullmatch(value))):
        return value or "0"
    raise _Fatal(_FORMAT_WRONG)


def _time(value: Any, got: str, format: str) -> Any:
    if got != "string":
        raise _Fatal("", got, "string")
    try:
        if _decode_time(json.dumps(value)).tzinfo is not None:
            return value
    except msgspec.ValidationError:
        pass
    layout = _LAYOUT_MICRO if format == "micro" else _LAYOUT
    shown = quote(value)
    raise _Fatal(f'parsing time {shown} as "{layout}": cannot parse {shown} as "2006"')
