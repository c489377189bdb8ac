"""How a kubelet joins."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from harness.wire.request import Failure, TransportError
from tests.fleet.builders import add_kubelet
from tests.fleet.fakeapi import Logged, World, status_body


def posts(world: World) -> list[float]:
    return [each.at for each in world.requests("create nodes")]


def test_a_node_is_registered_ready_and_watched_within_a_second() -> None:
    world = World()
    kubelet = add_kubelet(world, events=False)
    assert world.run_until(lambda: kubelet.registered) == pytest.approx(0.102)
    assert world.run_until(lambda: kubelet.ready) < 0.35
    world.run(1.0)
    assert [each.kind for each in world.notes] == ["kubelet-registered", "kubelet-ready"]
    node = world.get("nodes", "", "n1")
    assert node is not None
    ready = next(each for each in node["status"]["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("True", "KubeletReady")
    assert world.requests("watch pods")[0].at == 1.0


def test_a_refused_registration_is_tried_again_after_twice_as_long() -> None:
    world = World(latency_s=0.0)
    world.refuse = lambda logged: (500, b"{}") if logged.line == "create nodes" else None
    add_kubelet(world, events=False)
    world.run(40.0)
    waits = [round(after - before, 6) for before, after in pairwise(posts(world))]
    assert waits == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 7.0, 7.0, 7.0]


def test_a_node_of_an_earlier_life_gets_its_status_reported_anew() -> None:
    world = World()
    world.create("nodes", "", {"metadata": {"name": "n1"}, "spec": {}, "status": {}})
    kubelet = add_kubelet(world, events=False)
    world.run(0.2)
    assert kubelet.registered
    sent = [each.line for each in world.log if each.at >= 0.1]
    assert sent[:3] == ["create nodes", "get nodes", "patch nodes/status"]


def test_the_csinode_is_asked_for_each_second_until_the_server_answers() -> None:
    world = World(latency_s=0.0)
    refused = TransportError(Failure.REFUSED, "no one listens")
    world.refuse = lambda logged: refused if logged.at < 2.5 else None
    add_kubelet(world, events=False)
    world.run(3.0)
    assert [each.at for each in world.requests("get csinodes")][:4] == [0.0, 1.0, 2.0, 3.0]


def test_the_csinode_loop_starts_over_when_the_node_stays_away() -> None:
    world = World(latency_s=0.0)

    def refuse(logged: Logged) -> tuple[int, bytes] | None:
        return (500, b"{}") if logged.line == "create nodes" and logged.at < 3 else None

    world.refuse = refuse
    kubelet = add_kubelet(world, events=False)
    world.run(2.0)
    tries = [each.at for each in world.requests("get nodes") if "timeout" not in each.request.path]
    waits = [after - before for before, after in pairwise(tries)]
    expected = [0.01, 0.05, 0.25, 0.015, 0.01, 0.05, 0.25, 0.09, 0.01, 0.05, 0.25, 0.54]
    assert len(waits) >= 11
    for wait_s, least_s in zip(waits, expected, strict=False):
        assert least_s <= wait_s <= least_s * 1.1 + 1e-9
    world.run(20.0)
    assert kubelet.ready


def test_a_node_that_already_has_a_csinode_creates_none() -> None:
    world = World()
    world.create("csinodes", "", {"metadata": {"name": "n1"}})
    kubelet = add_kubelet(world, events=False)
    world.run(1.0)
    assert kubelet.ready
    assert world.requests("create csinodes") == []


def test_pods_are_not_watched_before_the_node_informer_has_synced() -> None:
    world = World()
    world.refuse = lambda logged: (
        (403, status_body(403, "Forbidden", "no"))
        if logged.info.resource == "nodes" and logged.at < 1.5
        else None
    )
    add_kubelet(world, events=False)
    world.run(6.0)
    watch = world.requests("watch pods")[0]
    synced = next(each.at for each in world.requests("watch nodes") if each.status == 200)
    assert watch.at == float(int(synced) + 1)


def test_the_registered_node_says_what_the_options_say() -> None:
    world = World()
    add_kubelet(world, events=False, pods=250, cpu=4, memory_gib=16, labels=(("zone", "a"),))
    world.run(0.11)
    body = msgspec.json.decode(world.requests("create nodes")[0].request.body)
    assert body["metadata"]["labels"]["zone"] == "a"
    assert body["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"
    assert body["status"]["capacity"]["pods"] == "250"
    assert body["status"]["capacity"]["memory"] == f"{16 * 1024 * 1024}Ki"


def test_events_of_a_starting_node_go_through_their_own_client() -> None:
    world = World()
    add_kubelet(world)
    world.run(2.0)
    events = [each.request for each in world.requests("create events")]
    assert {each.client for each in events} == {"events"}
    reasons = [msgspec.json.decode(each.body)["reason"] for each in events]
    assert reasons == [
        "Starting",
        "NodeHasSufficientMemory",
        "NodeHasNoDiskPressure",
        "NodeHasSufficientPID",
        "NodeReady",
    ]


def test_stopping_ends_every_watch_and_leaves_nothing_that_would_send() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(12.0)
    world.stop(0)
    count = len(world.log)
    world.run(1000.0)
    assert len(world.log) == count
    assert world.watches == []
