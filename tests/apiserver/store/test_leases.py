"""Keys with a time to live: what counts is the newest write of a key, and that the store can delete at all."""

from __future__ import annotations

from typing import Any

from harness.apiserver.clock import Promise
from harness.apiserver.store.core import StoreCore, Txn
from harness.apiserver.store.leases import Leases
from harness.apiserver.store.replicated import EXPIRY_PERIOD_S
from tests.apiserver.store.test_replicated_store import Cluster


def test_keys_are_due_in_order_a_few_at_a_time_and_named_once() -> None:
    leases = Leases()
    for number in range(5):
        leases.grant(f"/{number}", number + 2, 10.0 - number, 0.0)
    assert leases.next_at() == 6.0
    assert leases.due(5.9, 10) == []
    assert leases.due(8.0, 2) == [("/4", 6), ("/3", 5)]
    assert leases.due(8.0, 2) == [("/2", 4)]
    assert leases.due(8.0, 2) == []
    leases.retry("/3", 5, 9.5)
    assert leases.due(9.5, 10) == [("/1", 3), ("/3", 5)]


def test_the_newest_write_of_a_key_decides() -> None:
    core = StoreCore()
    core.txn(Txn("/a", b"1", ttl_s=10.0), 0.0)
    core.txn(Txn("/a", b"2", ttl_s=10.0), 5.0)
    core.txn(Txn("/b", b"1", ttl_s=1.0), 5.0)
    core.txn(Txn("/b", b"2"), 5.0)
    core.txn(Txn("/c", b"1", ttl_s=1.0), 5.0)
    core.txn(Txn("/c", None), 5.0)
    assert len(core.leases) == 1
    assert core.leases.next_at() == 15.0
    assert core.leases.due(15.0, 10) == [("/a", 3)]
    assert core.leases.next_at() is None


def test_a_write_that_fails_changes_no_time_to_live() -> None:
    core = StoreCore()
    core.txn(Txn("/a", b"1", ttl_s=10.0), 0.0)
    core.txn(Txn("/a", b"2", 77), 5.0)
    core.txn(Txn("/a", b"2", 77, 99.0), 5.0)
    assert core.leases.next_at() == 10.0


def expiring(cluster: Cluster, key: str = "/e", ttl_s: float = 10.0) -> None:
    cluster.store.propose("m1", Txn(key, b"v", ttl_s=ttl_s))
    cluster.clock.advance(1.0)


def test_every_member_hears_of_what_expires_within_half_a_second() -> None:
    cluster = Cluster()
    expiring(cluster)
    cluster.clock.advance(8.9)
    assert cluster.store.core.revision == 2
    cluster.clock.advance(0.2 + EXPIRY_PERIOD_S)
    assert cluster.store.core.get("/e").kv is None
    for heard in cluster.heard.values():
        assert heard.revisions == [2, 3]
    cluster.store.core.validate()


def test_what_is_written_again_before_the_deletion_is_committed_stays() -> None:
    cluster = Cluster(fsync_s=1.0)
    expiring(cluster, ttl_s=3.0)
    cluster.clock.advance(3.7)  # the deletion is under way, on the condition that nothing has changed
    cluster.put("m0", "/e")
    cluster.clock.advance(0.0)
    found = cluster.store.propose("m0", Txn("/e", b"v"))
    cluster.clock.advance(5.0)
    assert found.done
    kv = cluster.store.core.get("/e").kv
    assert kv is not None
    assert kv.value == b"v"


def test_without_a_leader_nothing_expires_until_there_is_one() -> None:
    cluster = Cluster()
    expiring(cluster)
    cluster.store.member_lost("m0")
    cluster.store.member_lost("m1")
    cluster.clock.advance(20.0)
    assert cluster.store.core.revision == 2
    cluster.store.member_back("m0")
    cluster.clock.advance(3.0)
    assert cluster.store.core.get("/e").kv is None


def test_a_deletion_that_went_with_its_leader_is_tried_again() -> None:
    cluster = Cluster(fsync_s=0.4)
    expiring(cluster, ttl_s=3.0)
    while not cluster.store._inflight:
        cluster.clock.advance(0.05)
    cluster.store.member_lost("m0")
    cluster.clock.advance(5.0)
    assert cluster.store.core.get("/e").kv is None


def test_nothing_is_armed_where_nothing_expires() -> None:
    cluster = Cluster()
    cluster.put("m0")
    cluster.clock.advance(1.0)
    assert cluster.clock.next_at() is None
    expiring(cluster, ttl_s=2.0)
    cluster.clock.advance(5.0)
    assert cluster.clock.next_at() is None


def test_a_slow_store_is_slow_for_writes_and_reads() -> None:
    cluster = Cluster(members=1)
    cluster.store.model.set_delay(0.5, 0.25)
    answered: list[tuple[str, float]] = []

    def note(what: str, promise: Promise[Any]) -> None:
        promise.then(lambda _: answered.append((what, round(cluster.clock.now(), 4))))

    note("write", cluster.put("m0"))
    note("read", cluster.store.current_revision("m0"))
    cluster.clock.advance(1.0)
    cluster.store.model.set_delay(0.0, 0.0)
    note("write", cluster.put("m0"))
    cluster.clock.advance(1.0)
    assert answered == [("read", 0.25), ("write", 0.502), ("write", 1.002)]
