"""Pods with claims: when the scheduler lets them pass, what it tells a claim that waits, and what a refusal does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.fleet.claimnotes import BIND_COMPLETED, SELECTED_NODE
from harness.fleet.schedulable import decode_pod
from tests.fleet.builders import pod
from tests.fleet.fakeapi import World
from tests.fleet.test_scheduler import node, places, world_of

LATE = {"metadata": {"name": "late"}, "provisioner": "csi.e.io", "volumeBindingMode": "WaitForFirstConsumer"}


def with_claims(name: str, *claims: str, ephemeral: bool = False) -> dict[str, Any]:
    made = pod(name)
    for each in claims:
        source = (
            {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
            if ephemeral
            else {"persistentVolumeClaim": {"claimName": each}}
        )
        made["spec"]["volumes"].append({"name": each, **source})
    return made


def claim(name: str, volume: str = "", storage_class: str | None = None, **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"volumeName": volume} if volume else {}
    if storage_class:
        spec["storageClassName"] = storage_class
    annotations = {BIND_COMPLETED: "yes"} if volume else {}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec, **more}


def bind(world: World, name: str) -> None:
    world.change(
        "persistentvolumeclaims",
        "t",
        name,
        {"metadata": {"annotations": {BIND_COMPLETED: "yes"}}, "spec": {"volumeName": f"pv-{name}"}},
    )


def message(world: World, name: str = "p") -> str:
    found = world.get("pods", "t", name)
    assert found is not None
    return str(found["status"]["conditions"][0]["message"])


def late_world(**options: Any) -> World:
    world, _ = world_of(node("a"), **options)
    world.create("storageclasses", "", LATE)
    world.create("persistentvolumeclaims", "t", claim("c", storage_class="late"))
    world.run(2.0)
    world.create("pods", "t", with_claims("p", "c"))
    return world


def test_claims_are_read_from_volumes_of_both_kinds() -> None:
    given = with_claims("p", "mine")
    given["spec"]["volumes"] += with_claims("p", "brought", ephemeral=True)["spec"]["volumes"]
    given["metadata"].update(namespace="t", uid="u", resourceVersion="1")
    assert decode_pod(msgspec.json.encode(given)).claims == (("mine", False), ("p-brought", True))


@pytest.mark.parametrize(
    ("given", "ephemeral", "text"),
    [
        (None, False, 'persistentvolumeclaim "c" not found'),
        (None, True, 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-c"'),
        (claim("c"), False, "pod has unbound immediate PersistentVolumeClaims"),
        (claim("c", storage_class="none such"), False, "pod has unbound immediate PersistentVolumeClaims"),
        (
            {**claim("c"), "spec": {"volumeName": "v", "storageClassName": "late"}},
            False,
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            claim("c", "v", status={"phase": "Lost"}),
            False,
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
        ),
    ],
    ids=["missing", "not made yet", "immediate", "unknown class", "named before", "lost"],
)
def test_what_stands_in_a_pods_way_is_said(given: dict[str, Any] | None, ephemeral: bool, text: str) -> None:
    world, scheduler = world_of(node("a"))
    world.create("storageclasses", "", LATE)
    if given is not None:
        world.create("persistentvolumeclaims", "t", given)
    world.create("pods", "t", with_claims("p", "c", ephemeral=ephemeral))
    world.run(5.0)
    assert places(world) == {"": 1}
    assert message(world) == f"0/1 nodes are available: {text}."
    assert scheduler.pending == 1


def test_a_pod_whose_claim_is_being_deleted_waits() -> None:
    world, _ = world_of(node("a"))
    bound = claim("c", "v")
    bound["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.create("persistentvolumeclaims", "t", bound)
    world.create("pods", "t", with_claims("p", "c"))
    world.run(5.0)
    assert message(world) == '0/1 nodes are available: persistentvolumeclaim "c" is being deleted.'


def test_a_pod_goes_on_when_its_claims_are_bound_and_is_not_tried_before() -> None:
    world, scheduler = world_of(node("a"), node("b"))
    for name in ("c", "d"):
        world.create("persistentvolumeclaims", "t", claim(name))
    world.create("pods", "t", with_claims("p", "c", "d"))
    world.create("pods", "t", pod("free"))
    world.run(5.0)
    assert places(world)[""] == 1
    world.change("nodes", "", "b", {"metadata": {"labels": {"x": "y"}}})  # no node helps it
    world.run(30.0)
    tried = [each for each in world.requests("create events") if b"FailedScheduling" in each.request.body]
    assert len(tried) == 1
    bind(world, "c")
    world.run(60.0)
    assert places(world)[""] == 1
    bind(world, "d")
    world.run(90.0)
    assert places(world) == {"a": 1, "b": 1}
    assert scheduler.pending == 0


def test_a_claim_that_waits_is_told_the_node_and_the_pod_bound_after_it() -> None:
    world = late_world()
    world.run(10.0)
    (told,) = world.requests("update persistentvolumeclaims")
    body = msgspec.json.decode(told.request.body)
    assert body["metadata"]["annotations"] == {SELECTED_NODE: "a"}
    assert body["spec"] == {"storageClassName": "late"}
    assert world.requests("create pods/binding") == []
    bind(world, "c")
    world.run(11.0)
    assert places(world) == {"a": 1}


def test_a_pod_whose_provisioner_gives_up_on_the_node_is_tried_again() -> None:
    world = late_world()
    world.run(10.0)
    world.change("persistentvolumeclaims", "t", "c", {"metadata": {"annotations": {SELECTED_NODE: None}}})
    world.run(20.0)
    assert len(world.requests("update persistentvolumeclaims")) == 2
    bind(world, "c")
    world.run(30.0)
    assert places(world) == {"a": 1}


def test_a_claim_that_refuses_the_node_is_asked_again() -> None:
    world, _ = world_of(node("a"))
    world.create("storageclasses", "", LATE)
    world.create("persistentvolumeclaims", "t", claim("c", storage_class="late"))
    world.refuse = lambda logged: (
        (409, b"{}") if logged.line.startswith("update") and world.now < 5.0 else None
    )
    world.create("pods", "t", with_claims("p", "c"))
    world.run(20.0)
    statuses = [each.status for each in world.requests("update persistentvolumeclaims")]
    assert statuses[0] == 409
    assert statuses[-1] == 200
    bind(world, "c")
    world.run(30.0)
    assert places(world) == {"a": 1}


def test_a_claim_that_is_not_bound_in_time_gives_its_node_back() -> None:
    world = late_world(bind_s=60.0)
    world.run(61.0)
    assert len(world.requests("update persistentvolumeclaims")) == 1
    world.change("nodes", "", "a", {"spec": {"unschedulable": True}})
    world.run(80.0)
    assert message(world).startswith("0/1 nodes are available: 1 node(s) were unschedulable")


@pytest.mark.parametrize("late", [False, True])
def test_a_pod_deleted_while_it_waits_for_its_claims_is_forgotten(late: bool) -> None:
    world, scheduler = world_of(node("a"))
    world.create("storageclasses", "", LATE)
    world.create("persistentvolumeclaims", "t", claim("c", storage_class="late" if late else None))
    world.create("pods", "t", with_claims("p", "c"))
    world.run(10.0)
    assert scheduler.pending == 1
    world.delete("pods", "t", "p", grace_s=0)
    world.run(20.0)
    assert scheduler.pending == 0
    assert scheduler.counts() == {}
    bind(world, "c")
    world.run(700.0)
    assert world.requests("create pods/binding") == []
