"""Machines and members in one process: members lost, timeouts, several members with a lag, the same again."""

from __future__ import annotations

from random import Random

import pytest

from harness.apiserver.store.etcd import EtcdOptions
from harness.client.machine import Action, Answered, Arm, Event, Failed, Finished, Fired, Send, Tell, Told
from harness.client.requests import CONFIGMAPS, NODES, create_, get_
from harness.client.rest import Rest
from harness.fleet.kubelet import Kubelet, kubelet_limiters
from harness.fleet.options import KubeletOptions
from harness.virtual.observer import Observer
from harness.virtual.pool import VirtualPool
from harness.virtual.world import World, node
from harness.wire.request import Failure, Request


class Asker:
    """Sends one request each second, and remembers what came."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.got: list[int | Failure] = []
        self.told: list[Told] = []

    def start(self, now: float) -> list[Action]:
        return [Send(("ask",), self.request)]

    def handle(self, event: Event, now: float) -> list[Action]:
        if isinstance(event, Fired):
            return [Send(("ask",), self.request)]
        if isinstance(event, Told):
            self.told.append(event)
            return [Tell("all", event.message), Finished()]
        assert isinstance(event, Answered | Failed)
        self.got.append(event.response.status if isinstance(event, Answered) else event.error.failure)
        return [Arm(("again",), now + 1.0)]

    def stop(self, now: float) -> list[Action]:
        return []


ASK = get_(NODES, None, "n", resource_version="0")


def test_a_client_of_a_lost_member_goes_to_another_and_fails_where_none_is_left() -> None:
    world = World(VirtualPool(2))
    asker = Asker(ASK)
    world.add(asker, "asker", member=0)
    world.run(world.now + 1.5)
    assert world.members_of("asker") == ["member-0"]
    world.lose_member(0)
    assert world.members_of("asker") == ["member-1"]
    world.run(world.now + 1.0)
    assert set(asker.got) == {404}
    world.lose_member(1)
    world.run(world.now + 2.0)
    assert asker.got[-1] is Failure.REFUSED
    world.close()


def test_a_request_ends_with_its_timeout() -> None:
    world = World(VirtualPool(), latency_s=1.0)
    asker = Asker(get_(NODES, None, "n", timeout_s=0.5))
    world.add(asker, "asker")
    world.run(world.now + 1.0)
    assert asker.got == [Failure.TIMEOUT]
    world.close()


def test_parts_of_a_run_tell_one_another() -> None:
    class Ears(Observer):
        heard: list[object] = []  # noqa: RUF012

        def told(self, kind: str, tell: Tell) -> None:
            self.heard.append(tell.message)

    world = World(VirtualPool(), observer=Ears())
    asker = Asker(ASK)
    index = world.add(asker, "asker")
    world.tell(index, Told((), "somebody", "go"))
    assert (asker.told[0].message, Ears.heard) == ("go", ["go"])
    world.close()


@pytest.mark.parametrize("consistent", [True, False])
def test_what_one_member_wrote_the_other_shows_after_the_replications_lag(consistent: bool) -> None:
    """A read that asks for the latest waits for it; one that takes what is there may be told 404."""
    world = World(VirtualPool(2, etcd=EtcdOptions(rtt_s=0.2)))
    body = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","namespace":"default"}}'
    writer = Asker(create_(CONFIGMAPS, "default", body))
    reader = Asker(get_(CONFIGMAPS, "default", "c", resource_version=None if consistent else "0"))
    world.add(writer, "writer", member=0)
    assert world.run_until(lambda: bool(writer.got), 5.0)
    world.add(reader, "reader", member=1)
    world.run(world.now + 3.0)
    assert writer.got[0] == 201
    assert reader.got[0] == (200 if consistent else 404)
    assert reader.got[-1] == 200
    world.close()


def registered(seed: int) -> list[float]:
    """Ten kubelets over three members, each as a node: when each was answered to last in its first minute."""
    world = World(VirtualPool(3, seed=seed, cores=0.5), seed=seed)
    at: list[float] = []

    class Ears(Observer):
        def answered(self, call, response, seconds, error="") -> None:  # type: ignore[no-untyped-def]
            at.append(world.now)

    world.observer = Ears()
    for index in range(10):
        name, options = f"n{index}", KubeletOptions()
        kubelet = Kubelet(name, options, Random(f"{seed}/{name}"), world.epoch_s)
        world.add(Rest(kubelet, kubelet_limiters(options)), "kubelet", node(name))
    world.run(world.now + 60.0)
    assert len(set(world.members_of("kubelet"))) == 3
    world.close()
    return at


def test_a_fleet_over_several_members_is_the_same_for_a_seed() -> None:
    first = registered(1)
    assert len(first) > 200
    assert first == registered(1)
    assert first != registered(2)
