"""The queue between informers and a controller's workers. client-go util/workqueue (queue.go, delaying_queue.go,
default_rate_limiters.go).

A key is worked on by one worker at a time: one added meanwhile waits until that is done. What failed comes back after
the larger of its own exponential delay and a bucket's that all keys share.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator

from harness.client.limiter import TokenBucket
from harness.client.machine import Sample

RETRY_S, RETRY_CAP_S = 0.005, 1000.0  # DefaultTypedControllerRateLimiter
_BUCKET_QPS, _BUCKET_BURST = 10.0, 100


class WorkQueue:
    """`retry_s` doubles up to `retry_cap_s`, for each key; without `bucket` that alone decides. `touched`: something
    changed since it was last cleared."""

    __slots__ = (
        "_bucket",
        "_due",
        "_failures",
        "_heap",
        "_processing",
        "_ready",
        "_retry_s",
        "_waiting",
        "touched",
    )

    def __init__(
        self, retry_s: float = RETRY_S, retry_cap_s: float = RETRY_CAP_S, *, bucket: bool = True
    ) -> None:
        self._retry_s = (retry_s, retry_cap_s)
        self._bucket = TokenBucket(_BUCKET_QPS, _BUCKET_BURST) if bucket else None
        self._ready: deque[str] = deque()
        self._waiting: set[str] = set()  # "dirty": to be worked on
        self._processing: set[str] = set()
        self._failures: dict[str, int] = {}
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self.touched = True

    def __len__(self) -> int:
        """Keys that a worker could take."""
        return len(self._ready)

    def depth(self, name: str) -> Sample:
        """What waits once no worker is free, as client-go's workqueue_depth."""
        return Sample("workqueue_depth", float(len(self._ready)), (("queue", name),))

    def add(self, key: str) -> None:
        if key in self._waiting:
            return
        self._waiting.add(key)
        if key not in self._processing:
            self._ready.append(key)
            self.touched = True

    def get(self) -> str:
        """The next key, which must be `done` later. Raises IndexError where there is none."""
        key = self._ready.popleft()
        self._waiting.discard(key)
        self._processing.add(key)
        return key

    def done(self, key: str) -> None:
        self._processing.discard(key)
        self.touched = True
        if key in self._waiting:
            self._ready.append(key)

    def add_at(self, key: str, due: float, now: float) -> None:
        """Add later; the earliest time of several counts (waitForPriorityQueue)."""
        if due <= now:
            self.add(key)
        elif due < self._due.get(key, float("inf")):
            self._due[key] = due
            self.touched = True
            heapq.heappush(self._heap, (due, key))

    def add_rate_limited(self, key: str, now: float) -> None:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        first_s, cap_s = self._retry_s
        own_s = min(first_s * 2.0 ** min(failures, 64), cap_s)
        shared_s = self._bucket.reserve(now) if self._bucket is not None else 0.0
        self.add_at(key, now + max(own_s, shared_s), now)

    def requeues(self, key: str) -> int:
        """How often the key failed since `forget`."""
        return self._failures.get(key, 0)

    def forget(self, key: str) -> None:
        self._failures.pop(key, None)

    @property
    def next_at(self) -> float | None:
        """When a delayed key is due; None where none waits."""
        heap = self._heap
        while heap and self._due.get(heap[0][1]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def wake(self, now: float) -> None:
        """Add the keys that are due."""
        for key in self._take_due(now):
            self.add(key)

    def _take_due(self, now: float) -> Iterator[str]:
        while (due := self.next_at) is not None and due <= now:
            _, key = heapq.heappop(self._heap)
            del self._due[key]
            yield key
