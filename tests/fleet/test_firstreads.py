"""A pod's way to its objects is measured from hearing of it, by kind and member, with the 403s on the way."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.client.delivery import binding_key
from harness.client.machine import Sample
from tests.fleet.builders import add_kubelet, pod, with_objects
from tests.fleet.fakeapi import Logged, Refusal, World, status_body

FORBIDDEN = status_body(403, "Forbidden", "no relationship found")


def settled(**options: object) -> World:
    world = World(latency_s=0.0)
    kubelet = add_kubelet(world, **options)
    with_objects(world, "t", "s0")
    world.run(5.0)
    world.checks.append(kubelet.validate)
    return world


def reads(world: World) -> dict[str, Sample]:
    """By kind; no pod of these tests has two of one."""
    found = [sample for sample in world.samples if sample.name == "first_read_ms"]
    kinds = {dict(sample.labels)["kind"]: sample for sample in found}
    assert len(kinds) == len(found)
    return kinds


def test_each_object_and_token_counts_once_from_hearing_of_the_pod() -> None:
    world = settled()
    world.create("pods", "t", pod("p", "n1", secrets=("s0",)))
    world.run(200.0)  # touches read everything again
    found = reads(world)
    assert set(found) == {"secrets", "configmaps", "tokens"}
    for kind, sample in found.items():
        assert sample.labels == (("kind", kind), ("member", "m0"), ("refused", "no"))
        assert 100.0 <= sample.value <= 310.0  # two to three volume loops


def test_a_second_pod_finds_them_there_but_its_token() -> None:
    world = settled()
    world.create("pods", "t", pod("p", "n1", secrets=("s0",)))
    world.run(10.0)
    world.samples.clear()
    world.create("pods", "t", pod("q", "n1", secrets=("s0",)))
    world.run(20.0)
    assert set(reads(world)) == {"secrets", "configmaps", "tokens"}


def test_refusals_on_the_way_are_counted_by_kind_and_marked() -> None:
    world = settled()

    def refuse(logged: Logged) -> Refusal:
        return (403, FORBIDDEN) if logged.info.resource != "events" and world.now < 8.0 else None

    world.refuse = refuse
    world.create("pods", "t", pod("p", "n1", secrets=("s0",)))
    world.run(60.0)
    refused = Counter(
        dict(sample.labels)["kind"] for sample in world.samples if sample.name == "first_read_403s"
    )
    asked = Counter(each.info.resource for each in world.log if each.status == 403)
    assert refused["secrets"] == asked["secrets"] > 1
    assert refused["configmaps"] == asked["configmaps"] > 1
    assert refused["tokens"] == asked["serviceaccounts"] > 1
    for sample in reads(world).values():
        assert dict(sample.labels)["refused"] == "yes"
        assert sample.value > 2900.0


def test_of_a_pod_that_goes_meanwhile_nothing_is_kept() -> None:
    world = settled()
    world.refuse = lambda logged: (403, FORBIDDEN) if logged.info.resource == "secrets" else None
    world.create("pods", "t", pod("p", "n1", secrets=("s0",)))
    world.run(6.0)
    world.delete("pods", "t", "p")
    world.run(60.0)  # `validate` counts the ways after every event
    assert "secrets" not in reads(world)


@pytest.mark.parametrize(("one_of", "times"), [(0, 0), (1, 1)])
def test_a_pod_that_is_followed_says_when_it_was_heard_of_and_when_each_read_was(
    one_of: int, times: int
) -> None:
    world = settled(follow_one_of=one_of)
    created = world.create("pods", "t", pod("p", "n1", secrets=("s0",)))
    world.run(10.0)
    mine = [seen for seen in world.sightings if seen.write == binding_key(created["metadata"]["uid"])]
    assert Counter(seen.name for seen in mine) == Counter(
        {"binding_heard_ms": times, "binding_to_read_ms": 3 * times}
    )
    assert {dict(seen.labels)["member"] for seen in mine} <= {"m0"}


def test_a_kubelet_hears_of_its_own_writes_as_anybody_does() -> None:
    world = settled(follow_one_of=1)
    world.create("pods", "t", pod("p", "n1", secrets=("s0",)))
    world.run(10.0)
    running = world.get("pods", "t", "p")
    assert running is not None
    assert running["status"]["phase"] == "Running"
    assert f"pods/{running['metadata']['resourceVersion']}" in {seen.write for seen in world.sightings}
