"""WaitForNodes: until between so many and so many nodes are ready, schedulable and untainted.

Mirrors pkg/measurement/common/wait_for_nodes.go and pkg/util/cluster.go: IsNodeSchedulableAndUntainted.
"""

from __future__ import annotations

from harness.client.requests import NODES
from harness.client.store import Change, Changed
from harness.clusterloader.measurements.base import Call, MeasurementError, Outcome, Selector
from harness.clusterloader.measurements.nodes import NodeView, decode_node
from harness.clusterloader.measurements.waiting import wait_for

_TIMEOUT_S = 1800.0  # defaultWaitForNodesTimeout


class _Usable:
    def __init__(self) -> None:
        self.count = 0

    def apply(self, changed: Changed) -> None:
        old: NodeView | None = changed.old
        new: NodeView | None = None if changed.change is Change.DELETED else changed.object
        self.count += (new is not None and new.usable) - (old is not None and old.usable)


class WaitForNodes:
    async def execute(self, call: Call) -> Outcome:
        params = call.params
        least, most = params.integer("minDesiredNodeCount"), params.integer("maxDesiredNodeCount")
        timeout_s = params.duration("timeout", _TIMEOUT_S)
        selector, usable = Selector.of(params), _Usable()
        passed = await wait_for(
            call,
            NODES,
            decode_node,
            selector,
            timeout_s,
            apply=usable.apply,
            count=lambda: (min(usable.count, least), least),
            done=lambda: least <= usable.count <= most,
            text=lambda: f"{usable.count} nodes",
        )
        if not passed:
            raise MeasurementError(
                f"timed out after {timeout_s:g}s while waiting for [{least}-{most}] nodes of {selector} to be ready "
                f"- there are {usable.count}"
            )
        return Outcome()

    def dispose(self) -> None:
        """Its informer ends with the call."""
