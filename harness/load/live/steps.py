"""What a scenario does while it goes on: its steps, what each creates, deletes or waits for, and what is left of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

PROGRESS = "progress"
"""The event of ``n of m``, of no use once the run is over."""
SHOWN = 100
"""Of what has ended, the last so many; what goes on is all shown."""


class Piece(msgspec.Struct):
    """A phase or a barrier of a step: `done` of `total` objects, None where nothing is counted. `ended_t` is None while
    it goes on; times are seconds since 1970."""

    step: str
    what: str
    began_t: float
    done: int | None = None
    total: int | None = None
    ended_t: float | None = None

    @property
    def left(self) -> int | None:
        return None if self.total is None or self.done is None else self.total - self.done

    def seconds(self, now: float) -> float:
        """How long it took, or takes already."""
        return max(0.0, (now if self.ended_t is None else self.ended_t) - self.began_t)


class Steps:
    """Fed with the events of a run, in order. Not every scenario has steps: a kperf profile's start has none."""

    def __init__(self) -> None:
        self.names: list[str] = []
        """Of the scenario's steps, all of them from its start."""
        self.step = 0
        """Number of the last step that began, from 1; 0 before."""
        self._open: dict[tuple[str, str], Piece] = {}
        self._ended: list[Piece] = []
        self._claims: int | None = None

    def happened(self, kind: str, fields: Mapping[str, Any], t: float) -> None:
        """At `t`, in seconds since 1970; what says nothing of a step is passed over."""
        match kind:
            case "scenario-started" if "steps" in fields:
                self.names = [str(name) for name in fields["steps"]]
            case "step-started" if "number" in fields:
                self.step = int(fields["number"])
            case "step-finished" if "name" in fields:
                self._end_step(str(fields["name"]), t)
            case "phase-started" if "claims" in fields:
                self._claims = int(fields["claims"])
                self._count("claims", "bound", 0, self._claims, t)
            case "phase-started" if "objects" in fields:
                self._count(fields["step"], fields["objects"], 0, int(fields["operations"]), t)
            case "phase-finished" if "objects" in fields:
                self._end(fields["step"], fields["objects"], t)
            case "progress":
                self._count(fields["step"], fields["what"], int(fields["done"]), int(fields["total"]), t)
            case "barrier" if "identifier" in fields:
                self._end(fields["step"], fields["identifier"], t)
            case "nodes-ready":
                self._end_step("nodes ready", t)
            case "claims-progress":
                what = "deleted" if fields["deleted"] else "bound"
                self._count("claims", what, int(fields[what]), self._claims, t)
            case "claims-bound":
                self._end("claims", "bound", t)
            case "claims-deleted":
                self._end("claims", "deleted", t)

    def pieces(self) -> list[Piece]:
        """What goes on, in the order in which it began, then what has ended, the last first."""
        return [*self._open.values(), *reversed(self._ended)]

    def _count(self, step: str, what: str, done: int, total: int | None, t: float) -> None:
        piece = self._open.get((step, what))
        if piece is None:
            piece = self._open[step, what] = Piece(step, what, t)
        piece.done, piece.total = done, total

    def _end(self, step: str, what: str, t: float) -> None:
        piece = self._open.pop((step, what), None)
        if piece is None:
            return
        piece.ended_t = t
        self._ended.append(piece)
        del self._ended[:-SHOWN]

    def _end_step(self, step: str, t: float) -> None:
        for key in [key for key in self._open if key[0] == step]:
            self._end(*key, t)
