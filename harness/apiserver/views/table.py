"""Tables: one object or a list as rows of cells, each row with the object's metadata (or the object, or nothing)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from harness.apiserver.conversion import shown
from harness.apiserver.resources import Resource
from harness.apiserver.views.columns import printer_for
from harness.apiserver.views.partial import partial_object
from harness.wire.status import StatusError, bad_request

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
INCLUDE = ("", "Metadata", "Object", "None")


class Tables:
    """Makes the Tables of one request: `version` is meta.k8s.io's, `include` what each row carries of its object;
    `wall` gives seconds since 1970, for ages."""

    def __init__(self, resource: Resource, version: str, include: str, wall: Callable[[], float]) -> None:
        if include not in INCLUDE:
            raise StatusError(bad_request(f"unrecognized includeObject value: {include!r}".replace("'", '"')))
        self._resource = resource
        self._printer = printer_for(resource)
        self._version = version
        self._include = include
        self._wall = wall
        self._headed = False

    def rows(self, bodies: Iterable[bytes], metadata: dict[str, Any]) -> bytes:
        """A whole Table, column definitions included."""
        head = self._head(metadata, self._printer.columns)
        return head + b",".join(map(self._row, bodies)) + b"]}"

    def event(self, body: bytes, revision: str) -> bytes:
        """The Table of one watch event: only the first of a stream defines the columns."""
        columns = None if self._headed else self._printer.columns
        self._headed = True
        return self._head({"resourceVersion": revision}, columns) + self._row(body) + b"]}"

    def _head(self, metadata: dict[str, Any], columns: object) -> bytes:
        table = {
            "kind": "Table",
            "apiVersion": f"meta.k8s.io/{self._version}",
            "metadata": metadata,
            "columnDefinitions": columns,
        }
        return _encode(table)[:-1] + b',"rows":['

    def _row(self, body: bytes) -> bytes:
        obj = _decode(body)
        if "name" in obj["metadata"]:
            cells = _encode(self._printer.cells(obj, self._wall()))
        else:  # a bookmark's object, which has nothing to show
            cells = _encode([""] * len(self._printer.columns))
        if self._include == "None":
            return b'{"cells":' + cells + b"}"
        whole = self._include == "Object"
        carried = shown(self._resource, body) if whole else partial_object(body, self._version)
        return b'{"cells":' + cells + b',"object":' + carried + b"}"
