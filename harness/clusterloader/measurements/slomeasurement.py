"""SLOMeasurement: a bundle of two (cl2/pkg/measurement/common/slos/slo_measurement.go).

Of its parts SchedulingThroughputPrometheus is done where there is a Prometheus; DnsLookupLatency is skipped under its
own name. ``overrides`` of a part replace its parameters.
"""

from __future__ import annotations

from harness.clusterloader.measurements.base import Call, Outcome, Unsupported
from harness.clusterloader.measurements.prometheus import maker
from harness.clusterloader.measurements.schedulerqueries import SchedulingThroughput
from harness.clusterloader.measurements.skipped import reason

_SKIPPED_PART = "DnsLookupLatency"
_PART = SchedulingThroughput.METHOD


class SLOMeasurement:
    def __init__(self) -> None:
        self._throughput = maker(_PART, SchedulingThroughput)()
        self._told = False

    async def execute(self, call: Call) -> Outcome:
        if not self._told:
            self._told = True
            call.skip(f"SLOMeasurement {_SKIPPED_PART}", reason(_SKIPPED_PART))
        params = call.params
        overrides = params.mapping("overrides")
        own = overrides.mapping(_PART) if overrides is not None else None
        if own is not None:
            params = params.with_(**own.given)
        try:
            outcome = await self._throughput.execute(call._replace(params=params))
        except Unsupported as error:
            raise Unsupported(f"{_PART}: {error}") from error
        if outcome.skipped:
            return outcome._replace(skipped=f"{_PART}: {outcome.skipped}")
        return outcome

    def dispose(self) -> None:
        self._throughput.dispose()
