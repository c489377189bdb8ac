"""How many objects there are and how large, for the metrics.

Mirrors k8s.io/apiserver pkg/registry/generic/registry/store.go (startObservingCount) and
pkg/storage/etcd3/metrics/metrics.go (UpdateStoreStats).
"""

from __future__ import annotations

from random import Random

from harness.apiserver.clock import Clock
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.resources import Resource

COUNT_PERIOD_S = 60.0
COUNT_JITTER = (
    1.2  # the next look is once to 2.2 times the period away (store.go: resourceCountPollPeriodJitter)
)
UNKNOWN = -1.0


class ObjectCounts:
    """The series of one resource, and when to look again: at once, then each minute or two."""

    def __init__(self, resource: Resource, clock: Clock, metrics: Metrics, rng: Random) -> None:
        labels = (resource.group, resource.resource)
        self._clock = clock
        self._rng = rng
        self._at = 0.0
        self._stored = metrics.apiserver_storage_objects.labels(resource.group_resource)
        self._objects = metrics.apiserver_resource_objects.labels(*labels)
        self._sizes = metrics.apiserver_resource_size_estimate_bytes.labels(*labels)

    @property
    def due(self) -> bool:
        return self._clock.now() >= self._at

    def publish(self, objects: float, size_bytes: float) -> None:
        self._stored.set(objects)
        self._objects.set(objects)
        self._sizes.set(size_bytes)
        self._at = self._clock.now() + self.next_in_s()

    def unknown(self) -> None:
        """The store did not say."""
        self.publish(UNKNOWN, UNKNOWN)

    def next_in_s(self) -> float:
        return COUNT_PERIOD_S * (1 + COUNT_JITTER * self._rng.random())
