"""What a dispatcher that is held up does to the cache behind it, and to a watch-list that never kept up."""

from __future__ import annotations

import pytest

from harness.apiserver.cache.dispatch import INCOMING
from harness.apiserver.cache.freshness import TooLarge
from harness.apiserver.cache.watchers import End
from harness.apiserver.model.capacity import WATCH
from harness.apiserver.store.storage import unavailable
from harness.wire.selectors import parse_labels
from tests.apiserver.cache.test_slow_watchers import BIG, fill, ready, terminated
from tests.apiserver.cache.world import pod, secret

END = {"k8s.io/initial-events-end": "true"}


def test_a_hundred_events_wait_and_one_that_the_cache_has_and_the_rest_it_has_not() -> None:
    world, cacher = ready()
    slow, _ = world.watch(cacher, slow=True, resource_version=1)
    world.settle(10.0)
    fill(world, slow)
    world.put(secret("a"))  # blocks
    blocked = cacher.revision
    for _ in range(INCOMING + 1):
        world.put(secret("a"))
    assert cacher.revision == blocked + INCOMING + 1
    world.put(secret("b"))
    world.put(secret("b", value="2"))
    assert cacher.revision == blocked + INCOMING + 1, "who brings events stands still"
    assert cacher.get("/registry/secrets/default/b") is None
    waiting = cacher.wait_until_fresh(world.core.revision)
    assert not waiting.done
    world.settle(0.101)
    assert terminated(world) == 1
    assert waiting.done
    assert cacher.revision == world.core.revision


def test_progress_waits_behind_events_too() -> None:
    world, cacher = ready()
    slow, _ = world.watch(cacher, slow=True, resource_version=1)
    world.settle(10.0)
    fill(world, slow)
    world.put(secret("a"))
    told = cacher._watchers.processed
    world.put(pod("p"))
    cacher._request_progress()
    world.settle()
    assert (cacher.revision, cacher._watchers.processed) == (world.core.revision, told)
    world.settle(0.101)
    assert cacher._watchers.processed == world.core.revision


def test_progress_is_held_back_with_the_events_before_it_where_there_is_no_room() -> None:
    world, cacher = ready()
    slow, _ = world.watch(cacher, slow=True, resource_version=1)
    world.settle(10.0)
    fill(world, slow)
    for _ in range(INCOMING + 3):
        world.put(secret("a"))
    stood = cacher.revision
    world.put(pod("p"))
    cacher._request_progress()
    waiting = cacher.wait_until_fresh(world.core.revision, timeout_s=0.05)
    world.settle(0.06)
    assert cacher.revision == stood
    with pytest.raises(TooLarge):
        waiting.result()
    world.settle(0.1)
    assert cacher.revision == world.core.revision


def test_progress_may_be_what_fills_the_channel_up() -> None:
    world, cacher = ready()
    slow, _ = world.watch(cacher, slow=True, resource_version=1)
    world.settle(10.0)
    fill(world, slow)
    for _ in range(1 + INCOMING):
        world.put(secret("a"))
    world.put(pod("p"))
    cacher._request_progress()
    world.settle()
    world.put(secret("c"))
    assert cacher.get("/registry/secrets/default/c") is None
    world.settle(0.101)
    assert cacher.get("/registry/secrets/default/c") is not None


def test_a_second_watcher_may_hold_up_what_the_first_one_had_held_up() -> None:
    world, cacher = ready()
    slow = [world.watch(cacher, slow=True, resource_version=1, namespace=name)[0] for name in ("x", "y")]
    world.settle(10.0)
    for number in range(21):
        for name in ("x", "y"):
            world.put(secret("a", name, BIG if number == 0 else ""))
    world.put(secret("a", "x"))
    world.put(secret("a", "y"))
    for _ in range(INCOMING + 5):
        world.put(secret("b", "z"))
    world.settle(0.1)
    assert [client.finished for client in slow] == [1, 0]
    world.settle(0.05)
    assert [client.finished for client in slow] == [1, 1]
    assert cacher.revision == world.core.revision


def test_when_the_store_is_lost_what_waited_is_dropped() -> None:
    world, cacher = ready()
    slow, _ = world.watch(cacher, slow=True, resource_version=1)
    world.settle(10.0)
    fill(world, slow)
    for _ in range(INCOMING + 5):
        world.put(secret("a"))
    world.member.store.lose(unavailable("connection refused"))
    world.settle(0.2)
    assert (slow.finished, terminated(world), cacher.watchers) == (1, 1, 0), "upstream counts it as slow"
    cacher.stop()
    world.settle(10.0)


def test_a_cacher_that_is_stopped_while_its_dispatcher_is_held_up_stays_quiet() -> None:
    world, cacher = ready()
    slow, _ = world.watch(cacher, slow=True, resource_version=1)
    world.settle(10.0)
    fill(world, slow)
    world.put(secret("a"))
    cacher.stop()
    world.settle(10.0)
    assert terminated(world) == 0


def test_a_refill_lists_the_store_again_and_ends_all_watches() -> None:
    world, cacher = ready()
    world.put(secret("a"))
    client, _ = world.watch(cacher, resource_version=2)
    assert cacher.corrupt("drop", world.rng) == "/registry/secrets/default/a"
    assert len(cacher) == 0
    cacher.refill()
    assert client.finished == 1
    world.settle()
    assert (cacher.ready, len(cacher)) == (True, 1)
    world.put(secret("b"))
    assert len(cacher) == 2
    cacher.stop()
    cacher.refill()
    assert not cacher.ready


