"""Nodes that die and start again by order: on whichever worker they are, and what the master counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
from gevent.pool import Group

from harness.client.rest import Rest
from harness.clusterloader.messages import FailNodes, Ping, RebootNodes, encode
from harness.load.context import WorkerContext
from harness.load.plan import Plan, Target, TargetMember
from harness.load.users import KubeletUser
from harness.load.workers.failures import FAILED, REBOOTED, FailedNodes, carry_out, nodes_of
from harness.observe.record import Manifest, RunRecord, Status


class Node:
    """A user that is a node and writes down what is done to it; `obeys` is what it answers."""

    def __init__(self, name: str, *, obeys: bool = True) -> None:
        self.node = name
        self.obeys = obeys
        self.done: list[str] = []

    def fail(self) -> bool:
        self.done.append("fail")
        return self.obeys

    def reboot(self) -> bool:
        self.done.append("reboot")
        return self.obeys


# ---- orders ----------------------------------------------------------------------------------------------------------
def test_an_order_is_carried_out_on_the_nodes_that_are_here_and_told() -> None:
    mine, spared = Node("a"), Node("b")
    told: list[tuple[str, dict[str, Any]]] = []
    for order in (FailNodes, RebootNodes):
        body = encode(order(number=1, names=("a", "elsewhere")))
        carry_out(body, [mine, spared], lambda *event: told.append(event))
    assert (mine.done, spared.done) == (["fail", "reboot"], [])
    assert told == [(FAILED, {"node": "a"}), (REBOOTED, {"node": "a"})]


def test_what_had_no_effect_is_not_told() -> None:
    told: list[Any] = []
    node = Node("a", obeys=False)
    carry_out(encode(FailNodes(number=1, names=("a",))), [node], lambda *event: told.append(event))
    assert (node.done, told) == (["fail"], [])


def test_another_message_is_no_order() -> None:
    node = Node("a")
    carry_out(encode(Ping(number=1)), [node], lambda *event: None)
    assert node.done == []


def test_users_that_are_no_nodes_are_left_out() -> None:
    users = [Node("a"), SimpleNamespace(node="b"), object()]
    runner = SimpleNamespace(user_greenlets=[SimpleNamespace(args=(user,)) for user in users])
    assert list(nodes_of(runner)) == [users[0]]


# ---- the count -------------------------------------------------------------------------------------------------------
@pytest.fixture
def kept(tmp_path: Path) -> Iterator[RunRecord]:
    record = RunRecord(tmp_path / "r", Manifest(name="r", started=0.0))
    yield record
    record.finish(Status.COMPLETED)


STARTED = {"fault_kind": "node-failure", "nodes": ["a", "b"]}


def test_a_run_in_which_no_node_was_to_fail_says_nothing(kept: RunRecord) -> None:
    counts = FailedNodes()
    counts.take("fault-started", {"fault_kind": "kill", "member": "member-0"})
    counts.keep(kept)
    assert "node_failures" not in kept.manifest.results
    assert kept.manifest.marks == []


def test_what_failed_and_came_back_is_counted(kept: RunRecord) -> None:
    counts = FailedNodes()
    counts.take("fault-started", STARTED)
    for kind in (FAILED, FAILED, REBOOTED, REBOOTED):
        counts.take(kind, {"node": "a"})
    counts.keep(kept)
    assert kept.manifest.results["node_failures"] == {"chosen": 2, "failed": 2, "rebooted": 2}
    assert kept.manifest.marks == []


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ([FAILED, REBOOTED], "1 of 2 nodes that were to fail ran on no worker"),
        ([FAILED, FAILED, REBOOTED], "1 of 2 nodes that failed did not come back"),
    ],
)
def test_nodes_that_nobody_had_or_that_stayed_away_are_marked(
    kept: RunRecord, told: list[str], text: str
) -> None:
    counts = FailedNodes()
    counts.take("fault-started", STARTED)
    for kind in told:
        counts.take(kind, {"node": "a"})
    counts.keep(kept)
    (mark,) = kept.manifest.marks
    assert (mark.text, mark.invalid) == (text, False)


# ---- a kubelet -------------------------------------------------------------------------------------------------------
class Kubelet(KubeletUser):
    """As a locustfile has it."""


class World:
    """One user of Locust's, of a fleet whose only apiserver is nowhere."""

    def __init__(self, **plan: Any) -> None:
        target = Target((TargetMember("m", "127.0.0.1", 1),), tls=False)
        whole = Plan(seed=1, kubelets=1, target=target, **plan)
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.context = WorkerContext(whole, 0, lambda **_: None, lambda *event: self.told.append(event))
        self.group = Group()
        self.user: Any = Kubelet(SimpleNamespace(swarmlet_context=self.context))
        self.user.start(self.group)

    def settle(self) -> None:
        """Until whatever begins has begun."""
        with gevent.Timeout(30):
            while self.user._beginning is not None:
                gevent.sleep(0.001)

    def kubelet(self) -> Any:
        machine = self.user.shells[0]._machine
        assert isinstance(machine, Rest)
        return machine


@pytest.fixture
def world() -> Iterator[World]:
    made = World(fleet={"kube_proxy": True})
    made.settle()
    yield made
    made.user.stop(force=True)
    made.context.close()


def test_a_machine_that_dies_takes_along_all_that_runs_on_it(world: World) -> None:
    transports = [shell._transport for shell in world.user.shells]
    assert len(transports) == 2, "a kubelet and its kube-proxy"
    assert world.user.fail() is True
    assert world.user.shells == []
    assert all(transport._closed for transport in transports)
    assert world.user.fail() is False
    assert len(world.group) == 1, "for Locust the user is still there"


def test_it_starts_again_as_the_same_node_with_draws_of_its_own(world: World) -> None:
    name, first = world.user.node, world.kubelet()
    assert world.user.reboot() is False, "it had not died"
    world.user.fail()
    assert world.user.reboot() is True
    assert world.user.reboot() is False, "it is about to"
    world.settle()
    assert world.user.node == name == "swarmlet-0-0"
    assert world.context.nodes.made == 1
    second = world.kubelet()
    assert second is not first
    assert len(world.user.shells) == 2
    assert world.user.fail() is True, "and may die again"


def test_one_that_has_not_begun_cannot_die() -> None:
    world = World()
    assert world.user.fail() is False
    world.settle()
    world.user.stop(force=True)
    world.context.close()


@pytest.mark.parametrize("down", [False, True])
def test_its_name_is_free_again_when_locust_stops_it(world: World, down: bool) -> None:
    if down:
        world.user.fail()
    world.user.stop(force=True)
    assert world.context.nodes.take(replaces=True) == "swarmlet-0-0"
    assert world.user._greenlet.dead
