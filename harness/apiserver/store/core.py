"""What etcd stores, without its network, disk or time: keys, versions, a revision for each write, history, compaction.

Mirrors etcd's MVCC (server/storage/mvcc): the revision starts at 1, every successful write adds one, reads may ask for
any revision that is not compacted, and the events since a revision can be read back. Values are opaque bytes; the
apiserver stores JSON objects without metadata.resourceVersion. Pure: no clock, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice

import msgspec
from sortedcontainers import SortedList

from harness.apiserver.store.leases import Leases

ABSENT = 0
"""As `Txn.expected`: the key must not exist."""


class StoreError(Exception):
    """No answer from the store; str() is what etcd's client says, which upstream passes on in a 500."""


class StoreUnavailable(StoreError):
    """There is no store: its process has gone, or cannot be reached."""


class StoreTimeout(StoreError):
    """No quorum, or no leader in time (etcdserver: ErrTimeout and its kin)."""


class Compacted(StoreError):
    """The revision asked for is no longer kept."""

    def __init__(self, requested: int, compacted: int) -> None:
        super().__init__("etcdserver: mvcc: required revision has been compacted")
        self.requested = requested
        self.compacted = compacted


class FutureRevision(StoreError):
    """The revision asked for is yet to come."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__("etcdserver: mvcc: required revision is a future revision")
        self.requested = requested
        self.current = current


class KeyValue(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One version of a key. `create_revision` is that of its first version since it was last absent."""

    key: str
    value: bytes
    create_revision: int
    mod_revision: int


class StoreEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One write: `value` is None for a deletion; `previous` is the value before, None for a creation.

    A subscriber gets `previous` only for the prefixes it asked it for.
    """

    revision: int
    key: str
    value: bytes | None
    create_revision: int
    previous: bytes | None = None

    @property
    def created(self) -> bool:
        return self.create_revision == self.revision


class Txn(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One write on a condition. `value` None deletes. `expected` is the mod revision that the key must have: None
    means whatever it has, 0 (`ABSENT`) that it must not exist. `ttl_s`: how long the value lasts, 0 for ever; the
    store then deletes it, unless it is written again before."""

    key: str
    value: bytes | None
    expected: int | None = None
    ttl_s: float = 0.0


