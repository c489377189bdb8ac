"""Whether a cache holds what the store holds: when it is looked at, what is found, what follows."""

from __future__ import annotations

from random import Random

import pytest

from harness.apiserver.cache.cacher import Cacher
from harness.apiserver.cache.consistency import ConsistencyChecker, Verdict
from harness.apiserver.cache.delegator import Delegator, ListRequest
from harness.apiserver.cache.uncached import StoreLister
from harness.apiserver.cache.upkeep import Upkeep
from harness.apiserver.cache.watchcache import Corruption
from harness.apiserver.clock import spawn
from harness.apiserver.featuregates import FeatureGates
from harness.apiserver.store.storage import unavailable
from tests.apiserver.cache.world import ROWS, World, pod, secret


class Checked:
    """A cache of `objects` secrets and what checks it."""

    def __init__(self, objects: int = 3, cores: float | None = None) -> None:
        self.world = World(cores=cores)
        self.cacher: Cacher = self.world.member.cacher("secrets")
        self.world.settle(1.0)
        for number in range(objects):
            self.world.write(secret(f"s{number}"))
            self.world.settle(0.01)
        self.world.settle(1.0)
        member = self.world.member
        self.lister = StoreLister(ROWS["secrets"], member.storage, member.metrics)
        self.checker = ConsistencyChecker(
            self.cacher, self.lister, self.world.clock, member.host, member.metrics, Random(5)
        )

    def check(self) -> Verdict:
        task = spawn(self.checker.check())
        self.world.settle(1.0)
        return task.outcome.result()

    def counted(self) -> tuple[float, float, float]:
        family = "apiserver_storage_consistency_checks_total"
        value = self.world.member.value
        return tuple(value(family, "", "secrets", status) for status in ("success", "failure", "error"))  # type: ignore[return-value]

    def exact_from_store(self) -> bool:
        request = ListRequest(revision=self.cacher.revision, exact=True)
        task = spawn(Delegator(self.lister, self.cacher).list(request))
        self.world.settle()
        return task.outcome.result().from_store


def test_a_cache_that_is_right_has_the_stores_digest() -> None:
    checked = Checked()
    verdict = checked.check()
    assert (verdict.status, verdict.revision, verdict.objects, verdict.difference) == ("success", 4, 3, "")
    assert verdict.cache == verdict.store != ""
    assert checked.counted() == (1, 0, 0)
    assert Checked(objects=0).check().status == "success"


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("drop", "is in the store only"),
        ("alter", "has other bytes in the cache than in the store"),
        ("stale", "in the cache, at"),
    ],
)
def test_a_cache_that_was_spoilt_is_found_out_and_its_snapshots_are_not_used_until_it_is_right(
    how: Corruption, why: str
) -> None:
    checked = Checked()
    assert not checked.exact_from_store()
    key = checked.cacher.corrupt(how, Random(1))
    checked.cacher.cache.validate()
    verdict = checked.check()
    assert verdict.status == "failure"
    assert verdict.cache != verdict.store
    assert verdict.difference.startswith(key)
    assert why in verdict.difference
    assert checked.counted() == (0, 1, 0)
    assert len(checked.cacher.cache.snapshots) == 0
    assert checked.exact_from_store()
    checked.world.put(secret("s9"))
    assert checked.exact_from_store(), "no snapshot is made meanwhile"
    checked.world.put(secret(key.rpartition("/")[2], value="new"))
    assert checked.check().status == "success"
    assert checked.exact_from_store(), "the next event makes the first snapshot"
    checked.world.put(secret("s9", value="2"))
    assert not checked.exact_from_store()


def test_what_the_cache_has_too_much_is_found() -> None:
    for name, expected in (("s0", "s0 is in the cache only"), ("s2", "s2 is in the cache only")):
        checked = Checked()
        source = checked.cacher._source
        assert source is not None
        source.stop()  # it hears of nothing further
        checked.world.delete("secrets", "default", name)
        checked.cacher.cache.revision = checked.world.core.revision
        verdict = checked.check()
        assert (verdict.status, verdict.objects) == ("failure", 3)
        assert verdict.difference.endswith(expected)


def test_a_dropped_last_object_is_found() -> None:
    checked = Checked(objects=1)
    checked.cacher.corrupt("drop", Random(1))
    assert checked.check().difference == "/registry/secrets/default/s0 is in the store only"
    assert Checked(objects=0).cacher.corrupt("drop", Random(1)) == ""


