"""Persistent volumes: which reads a pod with claims costs, and what its volumes wait for."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from harness.fleet.podworker import Stage
from tests.fleet.builders import add_kubelet, pod
from tests.fleet.fakeapi import Logged, World, status_body


def with_claim(name: str = "p", claim: str = "data") -> dict[str, Any]:
    body = pod(name, "n1", token=False)
    body["spec"]["volumes"].append({"name": "v", "persistentVolumeClaim": {"claimName": claim}})
    return body


def settled(*, csi: bool = False, bound: bool = True, **options: Any) -> tuple[World, Any]:
    world = World()
    kubelet = add_kubelet(world, start_delay_s=(0.2, 0.2), **options)
    claim = world.create(
        "persistentvolumeclaims",
        "t",
        {
            "metadata": {"name": "data"},
            "spec": {"volumeName": "pv1"} if bound else {},
            "status": {"phase": "Bound" if bound else "Pending"},
        },
    )
    source = {"csi": {"driver": "d.io", "volumeHandle": "h1"}} if csi else {"hostPath": {"path": "/x"}}
    spec = {"claimRef": {"uid": claim["metadata"]["uid"]}, **source}
    world.create("persistentvolumes", "", {"metadata": {"name": "pv1"}, "spec": spec})
    world.run(5.0)
    return world, kubelet


def reads(world: World, since: float = 5.0) -> list[str]:
    kinds = ("get persistentvolumeclaims", "get persistentvolumes", "get nodes", "get volumeattachments")
    return [each.line for each in world.log if each.at >= since and each.line in kinds and _own(each)]


def _own(logged: Logged) -> bool:
    """Not the lease's, which reads its node once."""
    return "timeout" not in logged.info.query


def node_reads(world: World) -> list[float]:
    return [each.at for each in world.requests("get nodes", since=5.0) if _own(each)]


def attach(world: World) -> None:
    """What the attach-detach controller does."""
    attached = [{"name": "kubernetes.io/csi/d.io^h1", "devicePath": ""}]
    world.change("nodes", "", "n1", {"status": {"volumesAttached": attached}})


def attachment_name(world: World) -> str:
    return world.requests("get volumeattachments")[-1].info.name


def test_a_claim_and_its_volume_are_read_without_a_resource_version_then_mounted() -> None:
    world, kubelet = settled(events=False)
    world.create("pods", "t", with_claim())
    world.run(8.0)
    assert reads(world) == ["get persistentvolumeclaims", "get persistentvolumes"]
    assert "resourceVersion" not in world.requests("get persistentvolumeclaims")[0].info.query
    assert kubelet.pods.count(Stage.RUNNING) == 1


def test_an_unbound_claim_is_read_in_each_pass_until_it_is_bound() -> None:
    """100 ms apart, one GET after the other, without an event."""
    world, kubelet = settled(bound=False)
    world.create("pods", "t", with_claim())
    world.run(7.0)
    times = [each.at for each in world.requests("get persistentvolumeclaims")]
    assert 15 <= len(times) <= 20
    assert min(b - a for a, b in itertools.pairwise(times)) > 0.09
    assert kubelet.pods.count(Stage.MOUNTING) == 1
    world.change(
        "persistentvolumeclaims", "t", "data", {"spec": {"volumeName": "pv1"}, "status": {"phase": "Bound"}}
    )
    world.run(9.0)
    assert kubelet.pods.count(Stage.RUNNING) == 1
    assert not [
        each for each in world.requests("create events", since=5.0) if b"FailedMount" in each.request.body
    ]


def test_a_claim_that_is_being_deleted_and_a_volume_of_another_claim_are_not_mounted() -> None:
    world, kubelet = settled(events=False)
    world.change("persistentvolumes", "", "pv1", {"spec": {"claimRef": {"uid": "other"}}})
    world.create("pods", "t", with_claim())
    world.run(6.0)
    assert len(world.requests("get persistentvolumes")) > 3
    world.change("persistentvolumeclaims", "t", "data", {"metadata": {"deletionTimestamp": "x"}})
    world.run(6.1)
    before = len(world.requests("get persistentvolumes"))
    world.run(7.0)
    assert len(world.requests("get persistentvolumes")) == before
    assert kubelet.pods.count(Stage.MOUNTING) == 1


def test_each_sync_of_a_running_pod_reads_the_claim_and_the_volume_again() -> None:
    world, _ = settled(events=False)
    world.create("pods", "t", with_claim())
    world.run(190.0)
    assert reads(world) == ["get persistentvolumeclaims", "get persistentvolumes"] * 4


