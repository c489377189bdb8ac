"""How many replicas of each object there are (clusterloader2/pkg/state)."""

from __future__ import annotations

from typing import NamedTuple


class Instances(NamedTuple):
    """The identity of a group of objects: one namespace, one basename, one kind."""

    namespace: str
    basename: str
    kind: str
    group: str


class ObjectState:
    """Replica counts, kept over all steps of a test."""

    def __init__(self) -> None:
        self._counts: dict[Instances, int] = {}

    def get(self, instances: Instances) -> int | None:
        """None where no phase has touched them yet."""
        return self._counts.get(instances)

    def set(self, instances: Instances, count: int) -> None:
        self._counts[instances] = count
