"""Timer: wall time between named points of a test (pkg/measurement/common/timer.go)."""

from __future__ import annotations

from harness.clusterloader.measurements.base import (
    Call,
    MeasurementError,
    Outcome,
    Result,
    unknown_action,
)
from harness.clusterloader.perfdata import DataItem, PerfData


class Timer:
    """start and stop take a label; gather gives every stopped label's seconds."""

    def __init__(self) -> None:
        self._started: dict[str, float] = {}
        self._durations_s: dict[str, float] = {}

    async def execute(self, call: Call) -> Outcome:
        action = call.params.text("action")
        now = call.runtime.now
        if action == "start":
            self._started[call.params.text("label")] = now
        elif action == "stop":
            label = call.params.text("label")
            if label not in self._started:
                raise MeasurementError(f"uninitialized timer {label}")
            self._durations_s[label] = now - self._started.pop(label)
        elif action == "gather":
            item = DataItem(dict(self._durations_s), "s", {"test": "phases"})
            return Outcome((Result("Timer", dict(self._durations_s), PerfData("v1", [item])),))
        else:
            raise unknown_action(action, "start", "stop", "gather")
        return Outcome()

    def dispose(self) -> None:
        """Nothing runs."""
