"""Keys, revisions, history and compaction, against a plain dict that remembers everything."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from harness.apiserver.store.core import (
    ABSENT,
    Compacted,
    FutureRevision,
    KeyValue,
    StoreCore,
    Txn,
    prefix_end,
)

KEYS = [f"/registry/{kind}/{ns}/{name}" for kind in ("a", "ab") for ns in ("x", "x-y") for name in "12"]


class AgainstADict(RuleBasedStateMachine):
    """The model is the whole state after each revision."""

    revisions: Bundle[int] = Bundle("revisions")

    def __init__(self) -> None:
        super().__init__()
        self.core = StoreCore()
        self.states: dict[int, dict[str, KeyValue]] = {1: {}}
        self.writes: list[tuple[int, str, bytes | None, bytes | None]] = []
        self.compacted = 0

    @property
    def now(self) -> dict[str, KeyValue]:
        return self.states[self.core.revision]

    @rule(
        target=revisions,
        key=st.sampled_from(KEYS),
        value=st.one_of(st.none(), st.binary(max_size=3)),
        condition=st.sampled_from(["any", "absent", "current", "stale"]),
    )
    def write(self, key: str, value: bytes | None, condition: str) -> int:
        before = dict(self.now)
        old = before.get(key)
        current = old.mod_revision if old else ABSENT
        expected = {"any": None, "absent": ABSENT, "current": current, "stale": current + 1}[condition]
        succeeds = expected in (None, current) and not (value is None and old is None)
        result, event = self.core.txn(Txn(key, value, expected))
        assert result.succeeded is succeeds
        assert result.revision == self.core.revision
        if not succeeds:
            assert event is None
            assert result.current == old
            return result.revision
        if value is None:
            del before[key]
        else:
            before[key] = KeyValue(
                key, value, old.create_revision if old else result.revision, result.revision
            )
        self.states[result.revision] = before
        assert event is not None
        assert event.created is (old is None)
        self.writes.append((event.revision, event.key, event.value, event.previous))
        assert self.writes[-1] == (result.revision, key, value, old.value if old else None)
        return result.revision

    @rule(revision=revisions)
    def compact(self, revision: int) -> None:
        self.core.compact(revision)
        self.compacted = max(self.compacted, revision)

    @rule(revision=revisions)
    def begin_compaction(self, revision: int) -> None:
        self.core.begin_compaction(revision)
        self.compacted = max(self.compacted, revision)

    @rule(writes=st.integers(1, 4))
    def go_on_compacting(self, writes: int) -> None:
        self.core.go_on_compacting(writes)

    @rule()
    def a_snapshot_is_of_what_was_compacted_whole(self) -> None:
        core, writes = self.core, self.core.events(self.compacted)
        saved = core.save(core.keys(), core.revision)
        restored = StoreCore.restored(core.revision, core.compacted, saved, 0.0)
        restored.validate()
        assert restored.events(self.compacted) == writes
        core.go_on_compacting(len(self.writes))
        assert core.save(core.keys(), core.revision) == saved
        assert restored.keys() == core.keys()

    @rule(
        revision=revisions,
        prefix=st.sampled_from(["/registry/", "/registry/a/", "/registry/a/x/", "/registry/a/x-y/1", "/z/"]),
        start=st.sampled_from(["", *KEYS]),
        limit=st.integers(0, 4),
    )
    def read(self, revision: int, prefix: str, start: str, limit: int) -> None:
        if revision < self.compacted:
            with pytest.raises(Compacted):
                self.core.range(prefix, start, limit, revision)
            return
        state = self.states[revision]
        expected = [state[key] for key in sorted(state) if key.startswith(prefix) and key >= start]
        found = self.core.range(prefix, start, limit, revision)
        assert found.kvs == (expected[:limit] if limit else expected)
        assert (found.count, found.revision) == (len(expected), revision)
        assert found.more is (bool(limit) and len(expected) > limit)
        for key in KEYS:
            assert self.core.get(key, revision).kv == state.get(key)

    @rule(revision=revisions)
    def follow(self, revision: int) -> None:
        if revision < self.compacted:
            with pytest.raises(Compacted):
                self.core.events(revision)
            return
        events = [(e.revision, e.key, e.value, e.previous) for e in self.core.events(revision)]
        assert events == [write for write in self.writes if write[0] > revision]
        until = revision + 2
        some = [event.revision for event in self.core.events(revision, until)]
        assert some == [write[0] for write in self.writes if revision < write[0] <= until]

    @invariant()
    def holds(self) -> None:
        self.core.validate()
        assert self.core.count("/registry/") == len(self.now)
        assert self.core.size_bytes == sum(len(kv.key) + len(kv.value) for kv in self.now.values())


AgainstADict.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestAgainstADict = AgainstADict.TestCase


def test_the_first_write_is_revision_two_as_in_etcd() -> None:
    core = StoreCore()
    result, _ = core.txn(Txn("/a", b"1"))
    assert (core.revision, result.revision) == (2, 2)


def test_a_revision_yet_to_come_is_refused() -> None:
    core = StoreCore()
    core.txn(Txn("/a", b"1"))
    with pytest.raises(FutureRevision, match="required revision is a future revision"):
        core.get("/a", 3)
    with pytest.raises(FutureRevision):
        core.compact(3)


def test_a_deleted_key_is_forgotten_once_its_deletion_is_compacted() -> None:
    core = StoreCore()
    core.txn(Txn("/a", b"1"))
    core.txn(Txn("/a", None))
    core.compact(2)
    assert core.get("/a", 2).kv is not None
    core.compact(3)
    assert not core._versions
    core.validate()


def test_a_compaction_frees_as_many_writes_at_a_time_as_it_is_told_to() -> None:
    core = StoreCore()
    for number in range(10):
        core.txn(Txn("/a", b"%d" % number))
    core.begin_compaction(9)
    with pytest.raises(Compacted):
        core.get("/a", 8)
    found = core.get("/a", 9).kv
    assert found is not None
    assert [core.go_on_compacting(3) for _ in range(4)] == [True, True, False, False]
    assert (core.get("/a", 9).kv, len(core._versions["/a"])) == (found, 3)
    core.validate()


@pytest.mark.parametrize(("prefix", "end"), [("/a/", "/a0"), ("/a/x-y/", "/a/x-y0"), ("z", "{")])
def test_the_end_of_a_prefix_is_behind_all_keys_that_have_it(prefix: str, end: str) -> None:
    assert prefix_end(prefix) == end
