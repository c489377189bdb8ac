"""Steps that are answered otherwise than the recorded server answered them, each with the reason that
docs/conformance.md gives. `Difference.response` makes the answer that is expected of us out of the recorded one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Difference(NamedTuple):
    why: str
    response: Callable[[dict[str, Any]], dict[str, Any]]


DIFFERENCES: dict[tuple[str, int], Difference] = {}
"""By choice."""


def _expired(recorded: dict[str, Any]) -> dict[str, Any]:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "too old resource version: <rv> (<rv>)",
        "reason": "Expired",
        "code": 410,
    }
    return {**recorded, "body": [{"type": "ERROR", "object": status}]}


OF_LATER_MEMBERS: dict[tuple[str, int], Difference] = {
    ("watch-basic", 11): Difference(
        "The recorded server's cache began before anything was written. That of a member which started after another "
        "begins at a later revision, here as there, and a watch from revision 1 is too old for it.",
        _expired,
    ),
}
"""Accepted, beside what was recorded, from a pool whose members started one after the other."""
