"""What every printer is made of: columns, and cells that most kinds have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from harness.apiserver.views.ages import since

Object = dict[str, Any]
Cells = list[Any]
NONE = "<none>"
UNSET = "<unset>"
NAME_TEXT = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically."
)
AGE_TEXT = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. Populated by the "
    "system. Read-only. Null for lists."
)


class Printer(NamedTuple):
    columns: list[Object]
    cells: Callable[[Object, float], Cells]


def column(name: str, type_: str = "string", priority: int = 0, text: str = "", format_: str = "") -> Object:
    return {"name": name, "type": type_, "format": format_, "description": text, "priority": priority}


NAME = column("Name", text=NAME_TEXT, format_="name")
AGE = column("Age", text=AGE_TEXT)


def age(obj: Object, now: float) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def named(*between: Callable[[Object], Any]) -> Callable[[Object, float], Cells]:
    """Cells of a kind that shows its name, these, and its age."""

    def cells(obj: Object, now: float) -> Cells:
        return [obj["metadata"]["name"], *(get(obj) for get in between), age(obj, now)]

    return cells


def labels_text(labels: Mapping[str, str] | None) -> str:
    """FormatLabels (am/labels): sorted, ``<none>`` without any."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def some(items: list[str], limit: int, total: int | None = None) -> str:
    """The first of a list, and how many more there are; `total` where the list is not all of them."""
    count = len(items) if total is None else total
    shown = ",".join(items[:limit])
    return f"{shown} + {count - limit} more..." if count > limit else shown
