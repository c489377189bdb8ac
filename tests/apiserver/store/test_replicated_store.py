"""Writes of several members in virtual time: when each hears of them, and what is lost with a member."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from harness.apiserver.clock import Promise, VirtualClock
from harness.apiserver.store.core import StoreCore, StoreEvent, StoreTimeout, StoreUnavailable, Txn, TxnResult
from harness.apiserver.store.etcd import EtcdModel, EtcdOptions
from harness.apiserver.store.replicated import COMPACTED_AT_ONCE, COMPACTION_PAUSE_S, ReplicatedStore

EXACT = {"fsync_sigma": 0.0, "rtt_sigma": 0.0, "fsync_s": 0.002, "rtt_s": 0.001, "compaction_s": 0.0}


class Heard:
    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.events: list[tuple[float, int]] = []

    def on_events(self, events: Sequence[StoreEvent]) -> None:
        self.events += [(round(self._clock.now(), 6), event.revision) for event in events]

    @property
    def revisions(self) -> list[int]:
        return [revision for _, revision in self.events]


class Cluster:
    def __init__(self, members: int = 3, seed: int = 1, **options: float) -> None:
        self.clock = VirtualClock()
        self.names = [f"m{number}" for number in range(members)]
        model = EtcdModel(self.names, Random(seed), EtcdOptions.parse({**EXACT, **options}))
        self.store = ReplicatedStore(StoreCore(), model, self.clock)
        self.heard = {name: Heard(self.clock) for name in self.names}
        for name in self.names:
            self.store.follow(name, self.heard[name])

    def put(self, member: str, key: str = "/a") -> Promise[TxnResult]:
        return self.store.propose(member, Txn(key, b"v"))


def answered_at(cluster: Cluster, promise: Promise[TxnResult]) -> list[float]:
    times: list[float] = []
    promise.then(lambda _: times.append(round(cluster.clock.now(), 6)))
    return times


def test_each_member_hears_of_a_write_when_its_own_replica_does() -> None:
    cluster = Cluster()
    times = answered_at(cluster, cluster.put("m1"))
    cluster.clock.advance(1.0)
    assert {name: heard.events for name, heard in cluster.heard.items()} == {
        "m0": [(0.0035, 2)],
        "m1": [(0.004, 2)],
        "m2": [(0.004, 2)],
    }
    assert times == [0.004], "the answer comes with the writer's own replica"


def test_the_answer_comes_before_the_event() -> None:
    cluster = Cluster(1)
    order: list[str] = []
    cluster.heard["m0"].on_events = lambda events: order.append("event")  # type: ignore[method-assign]
    cluster.put("m0").then(lambda _: order.append("answer"))
    cluster.clock.advance(1.0)
    assert order == ["answer", "event"]


def test_a_read_sees_everything_that_was_answered_before_it_began() -> None:
    cluster = Cluster()
    cluster.store.model.report("m0", 0.0)
    promise = cluster.put("m0")
    cluster.clock.advance(0.0031)
    assert promise.done
    assert cluster.heard["m2"].events == [], "m2 has not heard of it"
    read = cluster.store.get("m2", "/a")
    revision = cluster.store.current_revision("m2")
    cluster.clock.advance(1.0)
    assert read.result().kv is not None
    assert revision.result() == 2


def test_all_members_hear_every_write_in_the_same_order() -> None:
    cluster = Cluster(fsync_sigma=0.6, rtt_sigma=0.5)
    rng = Random(4)
    promises = []
    for _ in range(500):
        promises.append(cluster.put(rng.choice(cluster.names), f"/k{rng.randint(0, 9)}"))
        cluster.clock.advance(rng.expovariate(1000))
    cluster.clock.advance(1.0)
    assert all(heard.revisions == list(range(2, 502)) for heard in cluster.heard.values())
    assert [promise.result().revision for promise in promises] == list(range(2, 502))


def test_a_failed_condition_is_answered_and_heard_by_nobody() -> None:
    cluster = Cluster()
    first, second = (cluster.store.propose("m1", Txn("/a", b"v", 0)) for _ in range(2))
    cluster.clock.advance(1.0)
    assert first.result().succeeded
    assert not second.result().succeeded
    assert second.result().current is not None
    assert cluster.heard["m1"].revisions == [2]


def test_when_the_leader_is_lost_writes_wait_for_the_election_and_survive() -> None:
    cluster = Cluster()
    cluster.put("m0")
    cluster.clock.advance(1.0)
    in_flight = cluster.put("m1", "/b")
    own = cluster.put("m0", "/c")
    cluster.store.member_lost("m0")
    later = cluster.put("m2", "/d")
    cluster.clock.advance(0.9)
    assert not in_flight.done
    assert not later.done
    with pytest.raises(StoreTimeout, match="possibly due to previous leader failure"):
        own.result()
    cluster.clock.advance(1.2)
    assert [in_flight.result().revision, later.result().revision] == [3, 4]
    assert cluster.heard["m1"].revisions == cluster.heard["m2"].revisions == [2, 3, 4]
    assert cluster.heard["m0"].revisions == [2]


def test_without_a_majority_requests_time_out() -> None:
    cluster = Cluster()
    cluster.store.member_lost("m1")
    cluster.store.member_lost("m2")
    write, read = cluster.put("m0"), cluster.store.get("m0", "/a")
    cluster.clock.advance(6.9)
    assert not write.done
    cluster.clock.advance(0.2)
    for promise in (write, read):
        with pytest.raises(StoreTimeout, match="etcdserver: request timed out"):
            promise.result()
    assert cluster.store.core.revision == 1


def test_a_member_that_is_back_has_everything_and_hears_what_follows() -> None:
    cluster = Cluster()
    cluster.store.member_lost("m2")
    cluster.put("m0")
    cluster.clock.advance(1.0)
    written_before = cluster.put("m0")  # proposed while m2 is away, committed after it is back
    cluster.store.member_back("m2")
    heard = Heard(cluster.clock)
    assert cluster.store.follow("m2", heard) == 2
    cluster.clock.advance(1.0)
    assert written_before.result().revision == 3
    assert heard.revisions == [3]
    read = cluster.store.get("m2", "/a")
    cluster.clock.advance(1.0)
    assert read.result().revision == 3


def test_a_lost_member_is_refused() -> None:
    cluster = Cluster()
    cluster.store.member_lost("m2")
    for promise in (cluster.put("m2"), cluster.store.get("m2", "/a")):
        with pytest.raises(StoreUnavailable):
            promise.result()


def test_the_whole_cluster_may_go_and_come_back() -> None:
    cluster = Cluster()
    for name in cluster.names:
        cluster.store.member_lost(name)
    for name in cluster.names:
        cluster.store.member_back(name)
    promise = cluster.put("m1")
    cluster.clock.advance(3.0)
    assert promise.result().succeeded


def test_a_member_lost_as_a_follower_keeps_what_it_had_proposed_in_the_log() -> None:
    cluster = Cluster()
    cluster.put("m1")
    cluster.clock.advance(0.001)
    cluster.store.member_lost("m1")
    cluster.clock.advance(1.0)
    assert cluster.heard["m0"].revisions == [2]


def test_compaction_reaches_back_one_interval() -> None:
    cluster = Cluster(1, compaction_s=300.0)
    for _ in range(3):
        cluster.put("m0")
    cluster.clock.advance(299.0)
    assert cluster.store.core.compacted == 0
    cluster.clock.advance(2.0)
    assert cluster.store.core.compacted == 1
    cluster.put("m0")
    cluster.clock.advance(300.0)
    assert cluster.store.core.compacted == 4
    cluster.store.close()
    assert cluster.clock.next_at() is None


def test_the_same_seed_gives_the_same_times() -> None:
    def run(seed: int) -> list[tuple[float, int]]:
        cluster = Cluster(seed=seed, fsync_sigma=0.6, rtt_sigma=0.5)
        for number in range(20):
            cluster.put(cluster.names[number % 3])
            cluster.clock.advance(0.001)
        cluster.clock.advance(1.0)
        return cluster.heard["m2"].events

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_others_have_their_turn_while_much_is_compacted() -> None:
    cluster = Cluster(1)
    writes = 3 * COMPACTED_AT_ONCE
    for _ in range(writes):
        cluster.put("m0")
    cluster.clock.advance(60.0)
    core = cluster.store.core
    assert core.revision == writes + 1
    compacted = cluster.store.compact("m0", 0)
    assert compacted.result() == core.compacted == writes + 1
    assert len(core._log) == writes - COMPACTED_AT_ONCE
    cluster.clock.advance(COMPACTION_PAUSE_S)
    assert len(core._log) == writes - 2 * COMPACTED_AT_ONCE
    cluster.put("m0")
    cluster.clock.advance(COMPACTION_PAUSE_S / 2)
    assert cluster.store.compact("m0", 0).result() == writes + 2
    assert len(core._log) == writes - 2 * COMPACTED_AT_ONCE + 1, "a second one does not hurry the first"
    cluster.clock.advance(60.0)
    assert not core._log
    core.validate()
    cluster.store.close()
    assert cluster.clock.next_at() is None
