"""Nodes that are Ready: what a test waits for before it begins, where the fleet still registers."""

from __future__ import annotations

import msgspec

from harness.client.requests import ResourceRef
from harness.client.store import Change, Changed, Decode, ObjectMeta, decoder_for
from harness.clusterloader.measurements.pods import Condition
from harness.clusterloader.runtime import Progress, Runtime
from harness.clusterloader.tasks import Signal

_EFFECTS = ("NoSchedule", "NoExecute")
_BUILT_IN = frozenset(
    {
        *(
            f"node.kubernetes.io/{name}"
            for name in (
                "not-ready",
                "unreachable",
                "unschedulable",
                "memory-pressure",
                "disk-pressure",
                "network-unavailable",
                "pid-pressure",
                "out-of-service",
            )
        ),
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
    }
)
"""Taints of Kubernetes' own (pkg/util/cluster.go: builtInTaintsKeys)."""

_UNTIL_READY = ("node.kubernetes.io/not-ready", "NoSchedule")


class Taint(msgspec.Struct, gc=False):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(msgspec.Struct, gc=False):
    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeMeta(ObjectMeta, gc=False):
    labels: dict[str, str] | None = None


class NodeStatus(msgspec.Struct, gc=False):
    conditions: list[Condition] = []


class NodeView(msgspec.Struct, gc=False):
    metadata: NodeMeta = msgspec.field(default_factory=NodeMeta)
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    @property
    def ready(self) -> bool:
        return any(item.type == "Ready" and item.status == "True" for item in self.status.conditions)

    @property
    def keeping_away(self) -> list[Taint]:
        """Taints because of which a pod that does not tolerate them is not here. Without the one that admission gives
        every new node, where the node says that it is ready: only a node lifecycle controller would take that away, and
        a target without a controller manager has none."""
        return [
            taint
            for taint in self.spec.taints or ()
            if taint.effect in _EFFECTS and not (self.ready and (taint.key, taint.effect) == _UNTIL_READY)
        ]

    @property
    def usable(self) -> bool:
        """Ready, schedulable and without a built-in taint that keeps pods away (pkg/util/cluster.go)."""
        conditions = self.status.conditions
        cut_off = any(item.type == "NetworkUnavailable" and item.status == "True" for item in conditions)
        tainted = any(taint.key in _BUILT_IN for taint in self.keeping_away)
        return self.ready and not self.spec.unschedulable and not cut_off and not tainted


decode_node: Decode = decoder_for(NodeView)


class ReadyNodes:
    """Counts Ready nodes as an informer shows them."""

    def __init__(self) -> None:
        self._ready = 0

    async def wait(self, runtime: Runtime, ref: ResourceRef, wanted: int, timeout_s: float) -> str:
        """Until `wanted` nodes are Ready; "" or why not in `timeout_s`."""
        enough = Signal()
        start = runtime.now
        progress = Progress(runtime, "nodes ready", "nodes")

        def look(changed: Changed) -> None:
            self._apply(changed)
            progress.report(min(self._ready, wanted), wanted)
            if self._ready >= wanted:
                enough.notify()

        informer = runtime.watch(ref, decode_node, look)
        while self._ready < wanted and runtime.now < start + timeout_s:
            await runtime.tasks.either(enough.changed, start + timeout_s)
        informer.stop()
        runtime.note("nodes-ready", ready=self._ready, wanted=wanted, seconds=runtime.now - start)
        if self._ready < wanted:
            return f"only {self._ready} of {wanted} nodes were Ready after {timeout_s:g}s"
        return ""

    def _apply(self, changed: Changed) -> None:
        if changed.old is not None and changed.old.ready:
            self._ready -= 1
        if changed.change is not Change.DELETED and changed.object is not None and changed.object.ready:
            self._ready += 1
