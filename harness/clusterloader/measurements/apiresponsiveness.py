"""APIResponsivenessPrometheus: the SLO of API calls, between two moments of a test.

The figures are the members' own histograms, which the run's scraper keeps; no worker sees them. So gather only says
which time and which limits are meant (a `slo-window` note), and who owns the record computes it at the end of the run
(`harness.clusterloader.slo`).
"""

from __future__ import annotations

import msgspec

from harness.clusterloader.measurements.base import Call, MeasurementError, Outcome, unknown_action
from harness.clusterloader.slo import SINGLE_RESOURCE_S, Limits, custom_limits


class APIResponsiveness:
    def __init__(self) -> None:
        self._start_s: float | None = None

    async def execute(self, call: Call) -> Outcome:
        action = call.params.text("action")
        runtime = call.runtime
        if action == "start":
            self._start_s = runtime.wall_s
        elif action == "gather":
            if self._start_s is None:
                raise MeasurementError("APIResponsivenessPrometheus has not been started")
            limits = _limits(call)
            runtime.note(
                "slo-window",
                identifier=call.identifier,
                step=call.step,
                from_s=self._start_s,
                until_s=runtime.wall_s,
                limits=msgspec.to_builtins(limits),
            )
        else:
            raise unknown_action(action, "start", "gather")
        return Outcome()

    def dispose(self) -> None:
        """Nothing runs."""


def _limits(call: Call) -> Limits:
    params = call.params
    try:
        single_s = params.duration("singleResourceThreshold", SINGLE_RESOURCE_S)
    except MeasurementError:  # upstream warns and takes the default
        single_s = SINGLE_RESOURCE_S
    try:
        custom = custom_limits(params.text("customThresholds", ""))
    except ValueError as error:
        raise MeasurementError(f"params.customThresholds: {error}") from error
    return Limits(
        name=params.text("summaryName", "APIResponsivenessPrometheus"),
        enforced=params.boolean("enableViolations", False),
        simple=params.boolean("useSimpleLatencyQuery", False),
        allowed_slow_calls=params.integer("allowedSlowCalls", 0),
        single_resource_s=single_s,
        custom_s=custom,
    )
