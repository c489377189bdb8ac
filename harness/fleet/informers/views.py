"""What the checker keeps of each scope: its informers, the log that they share, the states that wait to be judged."""

from __future__ import annotations

from collections import deque

import msgspec

from harness.fleet.informers.reference import Reference, State
from harness.fleet.informers.violations import Told

RING = 16
"""Last events of each informer that are kept for the story of a violation."""


class Scope(msgspec.Struct, frozen=True):
    """What informers have in common that are told the same. `resource` as ``deployments.apps``."""

    resource: str
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    def __str__(self) -> str:
        parts = (self.resource, self.namespace, self.label_selector, self.field_selector)
        return " ".join(filter(None, parts))


class Claim(msgspec.Struct, gc=False):
    """A whole state that somebody was given; `objects` is None where the digest alone is kept. `agreed`: it is what the
    log has so far, though nobody has said yet that nothing is missing from the log."""

    who: str
    revision: int
    digest: int
    objects: State | None
    at: float
    view: View | None = None
    agreed: bool = False


class View:
    """One informer, from one start of its process to the next. `synced` is the revision of the state that it began
    with, 0 before it; `revision` the last one that it heard of; `place` that of the entry to come next, as far as none
    was put into the log before it. `gaps` are revisions that it was not told of, with the time that this showed."""

    __slots__ = ("gaps", "name", "place", "received", "revision", "synced", "watched")

    def __init__(self, name: str, watched: Watched) -> None:
        self.name = name
        self.watched = watched
        self.synced = 0
        self.revision = 0
        self.place = 0
        self.gaps: dict[int, float] = {}
        self.received: deque[tuple[float, int, str, bool]] = deque(maxlen=RING)

    @property
    def told(self) -> tuple[Told, ...]:
        return tuple(Told(*each) for each in self.received)


class Watched:
    """One scope. `reference` is None until a first informer has synced."""

    __slots__ = ("claims", "reference", "scope", "views")

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.reference: Reference | None = None
        self.views: set[View] = set()
        self.claims: list[Claim] = []

    def followed(self, reference: Reference, but: View | None = None) -> bool:
        """Whether some informer was told everything since before `known`, so that more will become known."""
        return any(0 < view.synced <= reference.known for view in self.views if view is not but)
