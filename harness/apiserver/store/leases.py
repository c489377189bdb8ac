"""Keys that expire: etcd's leases (server/lease/lessor.go), one for each key that was written with a time to live."""

from __future__ import annotations

from heapq import heappop, heappush


class Leases:
    """When which key is to go. The newest write of a key decides: one without a time to live makes it stay."""

    __slots__ = ("_heap", "_held")

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, float]] = {}  # mod revision, time to live in seconds
        self._heap: list[tuple[float, str, int]] = []  # some of them of writes that are no longer the newest

    def __len__(self) -> int:
        return len(self._held)

    def grant(self, key: str, revision: int, ttl_s: float, now: float) -> None:
        """The write of `key` at `revision` lasts `ttl_s` from `now` on."""
        self._held[key] = (revision, ttl_s)
        heappush(self._heap, (now + ttl_s, key, revision))

    def drop(self, key: str) -> None:
        """The key stays, or has gone by itself."""
        self._held.pop(key, None)

    def ttl_s(self, key: str) -> float:
        """What the key was given to live; 0 for ever."""
        return self._held[key][1] if key in self._held else 0.0

    def next_at(self) -> float | None:
        """When the next key is due; None if none ever is."""
        heap = self._heap
        while heap and self._stale(heap[0]):
            heappop(heap)
        return heap[0][0] if heap else None

    def due(self, now: float, limit: int) -> list[tuple[str, int]]:
        """Keys and mod revisions of what has expired, `limit` of them. Each is named once: `retry` those that could
        not be deleted."""
        found: list[tuple[str, int]] = []
        while len(found) < limit and (at := self.next_at()) is not None and at <= now:
            _, key, revision = heappop(self._heap)
            found.append((key, revision))
        return found

    def retry(self, key: str, revision: int, at: float) -> None:
        """Name the key again at `at`, if it has not been written since."""
        heappush(self._heap, (at, key, revision))

    def _stale(self, entry: tuple[float, str, int]) -> bool:
        held = self._held.get(entry[1])
        return held is None or held[0] != entry[2]
