"""Fan-out: who is touched by an event, in what order, at whose cost, encoded how often."""

from __future__ import annotations

from typing import Any

import pytest

from harness.apiserver.cache import watchers
from harness.apiserver.cache.cachedobject import CachedObject
from harness.wire.selectors import parse_fields
from tests.apiserver.cache.world import Client, World, pod, secret


def test_an_event_touches_only_the_watchers_of_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    cacher = world.member.cacher("pods")
    world.settle()
    clients = [
        world.watch(cacher, resource_version=1, fields=parse_fields(f"spec.nodeName=n{number}"))[0]
        for number in range(500)
    ]
    asked: list[object] = []
    match = watchers.Watcher.match
    monkeypatch.setattr(
        watchers.Watcher, "match", lambda self, event: (asked.append(self), match(self, event))[1]
    )
    world.put(pod("p", "n7"))
    world.put(pod("p", "n8"))
    assert len(asked) == 3
    assert [number for number, client in enumerate(clients) if client.seen] == [7, 8]


def test_an_event_is_encoded_once_for_all_its_watchers(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    clients = [world.watch(cacher, resource_version=1)[0] for _ in range(100)]
    encoded: list[str] = []
    encode = watchers.encode_event
    monkeypatch.setattr(
        watchers, "encode_event", lambda kind, body: (encoded.append(kind), encode(kind, body))[1]
    )
    world.put(secret("a"))
    assert encoded == ["ADDED"]
    assert all(client.seen == [("ADDED", "a", "2")] for client in clients)


def test_each_delivery_costs_the_host_and_watchers_are_served_in_an_order_drawn_for_each_event() -> None:
    world = World(cores=1)
    cacher = world.member.cacher("secrets")
    world.settle(1.0)
    clients = [world.watch(cacher, resource_version=1)[0] for _ in range(64)]
    world.settle(1.0)
    before = world.member.host.busy_s
    orders = []
    for value in range(2):
        order: list[int] = []
        for number, client in enumerate(clients):
            client.write = _noting(client, order, number)  # type: ignore[method-assign]
        world.write(secret("a", value=str(value)))
        world.settle(1.0)
        orders.append(order)
    per_write = world.member.host.costs.replica_etcd_us + 64 * world.member.host.costs.watch_event_us
    assert world.member.host.busy_s - before == pytest.approx(2 * per_write * 1e-6)
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(64))
    assert orders[0] != orders[1]
    assert orders[0] != list(range(64))


def _noting(client: Client, order: list[int], number: int) -> Any:
    write = Client.write

    def noting(data: bytes) -> None:
        order.append(number)
        write(client, data)

    return noting


def test_another_members_write_costs_applying_it_and_ones_own_does_not() -> None:
    world = World(members=2, cores=1)
    for member in world.members:
        member.cacher("secrets")
    world.settle(1.0)
    before = [member.host.busy_s for member in world.members]
    world.write(secret("a"), member=0)
    world.settle(1.0)
    costs = world.member.host.costs
    spent = [member.host.busy_s - start for member, start in zip(world.members, before, strict=True)]
    assert spent == pytest.approx(
        [costs.replica_etcd_us * 1e-6, (costs.replica_etcd_us + costs.cache_event_us) * 1e-6]
    )


def test_events_reach_a_watcher_in_order_on_many_cores() -> None:
    world = World(cores=8)
    cacher = world.member.cacher("secrets")
    world.settle(1.0)
    one, _ = world.watch(cacher, resource_version=1, namespace="x")
    crowd = [
        world.watch(cacher, resource_version=1, fields=parse_fields("metadata.name=a"))[0] for _ in range(60)
    ]
    world.settle(1.0)
    for _ in range(8):
        world.write(secret("a", "x"))  # to all 61, in chunks
        world.write(secret("b", "x"))  # to one
    world.settle(1.0)
    assert [int(version) for _, _, version in one.seen] == list(range(2, 18))
    assert all([int(version) for _, _, version in client.seen] == list(range(2, 18, 2)) for client in crowd)


