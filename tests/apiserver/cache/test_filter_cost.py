"""An event costs each watcher that an index does not spare it a look, wanted or not."""

from __future__ import annotations

from typing import Any

import pytest

from harness.apiserver.model.capacity import WATCH
from harness.wire.selectors import parse_fields, parse_labels
from tests.apiserver.cache.test_slow_watchers import ready, terminated
from tests.apiserver.cache.world import World, pod

NOT_INDEXED: list[dict[str, Any]] = [
    {"labels": parse_labels("app=x")},
    {"labels": parse_labels("app=x"), "namespace": "default"},
    {"fields": parse_fields("spec.nodeName!=n1")},
    {"fields": parse_fields("status.phase=Failed")},
]
INDEXED: list[dict[str, Any]] = [
    {"fields": parse_fields("metadata.name=q")},
    {"fields": parse_fields("spec.nodeName=n2")},
    {"fields": parse_fields("spec.nodeName=n2,status.phase=Failed")},
    {"namespace": "elsewhere", "labels": parse_labels("app=x")},
]


def spent_us(world: World, watches: int, query: dict[str, Any]) -> float:
    """What an event of a pod on n1 costs the host beyond what it costs without anybody watching."""
    cacher = world.member.cacher("pods")
    world.settle(1.0)
    for _ in range(watches):
        world.watch(cacher, resource_version=1, **query)
    world.settle(1.0)
    before = world.member.host.busy_of_s(WATCH)
    world.write(pod("p", "n1"))
    world.settle(1.0)
    return (world.member.host.busy_of_s(WATCH) - before) * 1e6


@pytest.mark.parametrize("query", NOT_INDEXED)
def test_one_that_no_index_finds_is_looked_at_by_every_watcher(query: dict[str, Any]) -> None:
    each = World().member.host.costs.watch_filter_us
    assert spent_us(World(cores=1), 1, query) == pytest.approx(each)
    assert spent_us(World(cores=1), 200, query) == pytest.approx(200 * each)


@pytest.mark.parametrize("query", INDEXED)
def test_one_that_an_index_finds_costs_the_others_nothing(query: dict[str, Any]) -> None:
    assert spent_us(World(cores=1), 200, query) == 0.0


def test_without_a_model_a_look_is_counted_and_leaves_nothing_behind() -> None:
    world = World()
    each = world.member.host.costs.watch_filter_us
    assert spent_us(world, 200, NOT_INDEXED[0]) == pytest.approx(200 * each)


def test_a_host_that_cannot_keep_up_with_looks_fills_the_channels_with_them() -> None:
    world, cacher = ready("pods", cores=1)
    client, _ = world.watch(cacher, resource_version=1, labels=parse_labels("app=x"))
    world.settle(10.0)
    world.member.host.charge(5e6, WATCH)
    for number in range(21):
        world.write(pod(f"p{number}"))
    world.settle(1.0)
    assert (client.seen, client.finished, terminated(world, "pods")) == ([], 1, 1)


def test_a_look_that_had_to_wait_for_room_is_paid_for_like_any() -> None:
    world, cacher = ready("pods", cores=1)
    client, watcher = world.watch(cacher, resource_version=1, labels=parse_labels("app=x"))
    world.settle(10.0)
    world.member.host.charge(0.05e6, WATCH)
    for number in range(21):
        world.write(pod(f"p{number}"))
    world.write(pod("q", app="x"))
    world.settle(1.0)
    assert [name for _, name, _ in client.seen] == ["q"]
    assert (terminated(world, "pods"), len(watcher._queue)) == (0, 0)