# ---- a watch-list that does not get through its initial events
def test_it_is_drained_when_a_bookmark_waits_in_its_channel() -> None:
    world, cacher = ready()
    world.put(secret("a", value=BIG))
    for number in range(40):
        world.put(secret(f"b{number:02}"))
    slow, watcher = world.watch(cacher, slow=True, send_initial_events=True, allow_bookmarks=True)
    assert watcher.awaits_end
    world.settle(1.3)
    assert not watcher.awaits_end, "the tick's bookmark is in the channel, though the client has nothing yet"
    for _ in range(10):
        world.put(secret("c"))
    world.settle(1.0)
    assert (terminated(world), slow.finished) == (1, 0)
    assert cacher.watchers == 0, "it gets nothing further"
    world.put(secret("d"))
    slow.slow = False
    slow.drain()
    world.settle()
    kinds = [kind for kind, _, _ in slow.seen]
    assert kinds == ["ADDED"] * 41 + ["BOOKMARK"] + ["ADDED"] + ["MODIFIED"] * 8
    assert slow.events[41]["object"]["metadata"]["annotations"] == END
    assert slow.finished == 1


def test_a_bookmark_with_news_waits_in_the_channel_for_its_turn() -> None:
    world, cacher = ready()
    for number in range(40):
        world.put(secret(f"b{number:02}", value=BIG if number == 0 else ""))
    slow, watcher = world.watch(cacher, slow=True, send_initial_events=True, allow_bookmarks=True)
    world.put(secret("c"))
    world.settle(1.3)
    slow.slow = False
    slow.drain()
    world.settle()
    assert [kind for kind, _, _ in slow.seen[-3:]] == ["BOOKMARK", "ADDED", "BOOKMARK"]
    assert "annotations" not in slow.events[-1]["object"]["metadata"]
    assert watcher._end is End.SENT


def test_it_is_closed_at_once_where_no_bookmark_has_come_yet() -> None:
    world, cacher = ready()
    for number in range(40):
        world.put(secret(f"b{number:02}", value=BIG if number == 0 else ""))
    slow, watcher = world.watch(cacher, slow=True, send_initial_events=True, allow_bookmarks=True)
    for _ in range(11):
        world.put(secret("c"))
    assert watcher.awaits_end
    world.settle(0.2)
    assert (terminated(world), slow.finished) == (1, 1)


def test_a_client_that_goes_while_it_is_drained_is_let_go() -> None:
    world, cacher = ready()
    for number in range(40):
        world.put(secret(f"b{number:02}", value=BIG if number == 0 else ""))
    slow, watcher = world.watch(cacher, slow=True, send_initial_events=True, allow_bookmarks=True)
    world.settle(1.3)
    for _ in range(11):
        world.put(secret("c"))
    world.settle(1.0)
    assert (terminated(world), watcher.stopped) == (1, False)
    watcher.stop()
    slow.drain()
    world.settle(100.0)
    assert slow.finished == 0


def test_one_that_is_drained_gets_no_bookmarks_and_ends_at_its_deadline_at_the_latest() -> None:
    world, cacher = ready()
    for number in range(40):
        world.put(secret(f"b{number:02}", value=BIG if number == 0 else ""))
    slow, watcher = world.watch(
        cacher, slow=True, send_initial_events=True, allow_bookmarks=True, timeout_s=100.0
    )
    world.settle(1.3)
    for _ in range(11):
        world.put(secret("c"))
    world.settle(90.0)
    assert len(watcher._queue) == watcher.capacity
    world.settle(20.0)
    assert slow.finished == 1


# ---- a watch from a past revision
def test_it_is_closed_without_a_word_where_the_history_has_outrun_it() -> None:
    world, cacher = ready()
    for number in range(180):
        world.put(secret(f"s{number:03}", value=BIG if number == 30 else ""))
    slow, _ = world.watch(cacher, slow=True, resource_version=1, namespace="default")
    for _ in range(300):
        world.put(secret("t", "elsewhere"))
        world.settle(2.0)
    slow.slow = False
    slow.drain()
    world.settle()
    assert (slow.finished, terminated(world)) == (1, 0)
    assert [name for _, name, _ in slow.seen] == [f"s{number:03}" for number in range(100)]


def test_it_gets_all_events_however_many_in_order_where_it_keeps_up() -> None:
    world, cacher = ready()
    for number in range(350):
        world.put(secret(f"s{number % 7}"))
    client, _ = world.watch(cacher, resource_version=1, fields=None)
    assert [int(version) for _, _, version in client.seen] == list(range(2, 352))


@pytest.mark.parametrize(("wanted", "others"), [(0, 5), (1, 4), (4, 1)])
def test_it_pays_for_events_that_it_does_not_want_as_for_a_look(wanted: int, others: int) -> None:
    world, cacher = ready("pods", cores=1)
    for number in range(wanted + others):
        world.write(pod(f"p{number}", app="x" if number < wanted else "y"))
    world.settle(1.0)
    before = world.member.host.busy_of_s(WATCH) + world.member.host.busy_s
    world.watch(cacher, resource_version=1, labels=parse_labels("app=x"))
    world.settle(1.0)
    costs = world.member.host.costs
    spent = world.member.host.busy_of_s(WATCH) + world.member.host.busy_s - before
    expected = max(0, wanted - 1) * costs.watch_event_us + others * costs.watch_filter_us
    assert spent == pytest.approx(expected * 1e-6)
