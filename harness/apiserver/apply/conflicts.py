"""What stands against an apply: fields that others own and that would change (smd/merge/conflict.go,
am/util/managedfields/internal/conflict.go)."""

from __future__ import annotations

from typing import NamedTuple

from harness.apiserver.apply.fieldset import Path, shown
from harness.apiserver.apply.managers import APPLY, Manager
from harness.wire.status import Cause, Details, Status


class Conflict(NamedTuple):
    manager: Manager
    path: Path


class Conflicts(Exception):
    """`found` is ordered: by manager, then as the field set orders paths."""

    def __init__(self, found: list[Conflict]) -> None:
        super().__init__(f"{len(found)} fields are owned by others")
        self.found = found

    def status(self) -> Status:
        """409, with a cause for each field."""
        causes = tuple(
            Cause("FieldManagerConflict", f"conflict with {_named(conflict.manager)}", shown(conflict.path))
            for conflict in self.found
        )
        return Status(409, "Conflict", self._message(), Details(causes=causes))

    def _message(self) -> str:
        if len(self.found) == 1:
            manager, path = self.found[0]
            return f"Apply failed with 1 conflict: conflict with {_named(manager)}: {shown(path)}"
        lines: list[str] = []
        last: Manager | None = None
        for manager, path in self.found:
            if manager != last:
                lines.append(f"conflicts with {_named(manager)}:")
                last = manager
            lines.append(f"- {shown(path)}")
        return f"Apply failed with {len(self.found)} conflicts: " + "\n".join(lines)


def _named(manager: Manager) -> str:
    text = f'"{manager.name}"'
    if manager.subresource:
        text += f' with subresource "{manager.subresource}"'
    return text if manager.operation == APPLY else f"{text} using {manager.api_version}"
