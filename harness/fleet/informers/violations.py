"""What an informer or a list can get wrong, and how it is told."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec


class Kind(Enum):
    LOST = "lost"
    """An event that another informer was given, or that a list shows, never came."""
    DUPLICATED = "duplicated"
    """An event came a second time."""
    REORDERED = "reordered"
    """An event came after a later one."""
    WENT_BACK = "went back"
    """A resourceVersion below one that this informer was given before: of a bookmark, of a list."""
    CONTRADICTION = "contradiction"
    """One revision, told as two different things."""
    DIFFERS = "differs"
    """A state (an informer's first one, or a list's) that is not what informers were told up to its revision."""
    MIXED_PAGES = "mixed pages"
    """Pages of one list that are not of one snapshot."""


class Told(msgspec.Struct, frozen=True, gc=False):
    """One event, as it was received: `at` is the process's monotonic seconds."""

    at: float
    revision: int
    key: str
    deleted: bool

    @property
    def text(self) -> str:
        return f"{self.at:.3f} {self.key} {'deleted ' if self.deleted else ''}@{self.revision}"


class Violation(msgspec.Struct, frozen=True):
    """`who` is the informer or list that was told wrong, `key` the object, "" where it is no single one's. `received`
    are the last events that this informer got, `history` what all informers of the scope were told of the object."""

    kind: Kind
    scope: str
    who: str
    key: str
    revision: int
    text: str
    at: float
    received: tuple[Told, ...] = ()
    history: tuple[Told, ...] = ()

    @property
    def line(self) -> str:
        what = f" {self.key}" if self.key else ""
        return f"{self.kind.value}: {self.who}: {self.scope}{what} @{self.revision}: {self.text}"

    def fields(self) -> dict[str, Any]:
        """For a run record."""
        return {
            "violation": self.kind.value,
            "scope": self.scope,
            "who": self.who,
            "key": self.key,
            "revision": self.revision,
            "text": self.text,
            "received": [told.text for told in self.received],
            "history": [told.text for told in self.history],
        }
