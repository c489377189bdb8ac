"""What a fleet's process and its parent tell each other (`harness.load.fleetprocess`); without Locust, whose import
changes the process that does it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harness.load.plan import Plan


class FleetConfig(msgspec.Struct, frozen=True):
    """`spawn_rate` is Locust's -r, at most: no more is spawned than comes up."""

    plan: Plan
    spawn_rate: float


class FleetStatus(msgspec.Struct):
    """Counts since the start, but `deliveries`, which is what is new (`Deliveries.take`). `answers` are requests by
    "CODE verb name", with the code 0 for those without an answer. `blocked_ms`: the loop's longest block so far; `late`
    of `beats` came late."""

    kind: str = "fleet"
    spawned: int = 0
    ready: int = 0
    running_pods: int = 0
    answers: dict[str, int] = {}
    failures: list[str] = []
    deliveries: dict[str, Any] = {}
    blocked_ms: float = 0.0
    beats: int = 0
    late: int = 0
    peak_rss_bytes: int = 0
