"""Watchers that do not keep up: they block the dispatcher for as long as the budget allows, then are closed."""

from __future__ import annotations

import pytest

from harness.apiserver.cache.cacher import Cacher
from harness.apiserver.cache.watcherindex import TimeBudget
from harness.apiserver.model.capacity import WATCH
from harness.wire.selectors import parse_fields
from tests.apiserver.cache.world import Client, World, pod, secret

BIG = "x" * 70000  # more than one client's buffers take


def terminated(world: World, resource: str = "secrets") -> float:
    return world.member.value("apiserver_terminated_watchers_total", "", resource)


def ready(resource: str = "secrets", cores: float | None = None) -> tuple[World, Cacher]:
    world = World(cores=cores)
    cacher = world.member.cacher(resource)
    world.settle(1.0)
    return world, cacher


def fill(world: World, client: Client, channel: int = 10) -> None:
    """Writes until the client's buffers and both channels hold what they can."""
    for number in range(1 + 2 * channel):
        world.put(secret("a", value=BIG if number == 0 else ""))
    assert not client.finished


def test_a_client_that_takes_nothing_is_closed_after_the_budget_and_counted() -> None:
    world, cacher = ready()
    slow, _ = world.watch(cacher, slow=True, resource_version=1)
    world.settle(10.0)  # the budget is full: 100 ms
    fill(world, slow)
    assert terminated(world) == 0
    world.put(secret("a"))
    world.settle(0.099)
    assert (terminated(world), slow.finished) == (0, 0)
    world.settle(0.002)
    assert (terminated(world), slow.finished) == (1, 1)
    assert b"ERROR" not in slow.data + slow.waiting
    assert cacher.watchers == 0


def test_the_others_wait_while_it_blocks_and_miss_nothing() -> None:
    world, cacher = ready()
    slow, _ = world.watch(cacher, slow=True, resource_version=1)
    fast, _ = world.watch(cacher, resource_version=1)
    world.settle(10.0)
    fill(world, slow)
    world.put(secret("a"))
    world.put(secret("b"))
    assert fast.seen[-1][:2] == ("MODIFIED", "a"), "the event that blocks reaches those that take it"
    world.settle(0.2)
    assert fast.seen[-1][:2] == ("ADDED", "b")
    assert len(fast.seen) == 23


def test_a_client_that_drains_in_time_goes_on_and_gives_the_rest_of_the_budget_back() -> None:
    world, cacher = ready()
    slow, _ = world.watch(cacher, slow=True, resource_version=1)
    world.settle(10.0)
    for _ in range(3):
        world.settle(10.0)
        while cacher.watchers and not cacher._watchers._held_up:
            world.put(secret("a", value=BIG))
        world.settle(0.05)
        slow.slow = False
        slow.drain()
        slow.slow = True
    assert terminated(world) == 0
    revisions = [int(version) for _, _, version in slow.seen]
    assert revisions == list(range(2, 2 + len(revisions))), "every event, in order"


def test_a_client_that_is_as_slow_again_within_a_second_finds_the_budget_used_up() -> None:
    world, cacher = ready()
    slow = [world.watch(cacher, slow=True, resource_version=1)[0] for _ in range(2)]
    world.settle(10.0)
    fill(world, slow[0])
    world.put(secret("a"))
    world.settle(0.101)
    assert terminated(world) == 2, "all that block at the same event share one budget"
    again, _ = world.watch(cacher, slow=True, resource_version=cacher.revision)
    fill(world, again)
    world.put(secret("a"))
    world.settle(0.006)
    assert terminated(world) == 3


def test_a_kubelets_pods_watch_has_ten_events_in_each_channel_even_in_a_large_cache() -> None:
    world, cacher = ready("pods")
    _, watcher = world.watch(cacher, slow=True, resource_version=1, fields=parse_fields("spec.nodeName=n1"))
    anybody, unindexed = world.watch(cacher, resource_version=1)
    assert (watcher.capacity, unindexed.capacity) == (10, 10)
    for number in range(1000):
        world.put(pod(f"p{number}", "n2"))
    assert anybody.finished == 0
    _, watcher = world.watch(cacher, resource_version=1, fields=parse_fields("spec.nodeName=n1"))
    _, unindexed = world.watch(cacher, resource_version=1)
    assert (watcher.capacity, unindexed.capacity) == (10, 22), "1,600 events of history over 75 s"


@pytest.mark.parametrize(("events", "closed"), [(20, 0), (21, 1)])
def test_a_host_that_cannot_pay_for_deliveries_in_time_fills_the_channels_too(
    events: int, closed: int
) -> None:
    world, cacher = ready(cores=1)
    client, _ = world.watch(cacher, resource_version=1)
    world.settle(10.0)
    world.member.host.charge(5e6, WATCH)  # five seconds of deliveries to others
    for _ in range(events):
        world.write(secret("a"))
    world.settle(1.0)
    assert (client.seen, client.finished, terminated(world)) == ([], closed, closed)
    world.settle(6.0)
    assert len(client.seen) == (0 if closed else events)


def test_events_that_come_while_initial_events_wait_for_the_client_are_sent_after_them() -> None:
    world, cacher = ready()
    world.put(secret("a", value=BIG))
    for number in range(40):
        world.put(secret(f"b{number:02}"))
    slow, _ = world.watch(cacher, slow=True, send_initial_events=True, allow_bookmarks=True)
    assert slow.ready == 0
    world.put(secret("c"))
    slow.slow = False
    slow.drain()
    world.settle()
    assert slow.ready == 1
    assert [name for _, name, _ in slow.seen] == ["a", *(f"b{n:02}" for n in range(40)), "", "c"]


def test_a_watch_that_is_stopped_while_it_blocks_is_waited_for_and_counted_all_the_same() -> None:
    """Upstream closes its channel only when the event has been dispatched (cacher.go, stopWatcherLocked)."""
    world, cacher = ready()
    slow, watcher = world.watch(cacher, slow=True, resource_version=1)
    fast, _ = world.watch(cacher, resource_version=1)
    world.settle(10.0)
    fill(world, slow)
    world.put(secret("a"))
    world.put(secret("b"))
    watcher.stop()
    assert fast.seen[-1][:2] == ("MODIFIED", "a")
    world.settle(0.101)
    assert fast.seen[-1][:2] == ("ADDED", "b")
    assert (terminated(world), slow.finished) == (1, 0)


@pytest.mark.parametrize(
    ("idle_s", "expected_s"),
    [(0.0, 0.0), (1.0, 0.05), (1.999, 0.09995), (2.0, 0.1), (2.001, 0.1), (60.0, 0.1)],
)
def test_the_budget_grows_by_50_ms_a_second_up_to_100_ms(idle_s: float, expected_s: float) -> None:
    assert TimeBudget(5.0).take(5.0 + idle_s) == pytest.approx(expected_s)


def test_whoever_takes_the_budget_takes_all_of_it_and_gives_back_what_is_left() -> None:
    budget = TimeBudget(0.0)
    assert budget.take(2.0) == pytest.approx(0.1)
    assert budget.take(2.0) == 0.0
    budget.give_back(0.04)
    assert budget.take(2.0) == pytest.approx(0.04)
    budget.give_back(-1.0)
    assert budget.take(3.0) == pytest.approx(0.05)