def test_a_large_cache_is_compared_page_by_page_at_one_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.apiserver.cache.consistency.PAGE", 2)
    checked = Checked(objects=7)
    task = spawn(checked.checker.check())
    checked.world.write(secret("s3", value="while it is checked"))
    checked.world.write(secret("t"))
    checked.world.settle(1.0)
    assert task.outcome.result().status == "success"
    assert checked.world.member.value("apiserver_storage_list_total", "", "secrets") == 4
    checked.cacher.corrupt("drop", Random(2))
    assert checked.check().status == "failure"


def test_an_unready_cache_and_a_store_that_does_not_answer_say_nothing_of_it() -> None:
    checked = Checked()
    checked.cacher.ready = False
    assert checked.check() == Verdict("secrets", "error", difference="storage is (re)initializing")
    checked.cacher.ready = True
    checked.world.core.compact(4)
    checked.cacher.cache.revision = 3
    assert checked.check().difference == "etcdserver: mvcc: required revision has been compacted"
    assert checked.counted() == (0, 0, 2)
    assert checked.cacher.cache.snapshots.consistent


def test_it_costs_the_host_for_each_object() -> None:
    checked = Checked(objects=50, cores=1)
    host, costs = checked.world.member.host, checked.world.member.host.costs
    before = host.busy_s
    checked.check()
    etcd_us = costs.list_consistent_etcd_us + 50 * costs.list_per_pod_etcd_us
    expected = costs.list_us + 50 * costs.check_per_object_us + etcd_us
    assert host.busy_s - before == pytest.approx(expected * 1e-6)


def test_it_is_done_each_five_to_seven_and_a_half_minutes() -> None:
    checked = Checked()
    checked.checker.start()
    times = []
    for _ in range(4000):
        done = sum(checked.counted())
        checked.world.settle(1.0)
        if sum(checked.counted()) > done:
            times.append(checked.world.clock.now())
    gaps = [later - earlier for earlier, later in zip([1.0, *times], times, strict=False)]
    assert 8 <= len(times) <= 13
    assert all(299 <= gap <= 452 for gap in gaps)
    assert max(gaps) - min(gaps) > 20
    checked.checker.stop()
    checked.world.settle(1000.0)
    assert sum(checked.counted()) == len(times)


def upkeep(world: World, cachers: list[Cacher], **gates: bool) -> Upkeep:
    member = world.member
    return Upkeep(
        cachers, world.clock, member.host, member.storage, member.metrics, FeatureGates(**gates), Random
    )


def test_all_caches_are_verified_on_demand() -> None:
    world = World()
    cachers = [world.member.cacher(resource) for resource in ("secrets", "pods")]
    world.settle()
    world.put(secret("s"))
    world.put(pod("p"))
    cachers[1].corrupt("alter", Random(1))
    verdicts = upkeep(world, cachers).verify()
    world.settle()
    assert [(verdict.resource, verdict.status) for verdict in verdicts.result()] == [
        ("secrets", "success"),
        ("pods", "failure"),
    ]


def test_compactions_are_heard_of_within_fifteen_seconds() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    keep = upkeep(world, [cacher])
    keep.start()
    for number in range(5):
        world.put(secret(f"s{number}"))
    world.core.compact(4)
    world.settle(14.9)
    assert cacher.cache.snapshots.covers(2)
    world.settle(0.2)
    assert [cacher.cache.snapshots.covers(at) for at in (3, 4)] == [False, True]
    world.core.compact(6)
    world.settle(15.1)
    assert [cacher.cache.snapshots.covers(at) for at in (5, 6)] == [False, True]
    keep.stop()
    world.put(secret("t"))
    world.core.compact(7)
    world.settle(100.0)
    assert cacher.cache.snapshots.covers(6)


def test_a_store_that_does_not_answer_is_asked_about_compactions_again() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    keep = upkeep(world, [cacher])
    keep.start()
    world.member.store._error = unavailable("connection refused")
    world.settle(20.0)
    world.member.store._error = None
    world.put(secret("s"))
    world.put(secret("s"))
    world.core.compact(3)
    world.settle(15.0)
    assert not cacher.cache.snapshots.covers(2)
    keep.stop()


def test_gates_turn_each_of_them_off() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    world.put(secret("s"))
    keep = upkeep(world, [cacher], list_from_cache_snapshot=False, detect_cache_inconsistency=False)
    keep.start()
    world.core.compact(2)
    world.settle(1000.0)
    assert cacher.cache.snapshots.covers(1)
    assert world.member.value("apiserver_storage_consistency_checks_total", "", "secrets", "success") == 0
    keep.stop()
