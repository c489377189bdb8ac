"""The state of one resource as a member's watch cache knows it: now, and at any revision within its history.

Mirrors k8s.io/apiserver pkg/storage/cacher/watch_cache.go and store/: objects in order of key, an index by the
resource's indexed field, snapshots (which `snapshots` explains).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Literal, NamedTuple

from sortedcontainers import SortedList

from harness.apiserver.cache.cachedobject import CachedObject, ObjectReader, Selection
from harness.apiserver.cache.history import History, TooOld
from harness.apiserver.cache.snapshots import Past, Snapshots
from harness.apiserver.cache.watchers import CacheEvent
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.resources import Resource
from harness.apiserver.store.core import KeyValue, StoreEvent, prefix_end
from harness.wire.watching import ADDED, DELETED, MODIFIED

Corruption = Literal["drop", "alter", "stale"]
"""An object that is missing, one whose bytes differ, one under an older resourceVersion."""

PASTS = 8  # past revisions whose difference is kept: as many paged lists as go on at a time


class Listing(NamedTuple):
    """Objects in order of key at `revision`. `more`: the limit cut; `remaining` is then how many are left, None where
    selectors make that unknown. `fetched` is how many objects were looked at, `by_index` the index used, if any."""

    items: list[CachedObject]
    revision: int
    more: bool = False
    remaining: int | None = None
    fetched: int = 0
    by_index: str = ""


class WatchCache:
    """Objects of one resource. Empty and at revision 0 until `replace`."""

    def __init__(self, resource: Resource, metrics: Metrics, snapshots: bool = True) -> None:
        self.resource = resource
        self.revision = 0
        self.size_bytes = 0  # of all bodies
        self.snapshots = Snapshots(snapshots)
        self.history = History(resource, metrics)
        self.reader = ObjectReader(resource)
        self._objects: dict[str, CachedObject] = {}
        self._keys = SortedList()
        self._by_value: dict[str, dict[str, CachedObject]] = {}
        self._pasts: dict[int, Past] = {}  # by revision, the least recently used first

    def __len__(self) -> int:
        return len(self._objects)

    def replace(self, kvs: list[KeyValue], revision: int) -> None:
        """Start over from a list of the store."""
        self._objects.clear()
        self._by_value.clear()
        self._pasts.clear()
        self.size_bytes = 0
        for kv in kvs:
            obj = self.reader.read(kv.key, kv.value, kv.mod_revision)
            self._objects[kv.key] = obj
            self.size_bytes += len(obj.body)
            self._index(None, obj)
        self._keys = SortedList(self._objects)
        self.revision = revision
        self.history.reset(revision)
        self.snapshots.restart(revision)

    def apply(self, event: StoreEvent, now: float) -> CacheEvent | None:
        """Take one write of the store; None for the deletion of what is not here."""
        self.revision = event.revision
        previous = self._objects.get(event.key)
        if event.value is None:
            if previous is None:
                return None
            change = CacheEvent(DELETED, previous.at_revision(event.revision), previous, event.revision)
            del self._objects[event.key]
            self._keys.remove(event.key)
            self.size_bytes -= len(previous.body)
            self._index(previous, None)
        else:
            obj = self.reader.read(event.key, event.value, event.revision)
            change = CacheEvent(ADDED if previous is None else MODIFIED, obj, previous, event.revision)
            self._objects[event.key] = obj
            if previous is None:
                self._keys.add(event.key)
                self.size_bytes += len(obj.body)
            else:
                self.size_bytes += len(obj.body) - len(previous.body)
            self._index(previous, obj)
        history = self.history
        history.add(change, now)
        self.snapshots.take(event.revision, history.first if history.full else None)
        return change

    def get(self, key: str) -> CachedObject | None:
        return self._objects.get(key)

    def list(self, selection: Selection, limit: int = 0, start_key: str = "") -> Listing:
        """What is selected now, from `start_key` on."""
        if selection.name and (not self.resource.namespaced or selection.namespace):
            return self._single(self._objects.get(self._key(selection)), selection, self.revision)
        value = selection.required(self.resource.index) if self.resource.index and not start_key else None
        if value is not None:
            found = self._by_value.get(value, {})
            items = [found[key] for key in sorted(found) if selection.matches(found[key])]
            return self._limited(
                iter(items), selection, limit, self.revision, len(found), self.resource.index
            )
        first, end = self._bounds(selection, start_key)
        objects = self._objects
        present = map(objects.__getitem__, self._keys.irange(first, end, (True, False)))
        total = self._keys.bisect_left(end) - self._keys.bisect_left(first)
        return self._limited(present, selection, limit, self.revision, total)

    def list_at(self, revision: int, selection: Selection, limit: int = 0, start_key: str = "") -> Listing:
        """What was selected at `revision`, which is at most the present one. Raises TooOld where no snapshot has it."""
        past = self._past(revision)
        first, end = self._bounds(selection, start_key)
        keys = self._keys.irange(first, end, (True, False))
        total = self._keys.bisect_left(end) - self._keys.bisect_left(first)
        if not past.then:
            return self._limited(map(self._objects.__getitem__, keys), selection, limit, revision, total)
        objects = past.walk(keys, self._objects, first, end)
        return self._limited(objects, selection, limit, revision, total + past.more(first, end))

    def compact(self, revision: int) -> None:
        """The store has forgotten what was before `revision`; so do snapshots."""
        self.snapshots.drop_before(revision)

    def mark_consistent(self, consistent: bool) -> None:
        """Whether this is what the store has, as far as anybody has checked."""
        self.snapshots.mark_consistent(consistent)

    def corrupt(self, how: Corruption, rng: Random) -> str:
        """Spoil a random object without anybody being told; its key, "" where there is none."""
        if not self._keys:
            return ""
        obj = self._objects[self._keys[rng.randrange(len(self._keys))]]
        key = obj.key
        if how == "drop":
            del self._objects[key]
            self._keys.remove(key)
            self.size_bytes -= len(obj.body)
            self._index(obj, None)
            return key
        spoilt = obj.at_revision(max(1, obj.revision - 1)) if how == "stale" else obj.altered()
        self._objects[key] = spoilt
        self.size_bytes += len(spoilt.body) - len(obj.body)
        self._index(obj, spoilt)
        return key

    def validate(self) -> None:
        """Assert what must hold between calls."""
        assert list(self._keys) == sorted(self._objects), "keys and objects differ"
        assert self.size_bytes == sum(len(obj.body) for obj in self._objects.values()), "size is wrong"
        if self.resource.index:
            indexed = {key: obj for found in self._by_value.values() for key, obj in found.items()}
            assert indexed == self._objects, "index and objects differ"
        self.history.validate()

    # ---- helpers
    def _key(self, selection: Selection) -> str:
        return self.resource.key(selection.namespace, selection.name)

    def _bounds(self, selection: Selection, start_key: str) -> tuple[str, str]:
        prefix = self.resource.prefix
        if selection.namespace and self.resource.namespaced:
            prefix = f"{prefix}{selection.namespace}/"
        end = prefix_end(prefix)
        return min(max(prefix, start_key), end), end

    def _index(self, previous: CachedObject | None, obj: CachedObject | None) -> None:
        field = self.resource.index
        if not field:
            return
        if previous is not None:
            value = previous.field(field)
            if obj is None or obj.field(field) != value:
                found = self._by_value[value]
                del found[previous.key]
                if not found:
                    del self._by_value[value]
        if obj is not None:
            self._by_value.setdefault(obj.field(field), {})[obj.key] = obj

    def _past(self, revision: int) -> Past:
        if not self.snapshots.covers(revision):
            self._pasts.pop(revision, None)
            raise TooOld(revision, self.history.oldest)
        past = self._pasts.pop(revision, None) or Past(revision)
        self._pasts[revision] = past
        if len(self._pasts) > PASTS:
            del self._pasts[next(iter(self._pasts))]
        if past.until < self.revision:
            past.undo(self.history.since(past.until), self.revision)
        return past

    @staticmethod
    def _single(obj: CachedObject | None, selection: Selection, revision: int) -> Listing:
        items = [obj] if obj is not None and selection.matches(obj) else []
        return Listing(items, revision, fetched=int(obj is not None))

    def _limited(
        self,
        objects: Iterator[CachedObject],
        selection: Selection,
        limit: int,
        revision: int,
        total: int,
        index: str = "",
    ) -> Listing:
        """The first `limit` that are selected, of `total` that there are."""
        everything = selection.everything and not selection.name
        if not limit:
            items = list(objects) if everything else [obj for obj in objects if selection.matches(obj)]
            return Listing(items, revision, fetched=total, by_index=index)
        items = list(islice(objects, limit)) if everything else []
        seen = len(items)
        for obj in () if everything else objects:
            seen += 1
            if selection.matches(obj):
                items.append(obj)
                if len(items) == limit:
                    break
        more = seen < total
        remaining = total - seen if more and selection.unselected else None
        return Listing(items, revision, more, remaining, total, index)
