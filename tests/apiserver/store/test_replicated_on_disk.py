"""Several members over a store that is on disk, in virtual time: what waits for the disk, and what does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import pytest

from harness.apiserver.clock import Promise, VirtualClock
from harness.apiserver.store.core import StoreCore, StoreError, StoreEvent, Txn
from harness.apiserver.store.etcd import EtcdModel, EtcdOptions
from harness.apiserver.store.replicated import COMPACTED_AT_ONCE, SNAPSHOT_WAIT_S, ReplicatedStore

FULL = StoreError("etcdserver: mvcc: database space exceeded")


class Journal:
    """Keeps what is to be written until the test lets it be."""

    def __init__(self) -> None:
        self.snapshotting = False
        self.asked: list[tuple[Sequence[Txn | int], Callable[[StoreError | None], object]]] = []
        self.logged: list[Txn | int] = []

    def append(self, proposals: Sequence[Txn | int], done: Callable[[StoreError | None], object]) -> None:
        self.asked.append((proposals, done))

    def sync(self, error: StoreError | None = None) -> None:
        asked, self.asked = self.asked, []
        for proposals, done in asked:
            if error is None:
                self.logged += proposals
            done(error)


class World:
    def __init__(self, **options: float) -> None:
        self.clock = VirtualClock()
        figures = {"fsync_s": 0.0, "rtt_s": 0.0, "compaction_s": 0.0, **options}
        model = EtcdModel(("m0", "m1"), Random(1), EtcdOptions.parse(figures))
        self.journal = Journal()
        self.store = ReplicatedStore(StoreCore(), model, self.clock, 0.0, self.journal)
        self.heard: list[int] = []
        self.answers: list[Any] = []
        self.store.follow("m1", self)

    def on_events(self, events: Sequence[StoreEvent]) -> None:
        self.heard += [event.revision for event in events]

    def ask(self, promise: Promise[Any]) -> None:
        def settled(promise: Promise[Any]) -> None:
            try:
                self.answers.append(promise.result())
            except StoreError as error:
                self.answers.append(error)

        promise.then(settled)

    def put(self, key: str = "/a", member: str = "m0") -> None:
        self.ask(self.store.propose(member, Txn(key, b"v")))
        self.clock.advance(0.1)


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.store.core.validate()
    made.store.close()


def test_nobody_is_told_of_a_write_before_it_is_on_disk(world: World) -> None:
    world.put()
    world.ask(world.store.current_revision("m1"))
    world.clock.advance(1.0)
    assert (world.answers, world.heard, world.store.core.revision) == ([1], [], 1)
    world.journal.sync()
    world.clock.advance(0.0)
    assert [answer.revision for answer in world.answers[1:]] == [2]
    assert world.heard == [2]


def test_writes_that_cannot_be_logged_fail_and_change_nothing(world: World) -> None:
    world.put()
    world.journal.sync()
    world.put()
    world.put("/b", "m1")
    world.journal.sync(FULL)
    world.clock.advance(1.0)
    assert world.answers[1:] == [FULL, FULL]
    assert (world.heard, world.store.core.revision) == ([2], 2)
    world.put("/b")
    world.journal.sync()
    world.clock.advance(0.0)
    assert world.heard == [2, 3]


def test_a_compaction_is_logged_too(world: World) -> None:
    for _ in range(4):
        world.put()
    world.journal.sync()
    world.ask(world.store.compact("m0", 3))
    assert world.store.core.compacted == 0
    world.journal.sync()
    assert world.store.core.compacted == 3
    assert world.journal.logged[-1] == 3
    world.ask(world.store.compact("m0", 4))
    world.journal.sync(FULL)
    assert world.answers[-1] is FULL
    assert world.store.core.compacted == 3


def test_a_compaction_waits_for_a_snapshot(world: World) -> None:
    world.put()
    world.journal.sync()
    world.journal.snapshotting = True
    world.ask(world.store.compact("m0", 2))
    world.clock.advance(10.0)
    assert world.journal.asked == []
    world.journal.snapshotting = False
    world.clock.advance(SNAPSHOT_WAIT_S)
    world.journal.sync()
    assert world.store.core.compacted == 2


def test_a_compaction_under_way_waits_for_a_snapshot_too(world: World) -> None:
    for _ in range(COMPACTED_AT_ONCE + 10):
        world.put()
    world.journal.sync()
    world.clock.advance(1.0)
    world.ask(world.store.compact("m0", 0))
    world.journal.sync()
    core = world.store.core
    assert (core.compacted, len(core._log)) == (COMPACTED_AT_ONCE + 11, 10)
    world.journal.snapshotting = True
    world.clock.advance(10.0)
    assert len(core._log) == 10
    world.journal.snapshotting = False
    world.clock.advance(SNAPSHOT_WAIT_S)
    assert not core._log


def test_what_expires_is_logged_as_any_write_and_tried_again_on_a_full_disk(world: World) -> None:
    world.store.propose("m0", Txn("/e", b"v", ttl_s=5.0))
    world.clock.advance(0.1)
    world.journal.sync()
    world.clock.advance(6.0)
    world.journal.sync(FULL)
    assert world.store.core.get("/e").kv is not None
    world.clock.advance(2.0)
    world.journal.sync()
    assert world.journal.logged[-1] == Txn("/e", None, 2)
    assert world.store.core.get("/e").kv is None


def test_the_modelled_time_and_the_disks_both_count() -> None:
    world = World(fsync_s=0.5, fsync_sigma=0.0)
    world.put()
    assert world.journal.asked == []
    world.clock.advance(0.5)
    assert len(world.journal.asked) == 1
    world.journal.sync()
    world.clock.advance(0.0)
    assert [answer.revision for answer in world.answers] == [2]
