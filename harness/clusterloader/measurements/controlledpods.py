"""WaitForControlledPodsRunning: until every controller has its pods, or is gone with them.

Mirrors pkg/measurement/common/wait_for_controlled_pods.go: start watches the controllers of one kind and the pods,
gather waits until what a LIST shows has come through the watch, and then until each controller's pods are as wanted,
at most operationTimeout after its last change. Differences: every change is looked at instead of one look each 5 s;
kind Pod is allowed and means bare pods; whether running pods have the template's newest spec is not compared
(checkIfPodsAreUpdated); a DaemonSet is skipped, and the run says so.
"""

from __future__ import annotations

from harness.client.requests import PODS, ResourceRef
from harness.client.store import Changed
from harness.clusterloader.kinds import kind_of
from harness.clusterloader.measurements.base import (
    Call,
    MeasurementError,
    Outcome,
    Selector,
    Unsupported,
    unknown_action,
)
from harness.clusterloader.measurements.controllers import (
    DEPLOYMENT,
    POD,
    ControlledPods,
    Target,
    decode_controller,
    version_of,
)
from harness.clusterloader.measurements.pods import decode_pod
from harness.clusterloader.objects import items_of
from harness.clusterloader.runtime import Informer, Progress
from harness.clusterloader.tasks import Signal

_OPERATION_TIMEOUT_S = 600.0  # defaultOperationTimeout
_SYNC_TIMEOUT_S = 60.0  # defaultSyncTimeout
_REPLICA_SETS = ResourceRef("apps", "v1", "replicasets")
_SYNC_CHECK_S = 0.05
_SHOWN = 5  # controllers that a message names


class WaitForControlledPodsRunning:
    def __init__(self) -> None:
        self._informers: list[Informer] = []
        self._all_there = Signal()
        self._progress: Progress | None = None
        self._kind = ""
        self._ref = PODS
        self._selector = Selector("", "", "")
        self._operation_timeout_s = 0.0
        self._pods = ControlledPods("")

    async def execute(self, call: Call) -> Outcome:
        action = call.params.text("action")
        if action == "start":
            await self._start(call)
        elif action == "gather":
            await self._gather(call)
        elif action == "stop":
            self.dispose()
        else:
            raise unknown_action(action, "start", "gather", "stop")
        return Outcome()

    def dispose(self) -> None:
        for informer in self._informers:
            informer.stop()
        self._informers = []

    async def _start(self, call: Call) -> None:
        if self._informers:
            return
        params, runtime = call.params, call.runtime
        api_version, self._kind = params.text("apiVersion"), params.text("kind")
        self._selector = Selector.of(params)
        self._operation_timeout_s = params.duration("operationTimeout", _OPERATION_TIMEOUT_S)
        params.boolean("checkIfPodsAreUpdated", True)
        if self._kind == "DaemonSet":
            raise Unsupported(
                "WaitForControlledPodsRunning of DaemonSets: their pods depend on node affinities"
            )
        if params.integer("countErrorMargin", 0):
            raise Unsupported("WaitForControlledPodsRunning with countErrorMargin")
        self._ref = kind_of(api_version, self._kind).ref
        self._pods = ControlledPods(self._kind)
        pods = self._pods

        def pod_changed(changed: Changed) -> None:
            pods.pod_changed(changed, runtime.now)
            self._look()

        def controller_changed(changed: Changed) -> None:
            pods.controller_changed(changed, runtime.now)
            self._look()

        namespace, labels, fields = self._selector
        if self._kind == POD:
            self._informers = [
                runtime.watch(
                    PODS, decode_pod, pod_changed, namespace=namespace, labels=labels, fields=fields
                )
            ]
        else:
            self._informers = [
                runtime.watch(
                    self._ref,
                    decode_controller,
                    controller_changed,
                    namespace=namespace,
                    labels=labels,
                    fields=fields,
                ),
                runtime.watch(PODS, decode_pod, pod_changed, namespace=namespace),
            ]
        if self._kind == DEPLOYMENT:
            self._informers.append(
                runtime.watch(_REPLICA_SETS, decode_controller, pods.replica_set_changed, namespace=namespace)
            )
        for informer in self._informers:
            await informer.synced

    async def _gather(self, call: Call) -> None:
        if not self._informers:
            raise MeasurementError("metric WaitForControlledPodsRunning has not been started")
        runtime = call.runtime
        start = runtime.now
        sync_timeout_s = call.params.duration("syncTimeout", _SYNC_TIMEOUT_S)
        failure = await self._sync(call, start + sync_timeout_s) or await self._wait(call)
        runtime.note(
            "barrier",
            step=call.step,
            identifier=call.identifier,
            start_s=start,
            seconds=runtime.now - start,
            passed=not failure,
            controllers=self._pods.existing,
        )
        if failure:
            raise MeasurementError(failure)

    async def _sync(self, call: Call, deadline: float) -> str:
        """Wait until the informer knows what a LIST shows; "" where it does, else why not."""
        runtime = call.runtime
        namespace, labels, fields = self._selector
        reply = await runtime.api.list(self._ref, namespace, labels=labels, fields=fields)
        if not reply.ok:
            return f"listing objects error: {reply.failure}"
        found = (item.metadata for item in items_of(reply))
        listed = {metadata.uid: version_of(metadata.resource_version) for metadata in found}
        while not self._pods.has_seen(listed):
            if runtime.now >= deadline:
                return f"timed out while waiting for controlled pods: the watch lacks some of {len(listed)} listed"
            await runtime.tasks.until(runtime.now + _SYNC_CHECK_S)
        return ""

    async def _wait(self, call: Call) -> str:
        """Wait for every controller; "" where all are as wanted, else which are not."""
        runtime = call.runtime
        self._progress = Progress(runtime, call.step, call.identifier)
        while self._pods.waiting_count:
            deadline = self._pods.latest_change + self._operation_timeout_s
            if runtime.now >= deadline:
                return self._timed_out(self._pods.waiting)
            await runtime.tasks.either(self._all_there.changed, deadline)
        self._progress.report(*self._pods.progress())
        self._progress = None
        return ""

    def _look(self) -> None:
        """After each change: wake the gather that waits where it is over, and say how far it is."""
        if not self._pods.waiting_count:
            self._all_there.notify()
        elif self._progress is not None and self._progress.due:
            self._progress.report(*self._pods.progress())

    def _timed_out(self, waiting: list[Target]) -> str:
        shown = "; ".join(self._pods.text(target) for target in waiting[:_SHOWN])
        more = f" and {len(waiting) - _SHOWN} more" if len(waiting) > _SHOWN else ""
        return f"{len(waiting)} objects timed out: {self._kind}s: {shown}{more}"
