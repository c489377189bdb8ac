"""APIResponsivenessPrometheus: the SLO of API calls, between two moments of a test.

The figures are the members' own histograms, which the run's scraper keeps; no worker sees them. So gather says which
time and which limits are meant (a `slo-window` note), and who owns the record computes it at the end of the run
(`harness.clusterloader.slo`). Where there is a Prometheus, upstream's queries are asked, and theirs is the summary of
upstream's name and the verdict; the run's own then stands beside it as ``<summary>_scraped``, and for each member.
"""

from __future__ import annotations

import msgspec

from harness.clusterloader.measurements import sloqueries
from harness.clusterloader.measurements.base import Call, MeasurementError, Outcome, Result, unknown_action
from harness.clusterloader.measurements.prometheus import Window
from harness.clusterloader.slo import (
    SINGLE_RESOURCE_S,
    Limits,
    custom_limits,
    figures,
    perf_data,
    violations,
)


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
            return await self._gather(call, Window(runtime, self._start_s, runtime.wall_s))
        else:
            raise unknown_action(action, "start", "gather")
        return Outcome()

    async def _gather(self, call: Call, window: Window) -> Outcome:
        limits = _limits(call)
        if not call.runtime.prometheus:
            _leave_to_the_record(call, window, limits)
            return Outcome()
        try:
            found = await sloqueries.latencies(window, simple=limits.simple)
        except MeasurementError:
            _leave_to_the_record(call, window, limits)
            raise
        if not found:
            lacking = (
                "the members' histograms" if limits.simple else f"the recording rule {sloqueries.RECORDED}"
            )
            message = (
                f"{call.identifier}: Prometheus has no samples of {lacking}; the run's own scrapes are used"
            )
            call.runtime.note("warning", message=message)
            _leave_to_the_record(call, window, limits)
            return Outcome()
        beside = msgspec.structs.replace(limits, name=f"{limits.name}_scraped", enforced=False)
        _leave_to_the_record(call, window, beside)
        missed = violations(found, limits) if limits.enforced else []
        result = Result(limits.name, dict(figures(found)), perf_data(found))
        return Outcome((result,), f"top latency metric: {'; '.join(missed)}" if missed else "")

    def dispose(self) -> None:
        """Nothing runs."""


def _leave_to_the_record(call: Call, window: Window, limits: Limits) -> None:
    call.runtime.note(
        "slo-window",
        identifier=call.identifier,
        step=call.step,
        from_s=window.since_s,
        until_s=window.until_s,
        limits=msgspec.to_builtins(limits),
    )


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
