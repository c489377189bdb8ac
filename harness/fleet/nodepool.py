"""Nodes by how many pods they have: the least loaded is found without looking at all of them."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random


class PooledNode:
    """One node as a scheduler sees it. `pods` counts the bound and the assumed ones; `capacity` bounds it."""

    __slots__ = ("capacity", "labels", "name", "place", "pods", "usable")

    def __init__(self, name: str) -> None:
        self.name = name
        self.labels: Mapping[str, str] = {}
        self.capacity = 0
        self.usable = False  # ready, not cordoned, not tainted
        self.pods = 0
        self.place = -1  # where it stands in its bucket; -1 while it can take no pod


class NodePool:
    """Buckets of nodes with the same number of pods; only nodes that can take one more are in a bucket."""

    __slots__ = ("_buckets", "_nodes", "_rng")

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._nodes: dict[str, PooledNode] = {}
        self._buckets: list[list[PooledNode]] = []

    def __len__(self) -> int:
        return len(self._nodes)

    def update(self, name: str, usable: bool, capacity: int, labels: Mapping[str, str]) -> bool:
        """Take a node's state; True where it can take a pod now and could not before, or has other labels."""
        node = self._node(name)
        could = node.place >= 0
        self._leave(node)
        changed = node.labels != labels
        node.usable, node.capacity, node.labels = usable, capacity, labels
        self._enter(node)
        return node.place >= 0 and (not could or changed)

    def remove(self, name: str) -> None:
        """The node is gone; its pods are still counted, should it come back."""
        node = self._nodes.get(name)
        if node is not None:
            self._leave(node)
            node.usable = False
            if node.pods == 0:
                del self._nodes[name]

    def count(self, name: str, difference: int) -> None:
        """Pods were put on the node, or taken from it."""
        node = self._node(name)
        self._leave(node)
        node.pods += difference
        self._enter(node)

    def choose(self, selector: Mapping[str, str]) -> str | None:
        """A node with the fewest pods of those that match, ties by lot; None where none can take a pod."""
        for bucket in self._buckets:
            if not bucket:
                continue
            if not selector:
                return self._rng.choice(bucket).name
            fitting = [node for node in bucket if selector.items() <= node.labels.items()]
            if fitting:
                return self._rng.choice(fitting).name
        return None

    def counts(self) -> dict[str, int]:
        """Pods of each node that has any."""
        return {name: node.pods for name, node in self._nodes.items() if node.pods}

    def validate(self) -> None:
        """Check what must hold between two calls."""
        for pods, bucket in enumerate(self._buckets):
            for place, node in enumerate(bucket):
                assert (node.pods, node.place) == (pods, place)
                assert node.usable
                assert pods < node.capacity
        placed = sum(len(bucket) for bucket in self._buckets)
        assert placed == sum(node.place >= 0 for node in self._nodes.values())

    def _node(self, name: str) -> PooledNode:
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = PooledNode(name)
        return node

    def _enter(self, node: PooledNode) -> None:
        if node.usable and node.pods < node.capacity:
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
