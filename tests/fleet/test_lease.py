"""The node's lease."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from harness.wire.request import Failure, TransportError
from tests.fleet.builders import add_kubelet
from tests.fleet.fakeapi import Logged, Refusal, World, status_body

LEASES = "kube-node-lease"


def lease_lines(world: World, since: float) -> list[str]:
    return [each.line for each in world.log if each.at >= since and each.request.client == "heartbeat"]


def test_renewals_are_puts_alone_ten_seconds_apart_give_or_take_the_jitter() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(120.0)
    times = [each.at for each in world.requests("update leases")]
    waits = [after - before for before, after in pairwise(times)]
    assert len(waits) >= 8
    assert all(10.0 <= wait_s < 10.4 + world.latency_s for wait_s in waits)
    assert set(lease_lines(world, 15.0)) == {"update leases"}


def test_a_renewal_carries_the_last_revision_and_the_owner() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(35.0)
    first, second = world.requests("update leases")[:2]
    bodies = [msgspec.json.decode(each.request.body) for each in (first, second)]
    assert bodies[0]["metadata"]["resourceVersion"] != bodies[1]["metadata"]["resourceVersion"]
    node = world.get("nodes", "", "n1")
    assert node is not None
    assert bodies[1]["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    assert bodies[1]["spec"]["holderIdentity"] == "n1"
    assert bodies[1]["spec"]["leaseDurationSeconds"] == 40
    assert bodies[1]["spec"]["renewTime"].endswith("Z")
    assert first.request.timeout_s == 10.0


def test_without_a_node_no_lease_is_made_until_the_next_tick() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(9.9)
    assert lease_lines(world, 0.0)[:2] == ["get leases", "get nodes"]
    assert world.get("leases", LEASES, "n1") is None
    world.run(11.0)
    assert lease_lines(world, 9.9)[:3] == ["get leases", "get nodes", "create leases"]


def test_a_conflict_is_answered_by_reading_the_lease_and_writing_again() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(15.0)
    world.change("leases", LEASES, "n1", {"spec": {"leaseDurationSeconds": 41}})
    world.run(22.0)
    assert lease_lines(world, 15.0) == ["update leases", "get leases", "update leases"]


def test_a_failing_renewal_is_tried_five_times_at_once_then_again_after_a_read() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(15.0)
    world.refuse = lambda logged: (500, b"{}") if logged.line == "update leases" else None
    world.run(22.0)
    assert lease_lines(world, 15.0) == ["update leases"] * 5 + ["get leases"] + ["update leases"] * 5


@pytest.mark.parametrize("status", [500, 403])
def test_a_read_that_fails_backs_off_and_doubles(status: int) -> None:
    world = World(latency_s=0.0)

    def refuse(logged: Logged) -> Refusal:
        return (status, status_body(status, "x", "no")) if logged.line == "get leases" else None

    world.refuse = refuse
    add_kubelet(world, events=False)
    world.run(30.0)
    times = [each.at for each in world.requests("get leases")]
    waits = [round(after - before, 6) for before, after in pairwise(times)]
    assert waits[:7] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 7.0]


def test_a_deleted_lease_is_created_anew() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(15.0)
    world.delete("leases", LEASES, "n1")
    world.run(22.0)
    assert lease_lines(world, 15.0)[-3:] == ["get leases", "get nodes", "create leases"]
    assert world.get("leases", LEASES, "n1") is not None


def test_an_answer_that_never_comes_counts_as_a_failure() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(15.0)
    lost = TransportError(Failure.TIMEOUT, "10 s")
    world.refuse = lambda logged: lost if logged.line == "update leases" and logged.at < 20.2 else None
    world.run(45.0)
    assert world.requests("update leases")[-1].status == 200


def test_an_answer_that_is_no_lease_is_survived() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(15.0)
    world.refuse = lambda logged: (
        (200, b"<html>") if logged.line == "update leases" and logged.at < 25 else None
    )
    world.run(60.0)
    assert world.requests("update leases")[-1].status == 200
