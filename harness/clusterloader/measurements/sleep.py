"""Sleep: a step that lasts (pkg/measurement/common/sleep.go)."""

from __future__ import annotations

from harness.clusterloader.measurements.base import Call, Outcome


class Sleep:
    async def execute(self, call: Call) -> Outcome:
        tasks = call.runtime.tasks
        await tasks.until(tasks.now + call.params.duration("duration"))
        return Outcome()

    def dispose(self) -> None:
        """Nothing runs."""
