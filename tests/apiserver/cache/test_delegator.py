"""Where a list is served from, for each row of the table, and what the metrics say of it."""

from __future__ import annotations

from typing import Any

import pytest

from harness.apiserver.cache.cacher import CacheNotReady, Cacher
from harness.apiserver.cache.delegator import Delegator, ListRequest, Served
from harness.apiserver.cache.freshness import TooLarge
from harness.apiserver.cache.uncached import StoreLister
from harness.apiserver.clock import Task, spawn
from harness.apiserver.store.core import FutureRevision
from harness.wire.selectors import parse_fields, parse_labels
from tests.apiserver.cache.world import ROWS, World, pod, secret

CACHE, STORE = "cache", "store"


class Reads:
    """A cache of five secrets, at revisions 2 to 6, and its delegator."""

    def __init__(self, *, snapshots: bool = True, objects: int = 5) -> None:
        self.world = World()
        self.cacher: Cacher = self.world.member.cacher("secrets", snapshots=snapshots)
        self.world.settle()
        for number in range(objects):
            self.world.put(secret(f"s{number}"))
        lister = StoreLister(ROWS["secrets"], self.world.member.storage, self.world.member.metrics)
        self.reads = Delegator(lister, self.cacher)

    def ask(self, **request: Any) -> Task[Served]:
        task = spawn(self.reads.list(ListRequest(**request)))
        self.world.settle()
        return task

    def list(self, **request: Any) -> tuple[str, list[str]]:
        served = self.ask(**request).outcome.result()
        assert served.from_store == (self._counted(STORE) > 0)
        assert (not served.from_store) == (self._counted(CACHE) > 0)
        return STORE if served.from_store else CACHE, [obj.name for obj in served.listing.items]

    def _counted(self, where: str) -> float:
        family = "apiserver_storage_list_total" if where == STORE else "apiserver_cache_list_total"
        return sum(cell.value for cell in getattr(self.world.member.metrics, family).children.values())

    def consistent_reads(self, success: str, fallback: str) -> float:
        labels = ("", "secrets", success, fallback)
        return self.world.member.value("apiserver_watch_cache_consistent_read_total", *labels)


ALL = [f"s{number}" for number in range(5)]
KEY_OF_S1 = "/registry/secrets/default/s1\0"
TABLE = [
    ({}, CACHE, ALL),
    ({"limit": 2}, CACHE, ALL[:2]),
    ({"revision": 0}, CACHE, ALL),
    ({"revision": 0, "limit": 2}, CACHE, ALL),
    ({"revision": 4}, CACHE, ALL),
    ({"revision": 4, "exact": True}, CACHE, ALL[:3]),
    ({"revision": 4, "exact": True, "limit": 2}, CACHE, ALL[:2]),
    ({"revision": 5, "exact": True, "continued": True, "start_key": KEY_OF_S1, "limit": 2}, CACHE, ALL[2:4]),
    ({"continued": True, "start_key": KEY_OF_S1, "limit": 2}, CACHE, ALL[2:4]),
]


@pytest.mark.parametrize(("request_", "where", "names"), TABLE)
def test_with_snapshots_every_list_is_the_caches(
    request_: dict[str, Any], where: str, names: list[str]
) -> None:
    assert Reads().list(**request_) == (where, names)


@pytest.mark.parametrize(("request_", "where", "names"), TABLE)
def test_without_snapshots_exact_and_continued_lists_are_the_stores(
    request_: dict[str, Any], where: str, names: list[str]
) -> None:
    history = request_.get("exact") or request_.get("continued")
    assert Reads(snapshots=False).list(**request_) == (STORE if history else where, names)


def test_a_revision_before_the_first_snapshot_is_read_from_the_store() -> None:
    reads = Reads(objects=3)
    cacher = reads.world.member.cacher("secrets", seed=2)
    reads.world.settle()
    lister = StoreLister(ROWS["secrets"], reads.world.member.storage, reads.world.member.metrics)
    reads.reads = Delegator(lister, cacher)
    assert reads.list(revision=3, exact=True) == (STORE, ["s0", "s1"])
    reads.world.settle()
    served = reads.ask(revision=4, exact=True).outcome.result()
    assert (served.from_store, len(served.listing.items)) == (False, 3), "that of the first list is there"


def test_a_list_of_one_name_is_no_range_and_has_no_snapshot() -> None:
    fields = parse_fields("metadata.name=s1")
    assert Reads().list(namespace="default", fields=fields) == (CACHE, ["s1"])
    assert Reads().list(namespace="default", fields=fields, revision=4, exact=True) == (STORE, ["s1"])
    assert Reads().list(namespace="default", fields=fields, revision=2, exact=True) == (STORE, [])
    assert Reads().list(fields=fields, revision=4, exact=True) == (CACHE, ["s1"]), "in any namespace: a range"


