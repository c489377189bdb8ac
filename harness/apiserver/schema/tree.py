"""One node of a type tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

OBJECT: Final = "object"
MAP: Final = "map"
LIST: Final = "list"
STRING: Final = "string"
INTEGER: Final = "integer"
NUMBER: Final = "number"
BOOLEAN: Final = "boolean"
BYTES: Final = "bytes"
TIME: Final = "time"
QUANTITY: Final = "quantity"
INT_OR_STRING: Final = "int-or-string"
ANY: Final = "any"

_NO_FIELDS: Mapping[str, Schema] = {}


class Schema:
    """A type. The fields of an object are found on first look, so that a tree may be endless and costs what is used.

    `type` is one of this module's constants. `name` is an object's Go type ("PodSpec", "" for others); `format` is
    OpenAPI's ("int32", "int64", "date-time", "micro" for times of microseconds). `items` is the element of a list or
    the value of a map. `list_type` is "atomic", "set" or "map", the latter by `keys`; `atomic` says the same of maps
    and objects. `preserve_unknown`: fields beside the known ones are kept.
    """

    __slots__ = (
        "_fields",
        "_resolve",
        "atomic",
        "format",
        "items",
        "keys",
        "list_type",
        "model",
        "name",
        "preserve_unknown",
        "type",
    )

    def __init__(
        self,
        type: str,
        *,
        name: str = "",
        model: str = "",
        format: str = "",
        fields: Mapping[str, Schema] = _NO_FIELDS,
        resolve: Callable[[], Mapping[str, Schema]] | None = None,
        items: Schema | None = None,
        list_type: str = "atomic",
        keys: tuple[str, ...] = (),
        atomic: bool = False,
        preserve_unknown: bool = False,
    ) -> None:
        self.type = type
        self.name = name
        self.model = model
        self.format = format
        self.items = items
        self.list_type = list_type
        self.keys = keys
        self.atomic = atomic
        self.preserve_unknown = preserve_unknown
        self._fields = fields
        self._resolve = resolve

    @property
    def fields(self) -> Mapping[str, Schema]:
        """Of an object, by JSON name."""
        if self._resolve is not None:
            self._fields, self._resolve = self._resolve(), None
        return self._fields

    def __repr__(self) -> str:
        inner = f" of {self.items!r}" if self.items is not None else ""
        return f"<{self.type}{' ' + self.name if self.name else ''}{inner}>"
