"""A machine that died and was started again: what its kubelet finds, and what it says of it."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from harness.fleet.kubelet import Kubelet
from harness.fleet.options import KubeletOptions
from tests.fleet.builders import add_kubelet, pod, with_objects
from tests.fleet.fakeapi import EPOCH_S, World

DIED = {"exitCode": 255, "reason": "Unknown"}


def boot(world: World, name: str = "n1", **options: Any) -> Kubelet:
    kubelet = Kubelet(name, KubeletOptions(**options), Random(2), EPOCH_S, boots=1)
    world.add(kubelet)
    world.checks.append(kubelet.validate)
    return kubelet


def running(*pods: dict[str, Any], **options: Any) -> World:
    """A world in which these pods have run on a kubelet, which is dead by now."""
    world = World()
    with_objects(world, "t")
    add_kubelet(world, **options)
    for obj in pods:
        world.create("pods", "t", obj)
    world.run(20.0)
    world.kill(0)
    return world


def status(world: World, name: str = "p") -> dict[str, Any]:
    found = world.get("pods", "t", name)
    assert found is not None
    shown: dict[str, Any] = found["status"]
    return shown


def bodies(world: World, line: str, since: float) -> list[dict[str, Any]]:
    return [msgspec.json.decode(each.request.body) for each in world.requests(line) if each.at >= since]


def said(world: World, since: float) -> list[tuple[str, str, str]]:
    """Type, reason and message of the events after a time."""
    return [(body["type"], body["reason"], body["message"]) for body in bodies(world, "create events", since)]


def test_a_dead_kubelet_says_nothing_and_its_pods_stay_as_they_were() -> None:
    world = running(pod("p", "n1"))
    before = status(world)
    asked = len(world.log)
    world.run(500.0)
    assert len(world.log) == asked
    assert not world.watches
    assert (status(world), before["phase"]) == (before, "Running")


def test_it_finds_its_node_and_says_anew_how_that_is() -> None:
    """Also what a node lifecycle controller thought meanwhile."""
    world = running()
    node = world.get("nodes", "", "n1")
    assert node is not None
    for condition in node["status"]["conditions"]:
        condition["status"] = "Unknown"
    world.run(80.0)
    kubelet = boot(world)
    world.run(85.0)
    assert kubelet.ready
    assert [each.status for each in world.requests("create nodes")] == [201, 409]
    node = world.get("nodes", "", "n1")
    assert node is not None
    shown = {each["type"]: each["status"] for each in node["status"]["conditions"]}
    assert shown == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    assert node["status"]["nodeInfo"]["bootID"] == "n1-1"
    assert node["status"]["nodeInfo"]["kernelVersion"], "the rest of it stays"
    assert ("Warning", "Rebooted", "Node n1 has been rebooted, boot id: n1-1") in said(world, 80.0)
    (again,) = (sample for sample in world.samples if sample.name == "node_ready_again_ms")
    assert 0 < again.value < 5000


def test_only_the_first_report_after_a_reboot_says_everything() -> None:
    world = running()
    boot(world)
    world.run(400.0)
    first, *others = bodies(world, "patch nodes/status", 20.0)
    assert "nodeInfo" in first["status"]
    assert others
    assert not any("nodeInfo" in other["status"] for other in others)


def test_its_lease_goes_on() -> None:
    world = running()
    world.run(80.0)
    boot(world)
    world.run(200.0)
    renewed = [each.at for each in world.requests("update leases") if each.at > 80.0 and each.status == 200]
    assert len(renewed) >= 10
    assert len(world.requests("create leases")) == 1


def test_containers_of_its_pods_have_died_and_run_again() -> None:
    world = running(pod("p", "n1"))
    started = status(world)["startTime"]
    world.run(80.0)
    boot(world)
    world.run(90.0)
    first, *_, last = bodies(world, "patch pods/status", 80.0)
    (container,) = first["status"]["containerStatuses"]
    assert first["status"]["phase"] == "Running"
    assert (container["ready"], container["restartCount"]) == (False, 0)
    assert container["state"]["terminated"].items() >= DIED.items()
    ready = {each["type"]: each["status"] for each in first["status"]["conditions"]}
    assert (ready["Ready"], ready["PodReadyToStartContainers"]) == ("False", "False")
    (container,) = last["status"]["containerStatuses"]
    assert (container["ready"], container["restartCount"]) == (True, 1)
    assert "running" in container["state"]
    assert container["lastState"]["terminated"].items() >= DIED.items()
    assert status(world)["startTime"] == started
    changed = ("Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.")
    assert said(world, 80.0).count(changed) == 1


def test_a_pod_that_runs_again_is_no_start_of_a_pod() -> None:
    world = running(pod("p", "n1"))
    boot(world)
    world.create("pods", "t", pod("new", "n1"))
    world.run(40.0)
    assert sum(sample.name == "pod_startup_ms" for sample in world.samples) == 2


def test_restarts_are_counted_on() -> None:
    world = running(pod("p", "n1"))
    status(world)["containerStatuses"][0]["restartCount"] = 4
    boot(world)
    world.run(40.0)
    assert status(world)["containerStatuses"][0]["restartCount"] == 5
    asked = len(world.requests("patch pods/status"))
    world.run(200.0)
    assert len(world.requests("patch pods/status")) == asked, "nothing more to say"


def test_a_pod_that_had_not_run_yet_is_as_new() -> None:
    world = World()
    with_objects(world, "t")
    add_kubelet(world, start_delay_s=(30.0, 30.0))
    world.create("pods", "t", pod("p", "n1"))
    world.run(10.0)
    world.kill(0)
    boot(world)
    world.run(30.0)
    (container,) = status(world)["containerStatuses"]
    assert (status(world)["phase"], container["restartCount"], container["lastState"]) == ("Running", 0, {})


@pytest.mark.parametrize(
    ("policy", "phase"), [("Never", "Failed"), ("OnFailure", "Running"), ("Always", "Running")]
)
def test_what_may_not_be_restarted_has_failed(policy: str, phase: str) -> None:
    obj = pod("p", "n1")
    obj["spec"]["restartPolicy"] = policy
    obj["spec"]["containers"][0]["command"] = ["sleep", "3600"]
    world = running(obj)
    kubelet = boot(world)
    world.run(40.0)
    assert status(world)["phase"] == phase
    (container,) = status(world)["containerStatuses"]
    died = container["state"]["terminated"] if phase == "Failed" else container["lastState"]["terminated"]
    assert died.items() >= DIED.items()
    assert container["restartCount"] == (0 if phase == "Failed" else 1)
    world.delete("pods", "t", "p")
    world.run(60.0)
    assert world.get("pods", "t", "p") is None
    assert len(kubelet.pods) == 0


def test_init_containers_and_sidecars_run_again() -> None:
    obj = pod("p", "n1")
    obj["spec"]["initContainers"] = [
        {"name": "init", "image": "i", "command": ["sleep", "1"]},
        {"name": "side", "image": "s", "restartPolicy": "Always"},
    ]
    world = running(obj)
    boot(world)
    world.run(60.0)
    shown = status(world)
    assert shown["phase"] == "Running"
    every = [*shown["initContainerStatuses"], *shown["containerStatuses"]]
    assert [(each["name"], each["restartCount"]) for each in every] == [("init", 1), ("side", 1), ("c", 1)]
    assert all(each["lastState"]["terminated"].items() >= DIED.items() for each in every)


def test_a_pod_that_was_deleted_meanwhile_is_gone_at_last() -> None:
    world = running(pod("p", "n1"))
    world.delete("pods", "t", "p")
    world.run(200.0)
    assert world.get("pods", "t", "p") is not None, "nobody is there to end it"
    kubelet = boot(world)
    world.run(230.0)
    assert world.get("pods", "t", "p") is None
    assert len(kubelet.pods) == 0
    (last,) = [body["status"] for body in bodies(world, "patch pods/status", 200.0)][-1:]
    assert last["phase"] == "Failed"
    assert last["containerStatuses"][0]["state"]["terminated"].items() >= DIED.items()


def test_pods_that_had_ended_are_left_alone() -> None:
    obj = pod("p", "n1")
    obj["spec"]["restartPolicy"] = "Never"
    obj["spec"]["containers"][0]["command"] = ["sleep", "1"]
    world = running(obj)
    assert status(world)["phase"] == "Succeeded"
    boot(world)
    world.run(60.0)
    assert bodies(world, "patch pods/status", 20.0) == []
