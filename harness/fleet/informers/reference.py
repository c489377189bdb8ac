"""What the objects of one scope were, revision by revision, as its informers together were told.

One state and one log for however many informers there are: as long as all are told the same, an informer is a place in
the log and keeps no state of its own. States are compared by a digest, the sum of a hash of each object's key and
revision, which every entry of the log carries as it was after it; so any state of the log's span can be compared at the
cost of a search, and be unrolled where it differs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping

import msgspec

from harness.fleet.informers.violations import Told

KEPT = 20_000
"""Entries of the log, about 200 bytes each: some minutes of the churn that one client process can follow."""
_MASK = (1 << 64) - 1
_TRIM_AT_ONCE = 1024

State = dict[str, int]
"""Objects by key (``namespace/name``), each with the revision that wrote it."""


def revision_of(text: str) -> int:
    """A resourceVersion as a number; 0, which no object has, for what is none."""
    return int(text) if text.isdecimal() else 0


def digest_of(objects: Mapping[str, int]) -> int:
    """Equal for equal states of one process; the order of keys does not matter."""
    return sum(map(hash, objects.items())) & _MASK


class Entry(msgspec.Struct, gc=False):
    """One event. `before` is the revision of the object that it replaced, 0 for none; `digest` is the state's after it;
    `at` is when it was first heard of."""

    revision: int
    key: str
    deleted: bool
    before: int
    digest: int
    at: float

    @property
    def told(self) -> Told:
        return Told(self.at, self.revision, self.key, self.deleted)


class Reference:
    """`objects` is the state after the last entry. `floor` is the revision of the oldest state that can be had, `known`
    the one up to which nothing can be missing but what every informer missed."""

    __slots__ = ("_entries", "_kept", "_revisions", "dropped", "floor", "known", "objects", "start_digest")

    def __init__(self, revision: int, objects: State, kept: int = KEPT) -> None:
        self._kept = kept
        self._entries: list[Entry] = []
        self._revisions: list[int] = []
        self.dropped = 0
        self._begin(revision, objects)

    def _begin(self, revision: int, objects: State) -> None:
        self.objects = objects
        self.floor = self.known = revision
        self.start_digest = digest_of(objects)

    @property
    def end(self) -> int:
        """Place of the entry to come; places count from the first entry that there ever was."""
        return self.dropped + len(self._entries)

    @property
    def digest(self) -> int:
        """Of the state after the last entry."""
        return self._entries[-1].digest if self._entries else self.start_digest

    @property
    def latest(self) -> int:
        """Revision of the last entry, of the first state where there is none."""
        return self._revisions[-1] if self._revisions else self.floor

    def entry(self, place: int) -> Entry | None:
        """None before the log and after it."""
        index = place - self.dropped
        return self._entries[index] if 0 <= index < len(self._entries) else None

    def find(self, revision: int) -> Entry | None:
        index = bisect_left(self._revisions, revision)
        found = index < len(self._revisions) and self._revisions[index] == revision
        return self._entries[index] if found else None

    def after(self, revision: int) -> int:
        """Place of the first entry behind a revision."""
        return self.dropped + bisect_right(self._revisions, revision)

    def between(self, after: int, until: int) -> list[Entry]:
        """Entries behind the revision `after`, up to `until` included."""
        start = bisect_right(self._revisions, after)
        return self._entries[start : bisect_right(self._revisions, until, start)]

    def about(self, key: str, last: int) -> tuple[Told, ...]:
        """The last entries about one object."""
        found: list[Told] = []
        for entry in reversed(self._entries):
            if entry.key == key:
                found.append(entry.told)
                if len(found) == last:
                    break
        return tuple(reversed(found))

    # ---- states ------------------------------------------------------------------------------------------------------
    def digest_at(self, revision: int) -> int:
        """Of the state at a revision from `floor` on; the last state's for later ones."""
        index = bisect_right(self._revisions, revision)
        return self._entries[index - 1].digest if index else self.start_digest

    def state_at(self, revision: int) -> State:
        """The state itself: a copy, unrolled."""
        state = dict(self.objects)
        for entry in reversed(self._entries):
            if entry.revision <= revision:
                break
            if entry.before:
                state[entry.key] = entry.before
            else:
                state.pop(entry.key, None)
        return state

    # ---- what comes in -----------------------------------------------------------------------------------------------
    def add(self, revision: int, key: str, deleted: bool, at: float) -> Entry:
        """An event that nobody told before: at the log's end, or where it belongs."""
        index = bisect_left(self._revisions, revision)
        if index < len(self._entries):
            return self._put(index, revision, key, deleted, at)
        before = self.objects.pop(key, 0) if deleted else self.objects.get(key, 0)
        if not deleted:
            self.objects[key] = revision
        change = _change(key, before, 0 if deleted else revision)
        entry = Entry(revision, key, deleted, before, (self.digest + change) & _MASK, at)
        self._entries.append(entry)
        self._revisions.append(revision)
        if len(self._entries) >= self._kept + _TRIM_AT_ONCE:
            self._trim(_TRIM_AT_ONCE)
        return entry

    def _put(self, index: int, revision: int, key: str, deleted: bool, at: float) -> Entry:
        """One that belongs between others: states behind it change, up to the object's next entry."""
        later = next((i for i in range(index, len(self._entries)) if self._entries[i].key == key), None)
        now = 0 if deleted else revision
        if later is None:
            before = self.objects.pop(key, 0)
            if now:
                self.objects[key] = now
        else:
            before, self._entries[later].before = self._entries[later].before, now
        change = _change(key, before, now)
        previous = self._entries[index - 1].digest if index else self.start_digest
        entry = Entry(revision, key, deleted, before, (previous + change) & _MASK, at)
        for each in self._entries[index:later]:
            each.digest = (each.digest + change) & _MASK
        self._entries.insert(index, entry)
        self._revisions.insert(index, revision)
        return entry

    def rebase(self, revision: int, objects: State) -> None:
        """Begin again with a state that is known, when nobody is left to tell what came before it. Entries behind it
        stay."""
        kept = self.between(revision, self.latest)
        self.dropped = self.end - len(kept)
        self._entries, self._revisions = [], []
        self._begin(revision, dict(objects))
        for entry in kept:
            self.add(entry.revision, entry.key, entry.deleted, entry.at)

    def _trim(self, count: int) -> None:
        last = self._entries[count - 1]
        self.floor, self.start_digest = last.revision, last.digest
        self.known = max(self.known, self.floor)
        del self._entries[:count], self._revisions[:count]
        self.dropped += count

    def validate(self) -> None:
        """Assert what must hold between calls."""
        assert self._revisions == [entry.revision for entry in self._entries]
        assert self._revisions == sorted(set(self._revisions))
        assert self.digest == digest_of(self.objects), "the digest is not the state's"
        assert self.start_digest == digest_of(self.state_at(self.floor)), "states do not unroll to the first"


def _change(key: str, before: int, now: int) -> int:
    return (hash((key, now)) if now else 0) - (hash((key, before)) if before else 0)


def difference(told: Mapping[str, int], found: Mapping[str, int]) -> Iterable[tuple[str, int, int]]:
    """(key, revision told, revision found) of objects that are not the same in both; 0 for one that is not there."""
    for key, revision in told.items():
        other = found.get(key, 0)
        if other != revision:
            yield key, revision, other
    for key, revision in found.items():
        if key not in told:
            yield key, 0, revision
