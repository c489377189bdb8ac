"""The status manager: one request at a time, what fails comes again."""

from __future__ import annotations

from itertools import pairwise

from harness.fleet.kubelet import Kubelet
from harness.wire.request import Failure, TransportError
from tests.fleet.builders import add_kubelet, pod, with_objects
from tests.fleet.fakeapi import Logged, Refusal, World, status_body


def settled(latency_s: float = 0.002) -> tuple[World, Kubelet]:
    world = World(latency_s)
    kubelet = add_kubelet(world, events=False)
    with_objects(world, "t", "s0")
    world.run(5.0)
    return world, kubelet


def pod_requests(world: World, since: float = 5.0) -> list[Logged]:
    return [
        each
        for each in world.log
        if each.info.resource == "pods" and each.info.verb != "watch" and each.at >= since
    ]


def phase(world: World, name: str) -> str:
    return str(world.get("pods", "t", name)["status"]["phase"])  # type: ignore[index]


def test_status_requests_are_serial() -> None:
    world, _ = settled(latency_s=0.05)
    for index in range(10):
        world.create("pods", "t", pod(f"p{index}", "n1"))
    world.run(30.0)
    times = [each.at for each in pod_requests(world)]
    assert min(after - before for before, after in pairwise(times)) >= 0.05 - 1e-9
    assert all(phase(world, f"p{index}") == "Running" for index in range(10))


def test_a_status_overtaken_by_a_newer_one_is_not_sent() -> None:
    """A slow server: by the time a pod's turn comes it already runs, and Pending is never reported."""
    world, _ = settled(latency_s=1.0)
    for index in range(4):
        world.create("pods", "t", pod(f"p{index}", "n1", token=False))
    world.run(60.0)
    assert len(world.requests("patch pods/status")) < 8
    assert all(phase(world, f"p{index}") == "Running" for index in range(4))
    assert sum(each.name == "pod_startup_ms" for each in world.samples) == 4


def test_a_refused_read_is_tried_again_at_the_next_change() -> None:
    world, _ = settled()
    world.refuse = lambda logged: (
        (403, status_body(403, "Forbidden", "no")) if logged.line == "get pods" and logged.at < 5.1 else None
    )
    world.create("pods", "t", pod("p", "n1"))
    world.run(7.0)
    statuses = [(each.line, each.status) for each in pod_requests(world)]
    assert statuses == [("get pods", 403), ("get pods", 200), ("patch pods/status", 200)]
    assert phase(world, "p") == "Running"


def test_what_failed_last_is_tried_again_by_the_full_pass_of_ten_seconds() -> None:
    world, _ = settled()

    def refuse(logged: Logged) -> Refusal:
        return (500, b"{}") if logged.line == "patch pods/status" and 5.1 < logged.at < 15 else None

    world.refuse = refuse
    world.create("pods", "t", pod("p", "n1"))
    world.run(30.0)
    tries = [each.at for each in pod_requests(world, since=7.0) if each.line == "get pods"]
    assert tries == [10.0, 20.0]
    assert phase(world, "p") == "Running"


def test_a_lost_connection_is_a_failure_like_any_other() -> None:
    world, _ = settled()
    lost = TransportError(Failure.RESET, "gone")
    world.refuse = lambda logged: lost if logged.line == "get pods" and logged.at < 9 else None
    world.create("pods", "t", pod("p", "n1"))
    world.run(30.0)
    assert phase(world, "p") == "Running"


def test_a_pod_that_is_not_found_is_asked_for_by_each_full_pass_until_the_watch_drops_it() -> None:
    world, _ = settled()
    world.create("pods", "t", pod("p", "n1"))
    world.refuse = lambda logged: (404, b"{}") if logged.line == "get pods" else None
    world.run(31.0)
    assert [each.at for each in pod_requests(world, since=7.0)] == [10.0, 20.0, 30.0]
    world.delete("pods", "t", "p", grace_s=0)
    world.run(60.0)
    assert pod_requests(world, since=31.0) == []


def test_a_status_that_someone_overwrote_is_mended_by_the_full_pass() -> None:
    world, _ = settled()
    world.create("pods", "t", pod("p", "n1"))
    world.run(8.0)
    world.change("pods", "t", "p", {"status": {"phase": "Pending"}})
    world.run(9.9)
    assert phase(world, "p") == "Pending"
    world.run(10.1)
    assert phase(world, "p") == "Running"


def test_a_refused_deletion_comes_again() -> None:
    world, kubelet = settled()
    world.create("pods", "t", pod("p", "n1"))
    world.run(8.0)
    world.refuse = lambda logged: (403, b"{}") if logged.line == "delete pods" and logged.at < 15 else None
    world.delete("pods", "t", "p")
    world.run(31.0)
    assert [each.status for each in world.requests("delete pods")] == [403, 403, 200]
    assert len(kubelet.pods) == 0


def test_nothing_is_sent_while_nothing_changes() -> None:
    world, _ = settled()
    world.create("pods", "t", pod("p", "n1"))
    world.run(10.0)
    assert pod_requests(world, since=8.0) == []
    world.run(1000.0)
    assert pod_requests(world, since=8.0) == []
