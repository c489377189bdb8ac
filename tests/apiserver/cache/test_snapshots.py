"""Past states of a cache: which can be listed, what they hold, what a real server's would weigh."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.apiserver.cache.cachedobject import Selection, encode_stored
from harness.apiserver.cache.cacher import Cacher
from harness.apiserver.cache.history import LOWEST_CAPACITY, TooOld
from harness.apiserver.cache.snapshots import Snapshots, tree_bytes
from harness.apiserver.cache.uncached import StoreLister
from harness.apiserver.cache.watchcache import PASTS, WatchCache
from harness.apiserver.clock import spawn
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.store.core import StoreCore, Txn
from harness.wire.selectors import parse_fields, parse_labels
from tests.apiserver.cache.world import ROWS, World, pod, secret

SELECTORS: list[dict[str, Any]] = [
    {},
    {"namespace": "ns1"},
    {"label_selector": parse_labels("app=x")},
    {"namespace": "ns2", "label_selector": parse_labels("app!=x")},
    {"field_selector": parse_fields("spec.nodeName=n1")},
    {"field_selector": parse_fields("metadata.name=b")},
    {"namespace": "ns1", "field_selector": parse_fields("spec.nodeName!=n1")},
]


def revisions(snapshots: Snapshots, until: int) -> list[int]:
    return [revision for revision in range(until) if snapshots.covers(revision)]


def test_there_is_one_for_the_first_list_and_one_after_each_event() -> None:
    snapshots = Snapshots()
    assert not snapshots.covers(100)
    snapshots.restart(5)
    snapshots.take(7)
    assert len(snapshots) == 2
    assert revisions(snapshots, 10) == [5, 6, 7, 8, 9], "the greatest at or before the revision serves it"


def test_what_is_older_than_a_full_history_goes() -> None:
    snapshots = Snapshots()
    snapshots.restart(5)
    for revision in (7, 9, 11):
        snapshots.take(revision)
    snapshots.take(13, oldest=9)
    assert revisions(snapshots, 14) == [9, 10, 11, 12, 13]


@pytest.mark.parametrize(("compacted", "left"), [(7, 2), (8, 1), (9, 1), (10, 0)])
def test_a_compaction_takes_what_is_before_it_the_newest_too(compacted: int, left: int) -> None:
    snapshots = Snapshots()
    snapshots.restart(7)
    snapshots.take(9)
    snapshots.drop_before(compacted)
    assert len(snapshots) == left
    snapshots.take(12)
    assert snapshots.covers(12)


def test_none_is_held_or_made_while_the_cache_is_known_to_be_wrong() -> None:
    snapshots = Snapshots()
    snapshots.restart(5)
    snapshots.mark_consistent(False)
    snapshots.take(6)
    snapshots.restart(7)
    assert len(snapshots) == 0
    snapshots.mark_consistent(True)
    assert not snapshots.covers(100), "the next event makes the first"
    snapshots.take(8)
    assert revisions(snapshots, 10) == [8, 9]


def test_without_the_gate_there_are_none() -> None:
    snapshots = Snapshots(wanted=False)
    snapshots.restart(5)
    snapshots.take(6)
    assert len(snapshots) == 0


def test_a_tree_of_more_objects_is_deeper_and_a_snapshot_holds_a_path_of_it() -> None:
    sizes = [tree_bytes(objects) for objects in (0, 10, 21, 400, 441, 9000, 150_000)]
    assert sizes == sorted(sizes)
    assert sizes[0] == sizes[2] == 470
    assert 1500 < tree_bytes(9000) < tree_bytes(150_000) < 3000


def test_their_number_and_size_are_metrics_and_are_gone_with_the_gate() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    for number in range(4):
        world.put(secret(f"s{number}"))
    value = world.member.value
    assert value("swarmlet_watch_cache_snapshots", "", "secrets") == 5
    assert value("swarmlet_watch_cache_snapshot_bytes", "", "secrets") == 5 * tree_bytes(4)
    assert cacher.snapshot_bytes == 5 * tree_bytes(4)
    off = World()
    off.member.cacher("secrets", snapshots=False)
    off.settle()
    assert not off.member.metrics.swarmlet_watch_cache_snapshots.children


def test_they_reach_as_far_back_as_the_history() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    for number in range(LOWEST_CAPACITY + 5):
        world.put(secret("a", value=str(number)))
        world.settle(1.0)  # at most 75 younger than 75 s: the window does not grow
    assert len(cacher.cache.history) == LOWEST_CAPACITY
    oldest = cacher.cache.history.first
    assert [obj.revision for obj in cacher.list_at(oldest).items] == [oldest]
    with pytest.raises(TooOld):
        cacher.list_at(oldest - 1)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6))
def test_any_list_at_a_revision_is_what_the_store_had_page_by_page_or_is_the_stores(seed: int) -> None:
    """With selectors, pages that go on while objects change, and compactions in between."""
    rng = Random(seed)
    world = World()
    cacher = world.member.cacher("pods")
    lister = StoreLister(ROWS["pods"], world.member.storage, world.member.metrics)
    world.settle()
    pages: list[tuple[int, dict[str, Any], int, str]] = []
    for _ in range(rng.randint(5, 50)):
        namespace, name = rng.choice(["ns1", "ns2"]), rng.choice("abcd")
        if rng.random() < 0.3:
            world.delete("pods", namespace, name)
        else:
            world.put(pod(name, rng.choice(["", "n1", "n2"]), namespace, app=rng.choice("xy")))
        if rng.random() < 0.05:
            compacted = rng.randint(1, world.core.revision)
            world.core.compact(compacted)
            cacher.compact(compacted)
        if rng.random() < 0.4:
            at = rng.randint(max(1, world.core.compacted), world.core.revision)
            pages.append((at, rng.choice(SELECTORS), rng.choice([0, 1, 2]), ""))
        pages = [more for page in pages if (more := _next_page(world, cacher, lister, page)) is not None]
    cacher.cache.validate()
    assert len(cacher.cache._pasts) <= PASTS


def _next_page(
    world: World, cacher: Cacher, lister: StoreLister, page: tuple[int, dict[str, Any], int, str]
) -> tuple[int, dict[str, Any], int, str] | None:
    """The page that follows, None where there is none, or where the store must be asked."""
    at, selectors, limit, start = page
    if at < world.core.compacted:
        with pytest.raises(TooOld):
            cacher.list_at(at, limit=limit, start_key=start, **selectors)
        return None
    task = spawn(lister.list(limit=limit, start_key=start, revision=at, **selectors))
    world.settle()
    expected = task.outcome.result()
    try:
        found = cacher.list_at(at, limit=limit, start_key=start, **selectors)
    except TooOld:
        assert not cacher.cache.snapshots.covers(at)
        return None
    assert [(obj.key, obj.revision, obj.body) for obj in found.items] == [
        (obj.key, obj.revision, obj.body) for obj in expected.items
    ]
    assert found.revision == expected.revision == at
    assert found.remaining == expected.remaining
    if not found.items or not found.more:
        return None
    return at, selectors, limit, found.items[-1].key + "\0"


def test_a_past_that_nobody_asked_for_lately_is_followed_up_from_where_it_was() -> None:
    core, cache = StoreCore(), WatchCache(ROWS["pods"], Metrics())
    cache.replace([], 1)

    def write(name: str, value: bytes | None) -> None:
        _, change = core.txn(Txn(ROWS["pods"].key("ns", name), value))
        assert change is not None
        cache.apply(change, 0.0)

    for name in "ac":
        write(name, encode_stored(pod(name, "", "ns")))
    at = core.revision
    assert [obj.name for obj in cache.list_at(at, Selection()).items] == ["a", "c"]
    write("b", encode_stored(pod("b", "", "ns")))
    write("a", None)
    assert [obj.name for obj in cache.list_at(at, Selection()).items] == ["a", "c"]
    write("b", None)
    write("a", encode_stored(pod("a", "n1", "ns")))
    assert [(obj.name, obj.revision) for obj in cache.list_at(at, Selection()).items] == [("a", 2), ("c", 3)]
    assert cache.list_at(at, Selection(), 1).remaining == 1
