"""WaitForRunningPods: until so many pods of a selector run (pkg/measurement/common/wait_for_pods.go).

Upstream looks every refreshInterval (5 s); here every change is looked at, so that the wait ends when it is over.
"""

from __future__ import annotations

from harness.client.requests import PODS
from harness.client.store import Changed
from harness.clusterloader.measurements.base import Call, MeasurementError, Outcome, Selector
from harness.clusterloader.measurements.pods import PodState, PodTally, decode_pod
from harness.clusterloader.runtime import Progress
from harness.clusterloader.tasks import Signal

_TIMEOUT_S = 60.0  # defaultWaitForPodsTimeout


class WaitForRunningPods:
    async def execute(self, call: Call) -> Outcome:
        params, runtime = call.params, call.runtime
        desired = params.integer("desiredPodCount")
        selector = Selector.of(params)
        timeout_s = params.duration("timeout", _TIMEOUT_S)
        params.duration("refreshInterval", 5.0)
        fatal = params.boolean("isFatal", False)
        start = runtime.now
        tally, all_there = PodTally(), Signal()
        progress = Progress(runtime, call.step, call.identifier)

        def look(changed: Changed) -> None:
            tally.apply(changed)
            progress.report(tally[PodState.RUNNING], desired)
            if tally.all_running(desired):
                all_there.notify()

        namespace, labels, fields = selector
        informer = runtime.watch(PODS, decode_pod, look, namespace=namespace, labels=labels, fields=fields)
        passed = False
        while not passed and runtime.now < start + timeout_s:
            await runtime.tasks.either(all_there.changed, start + timeout_s)
            passed = informer.synced.done and tally.all_running(desired)
        informer.stop()
        runtime.note(
            "barrier",
            step=call.step,
            identifier=call.identifier,
            start_s=start,
            seconds=runtime.now - start,
            passed=passed,
            pods=tally.text(desired),
        )
        if not passed:
            raise MeasurementError(
                f"timed out after {timeout_s:g}s while waiting for {desired} pods to be running in {selector} - "
                f"summary of pods: {tally.text(desired)}",
                fatal=fatal,
            )
        return Outcome()

    def dispose(self) -> None:
        """Its informer ends with the call."""
