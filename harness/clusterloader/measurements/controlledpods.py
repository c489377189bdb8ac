"""WaitForControlledPodsRunning: until every controller has its pods, or is gone with them.

Mirrors pkg/measurement/common/wait_for_controlled_pods.go: start watches the controllers of one kind and the pods,
gather waits until what a LIST shows has come through the watch, and then until each controller's pods are as wanted,
at most operationTimeout after its last change. Differences: every change is looked at instead of one look each 5 s;
kind Pod is allowed and means bare pods; what pods of a changed template are to be waited for (checkIfPodsAreUpdated)
is taken from their controller's status.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.client.requests import NODES, PODS, ResourceRef
from harness.client.store import Changed, Decode
from harness.clusterloader.kinds import kind_of
from harness.clusterloader.measurements.base import (
    Call,
    MeasurementError,
    Outcome,
    Params,
    Selector,
    unknown_action,
)
from harness.clusterloader.measurements.controllers import (
    DAEMON_SET,
    DEPLOYMENT,
    POD,
    ControlledPods,
    Target,
    decode_controller,
    version_of,
)
from harness.clusterloader.measurements.daemonsets import WantedNodes, decode_daemon_set
from harness.clusterloader.measurements.nodes import decode_node
from harness.clusterloader.measurements.pods import decode_pod
from harness.clusterloader.objects import items_of
from harness.clusterloader.runtime import Informer, Progress, Runtime
from harness.clusterloader.tasks import Signal

_OPERATION_TIMEOUT_S = 600.0  # defaultOperationTimeout
_SYNC_TIMEOUT_S = 60.0  # defaultSyncTimeout
_REPLICA_SETS = ResourceRef("apps", "v1", "replicasets")
_SYNC_CHECK_S = 0.05
_SHOWN = 5  # controllers that a message names


def controlled(params: Params) -> list[ResourceRef]:
    """What a start looks at; other actions look at nothing more."""
    kind = params.text("kind", "")
    if not kind:
        return []
    refs = [kind_of(params.text("apiVersion"), kind).ref, PODS]
    if kind == DAEMON_SET:
        refs.append(NODES)
    if kind == DEPLOYMENT:
        refs.append(_REPLICA_SETS)
    return refs


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
        updated = params.boolean("checkIfPodsAreUpdated", True)
        margin = params.integer("countErrorMargin", 0)
        self._ref = kind_of(api_version, self._kind).ref
        if self._kind == DAEMON_SET:
            await self._start_daemon_sets(runtime, margin, updated)
            return
        self._pods = ControlledPods(self._kind, None, margin, updated)
        if self._kind != POD:
            self._watch_controllers(runtime, decode_controller)
        self._watch_pods(runtime)
        if self._kind == DEPLOYMENT:
            self._watch(runtime, _REPLICA_SETS, decode_controller, self._pods.replica_set_changed)
        for informer in self._informers:
            await informer.synced

    async def _start_daemon_sets(self, runtime: Runtime, margin: int, updated: bool) -> None:
        """Nodes first: how many pods a DaemonSet wants is their number."""
        nodes = WantedNodes()
        self._pods = ControlledPods(self._kind, nodes.count, margin, updated)

        def node_changed(changed: Changed) -> None:
            for uid, desired in nodes.node_changed(changed).items():
                self._pods.desired_changed(uid, desired)
            self._look()

        self._informers.append(runtime.watch(NODES, decode_node, node_changed))
        await self._informers[0].synced
        self._watch_controllers(runtime, decode_daemon_set)
        self._watch_pods(runtime)
        for informer in self._informers:
            await informer.synced

    def _watch_controllers(self, runtime: Runtime, decode: Decode) -> None:
        _, labels, fields = self._selector
        self._watch(
            runtime,
            self._ref,
            decode,
            lambda changed: self._pods.controller_changed(changed, runtime.now),
            labels,
            fields,
        )

    def _watch_pods(self, runtime: Runtime) -> None:
        """The pods of any controller; bare pods by the selector."""
        _, labels, fields = self._selector if self._kind == POD else Selector("", "", "")
        self._watch(
            runtime,
            PODS,
            decode_pod,
            lambda changed: self._pods.pod_changed(changed, runtime.now),
            labels,
            fields,
        )

    def _watch(
        self,
        runtime: Runtime,
        ref: ResourceRef,
        decode: Decode,
        apply: Callable[[Changed], None],
        labels: str = "",
        fields: str = "",
    ) -> None:
        """An informer in the selector's namespace, after whose every change we look how far things are."""

        def changed(change: Changed) -> None:
            apply(change)
            self._look()

        namespace = self._selector.namespace
        self._informers.append(
            runtime.watch(ref, decode, changed, namespace=namespace, labels=labels, fields=fields)
        )

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