def test_an_informer_of_the_member_sees_the_state_then_every_change() -> None:
    world = World()
    world.put(pod("a", "n1"))
    cacher = world.member.cacher("pods")
    world.settle()
    heard: list[tuple[str, str, str, str | None]] = []
    synced: list[int] = []

    def hear(kind: str, obj: CachedObject, previous: CachedObject | None) -> None:
        before = previous.field("spec.nodeName") if previous else None
        heard.append((kind, obj.name, obj.field("spec.nodeName"), before))

    cacher.subscribe(hear, lambda: synced.append(len(heard)))
    world.put(pod("b"))
    world.put(pod("b", "n2"))
    world.delete("pods", "default", "b")
    assert synced == [1]
    assert heard == [
        ("ADDED", "a", "n1", None),
        ("ADDED", "b", "", None),
        ("MODIFIED", "b", "n2", ""),
        ("DELETED", "b", "n2", "n2"),
    ]


def test_an_informer_races_with_the_kubelets_watches() -> None:
    world = World(cores=1)
    cacher = world.member.cacher("pods")
    world.settle(1.0)
    first: list[str] = []
    cacher.subscribe(lambda *_: first.append("informer"))
    client, _ = world.watch(cacher, resource_version=1, fields=parse_fields("spec.nodeName=n1"))
    client.write = lambda data: first.append("kubelet")  # type: ignore[method-assign]
    wins = 0
    for number in range(200):
        first.clear()
        world.write(pod(f"p{number}", "n1"))
        world.settle(1.0)
        assert sorted(first) == ["informer", "kubelet"]
        wins += first[0] == "kubelet"
    assert 60 < wins < 140


def test_what_is_sent_is_counted() -> None:
    world = World()
    cacher = world.member.cacher("secrets")
    world.settle()
    world.put(secret("a"))
    world.watch(cacher, send_initial_events=True, allow_bookmarks=True)
    world.put(secret("b"))
    value = world.member.value
    world.member.metrics.render()
    assert value("apiserver_watch_events_total", "", "v1", "secrets") == 3
    sizes = world.member.metrics.apiserver_watch_events_sizes.labels("", "v1", "secrets")
    assert sizes.count == 3
    assert value("apiserver_init_events_total", "", "secrets") == 1
    assert value("apiserver_watch_cache_events_dispatched_total", "", "secrets") == 2
    assert value("apiserver_watch_cache_events_received_total", "", "secrets") == 2
    assert value("apiserver_watch_cache_resource_version", "", "secrets") == 3
    assert value("apiserver_watch_cache_initializations_total", "", "secrets") == 1


def test_a_nodes_pods_watch_list_walks_the_whole_store_in_metrics_and_cost_and_a_named_one_does_not() -> None:
    world = World(cores=1)
    for number in range(50):
        world.write(pod(f"p{number}", f"n{number % 10}"))
    cacher = world.member.cacher("pods")
    world.settle(1.0)
    costs = world.member.host.costs
    before = world.member.host.busy_s
    client, _ = world.watch(
        cacher, send_initial_events=True, resource_version=1, fields=parse_fields("spec.nodeName=n3")
    )
    world.settle(1.0)
    assert len(client.seen) == 5
    assert world.member.value("apiserver_init_events_total", "", "pods") == 50
    spent = world.member.host.busy_s - before
    assert spent == pytest.approx((4 * costs.watch_list_per_pod_us + 45 * costs.scan_per_object_us) * 1e-6)
    named, _ = world.watch(
        cacher, send_initial_events=True, resource_version=1, namespace="default", name="p7"
    )
    assert [name for _, name, _ in named.seen] == ["p7"]
    assert world.member.value("apiserver_init_events_total", "", "pods") == 51


def test_an_informer_that_comes_before_the_cache_is_filled_misses_nothing() -> None:
    world = World(fsync_s=0.001, fsync_sigma=0.0)
    world.write(pod("a"))
    world.settle(1.0)
    cacher = world.member.cacher("pods")
    cacher.ready = False
    heard: list[str] = []
    cacher.subscribe(lambda kind, obj, previous: heard.append(obj.name), lambda: heard.append("synced"))
    cacher._filled(*_listed(world))
    assert heard == ["a", "synced"]


def _listed(world: World) -> tuple[Any, int]:
    page = world.core.range("/registry/pods/")
    return page.kvs, page.revision
