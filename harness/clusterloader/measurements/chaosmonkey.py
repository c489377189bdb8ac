"""ChaosMonkey: nodes fail and come back from one step of a test to another.

Mirrors pkg/measurement/common/chaos_monkey_measurement.go. It measures nothing and has no summary; what failed is in
the run's record. The same between a whole test's beginning and its end is the config's `chaosMonkey.nodeFailure`.
"""

from __future__ import annotations

from functools import partial

from harness.clusterloader.durations import Seconds
from harness.clusterloader.measurements.base import Call, MeasurementError, Outcome, Params, unknown_action
from harness.clusterloader.measurements.nodefailure import NodeKiller, broken_rule
from harness.clusterloader.schema import NodeFailure

METHOD = "ChaosMonkey"


def failure_of(params: Params) -> NodeFailure:
    """What a `start` asks for. Raises MeasurementError."""
    failure = NodeFailure(
        failure_rate=params.number("failureRate", 0.0),
        interval=Seconds(params.duration("interval", 0.0)),
        jitter_factor=params.number("jitterFactor", 0.0),
        simulated_downtime=Seconds(params.duration("simulatedDowntime", 0.0)),
    )
    if broken := broken_rule(failure):
        raise MeasurementError(
            f"params.{broken.key}: {broken.value:g} is not allowed; expected {broken.allowed}"
        )
    return failure


class ChaosMonkey:
    """Nodes that failed between an earlier start and stop do not fail again."""

    def __init__(self) -> None:
        self._killer: NodeKiller | None = None

    async def execute(self, call: Call) -> Outcome:
        action = call.params.text("action")
        if action == "start":
            killed = self._killer.killed if self._killer is not None else ()
            self.dispose()
            skip = partial(call.skip, METHOD)
            self._killer = NodeKiller(call.runtime, failure_of(call.params), killed, skip)
        elif action == "stop":
            if self._killer is None:
                raise MeasurementError("stop comes before start")
            await self._killer.stop()
        else:
            raise unknown_action(action, "start", "stop")
        return Outcome()

    def dispose(self) -> None:
        if self._killer is not None:
            self._killer.dispose()
