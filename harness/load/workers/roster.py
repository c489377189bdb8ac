"""What the master knows of each worker: the users it runs, the reports it sent, whether it is still there."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

CLOCK_OFF_MS = 500.0
"""From here on a reader must know: points of a chart are 5 s apart."""


class Lost(NamedTuple):
    """A worker that has gone. `users` are those it ran when it was last heard of, by the name of their class."""

    worker: int
    users: dict[str, int]


class Reports(msgspec.Struct):
    """Of one worker. Reports are numbered from 1; `last` says that it had no more to say. `missing` never came, `twice`
    came again and were not counted. `clock_ms` is how far its clock is behind the master's, with the way of its fastest
    report."""

    taken: int = 0
    missing: int = 0
    twice: int = 0
    last: bool = False
    lost: bool = False
    clock_ms: float | None = None


class Roster:
    """`runner` is Locust's master, or a runner without workers."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._users: dict[str, dict[str, int]] = {}
        self.reports: dict[int, Reports] = {}

    @property
    def distributed(self) -> bool:
        return getattr(self._runner, "clients", None) is not None

    def look(self) -> list[Lost]:
        """The workers that have gone since the last look."""
        if not self.distributed:
            return []
        # One that is missing runs nothing, as far as Locust can tell: what it ran is remembered from before.
        present = {client.id: client for client in self._runner.clients.all if client.state != "missing"}
        lost = [
            Lost(self._runner.get_worker_index(worker), users)
            for worker, users in sorted(self._users.items())
            if worker not in present
        ]
        self._users = {worker: dict(client.user_classes_count) for worker, client in present.items()}
        for gone in lost:
            self._of(gone.worker).lost = True
        return lost

    def client_id(self, index: int) -> str | None:
        """Locust's id of a worker that is there."""
        if not self.distributed:
            return None
        ids = (client.id for client in self._runner.clients.all)
        return next((found for found in ids if self._runner.get_worker_index(found) == index), None)

    def lost(self, worker: int) -> bool:
        """Whether it has gone, for good: one that was only silent may still say what it did meanwhile."""
        return worker in self.reports and self.reports[worker].lost

    def take(self, worker: int, number: int, *, last: bool) -> bool:
        """Whether report `number` of a worker is to be counted: one that came before is not."""
        reports = self._of(worker)
        expected = reports.taken + reports.missing + 1
        if number < expected:
            reports.twice += 1
            return False
        reports.missing += number - expected
        reports.taken += 1
        reports.last = reports.last or last
        return True

    def compare_clocks(self, worker: int, sent: float, received: float) -> None:
        """A report was `sent` at a time of the worker's clock and `received` at one of the master's, in seconds."""
        reports, late_ms = self._of(worker), (received - sent) * 1e3
        reports.clock_ms = late_ms if reports.clock_ms is None else min(reports.clock_ms, late_ms)

    def clocks(self) -> list[str]:
        """The clocks that are off by more than a fast network explains, in words."""
        return [
            f"the clock of worker {index} is {abs(off) / 1e3:.1f} s {'behind' if off > 0 else 'ahead of'} the master's:"
            " so are the times of what it counted"
            for index, reports in sorted(self.reports.items())
            if (off := reports.clock_ms) is not None and abs(off) > CLOCK_OFF_MS
        ]

    def gaps(self, ended_in_order: bool) -> list[str]:
        """What is missing of what workers counted, in words. `ended_in_order`: each was asked to end and waited for."""
        found = []
        for index, reports in sorted(self.reports.items()):
            if reports.missing:
                all_ = reports.taken + reports.missing
                found.append(f"worker {index}: {reports.missing} of {all_} reports never came")
            if not ended_in_order or reports.last:
                continue
            if reports.lost:
                found.append(f"worker {index} was lost: what it counted since its last report is missing")
            else:
                found.append(f"worker {index} ended without its last report")
        return found

    def _of(self, worker: int) -> Reports:
        return self.reports.setdefault(worker, Reports())


def only(users: dict[str, int], names: Collection[str]) -> bool:
    """Whether all that ran were of these classes."""
    return all(name in names for name, count in users.items() if count)
