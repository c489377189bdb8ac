"""All that is known of a run while it goes on, in one place: what the session hears is passed on to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.load.live.members import Members
from harness.load.live.steps import Steps
from harness.observe.digest import Scraped

Request = tuple[str, str, str, int, str]
"""User, verb, name, code, member."""


class View:
    """`requests` and `latencies` are what the fleet counted since the run's start; latencies, by user, verb and name,
    and `samples`, by user and name, are counts by bucket (`observe.histogram`) of microseconds."""

    def __init__(self, run: Mapping[str, str], target: str = "") -> None:
        self.run = dict(run)
        """What names it: labels and their values."""
        self.target = target
        """What the load is on, in words."""
        self.members = Members()
        self.steps = Steps()
        self.requests: dict[Request, int] = {}
        self.latencies: dict[tuple[str, str, str], dict[int, int]] = {}
        self.samples: dict[tuple[str, str], dict[int, int]] = {}
        self.beats = self.late_beats = 0

    def scraped(self, message: Mapping[str, Any]) -> None:
        """A line of the scraper's; others are passed over."""
        try:
            scraped = msgspec.convert(message, Scraped)
        except msgspec.ValidationError:
            return
        self.members.scraped(scraped.t, scraped.members)

    def counted(self, report: Mapping[str, Any]) -> None:
        """What a worker counted since its last report (`WorkerContext.report`)."""
        self.members.counted(report["requests"])
        for _, user, verb, name, code, member, bucket, count in report["requests"]:
            key = (user, verb, name, code, member)
            self.requests[key] = self.requests.get(key, 0) + count
            _add(self.latencies, (user, verb, name), bucket, count)
        for _, user, name, _, bucket, count in report["samples"]:
            _add(self.samples, (user, name), bucket, count)
        loop = report["counts"].get("loop", {})
        self.beats += int(loop.get("beats", 0))
        self.late_beats += int(loop.get("late", 0))


def _add(counts: dict[Any, dict[int, int]], key: Any, bucket: int, count: int) -> None:
    buckets = counts.setdefault(key, {})
    buckets[bucket] = buckets.get(bucket, 0) + count