def test_a_compaction_sends_exact_lists_to_the_store_until_the_next_event() -> None:
    reads = Reads()
    reads.cacher.compact(7)
    assert reads.list(revision=6, exact=True) == (STORE, ALL)
    reads.world.put(secret("s5"))
    served = reads.ask(revision=7, exact=True).outcome.result()
    assert (served.from_store, len(served.listing.items)) == (False, 6)


def test_after_a_failed_check_what_needs_a_snapshot_is_the_stores_and_the_rest_is_not() -> None:
    for request, needs in (({"revision": 6, "exact": True}, True), ({}, False), ({"revision": 0}, False)):
        reads = Reads()
        reads.cacher.mark_consistent(False)
        assert reads.list(**request) == (STORE if needs else CACHE, ALL)  # type: ignore[arg-type]
    reads = Reads()
    reads.cacher.mark_consistent(False)
    reads.cacher.mark_consistent(True)
    reads.world.put(secret("s5"))
    assert reads.list(revision=7, exact=True)[0] == CACHE


def test_an_exact_list_of_a_revision_to_come_waits_for_it_three_seconds() -> None:
    reads = Reads()
    waiting, vain = reads.ask(revision=7, exact=True), reads.ask(revision=9, exact=True)
    assert not waiting.outcome.done
    reads.world.put(secret("s5"))
    assert len(waiting.outcome.result().listing.items) == 6
    reads.world.settle(3.0)
    with pytest.raises(TooLarge):
        vain.outcome.result()
    without = Reads(snapshots=False)
    with pytest.raises(FutureRevision):
        without.ask(revision=9, exact=True).outcome.result()


def test_a_list_no_older_than_a_revision_waits_for_it() -> None:
    reads = Reads()
    waiting = reads.ask(revision=7)
    assert not waiting.outcome.done
    reads.world.put(secret("s5"))
    assert waiting.outcome.result().listing.revision == 7


def test_a_consistent_read_that_takes_too_long_is_the_stores_and_counted_as_such() -> None:
    reads = Reads()
    assert reads.list() == (CACHE, ALL)
    assert reads.consistent_reads("true", "false") == 1
    reads.cacher._request_progress = lambda: None  # type: ignore[method-assign]
    reads.cacher._freshness._request_progress = lambda: None
    reads.world.put(pod("p"))  # the cache hears nothing of it
    task = reads.ask()
    reads.world.settle(2.999)
    assert not task.outcome.done
    reads.world.settle(0.002)
    served = task.outcome.result()
    assert (served.from_store, served.consistent, served.listing.revision) == (True, True, 7)
    assert reads.consistent_reads("true", "true") == 1


def test_while_the_cache_is_being_filled_small_lists_and_gets_are_the_stores() -> None:
    reads = Reads()
    reads.cacher.ready = False
    assert reads.ask(limit=2).outcome.result().from_store
    assert reads.ask(limit=2, revision=0).outcome.result().from_store
    for request in (
        {},
        {"revision": 0},
        {"revision": 6, "exact": True},
        {"limit": 2, "labels": parse_labels("a=b")},
        {"limit": 2, "fields": parse_fields("type=Opaque")},
    ):
        with pytest.raises(CacheNotReady):
            reads.ask(**request).outcome.result()
    assert reads.consistent_reads("false", "false") == 3
    found = spawn(reads.reads.get("/registry/secrets/default/s1", 0))
    reads.world.settle()
    obj, from_store = found.outcome.result()
    assert obj is not None
    assert from_store


def test_a_get_is_the_caches_once_it_is_at_the_revision_and_the_stores_without_one() -> None:
    reads = Reads()
    for revision, expected in ((None, True), (0, False), (6, False)):
        task = spawn(reads.reads.get("/registry/secrets/default/s1", revision))
        reads.world.settle()
        obj, from_store = task.outcome.result()
        assert obj is not None
        assert (obj.name, from_store) == ("s1", expected)
    task = spawn(reads.reads.get("/registry/secrets/default/s5", 7))
    reads.world.settle()
    assert not task.outcome.done
    reads.world.put(secret("s5"))
    assert task.outcome.result()[0] is not None


def test_a_resource_without_a_cache_is_read_from_the_store_no_older_than_asked_for() -> None:
    reads = Reads()
    reads.reads = Delegator(reads.reads._store, None)
    assert reads.ask().outcome.result().from_store
    exact = reads.ask(revision=3, exact=True).outcome.result()
    assert len(exact.listing.items) == 2
    assert reads.ask(revision=6).outcome.result().listing.revision == 6
    with pytest.raises(FutureRevision):
        reads.ask(revision=7).outcome.result()
    value = reads.world.member.value
    assert value("apiserver_storage_list_total", "", "secrets") == 4, "counted where it fails too"


def test_every_wait_for_freshness_is_observed_and_a_read_of_anything_is_none() -> None:
    reads = Reads()
    waits = reads.world.member.metrics.apiserver_watch_cache_read_wait_seconds.labels("", "secrets")
    reads.list(revision=0)
    assert waits.count == 0
    reads.list(revision=6)
    reads.list()
    assert (waits.count, waits.total) == (2, 0.0)
