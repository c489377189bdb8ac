"""WaitForRunningPods: until so many pods of a selector run (pkg/measurement/common/wait_for_pods.go)."""

from __future__ import annotations

from harness.client.requests import PODS
from harness.clusterloader.measurements.base import Call, MeasurementError, Outcome, Selector
from harness.clusterloader.measurements.pods import PodState, PodTally, decode_pod
from harness.clusterloader.measurements.waiting import wait_for

_TIMEOUT_S = 60.0  # defaultWaitForPodsTimeout


class WaitForRunningPods:
    async def execute(self, call: Call) -> Outcome:
        params = call.params
        desired = params.integer("desiredPodCount")
        selector = Selector.of(params)
        timeout_s = params.duration("timeout", _TIMEOUT_S)
        tally = PodTally()
        passed = await wait_for(
            call,
            PODS,
            decode_pod,
            selector,
            timeout_s,
            apply=tally.apply,
            count=lambda: (tally[PodState.RUNNING], desired),
            done=lambda: tally.all_running(desired),
            text=lambda: tally.text(desired),
        )
        if not passed:
            raise MeasurementError(
                f"timed out after {timeout_s:g}s while waiting for {desired} pods to be running in {selector} - "
                f"summary of pods: {tally.text(desired)}",
                fatal=params.boolean("isFatal", False),
            )
        return Outcome()

    def dispose(self) -> None:
        """Its informer ends with the call."""
