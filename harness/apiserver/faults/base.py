"""What every kind of fault has."""

from __future__ import annotations

from typing import ClassVar

import msgspec

MAX_DELAY_S = 3600.0


class FaultBase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", rename="kebab"):
    """`instant`: it happens once and has no length. `of_store`: of what all members share, so one member's is enough.
    `summary` is one line for whoever chooses."""

    instant: ClassVar[bool] = False
    of_store: ClassVar[bool] = False
    summary: ClassVar[str] = ""

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)


def within(name: str, value: float, least: float, most: float) -> None:
    """Raises ValueError, which msgspec makes its own, for a value that an option cannot have."""
    if not least <= value <= most:
        raise ValueError(f"{name} is {value:g}; allowed is {least:g} to {most:g}")
