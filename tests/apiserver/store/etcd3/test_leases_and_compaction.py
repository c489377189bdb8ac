"""Leases that several keys share, and compactions that several apiservers agree on."""

from __future__ import annotations

from harness.apiserver.clock import Promise, VirtualClock, resolved
from harness.apiserver.store.core import StoreError, StoreUnavailable
from harness.apiserver.store.etcd3.compaction import KEY, Compactor
from harness.apiserver.store.etcd3.leases import MAX_KEYS, LeaseManager
from harness.apiserver.store.etcd3.messages import Versioned


class Grants:
    """Gives out leases by number."""

    def __init__(self) -> None:
        self.now = 0.0
        self.granted: list[int] = []
        self.error: StoreError | None = None
        self.manager = LeaseManager(self._grant, lambda: self.now)

    def _grant(self, ttl_s: int) -> Promise[int]:
        promise: Promise[int] = Promise()
        if self.error is not None:
            promise.fail(self.error)
        else:
            self.granted.append(ttl_s)
            promise.resolve(len(self.granted))
        return promise


def test_keys_written_within_a_minute_share_a_lease_that_lives_a_minute_longer() -> None:
    grants = Grants()
    assert grants.manager.lease(3600).result() == 1
    grants.now = 59.0
    assert grants.manager.lease(3600).result() == 1
    grants.now = 60.0  # it would not outlive this key's hour
    assert grants.manager.lease(3600).result() == 2
    assert grants.granted == [3660, 3660]


def test_a_short_time_to_live_is_exceeded_by_a_twentieth_at_most() -> None:
    grants = Grants()
    grants.manager.lease(100)
    grants.manager.lease(10)  # far less than the lease has left
    assert grants.granted == [105, 10]


def test_a_lease_holds_a_thousand_keys() -> None:
    grants = Grants()
    assert [grants.manager.lease(3600).result() for _ in range(MAX_KEYS)] == [1] * MAX_KEYS
    assert grants.manager.lease(3600).result() == 2


def test_a_grant_that_failed_is_not_shared() -> None:
    grants = Grants()
    grants.error = StoreUnavailable("gone")
    promise = grants.manager.lease(3600)
    assert promise.done
    grants.error = None
    assert grants.manager.lease(3600).result() == 1


class Etcd:
    """What compactors see: one key with versions, a revision, and what was compacted."""

    def __init__(self) -> None:
        self.revision = 100
        self.version = 0
        self.value = b""
        self.compacted: list[int] = []
        self.error: StoreError | None = None

    def compare_and_put(self, key: str, version: int, value: bytes) -> Promise[tuple[bool, int, Versioned]]:
        assert key == KEY
        promise: Promise[tuple[bool, int, Versioned]] = Promise()
        if self.error is not None:
            promise.fail(self.error)
        elif version == self.version:
            self.version += 1
            self.revision += 1
            self.value = value
            promise.resolve((True, self.revision, Versioned(0, b"")))
        else:
            promise.resolve((False, self.revision, Versioned(self.version, self.value)))
        return promise

    def compact(self, revision: int = 0) -> Promise[int]:
        self.compacted.append(revision)
        return resolved(revision)


def compactor(etcd: Etcd, clock: VirtualClock) -> Compactor:
    made = Compactor(etcd, lambda delay_s, fn: clock.call_at(clock.now() + delay_s, fn), 300.0)
    made.start()
    return made


def test_each_round_compacts_to_where_the_store_was_a_round_before() -> None:
    etcd, clock = Etcd(), VirtualClock()
    made = compactor(etcd, clock)
    clock.advance(300)
    assert etcd.compacted == []
    for revision in (500, 900):
        etcd.revision = revision
        clock.advance(300)
    assert etcd.compacted == [101, 501]
    made.stop()
    clock.advance(3000)
    assert etcd.compacted == [101, 501]


def test_three_apiservers_compact_once_a_round() -> None:
    etcd, clock = Etcd(), VirtualClock()
    made = []
    for _ in range(3):
        made.append(compactor(etcd, clock))
        clock.advance(50)
    for _ in range(8):
        etcd.revision += 100
        clock.advance(300)
    assert len(etcd.compacted) in (7, 8)
    assert etcd.compacted == sorted(set(etcd.compacted))
    for one in made:
        one.stop()


def test_a_round_that_fails_is_followed_by_the_next() -> None:
    etcd, clock = Etcd(), VirtualClock()
    made = compactor(etcd, clock)
    clock.advance(300)
    etcd.error = StoreUnavailable("gone")
    clock.advance(300)
    etcd.error = None
    clock.advance(300)
    assert etcd.compacted == [101]
    made.stop()
