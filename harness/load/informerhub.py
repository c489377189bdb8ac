"""The informers of one process: their checker, what they count, and the moment at which all begin.

A user that is there says so to the master (`HERE`). When all are, and what they are to find is there, the master says
`GO` to every process, with the crowd of each place; at the end `LAST`, upon which writes end and the auditor compares a
last time (`informerrun`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from harness.client.machine import Sample
from harness.fleet.informers.checker import Checker
from harness.fleet.informers.tally import Tally
from harness.load.context import WorkerContext

MESSAGE = "swarmlet-informers"
"""Locust's message from the master: ``{"do": GO, "crowds": {process: [crowd of each place]}}``, ``{"do": LAST}``."""
GO = "go"
LAST = "last"
HERE = "informer-here"
"""Note: one more informer is in the process (process); unrecorded, as there are thousands."""
SYNCED = "informers-synced"
"""Note: all informers of the process have synced once (process, informers, seconds since `GO`; objects and bytes
received by then)."""


class InformerHub:
    """`name` is the process's among all; `crowd_of(place)` is told by the master."""

    def __init__(self, context: WorkerContext, runner: Any) -> None:
        self.context = context
        self.checker = Checker()
        self.tally = Tally()
        self.name = f"{max(0, runner.worker_index):05}-{secrets.token_hex(4)}"
        self.audited = False
        self._places = 0
        self._listers = 0
        self._crowds: list[int] | None = None
        self._went_at = 0.0
        self._synced = 0
        self._at_go: list[Callable[[], None]] = []
        self._at_last: list[Callable[[], None]] = []
        context.counted["informers"] = self.tally.take
        runner.register_message(MESSAGE, self._told)

    @classmethod
    def of(cls, environment: Any) -> InformerHub:
        """The one of this process."""
        context: WorkerContext = environment.swarmlet_context
        hub = context.shared.get(cls.__name__)
        if hub is None:
            hub = context.shared[cls.__name__] = cls(context, environment.runner)
        assert isinstance(hub, InformerHub)
        return hub

    def place(self) -> int:
        """A place for one more informer."""
        self._places += 1
        self.context.tell(HERE, {"process": self.name})
        return self._places - 1

    def next_lister(self) -> int:
        """The number of one more client that lists."""
        self._listers += 1
        return self._listers - 1

    def crowd_of(self, place: int) -> int:
        """Of a place; one that came after `GO` is of the last crowd."""
        crowds = self._crowds or [0]
        return crowds[min(place, len(crowds) - 1)]

    def at_go(self, begin: Callable[[], None]) -> None:
        """Call it when all begin; at once where they have."""
        self._at_go.append(begin)
        if self._crowds is not None:
            begin()

    def at_last(self, do: Callable[[], None]) -> None:
        self._at_last.append(do)

    def sampled(self, sample: Sample) -> None:
        """One of an informer of this process."""
        if sample.name == "informer_sync_ms" and ("start", "first") in sample.labels:
            self._synced += 1
            if self._synced == self._places:
                seconds = self.context.timers.now() - self._went_at
                fields = {
                    "process": self.name,
                    "informers": self._synced,
                    "seconds": seconds,
                    "objects": self.tally.objects_ever,
                    "bytes": self.tally.bytes_ever,
                }
                self.context.tell(SYNCED, fields)

    def _told(self, msg: Any, **_: Any) -> None:
        if msg.data["do"] == LAST:
            for do in self._at_last:
                do()
        elif self._crowds is None:
            self._crowds = list(msg.data["crowds"].get(self.name, ()))
            self._went_at = self.context.timers.now()
            for begin in self._at_go:
                begin()
