"""When a node reports its status, and what."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from tests.fleet.builders import add_kubelet, pod
from tests.fleet.fakeapi import Logged, World


def reports(world: World, since: float = 0.0) -> list[Logged]:
    return world.requests("patch nodes/status", since)


def body(logged: Logged) -> Any:
    return msgspec.json.decode(logged.request.body)["status"]


def test_an_unchanged_status_is_sent_every_five_minutes_after_one_drawn_wait() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(1500.0)
    times = [each.at for each in reports(world)]
    first, ready, after = times[0], times[1], times[2]
    assert first < 0.2
    assert ready < 0.5
    assert 150.0 <= after - ready < 450.0 + 10.5  # 5 min x U[.5, 1.5), seen at the next tick of 10 s
    later = [second - one for one, second in pairwise(times[2:])]
    assert later
    assert all(300.0 <= wait_s < 310.5 for wait_s in later)


def test_kubelets_that_changed_together_do_not_report_together_ever_after() -> None:
    world = World()
    for index in range(20):
        add_kubelet(world, f"n{index}", seed=index, events=False)
    world.run(500.0)
    second = sorted(each.at for each in reports(world, 100.0))
    assert second[-1] - second[0] > 150.0


def test_a_change_is_sent_whole_and_a_heartbeat_only_with_its_times() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(500.0)
    change, heartbeat = body(reports(world)[1]), body(reports(world)[2])
    assert change["conditions"][-1]["reason"] == "KubeletReady"
    assert [set(each) for each in heartbeat["conditions"]] == [{"type", "lastHeartbeatTime"}] * 4
    assert [each["type"] for each in heartbeat["$setElementOrder/conditions"]] == [
        "MemoryPressure",
        "DiskPressure",
        "PIDPressure",
        "Ready",
    ]


def test_a_failed_report_is_tried_four_more_times_each_after_a_read() -> None:
    world = World()
    world.refuse = lambda logged: (
        (500, b"{}") if logged.line == "patch nodes/status" and logged.at > 1 else None
    )
    add_kubelet(world, events=False)
    world.run(500.0)
    sent = [each.line for each in world.log if each.at > 20 and each.info.resource == "nodes"]
    tried = [line for line in sent if line != "watch nodes"]
    assert tried[:9] == ["patch nodes/status", *["get nodes", "patch nodes/status"] * 4]
    times = [each.at for each in reports(world, 1.0)]
    assert 10.0 <= times[5] - times[4] < 10.5  # then the next tick tries again


def test_reports_go_through_the_heartbeat_client_and_are_bounded() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(1.0)
    assert {(each.request.client, each.request.timeout_s) for each in reports(world)} == {("heartbeat", 10.0)}


def test_readiness_that_comes_while_a_report_is_under_way_is_not_lost() -> None:
    world = World(latency_s=0.5)
    kubelet = add_kubelet(world, events=False)
    world.run(20.0)
    assert kubelet.ready
    assert body(reports(world)[-1])["conditions"][-1]["status"] == "True"
    assert reports(world)[-1].at < 6.0


# ---- images ----------------------------------------------------------------------------------------------------------
def test_an_image_that_comes_to_the_node_is_reported_once_the_image_manager_has_looked() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(5.0)
    before = len(world.requests("patch nodes/status"))
    for name in ("a", "b"):
        world.create("pods", "t", pod(name, "n1", token=False))
    world.run(29.9)
    assert len(world.requests("patch nodes/status")) == before
    world.run(41.0)
    (report,) = world.requests("patch nodes/status")[before:]
    images = msgspec.json.decode(report.request.body)["status"]["images"]
    assert [each["names"] for each in images] == [["pause"]]
    world.create("pods", "t", pod("c", "n1", token=False))
    world.run(120.0)
    assert len(world.requests("patch nodes/status")) == before + 1  # it is there already


def test_no_more_than_fifty_images_are_reported_the_largest_first() -> None:
    world = World()
    add_kubelet(world, events=False)
    world.run(5.0)
    for index in range(60):
        made = pod(f"p{index}", "n1", token=False)
        made["spec"]["containers"][0]["image"] = f"image-{index}"
        world.create("pods", "t", made)
    world.run(80.0)
    images = msgspec.json.decode(world.requests("patch nodes/status")[-1].request.body)["status"]["images"]
    sizes = [each["sizeBytes"] for each in images]
    assert len(sizes) == 50
    assert sizes == sorted(sizes, reverse=True)
