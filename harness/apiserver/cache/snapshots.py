"""The past states that a watch cache can list: which there are, as upstream keeps them, and how they are read here.

Mirrors the snapshots of as/storage/cacher (KEP-4988; watch_cache.go:303-312, 697-702, 944-957 and store/store_btree.go,
v1.36): one after each event and one of the first list; those before the oldest event of the history go while the
history is full, those before a compaction go when it is heard of, the newest included; all go, and none is made, while
the cache is known to differ from the store.

Upstream's snapshot is a lazy copy of a B-tree. Here a past state is the present with the events since undone (`Past`):
measured against copying on write in Python (chunks of 256 references, shared), which took 7 us a write and 2.5 KB an
event at 10,000 objects, 35 us and 6.9 KB at 150,000, undoing takes nothing of a write, no memory until somebody lists,
and 0.6 us for each event since, once for all pages of a list. What upstream's trees would hold is modelled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import merge
from math import log

from sortedcontainers import SortedList

from harness.apiserver.cache.cachedobject import CachedObject
from harness.apiserver.cache.watchers import CacheEvent
from harness.wire.watching import DELETED

# A B-tree of degree 16 (store.go:60) in Go, of google/btree's nodes at two thirds full: a leaf is its header and an
# array of item pointers, an inner node has one of children too, each in its size class of the allocator.
_LEAF_BYTES = 64 + 256
_INNER_BYTES = _LEAF_BYTES + 288
_TREE_BYTES = 150  # the tree's own structs, two copy-on-write contexts, and its place among the snapshots
_FAN_OUT = 21


def tree_bytes(objects: int) -> int:
    """What one snapshot holds for itself (derived): the nodes on the way to the object that the next event changed."""
    depth = max(1, 1 + int(log(max(1, objects / _FAN_OUT), _FAN_OUT) + 0.999))
    return _TREE_BYTES + _LEAF_BYTES + _INNER_BYTES * (depth - 1)


class Snapshots:
    """The revisions at which there are snapshots. `wanted` is the feature gate; `consistent` turns them off too."""

    __slots__ = ("_revisions", "consistent", "wanted")

    def __init__(self, wanted: bool = True) -> None:
        self.wanted = wanted
        self.consistent = True
        self._revisions: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._revisions)

    def covers(self, revision: int) -> bool:
        """Whether there is one at `revision` or before."""
        return bool(self._revisions) and self._revisions[0] <= revision

    def take(self, revision: int, oldest: int | None = None) -> None:
        """After an event. `oldest` is the revision of the oldest event in a history that is full."""
        if self.wanted and self.consistent:
            if oldest is not None:
                self.drop_before(oldest)
            self._revisions.append(revision)

    def restart(self, revision: int) -> None:
        """The cache was filled anew."""
        self._revisions.clear()
        self.take(revision)

    def drop_before(self, revision: int) -> None:
        revisions = self._revisions
        while revisions and revisions[0] < revision:
            revisions.popleft()

    def mark_consistent(self, consistent: bool) -> None:
        """What the consistency check found; the next event makes the first snapshot of a cache that is right again."""
        self.consistent = consistent
        if not consistent:
            self._revisions.clear()

    def size_bytes(self, objects: int) -> int:
        """What upstream's trees of so many objects would hold beside the cache and its history (modelled)."""
        return len(self._revisions) * tree_bytes(objects)


class Past:
    """How a past revision differs from the present: what each key that changed since was then.

    `gone` are the keys that were there then and are not now, `born` those the other way round.
    """

    __slots__ = ("_born", "_gone", "then", "until")

    def __init__(self, revision: int) -> None:
        self.then: dict[str, CachedObject | None] = {}
        self.until = revision  # events up to here are undone
        self._gone = SortedList()
        self._born = SortedList()

    def undo(self, events: Sequence[CacheEvent], until: int) -> None:
        """Follow the present, which these events have changed since."""
        self.until = until
        then = self.then
        last: dict[str, bool] = {}  # whether the key is there now
        for event in events:
            key = event.object.key
            if key not in then:
                then[key] = event.previous
            last[key] = event.kind is not DELETED
        gone = [key for key, there in last.items() if not there and then[key] is not None]
        born = [key for key, there in last.items() if there and then[key] is None]
        for keys, found in ((self._gone, gone), (self._born, born)):
            if keys:
                for key in last:
                    keys.discard(key)
            keys.update(found)

    def more(self, first: str, end: str) -> int:
        """How many more objects there were then than now, of those whose keys are from `first` up to before `end`."""
        return _between(self._gone, first, end) - _between(self._born, first, end)

    def walk(
        self, keys: Iterator[str], objects: dict[str, CachedObject], first: str, end: str
    ) -> Iterator[CachedObject]:
        """The objects as they were; `keys` are those of the present in that range."""
        then = self.then
        for key in merge(keys, self._gone.irange(first, end, (True, False))):
            obj = then[key] if key in then else objects[key]
            if obj is not None:
                yield obj


def _between(keys: SortedList, first: str, end: str) -> int:
    return int(keys.bisect_left(end) - keys.bisect_left(first)) if first < end else 0
