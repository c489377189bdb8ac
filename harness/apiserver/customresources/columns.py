"""Tables of custom resources (ae/pkg/registry/customresource/tableconvertor/tableconvertor.go)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.apiserver.customresources.jsonpath import find, printed
from harness.apiserver.views.ages import since
from harness.apiserver.views.printer import AGE_TEXT, NAME, Cells, Object, Printer, column

_AGE: Object = {
    "name": "Age",
    "type": "date",
    "description": AGE_TEXT,
    "jsonPath": ".metadata.creationTimestamp",
}


def printer_of(columns: Sequence[Object]) -> Printer:
    """`columns` are a version's additionalPrinterColumns; without any there is the age."""
    shown = list(columns) or [_AGE]
    return Printer([NAME, *map(_header, shown)], lambda obj, now: _cells(shown, obj, now))


def _header(item: Object) -> Object:
    path = item.get("jsonPath", "")
    text = item.get("description") or f"Custom resource definition column (in JSONPath format): {path}"
    return column(item["name"], item["type"], item.get("priority", 0), text, item.get("format", ""))


def _cells(columns: Sequence[Object], obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], *(_cell(item, obj, now) for item in columns)]


def _cell(item: Object, obj: Object, now: float) -> Any:
    found = find(item.get("jsonPath", ""), obj)
    if not found:
        return None
    value, type = found[0], item["type"]
    if type == "string":
        return printed(value)
    if type == "date":
        return _date(value, now)
    if type == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if type == "integer" else value


def _date(value: Any, now: float) -> Any:
    if not isinstance(value, str):
        return None
    try:
        return since(value, now)
    except ValueError:
        return "<invalid>"
