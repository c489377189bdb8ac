"""What the workers counted, added up into the run's record."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from harness.load.delivery import DeliveryJoin
from harness.observe.record import RunRecord


class Tally:
    """`take` is given what a worker counted since its last report (`WorkerContext.report`)."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._deliveries = DeliveryJoin(record.manifest.pace.seconds(time.monotonic))

    def take(self, report: Mapping[str, Any]) -> None:
        self._record.requests(report["requests"])
        self._record.samples(report["samples"])
        if "deliveries" in report:
            self._deliveries.take(report["deliveries"])
        for name, values in report["counts"].items():
            self._count(name, values)
        for member, counts in report.get("connections", {}).items():
            _add(self._record.manifest.results.setdefault("connections", {}).setdefault(member, {}), counts)

    def flush(self, *, last: bool = False) -> None:
        """Write what is due; with `last`, what still waits for its other half too."""
        self._record.samples(self._deliveries.rows(self._record.wall(), last=last))
        if counts := self._deliveries.counts():
            self._count("deliveries", counts)
        if self._deliveries.offsets_ms:
            self._record.manifest.results["clock_offsets_ms"] = self._deliveries.offsets_ms
        self._record.flush()

    def _count(self, name: str, values: Mapping[str, float]) -> None:
        _add(self._record.manifest.results.setdefault(name, {}), values)


def _add(counts: dict[str, float], more: Mapping[str, float]) -> None:
    for key, value in more.items():
        counts[key] = counts.get(key, 0) + value