class TxnResult(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`revision` is the write's own, or the store's where the condition failed; `current` is then what stands."""

    succeeded: bool
    revision: int
    current: KeyValue | None = None


class GetResult(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`kv` None: no such key at `revision`."""

    kv: KeyValue | None
    revision: int


class RangeResult(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Keys in order at `revision`; `count` is how many there are from the start key on, beyond the limit too."""

    kvs: list[KeyValue]
    count: int
    revision: int

    @property
    def more(self) -> bool:
        return self.count > len(self.kvs)


class HistoryResult(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Events in order of revision; `revision` is how far they reach."""

    events: list[StoreEvent]
    revision: int


class SavedKey(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A key as a snapshot has it: its versions as (value, create revision, mod revision), value None where it was
    deleted; `ttl_s` is the newest one's time to live."""

    key: str
    ttl_s: float
    versions: list[tuple[bytes | None, int, int]]


class _Tombstone(msgspec.Struct, frozen=True, gc=False):
    mod_revision: int


class StoreCore:
    """The keys and their history."""

    def __init__(self) -> None:
        self.revision = 1
        self.compacted = 0
        self.size_bytes = 0  # of all live keys and values
        self.leases = Leases()
        self._versions: dict[str, list[KeyValue | _Tombstone]] = {}
        self._live = SortedList()
        self._dead = SortedList()  # deleted, with history
        self._log: list[StoreEvent] = []
        self._log_base = 2  # revision of _log[0]

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self._live)

    def txn(self, txn: Txn, now: float = 0.0) -> tuple[TxnResult, StoreEvent | None]:
        """Write if the condition holds. The event is None where nothing was written; deleting an absent key fails.
        A time to live is counted from `now`."""
        current = self._current(txn.key)
        holds = txn.expected is None or txn.expected == (current.mod_revision if current else ABSENT)
        if not holds or (txn.value is None and current is None):
            return TxnResult(False, self.revision, current), None
        self.revision += 1
        event = (
            self._put(txn.key, txn.value, current)
            if txn.value is not None
            else self._delete(txn.key, current)
        )
        self._log.append(event)
        if txn.ttl_s and txn.value is not None:
            self.leases.grant(txn.key, self.revision, txn.ttl_s, now)
        elif self.leases:
            self.leases.drop(txn.key)
        return TxnResult(True, self.revision), event

    def get(self, key: str, revision: int = 0) -> GetResult:
        """The key at `revision`; 0 is now. Raises Compacted or FutureRevision."""
        at = self._check(revision)
        return GetResult(self._at(key, at), at)

    def range(self, prefix: str, start_key: str = "", limit: int = 0, revision: int = 0) -> RangeResult:
        """Keys with `prefix` from `start_key` on, `limit` of them (0: all). Raises Compacted or FutureRevision."""
        at = self._check(revision)
        first, end = max(prefix, start_key), prefix_end(prefix)
        found: Iterator[KeyValue] = self._iterate(first, end, at)
        kvs = list(islice(found, limit)) if limit else list(found)
        return RangeResult(kvs, self._count(first, end, at) if limit else len(kvs), at)

    def count(self, prefix: str) -> int:
        return self._count(prefix, prefix_end(prefix), self.revision)

    def events(self, after: int, until: int | None = None) -> list[StoreEvent]:
        """All events with a revision greater than `after`, up to and including `until`. Raises Compacted."""
        if after < self.compacted:
            raise Compacted(after, self.compacted)
        end = None if until is None else max(0, until + 1 - self._log_base)
        return self._log[max(0, after + 1 - self._log_base) : end]

    def compact(self, revision: int) -> None:
        """Forget what is needed only to read before `revision`; no effect if already compacted. Raises
        FutureRevision."""
        self.begin_compaction(revision)
        self.go_on_compacting(len(self._log))

    def begin_compaction(self, revision: int) -> None:
        """Refuse to read before `revision` from now on; `go_on_compacting` frees what that needed."""
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        self.compacted = max(self.compacted, revision)

    def go_on_compacting(self, writes: int) -> bool:
        """Free what so many more of the compacted writes left. Whether there are more of them."""
        cut = max(0, min(writes, self.compacted + 1 - self._log_base))
        for event in self._log[:cut]:
            self._forget(event.key)
        del self._log[:cut]
        self._log_base += cut
        return self._log_base <= self.compacted

    # ---- the whole state
    def keys(self) -> list[str]:
        """Every key that has a version, alive or not, in order."""
        return list(merge(self._live, self._dead))

    def save(self, keys: Sequence[str], revision: int) -> list[SavedKey]:
        """The versions of `keys` as of `revision`, as if what is compacted were freed; keys that came later are left
        out."""
        saved = []
        for key in keys:
            versions = self._versions[key]
            kept = [
                _saved(version)
                for version in versions[self._unneeded(versions) :]
                if version.mod_revision <= revision
            ]
            if kept:
                saved.append(SavedKey(key, self.leases.ttl_s(key), kept))
        return saved

    @classmethod
    def restored(cls, revision: int, compacted: int, saved: Sequence[SavedKey], now: float) -> StoreCore:
        """The store that `save` was asked of. What had a time to live has all of it again, as after etcd's restart
        (lessor.go: Promote). Raises ValueError where `saved` cannot be of one store."""
        core = cls()
        core.revision, core.compacted = revision, compacted
        events: list[StoreEvent] = []
        live: list[str] = []
        dead: list[str] = []
        for entry in saved:
            events += core._restore_key(entry, now)
            (dead if entry.versions[-1][0] is None else live).append(entry.key)
        core._live.update(live)
        core._dead.update(dead)
        events.sort(key=_revision_of)
        core._log = events
        core._log_base = revision + 1 - len(events)
        if core._log_base != max(compacted + 1, 2) or (events and events[0].revision != core._log_base):
            raise ValueError(f"{len(events)} events between revisions {compacted} and {revision}")
        return core

    def _restore_key(self, entry: SavedKey, now: float) -> list[StoreEvent]:
        """Its versions; the events that made those since the compaction."""
        key, events = entry.key, []
        versions = self._versions[key] = []
        before: KeyValue | None = None
        for value, created, modified in entry.versions:
            current = None if value is None else KeyValue(key, value, created, modified)
            versions.append(current or _Tombstone(modified))
            if modified > self.compacted:
                created = current.create_revision if current else before.create_revision if before else 0
                previous = before.value if before else None
                events.append(StoreEvent(modified, key, value, created, previous))
            before = current
        if before is not None:
            self.size_bytes += len(key) + len(before.value)
            if entry.ttl_s:
                self.leases.grant(key, before.mod_revision, entry.ttl_s, now)
        return events

    def validate(self) -> None:
        """Assert what must hold between calls."""
        assert self._log_base + len(self._log) == self.revision + 1, "history has a hole"
        assert set(self._live).isdisjoint(self._dead), "a key is both alive and dead"
        assert len(self._live) + len(self._dead) == len(self._versions), "a key is in no order"
        for key, versions in self._versions.items():
            revisions = [version.mod_revision for version in versions]
            assert revisions == sorted(set(revisions)), f"versions of {key} out of order"
            assert (key in self._live) == isinstance(versions[-1], KeyValue), f"{key} is in the wrong order"

    # ---- writing
    def _put(self, key: str, value: bytes, current: KeyValue | None) -> StoreEvent:
        created = current.create_revision if current else self.revision
        versions = self._versions.get(key)
        if versions is None:
            versions = self._versions[key] = []
        elif current is None:
            self._dead.remove(key)
        if current is None:
            self._live.add(key)
            self.size_bytes += len(key) + len(value)
        else:
            self.size_bytes += len(value) - len(current.value)
        versions.append(KeyValue(key, value, created, self.revision))
        return StoreEvent(self.revision, key, value, created, current.value if current else None)

    def _delete(self, key: str, current: KeyValue | None) -> StoreEvent:
        assert current is not None
        self._live.remove(key)
        self._dead.add(key)
        self.size_bytes -= len(key) + len(current.value)
        self._versions[key].append(_Tombstone(self.revision))
        return StoreEvent(self.revision, key, None, current.create_revision, current.value)

    def _forget(self, key: str) -> None:
        versions = self._versions.get(key)
        if versions is None:  # already forgotten whole
            return
        del versions[: self._unneeded(versions)]
        if not versions:
            del self._versions[key]
            self._dead.remove(key)

    def _unneeded(self, versions: Sequence[KeyValue | _Tombstone]) -> int:
        """How many of a key's oldest versions nobody may read any more."""
        first = 0
        while first + 1 < len(versions) and versions[first + 1].mod_revision <= self.compacted:
            first += 1
        oldest = versions[first]
        gone = isinstance(oldest, _Tombstone) and oldest.mod_revision <= self.compacted
        return first + 1 if gone else first

    # ---- reading
    def _check(self, revision: int) -> int:
        if revision <= 0 or revision == self.revision:
            return self.revision
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        if revision < self.compacted:
            raise Compacted(revision, self.compacted)
        return revision

    def _current(self, key: str) -> KeyValue | None:
        versions = self._versions.get(key)
        last = versions[-1] if versions else None
        return last if isinstance(last, KeyValue) else None

    def _at(self, key: str, revision: int) -> KeyValue | None:
        for version in reversed(self._versions.get(key, ())):
            if version.mod_revision <= revision:
                return version if isinstance(version, KeyValue) else None
        return None

    def _iterate(self, first: str, end: str, revision: int) -> Iterator[KeyValue]:
        live: Iterator[str] = self._live.irange(first, end, (True, False))
        if revision == self.revision:
            for key in live:
                yield self._versions[key][-1]  # type: ignore[misc]  # live: the last version is no tombstone
            return
        for key in merge(live, self._dead.irange(first, end, (True, False))):
            if (found := self._at(key, revision)) is not None:
                yield found

    def _count(self, first: str, end: str, revision: int) -> int:
        if first >= end:
            return 0
        count: int = self._live.bisect_left(end) - self._live.bisect_left(first)
        for key in {event.key for event in self.events(revision) if first <= event.key < end}:
            count += (self._at(key, revision) is not None) - (self._current(key) is not None)
        return count


def _saved(version: KeyValue | _Tombstone) -> tuple[bytes | None, int, int]:
    if isinstance(version, KeyValue):
        return version.value, version.create_revision, version.mod_revision
    return None, 0, version.mod_revision


def _revision_of(event: StoreEvent) -> int:
    return event.revision


def prefix_end(prefix: str) -> str:
    """The first string that is greater than every string with this prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
