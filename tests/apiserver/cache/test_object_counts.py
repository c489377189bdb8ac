"""How many objects there are, as the metrics say it."""

from __future__ import annotations

from harness.apiserver.store.storage import unavailable
from tests.apiserver.cache.world import World, event, secret


def counted(world: World, resource: str) -> tuple[float, float, float]:
    value = world.member.value
    return (
        value("apiserver_storage_objects", resource),
        value("apiserver_resource_objects", "", resource),
        value("apiserver_resource_size_estimate_bytes", "", resource),
    )


def test_cached_objects_are_counted_at_once_then_each_one_to_two_minutes() -> None:
    world = World()
    world.put(secret("a"))
    cacher = world.member.cacher("secrets")
    world.settle(1.3)
    assert counted(world, "secrets") == (1, 1, cacher.size_bytes)
    world.put(secret("b"))
    world.settle(58.0)
    assert counted(world, "secrets")[0] == 1
    world.settle(76.0)
    assert counted(world, "secrets") == (2, 2, cacher.size_bytes)


def test_what_no_cache_holds_is_counted_by_the_store_and_its_size_is_unknown() -> None:
    world = World()
    events = world.member.uncached()
    events.start()
    world.settle()
    assert (counted(world, "events"), events.objects) == ((0, 0, 0), 0)
    for number in range(3):
        world.put(event(f"e{number}", "Created"))
    world.settle(132.0)
    assert (counted(world, "events"), events.objects) == ((3, 3, -1), 3)
    world.member.store.lose(unavailable("connection refused"))
    world.settle(132.0)
    assert (counted(world, "events"), events.objects) == ((-1, -1, -1), 3)
    events.stop()
    lists = world.member.value("etcd_requests_total", "list", "", "events")
    world.settle(1000.0)
    assert world.member.value("etcd_requests_total", "list", "", "events") == lists