def test_the_claims_of_a_generic_ephemeral_volume_carry_the_pods_name() -> None:
    world, _ = settled(events=False)
    body = pod("p", "n1", token=False)
    body["spec"]["volumes"].append({"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}})
    world.create("pods", "t", body)
    world.run(6.0)
    assert world.requests("get persistentvolumeclaims")[0].info.name == "p-scratch"


def test_a_volume_of_an_attaching_driver_waits_for_the_nodes_status_and_its_attachment() -> None:
    world, kubelet = settled(csi=True, events=False)
    world.create("pods", "t", with_claim())
    world.run(7.0)
    assert reads(world) == [
        "get persistentvolumeclaims",
        "get persistentvolumes",
    ]  # nothing until it is reported
    world.run_until(lambda: len(node_reads(world)) == 1)
    report = world.requests("patch nodes/status")[-1].request.body
    assert b'"volumesInUse":["kubernetes.io/csi/d.io^h1"]' in report
    asked = world.now
    world.run(asked + 4.0)
    times = node_reads(world)
    assert [round(b - a, 2) for a, b in itertools.pairwise(times)] == [0.5, 1.0, 2.0]
    attach(world)
    world.run(asked + 8.0)
    name = attachment_name(world)
    assert name.startswith("csi-")
    assert len(name) == 4 + 64
    world.create("volumeattachments", "", {"metadata": {"name": name}, "status": {"attached": True}})
    world.run(world.now + 20.0)
    assert kubelet.pods.count(Stage.RUNNING) == 1


def test_an_attachment_that_cannot_be_read_or_has_failed_is_an_event() -> None:
    world, _ = settled(csi=True)
    attach(world)
    world.create("pods", "t", with_claim())
    world.run(30.0)
    name = attachment_name(world)
    world.create(
        "volumeattachments",
        "",
        {"metadata": {"name": name}, "status": {"attachError": {"message": "no luck"}}},
    )
    world.run(60.0)
    texts = [
        msgspec.json.decode(each.request.body)["message"]
        for each in world.requests("create events", since=5.0)
        if b"FailedMount" in each.request.body
    ]
    assert texts[0].startswith(
        'MountVolume.WaitForAttach failed for volume "pv1" : volume h1 has GET error for'
    )
    assert texts[-1] == 'MountVolume.WaitForAttach failed for volume "pv1" : no luck'


def test_an_attachment_that_is_not_attached_yet_is_looked_at_again() -> None:
    world, kubelet = settled(csi=True, events=False)
    attach(world)
    world.create("pods", "t", with_claim())
    world.run(20.0)
    name = attachment_name(world)
    world.create("volumeattachments", "", {"metadata": {"name": name}, "status": {"attached": False}})
    world.run(40.0)
    world.change("volumeattachments", "", name, {"status": {"attached": True}})
    world.run(50.0)
    assert kubelet.pods.count(Stage.RUNNING) == 1


@pytest.mark.parametrize("how", ["driver", "option"])
def test_a_driver_that_does_not_attach_is_not_waited_for(how: str) -> None:
    options = {"wait_for_attach": False} if how == "option" else {}
    world, kubelet = settled(csi=True, events=False, **options)
    if how == "driver":
        world.create("csidrivers", "", {"metadata": {"name": "d.io"}, "spec": {"attachRequired": False}})
        world.run(5.1)
    world.create("pods", "t", with_claim())
    world.run(8.0)
    assert kubelet.pods.count(Stage.RUNNING) == 1


def test_a_volume_is_not_in_use_once_its_pod_is_gone() -> None:
    world, _ = settled(csi=True, events=False)
    attach(world)
    world.create("pods", "t", with_claim())
    world.run(20.0)
    assert b"volumesInUse" in world.requests("patch nodes/status")[-1].request.body
    world.delete("pods", "t", "p")
    world.run(40.0)
    assert b'"volumesInUse":null' in world.requests("patch nodes/status")[-1].request.body
    before = len(reads(world))
    world.run(200.0)
    assert len(reads(world)) == before


def test_a_pod_that_goes_while_its_claim_is_read_leaves_the_others_their_turn() -> None:
    world, kubelet = settled(bound=False, events=False)
    world.create("pods", "t", with_claim("p"))
    world.create("pods", "t", with_claim("q"))
    world.run(6.0)
    world.delete("pods", "t", "p", grace_s=0)
    world.run(7.0)
    assert kubelet.pods.count(Stage.MOUNTING) == 1
    assert len(world.requests("get persistentvolumeclaims", since=6.5)) >= 3


def test_reads_that_are_refused_are_tried_again() -> None:
    world, kubelet = settled(events=False)

    def refuse(logged: Logged) -> tuple[int, bytes] | None:
        refused = logged.info.resource.startswith("persistentvolume") and logged.at < 7.0
        return (403, status_body(403, "Forbidden", "not yours")) if refused else None

    world.refuse = refuse
    world.create("pods", "t", with_claim())
    world.run(9.0)
    assert kubelet.pods.count(Stage.RUNNING) == 1
