"""Lists and gets from a cache: now, at a past revision, in pages; waiting for freshness."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.apiserver.cache.cachedobject import Selection, encode_stored
from harness.apiserver.cache.freshness import TooLarge
from harness.apiserver.cache.history import TooOld
from harness.apiserver.cache.watchcache import PASTS, Listing, WatchCache
from harness.apiserver.clock import spawn
from harness.apiserver.metrics.families import Metrics
from harness.apiserver.model.capacity import WATCH
from harness.apiserver.store.core import StoreCore, Txn
from harness.wire.selectors import parse_fields, parse_labels
from tests.apiserver.cache.world import ROWS, World, event, pod, secret


def names(listing: Listing) -> list[str]:
    return [obj.name for obj in listing.items]


def test_a_list_is_in_order_of_key_and_says_its_revision() -> None:
    world = World()
    for name, namespace in (("b", "x"), ("a", "y"), ("c", "w"), ("a", "x")):
        world.put(secret(name, namespace))
    cacher = world.member.cacher("secrets")
    world.settle()
    assert [(obj.namespace, obj.name) for obj in cacher.list().items] == [
        ("w", "c"),
        ("x", "a"),
        ("x", "b"),
        ("y", "a"),
    ]
    assert cacher.list().revision == 5
    assert names(cacher.list("x")) == ["a", "b"]
    assert names(cacher.list("none")) == []
    assert names(cacher.list(field_selector=parse_fields("metadata.name=a"))) == ["a", "a"]
    assert names(cacher.list("y", field_selector=parse_fields("metadata.name=a"))) == ["a"]
    assert names(cacher.list("", field_selector=parse_fields("metadata.namespace=w"))) == ["c"]


def test_an_object_is_what_was_stored_with_its_revision() -> None:
    world = World()
    world.put(secret("a", value="1"))
    world.put(secret("a", value="2"))
    cacher = world.member.cacher("secrets")
    world.settle()
    obj = cacher.get("/registry/secrets/default/a")
    assert obj is not None
    assert obj.decode() == {
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "3", "name": "a", "namespace": "default"},
        "type": "Opaque",
        "data": {"v": "2"},
    }
    assert cacher.get("/registry/secrets/default/b") is None


def test_selectors_and_the_node_index() -> None:
    world = World()
    for number in range(6):
        world.put(pod(f"p{number}", f"n{number % 2}", app="x" if number < 3 else "y"))
    cacher = world.member.cacher("pods")
    world.settle()
    assert names(cacher.list(label_selector=parse_labels("app=x"))) == ["p0", "p1", "p2"]
    listing = cacher.list(field_selector=parse_fields("spec.nodeName=n1"))
    assert (names(listing), listing.fetched, listing.by_index) == (["p1", "p3", "p5"], 3, "spec.nodeName")
    both = cacher.list("", parse_labels("app=y"), parse_fields("spec.nodeName=n1"))
    assert names(both) == ["p3", "p5"]
    assert names(cacher.list(field_selector=parse_fields("spec.nodeName=nowhere"))) == []
    world.put(pod("p1", "n0"))
    world.delete("pods", "default", "p3")
    assert names(cacher.list(field_selector=parse_fields("spec.nodeName=n1"))) == ["p5"]
    cacher.cache.validate()


def test_pages_of_the_present_say_what_is_left() -> None:
    world = World()
    for number in range(5):
        world.put(secret(f"s{number}"))
    cacher = world.member.cacher("secrets")
    world.settle()
    first = cacher.list(limit=2)
    assert (names(first), first.more, first.remaining) == (["s0", "s1"], True, 3)
    last = cacher.list(limit=3, start_key=first.items[-1].key + "\0")
    assert (names(last), last.more, last.remaining) == (["s2", "s3", "s4"], False, None)
    exactly = cacher.list(limit=5)
    assert (len(exactly.items), exactly.more) == (5, False)
    selected = cacher.list(limit=2, label_selector=parse_labels("!app"))
    assert (selected.more, selected.remaining) == (True, None), "selectors leave the rest unknown"


def test_pages_of_a_past_revision_do_not_see_what_came_after() -> None:
    world = World()
    for number in range(6):
        world.put(secret(f"s{number}"))
    cacher = world.member.cacher("secrets")
    world.settle()
    first = cacher.list_at(7, limit=2)
    world.delete("secrets", "default", "s3")
    world.put(secret("s2b"))
    world.put(secret("s4", value="new"))
    second = cacher.list_at(7, limit=2, start_key=first.items[-1].key + "\0")
    assert (names(second), second.revision, second.more, second.remaining) == (["s2", "s3"], 7, True, 2)
    world.delete("secrets", "default", "s5")
    third = cacher.list_at(7, limit=2, start_key=second.items[-1].key + "\0")
    assert (names(third), third.more) == (["s4", "s5"], False)
    assert [obj.revision for obj in third.items] == [6, 7]
    assert names(cacher.list()) == ["s0", "s1", "s2", "s2b", "s4"]
    assert names(cacher.list_at(7, "default", field_selector=parse_fields("metadata.name=s3"))) == ["s3"]
    assert names(cacher.list_at(8, "default", field_selector=parse_fields("metadata.name=s3"))) == []


def test_a_revision_before_the_history_must_be_read_from_the_store() -> None:
    world = World()
    for number in range(3):
        world.put(secret(f"s{number}"))
    cacher = world.member.cacher("secrets")
    world.settle()
    with pytest.raises(TooOld):
        cacher.list_at(3)
    lister = world.member.uncached("secrets")
    task = spawn(lister.list(revision=3))
    world.settle()
    assert names(task.outcome.result()) == ["s0", "s1"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_past_revision_lists_as_the_store_had_it(data: st.DataObject) -> None:
    core, cache = StoreCore(), WatchCache(ROWS["pods"], Metrics())
    cache.replace([], 1)
    rng = Random(data.draw(st.integers(0, 999)))
    for _ in range(data.draw(st.integers(1, 60))):
        name, node = rng.choice("abcdef"), rng.choice(["", "n1", "n2"])
        key = ROWS["pods"].key("ns", name)
        value = None if rng.random() < 0.3 else encode_stored(pod(name, node, "ns"))
        _, change = core.txn(Txn(key, value))
        if change is not None:
            cache.apply(change, 0.0)
        if rng.random() < 0.3:
            at = rng.randint(1, core.revision)
            limit, start = rng.choice([0, 1, 2]), rng.choice(["", ROWS["pods"].key("ns", "c")])
            expected = core.range("/registry/pods/ns/", start, limit, at)
            listing = cache.list_at(at, Selection("ns"), limit, start)
            assert [(obj.key, obj.revision) for obj in listing.items] == [
                (kv.key, kv.mod_revision) for kv in expected.kvs
            ]
            assert listing.more == expected.more
            if expected.more:
                assert listing.remaining == expected.count - len(expected.kvs)
    cache.validate()
    core.validate()
    assert len(cache._pasts) <= PASTS


def test_waiting_for_a_revision_ends_when_it_comes_or_after_three_seconds() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    assert cacher.wait_until_fresh(1).done
    soon, late = cacher.wait_until_fresh(2), cacher.wait_until_fresh(3)
    world.put(secret("a"))
    assert soon.done
    assert not late.done
    world.settle(3.0)
    with pytest.raises(TooLarge, match="Too large resource version: 3, current: 2"):
        late.result()


def test_a_consistent_read_asks_for_progress_at_once_then_each_100_ms() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    world.put(pod("p"))
    began = world.clock.now()
    first = spawn(cacher.consistent())
    world.settle()
    assert first.outcome.result() == 2, "nobody had asked for a while: no delay"
    world.settle(0.03)
    world.put(pod("p"))
    second = spawn(cacher.consistent())
    world.settle(0.069)
    assert not second.outcome.done
    world.settle(0.002)
    assert second.outcome.result() == 3
    assert world.clock.now() - began < 0.102
    assert world.member.value("etcd_bookmark_total", "", "secrets") == 2


def test_many_consistent_reads_share_the_requests_for_progress() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    world.put(pod("p"))
    tasks = [spawn(cacher.consistent()) for _ in range(50)]
    world.settle()
    assert all(task.outcome.done for task in tasks)
    assert world.member.value("etcd_bookmark_total", "", "secrets") == 1


def test_a_member_whose_host_is_behind_hears_late_of_what_others_write() -> None:
    world = World(members=2, cores=1)
    cacher = world.member.cacher("secrets")
    world.settle(1.0)
    world.member.host.charge(0.5e6, WATCH)
    world.write(pod("p"), member=1)
    world.settle()
    revision = world.core.revision
    waiting = cacher.wait_until_fresh(revision, timeout_s=0.2)
    world.settle(0.3)
    with pytest.raises(TooLarge):
        waiting.result()
    again = cacher.wait_until_fresh(revision)
    world.settle(0.5)
    assert again.done
    assert cacher.revision == revision


def test_a_cache_larger_than_a_page_is_filled_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.apiserver.cache.cacher.PAGE", 3)
    world = World()
    for number in range(8):
        world.put(secret(f"s{number}"))
    cacher = world.member.cacher("secrets")
    world.settle()
    assert len(cacher) == 8
    assert world.member.value("etcd_requests_total", "list", "", "secrets") == 3


def test_lists_from_the_store_go_on_until_the_limit_is_filled() -> None:
    world = World()
    for number in range(9):
        world.put(event(f"e{number}", "Odd" if number % 4 == 3 else "Even"))
    events = world.member.uncached()
    task = spawn(events.list("default", field_selector=parse_fields("reason=Odd"), limit=1))
    world.settle()
    first = task.outcome.result()
    assert (names(first), first.more, first.remaining) == (["e3"], True, None)
    task = spawn(events.list("default", field_selector=parse_fields("reason=Odd"), limit=5))
    world.settle()
    assert (names(task.outcome.result()), task.outcome.result().more) == (["e3", "e7"], False)
    task = spawn(events.list(limit=4))
    world.settle()
    assert (len(task.outcome.result().items), task.outcome.result().remaining) == (4, 5)


def test_lists_from_the_cache_are_counted() -> None:
    world = World()
    for number in range(4):
        world.put(pod(f"p{number}", f"n{number % 2}"))
    cacher = world.member.cacher("pods")
    world.settle()
    cacher.list(field_selector=parse_fields("spec.nodeName=n1"))
    cacher.list(label_selector=parse_labels("app=none"))
    value = world.member.value
    assert value("apiserver_cache_list_total", "", "pods", "spec.nodeName") == 1
    assert value("apiserver_cache_list_fetched_objects_total", "", "pods", "spec.nodeName") == 2
    assert value("apiserver_cache_list_fetched_objects_total", "", "pods", "") == 4
    assert value("apiserver_cache_list_returned_objects_total", "", "pods") == 2
