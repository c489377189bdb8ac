"""Whoever lists and then watches, from wherever and whatever, knows what a list would have told."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.apiserver.cache.cachedobject import CachedObject, Selection
from harness.apiserver.cache.uncached import Uncached
from harness.apiserver.store.core import StoreCore
from harness.wire.selectors import parse_fields, parse_labels
from tests.apiserver.cache.world import ROWS, Client, World, event, pod

PODS = [
    {"labels": parse_labels("app=x")},
    {"labels": parse_labels("app!=x"), "namespace": "ns1"},
    {"fields": parse_fields("spec.nodeName=n1")},
    {"fields": parse_fields("spec.nodeName=n1"), "namespace": "ns2"},
    {"fields": parse_fields("spec.nodeName!=n1")},
    {"fields": parse_fields("metadata.name=a")},
    {"fields": parse_fields("metadata.name=a,spec.nodeName=n2"), "namespace": "ns1"},
    {"namespace": "ns1"},
    {"namespace": "ns1", "name": "b"},
    {},
]
EVENTS = [
    {"fields": parse_fields("reason=x")},
    {"fields": parse_fields("reason=x"), "namespace": "ns1"},
    {"fields": parse_fields("metadata.name=a")},
    {"namespace": "ns1", "name": "b"},
    {},
]
Change = Callable[[World, Random], None]


def change_a_pod(world: World, rng: Random) -> None:
    namespace, name = rng.choice(["ns1", "ns2"]), rng.choice("abc")
    if rng.random() < 0.3:
        world.delete("pods", namespace, name)
    else:
        labels = {"app": rng.choice("xy")} if rng.random() < 0.7 else {}
        world.put(pod(name, rng.choice(["", "n1", "n2"]), namespace, **labels))


def change_an_event(world: World, rng: Random) -> None:
    namespace, name = rng.choice(["ns1", "ns2"]), rng.choice("abc")
    if rng.random() < 0.3:
        world.delete("events", namespace, name)
    else:
        world.put(event(name, rng.choice("xy"), namespace))


def selected(
    core: StoreCore, reader: Any, resource: str, query: dict[str, Any], revision: int
) -> dict[str, Any]:
    """What the store itself had at a revision, as (namespace/name -> object)."""
    selection = Selection(
        query.get("namespace", ""), query.get("name", ""), query.get("labels"), query.get("fields")
    )
    kvs = core.range(ROWS[resource].prefix, revision=revision).kvs
    objects: list[CachedObject] = [reader.read(kv.key, kv.value, kv.mod_revision) for kv in kvs]
    return {f"{obj.namespace}/{obj.name}": obj.decode() for obj in objects if selection.matches(obj)}


def replay(known: dict[str, Any], client: Client) -> dict[str, Any]:
    """The state that a client ends up with; each event must fit what it knew."""
    known = dict(known)
    last = 0
    for entry in client.events:
        obj, kind = entry["object"], entry["type"]
        key = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        assert (key in known) is (kind != "ADDED"), f"{kind} of {key}"
        if kind == "DELETED":
            del known[key]
        else:
            known[key] = obj
        revision = int(obj["metadata"]["resourceVersion"])
        assert revision > last, "events out of order"
        last = revision
    return known


@pytest.mark.parametrize(
    ("resource", "change", "queries"), [("pods", change_a_pod, PODS), ("events", change_an_event, EVENTS)]
)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_listing_at_a_revision_and_watching_from_it_gives_what_a_later_list_gives(
    resource: str, change: Change, queries: list[dict[str, Any]], seed: int
) -> None:
    rng = Random(seed)
    world = World()
    source = world.member.uncached() if resource == "events" else world.member.cacher(resource)
    reader = source.reader if isinstance(source, Uncached) else source.cache.reader
    world.settle()
    watches = []
    for _ in range(rng.randint(5, 40)):
        change(world, rng)
        if rng.random() < 0.5:
            query = rng.choice(queries)
            revision = rng.randint(1, world.core.revision)
            known = selected(world.core, reader, resource, query, revision)
            client, _ = world.watch(source, resource_version=revision, send_initial_events=False, **query)
            watches.append((query, known, client))
    for query, known, client in watches:
        expected = selected(world.core, reader, resource, query, world.core.revision)
        assert replay(known, client) == expected
