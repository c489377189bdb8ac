"""Whether a document has only fields that its type has, all of the right types: a quick look before any other.

Nearly every body passes, so this is made for those: msgspec reads the document into structs made from the type tree,
on a kind's first use. It says nothing of what is wrong; `decode` finds that out.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Annotated, Any

import msgspec

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

_encode = msgspec.json.Encoder().encode
_KEY = b'":'
_UNSURE = (
    b'" :',
    b'"\n:',
    b'"\t:',
    b'"\r:',
    b"\\u003a",
    b"\\u003A",
    b"\\u0022",
)  # look unlike what is counted

_SMALL = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
_LARGE = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_NUMERAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?$"
_SCALARS: dict[str, Any] = {
    ANY: Any,
    STRING: str,
    BOOLEAN: bool,
    NUMBER: int | float,
    TIME: Annotated[datetime, msgspec.Meta(tz=True)],
    QUANTITY: Annotated[str, msgspec.Meta(pattern=_NUMERAL)] | int | float,
    INT_OR_STRING: _SMALL | str,
    BYTES: bytes,
}


class Check:
    """The quick look at documents of one type: whole objects, or their metadata and status."""

    __slots__ = ("_recursive", "_schema", "_status", "_whole")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._whole: msgspec.json.Decoder[Any] | None = None
        self._status: msgspec.json.Decoder[Any] | None = None
        self._recursive = False

    def fits(self, document: bytes) -> bool:
        """False also where this cannot tell."""
        decoder = self._whole
        if decoder is None:
            maker = _Maker()
            decoder = self._whole = msgspec.json.Decoder(maker.type_of(self._schema))
            self._recursive = maker.recursive
        return not self._recursive and _decodes(decoder, document)

    def status_fits(self, document: bytes) -> bool:
        decoder = self._status
        if decoder is None:
            parts = {
                key: self._schema.fields[key] for key in ("metadata", "status") if key in self._schema.fields
            }
            part = Schema(OBJECT, fields=parts, preserve_unknown=True)
            decoder = self._status = msgspec.json.Decoder(_Maker().type_of(part))
        return _decodes(decoder, document)


@cache
def check_of(schema: Schema) -> Check:
    """The check of a built-in kind, of which there is one a process."""
    return Check(schema)


def _decodes(decoder: msgspec.json.Decoder[Any], document: bytes) -> bool:
    try:
        decoder.decode(document)
    except msgspec.ValidationError:
        return False
    return True


def no_key_is_lost(document: bytes, value: Any) -> bool:
    """Whether `value`, read from `document`, has a key for each that is written there: none stands twice.

    False also where this cannot tell. Keys are counted by what follows them, which strings that look like it add to
    both sides alike. Only a client that writes numbers with exponents can hide a key from this.
    """
    again = _encode(value)
    if len(again) == len(document):
        return True
    return again.count(_KEY) == document.count(_KEY) and not any(item in document for item in _UNSURE)


class _Maker:
    """Makes structs of one tree; `recursive` where a type holds itself, which ends in anything."""

    def __init__(self) -> None:
        self.recursive = False
        self._open: set[str] = set()

    def type_of(self, schema: Schema) -> Any:
        if schema.type == OBJECT:
            return self._struct(schema)
        if schema.type == LIST:
            return list[self._items(schema)]  # type: ignore[misc]
        if schema.type == MAP:
            return dict[str, self._items(schema)]  # type: ignore[misc]
        if schema.type == INTEGER:
            return _LARGE if schema.format == "int64" else _SMALL
        return _SCALARS[schema.type]

    def _items(self, schema: Schema) -> Any:
        return self.type_of(schema.items) if schema.items is not None else Any

    def _struct(self, schema: Schema) -> Any:
        made = _STRUCTS.get(schema.model)
        if made is not None:
            return made
        if schema.model in self._open:
            self.recursive = True
            return Any
        if schema.model:
            self._open.add(schema.model)
        fields = schema.fields
        inner = {name: self.type_of(item) for name, item in fields.items()}
        made = msgspec.defstruct(
            schema.name or "Object",
            [
                (f"f{at}", inner[name] if inner[name] is Any else inner[name] | None, None)
                for at, name in enumerate(fields)
            ],
            rename={f"f{at}": name for at, name in enumerate(fields)},
            forbid_unknown_fields=not schema.preserve_unknown,
            gc=False,
        )
        if schema.model:
            self._open.discard(schema.model)
            if not self.recursive:
                _STRUCTS[schema.model] = made
        return made


_STRUCTS: dict[str, Any] = {}
