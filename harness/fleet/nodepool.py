"""Nodes by how many pods they have: the least loaded is found without looking at all of them."""

from __future__ import annotations

from collections import Counter
from random import Random

from harness.fleet.schedulable import CORDONED, Demand, NodeState

_NOTHING = NodeState()


class PooledNode:
    """One node as a scheduler sees it. `pods`, `cpu_m` and `memory_bytes` are of the bound and the assumed pods."""

    __slots__ = ("cpu_m", "memory_bytes", "name", "place", "pods", "state")

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = _NOTHING
        self.pods = 0
        self.cpu_m = 0
        self.memory_bytes = 0
        self.place = -1  # where it stands in its bucket; -1 while it can take no pod

    def takes(self, demand: Demand) -> bool:
        """Whether a pod may go there; the number of pods is not asked, as a full node is in no bucket."""
        return self.refusal(demand) is None

    def refusal(self, demand: Demand) -> str | None:
        """Why not, in kube-scheduler's words; None where it may. In the order of its plugins."""
        state = self.state
        if state.taints and not demand.placing.tolerates(state.taints):
            if CORDONED in state.taints and not demand.placing.tolerates((CORDONED,)):
                return "node(s) were unschedulable"
            taint = next(each for each in state.taints if not demand.placing.tolerates((each,)))
            value = f": {taint.value}" if taint.value else ":"
            return f"node(s) had untolerated taint {{{taint.key}{value} }}".replace(" }", "}")
        if not demand.anything and not demand.placing.wants(self.name, state.labels):
            return "node(s) didn't match Pod's node affinity/selector"
        if state.cpu_m is not None and demand.cpu_m and self.cpu_m + demand.cpu_m > state.cpu_m:
            return "Insufficient cpu"
        free = None if state.memory_bytes is None else state.memory_bytes - self.memory_bytes
        if free is not None and demand.memory_bytes and demand.memory_bytes > free:
            return "Insufficient memory"
        return None


class NodePool:
    """Buckets of nodes with the same number of pods; only ready nodes that can take one more are in a bucket."""

    __slots__ = ("_buckets", "_nodes", "_rng")

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._nodes: dict[str, PooledNode] = {}
        self._buckets: list[list[PooledNode]] = []

    def __len__(self) -> int:
        return len(self._nodes)

    def update(self, name: str, state: NodeState) -> bool:
        """Take a node's state; True where it can take a pod now and could not before, or differs in what pods ask."""
        node = self._node(name)
        could = node.place >= 0
        self._leave(node)
        changed = node.state != state
        node.state = state
        self._enter(node)
        return node.place >= 0 and (not could or changed)

    def remove(self, name: str) -> None:
        """The node is gone; its pods are still counted, should it come back."""
        node = self._nodes.get(name)
        if node is not None:
            self._leave(node)
            node.state = _NOTHING
            if node.pods == 0:
                del self._nodes[name]

    def count(self, name: str, difference: int, demand: Demand) -> None:
        """A pod was put on the node (1), or taken from it (-1)."""
        node = self._node(name)
        self._leave(node)
        node.pods += difference
        node.cpu_m += difference * demand.cpu_m
        node.memory_bytes += difference * demand.memory_bytes
        self._enter(node)

    def choose(self, demand: Demand) -> str | None:
        """A node with the fewest pods of those that fit, ties by lot; None where none can take the pod."""
        if demand.only:
            node = self._nodes.get(demand.only)
            return node.name if node is not None and node.place >= 0 and node.takes(demand) else None
        for bucket in self._buckets:
            if not bucket:
                continue
            lot = self._rng.choice(bucket)
            if lot.takes(demand):
                return lot.name
            fitting = [node for node in bucket if node.takes(demand)]
            if fitting:
                return self._rng.choice(fitting).name
        return None

    def explain(self, demand: Demand) -> str:
        """Why a pod fits nowhere, as a FailedScheduling event says it (fitError.Error)."""
        reasons: Counter[str] = Counter()
        for node in self._nodes.values():
            if not node.state.usable:
                reasons["node(s) were not ready"] += 1
            else:
                reasons[node.refusal(demand) or "Too many pods"] += 1
        texts = sorted(f"{count} {reason}" for reason, count in reasons.items())
        detail = f": {', '.join(texts)}." if texts else "."
        if not self._nodes:
            return "no nodes available to schedule pods"
        return f"0/{len(self._nodes)} nodes are available{detail}"

    def counts(self) -> dict[str, int]:
        """Pods of each node that has any."""
        return {name: node.pods for name, node in self._nodes.items() if node.pods}

    def validate(self) -> None:
        """Check what must hold between two calls."""
        for pods, bucket in enumerate(self._buckets):
            for place, node in enumerate(bucket):
                assert (node.pods, node.place) == (pods, place)
                assert node.state.usable
                assert pods < node.state.capacity
        placed = sum(len(bucket) for bucket in self._buckets)
        assert placed == sum(node.place >= 0 for node in self._nodes.values())

    def _node(self, name: str) -> PooledNode:
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = PooledNode(name)
        return node

    def _enter(self, node: PooledNode) -> None:
        if node.state.usable and node.pods < node.state.capacity:
            while len(self._buckets) <= node.pods:
                self._buckets.append([])
            bucket = self._buckets[node.pods]
            node.place = len(bucket)
            bucket.append(node)

    def _leave(self, node: PooledNode) -> None:
        if node.place >= 0:
            bucket = self._buckets[node.pods]
            last = bucket.pop()
            if last is not node:
                bucket[node.place] = last
                last.place = node.place
            node.place = -1
