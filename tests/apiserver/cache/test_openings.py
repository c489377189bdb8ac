"""What may happen to a watch, or a list, between asking and its first event."""

from __future__ import annotations

import pytest

from harness.apiserver.cache.delegator import Delegator, ListRequest
from harness.apiserver.cache.freshness import TooLarge
from harness.apiserver.cache.uncached import StoreLister
from harness.apiserver.clock import spawn
from harness.apiserver.store.storage import unavailable
from tests.apiserver.cache.test_slow_watchers import BIG, ready, terminated
from tests.apiserver.cache.world import ROWS, World, event, pod, secret


def test_a_cache_that_is_filled_anew_meanwhile_closes_it_without_a_word() -> None:
    world, cacher = ready()
    client, _ = world.watch(cacher, send_initial_events=True, resource_version=2)
    assert client.heads == 0
    world.write(secret("a"))
    cacher.refill()
    world.settle()
    assert (client.heads, client.finished, client.data) == (1, 1, b"")


def test_a_client_that_goes_meanwhile_is_not_answered() -> None:
    world, cacher = ready()
    client, watcher = world.watch(cacher, send_initial_events=True, resource_version=2)
    watcher.stop()
    world.put(secret("a"))
    assert (client.heads, cacher.watchers) == (0, 0)
    far = World(members=3, rtt_s=0.01)
    events = far.members[1].uncached()
    client, watcher = far.watch(events, send_initial_events=True)
    watcher.stop()
    far.settle(1.0)
    assert (client.heads, events.watchers) == (0, 0)


@pytest.mark.parametrize("initial", [True, False])
def test_a_store_that_does_not_answer_is_an_error_event(initial: bool) -> None:
    world, cacher = ready()
    events = world.member.uncached()
    world.member.store._error = unavailable("connection refused")
    for source in (cacher, events):
        client, _ = world.watch(source, send_initial_events=initial)
        (entry,) = client.events
        assert (entry["type"], entry["object"]["code"], client.finished) == ("ERROR", 500, 1)


def test_an_uncached_watch_list_of_a_revision_to_come_is_an_error_event() -> None:
    world = World()
    client, _ = world.watch(world.member.uncached(), send_initial_events=True, resource_version=9)
    (entry,) = client.events
    assert (entry["object"]["code"], entry["object"]["reason"]) == (504, "Timeout")
    assert "retryAfterSeconds" not in entry["object"]["details"]


def test_an_uncached_watch_without_initial_events_begins_now() -> None:
    world = World()
    world.put(event("old", "Created"))
    client, _ = world.watch(world.member.uncached(), send_initial_events=False)
    world.put(event("new", "Created"))
    assert [name for _, name, _ in client.seen] == ["new"]


def test_a_snapshot_that_goes_while_its_list_waits_is_made_up_for_by_the_store() -> None:
    world, cacher = ready()
    reads = Delegator(StoreLister(ROWS["secrets"], world.member.storage, world.member.metrics), cacher)
    task = spawn(reads.list(ListRequest(revision=2, exact=True)))
    world.settle()
    cacher.mark_consistent(False)
    world.put(secret("a"))
    assert task.outcome.result().from_store


def test_who_waits_for_a_cache_that_is_stopped_is_told_at_once() -> None:
    world, cacher = ready()
    waiting, again = cacher.wait_until_fresh(5), cacher.wait_until_fresh(6, timeout_s=0.1)
    world.settle(0.2)
    cacher.stop()
    for promise in (waiting, again):
        with pytest.raises(TooLarge):
            promise.result()


def test_a_watch_list_that_blocks_is_freed_by_the_end_of_its_initial_events() -> None:
    """They took one of its two channels."""
    world, cacher = ready()
    for number in range(40):
        world.put(secret(f"b{number:02}", value=BIG if number == 0 else ""))
    slow, watcher = world.watch(cacher, slow=True, send_initial_events=True)
    world.settle(10.0)
    for _ in range(11):
        world.put(secret("c"))
    assert watcher.blocking
    slow.slow = False
    slow.drain()
    world.settle(1.0)
    assert (terminated(world), len(slow.seen)) == (0, 51)


def test_one_of_two_that_block_is_freed_and_the_other_is_waited_for() -> None:
    world, cacher = ready()
    slow = [world.watch(cacher, slow=True, resource_version=1)[0] for _ in range(2)]
    world.settle(10.0)
    for number in range(22):
        world.put(secret("a", value=BIG if number == 0 else ""))
    slow[0].slow = False
    slow[0].drain()
    assert [name for _, name, _ in slow[0].seen] == ["a"] * 22
    world.put(secret("b"))
    assert len(slow[0].seen) == 22
    world.settle(0.2)
    assert [name for _, name, _ in slow[0].seen[-1:]] == ["b"]
    assert [client.finished for client in slow] == [0, 1]


def test_what_a_transform_leaves_out_takes_no_room() -> None:
    world, cacher = ready("pods", cores=1)
    client, watcher = world.watch(cacher, resource_version=1, transform=lambda kind, obj: None)
    world.write(pod("p"))
    world.settle(1.0)
    assert (client.data, watcher._queue) == (b"", [])


def test_a_full_watcher_gets_no_bookmark() -> None:
    world, cacher = ready()
    slow, watcher = world.watch(cacher, slow=True, resource_version=1, allow_bookmarks=True)
    for number in range(21):
        world.put(secret("a", value=BIG if number == 0 else ""))
    world.settle(65.0)
    assert (len(watcher._queue), slow.finished) == (20, 0)
    slow.slow = False
    slow.drain()
    assert all(kind != "BOOKMARK" for kind, _, _ in slow.seen)
