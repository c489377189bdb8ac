"""A pod's way from bound to Running to gone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.fleet.podworker import Stage
from tests.fleet.builders import add_kubelet, pod, with_objects
from tests.fleet.fakeapi import World


def settled(**options: Any) -> tuple[World, Any]:
    """A world with one registered kubelet at t=5 and the objects that its pods use."""
    world = World()
    kubelet = add_kubelet(world, **options)
    with_objects(world, "t", "s0", "s1", "c0")
    world.run(5.0)
    return world, kubelet


def phase(world: World, name: str = "p") -> str:
    found = world.get("pods", "t", name)
    assert found is not None
    return str(found["status"]["phase"])


def test_a_pod_is_taken_up_within_two_milliseconds_and_runs_after_its_start_delay() -> None:
    world, kubelet = settled(events=False, start_delay_s=(0.5, 0.5), sync_delay_s=(0.002, 0.002))
    world.create("pods", "t", pod("p", "n1", secrets=("s0",)))
    world.run_until(lambda: kubelet.pods.count(Stage.MOUNTING) == 1)
    assert world.now == pytest.approx(5.0 + 0.001 + 0.002)
    world.run_until(lambda: kubelet.pods.count(Stage.STARTING) == 1)
    mounted = world.now - 5.003
    assert round(mounted / 0.3, 6) == round(mounted / 0.3)  # seen at a poll of the worker
    world.run_until(lambda: kubelet.pods.count(Stage.RUNNING) == 1)
    assert world.now == pytest.approx(5.003 + mounted + 0.5)
    world.run(10.0)
    assert phase(world) == "Running"


def test_the_requests_of_one_pod() -> None:
    world, _ = settled(events=False)
    world.create("pods", "t", pod("p", "n1", secrets=("s0",), configmaps=("c0",)))
    world.run(8.0)
    assert world.lines(since=5.0) == [
        "watch secrets",
        "watch configmaps",
        "watch configmaps",
        "get pods",
        "patch pods/status",
        "create serviceaccounts/token",
        "get pods",
        "patch pods/status",
    ]


def test_the_reported_status_is_what_a_real_kubelet_reports() -> None:
    world, _ = settled(events=False)
    created = world.create("pods", "t", pod("p", "n1"))
    world.run(5.1)
    first = msgspec.json.decode(world.requests("patch pods/status")[0].request.body)
    assert first["metadata"] == {"uid": created["metadata"]["uid"]}
    assert first["status"]["phase"] == "Pending"
    assert first["status"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert "podIP" not in first["status"]
    world.run(8.0)
    status = world.get("pods", "t", "p")["status"]  # type: ignore[index]
    conditions = {each["type"]: each for each in status["conditions"]}
    assert {kind: each["status"] for kind, each in conditions.items()} == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    assert "reason" not in conditions["Ready"]
    assert status["containerStatuses"][0]["state"]["running"]
    assert status["podIP"].startswith("10.")
    assert status["observedGeneration"] == 1


def test_startup_is_sampled_once_from_the_first_word_to_running_reported() -> None:
    world, _ = settled(events=False, start_delay_s=(0.5, 0.5))
    world.create("pods", "t", pod("p", "n1"))
    world.run(60.0)
    samples = [each for each in world.samples if each.name == "pod_startup_ms"]
    assert [each.labels for each in samples] == [(("mount", "first"),)]
    reported = world.requests("patch pods/status")[-1].at + world.latency_s
    assert samples[0].value == pytest.approx((reported - 5.001) * 1000.0)


def test_events_of_a_pod_have_the_real_texts_and_their_own_client() -> None:
    world, _ = settled()
    world.create("pods", "t", pod("p", "n1", token=False))
    world.run(8.0)
    world.delete("pods", "t", "p")
    world.run(12.0)
    events = [msgspec.json.decode(each.request.body) for each in world.requests("create events", since=5.0)]
    assert [(each["reason"], each["message"]) for each in events] == [
        ("Pulled", 'Container image "pause" already present on machine and can be accessed by the pod'),
        ("Created", "Container created"),
        ("Started", "Container started"),
        ("Killing", "Stopping container c"),
    ]
    assert len({each["metadata"]["name"] for each in events}) == 4
    assert events[0]["involvedObject"]["fieldPath"] == "spec.containers{c}"
    assert events[0]["source"] == {"component": "kubelet", "host": "n1"}


def test_graceful_deletion_reports_three_times_then_deletes_with_grace_zero_and_the_uid() -> None:
    world, kubelet = settled(events=False)
    created = world.create("pods", "t", pod("p", "n1", secrets=("s0",)))
    world.run(10.0)
    world.delete("pods", "t", "p")
    world.run(12.0)
    assert [line for line in world.lines(since=10.0) if "lease" not in line and "node" not in line] == [
        "get pods",
        "patch pods/status",  # the new generation is observed
        "get pods",
        "patch pods/status",  # containers have ended
        "get pods",
        "patch pods/status",  # the pod is over
        "get pods",
        "delete pods",
    ]
    patches = [
        msgspec.json.decode(each.request.body) for each in world.requests("patch pods/status", since=10.0)
    ]
    assert [each["status"]["observedGeneration"] for each in patches] == [2, 2, 2]
    assert [each["status"]["phase"] for each in patches] == ["Running", "Running", "Succeeded"]
    assert [next(iter(each["status"]["containerStatuses"][0]["state"])) for each in patches] == [
        "running",
        "terminated",
        "terminated",
    ]
    options = msgspec.json.decode(world.requests("delete pods")[0].request.body)
    assert options["gracePeriodSeconds"] == 0
    assert options["preconditions"] == {"uid": created["metadata"]["uid"]}
    assert len(kubelet.pods) == 0
    assert len(kubelet.objects) == 0
    assert [each.name for each in world.samples][-1] == "pod_deletion_ms"


@pytest.mark.parametrize(("grace_s", "stopped_after_s"), [(1, 1.0), (2, 2.0), (30, 3.0)])
def test_containers_never_outlive_the_grace_period(grace_s: int, stopped_after_s: float) -> None:
    world, kubelet = settled(events=False, stop_delay_s=(3.0, 3.0))
    world.create("pods", "t", pod("p", "n1", grace_s=grace_s))
    world.run(10.0)
    world.delete("pods", "t", "p")
    world.run_until(lambda: kubelet.pods.count(Stage.ENDING) == 1)
    assert world.now == pytest.approx(10.001 + stopped_after_s)


def test_a_pod_deleted_before_it_ran_is_taken_down_at_once() -> None:
    world, kubelet = settled(events=False)
    world.create("pods", "t", pod("p", "n1", secrets=("missing",)))
    world.run(5.5)
    world.delete("pods", "t", "p")
    world.run(7.0)
    assert world.get("pods", "t", "p") is None
    assert len(kubelet.pods) == len(kubelet.objects) == 0


def test_a_pod_removed_by_force_is_dropped_and_its_watches_end() -> None:
    world, kubelet = settled(events=False)
    world.create("pods", "t", pod("p", "n1", secrets=("s0",)))
    world.run(5.3)
    world.delete("pods", "t", "p", grace_s=0)
    count = len(world.log)
    world.run(6.5)
    assert len(kubelet.pods) == len(kubelet.objects) == 0
    assert len(world.log) == count
    assert {each.info.resource for each in world.watches}.isdisjoint({"secrets", "configmaps"})


def test_a_pod_of_the_same_name_that_replaces_another_is_a_new_pod() -> None:
    world, kubelet = settled(events=False)
    world.create("pods", "t", pod("p", "n1"))
    world.run(7.0)
    world.delete("pods", "t", "p", grace_s=0)
    world.create("pods", "t", pod("p", "n1"))
    world.run(10.0)
    assert kubelet.pods.count(Stage.RUNNING) == 1
    assert sum(each.name == "pod_startup_ms" for each in world.samples) == 2


def test_a_pod_that_has_ended_is_left_alone() -> None:
    world, kubelet = settled(events=False)
    ended = pod("p", "n1")
    ended["status"]["phase"] = "Succeeded"
    world.create("pods", "t", ended)
    count = len(world.log)
    world.run(9.0)
    assert len(kubelet.pods) == 0
    assert len(world.log) == count


def test_a_pod_missed_while_the_watch_was_down_is_found_by_the_next_one() -> None:
    world, kubelet = settled(events=False)
    world.close(next(each for each in world.watches if each.info.resource == "pods"))
    world.create("pods", "t", pod("p", "n1"))
    world.run(9.0)
    assert kubelet.pods.count(Stage.RUNNING) == 1


def test_an_environment_that_cannot_be_read_holds_the_container_back() -> None:
    world, kubelet = settled()
    world.create("pods", "t", pod("p", "n1", token=False, env_secret="sx"))
    world.run_until(lambda: kubelet.pods.count(Stage.RETRYING) == 1)
    failed = world.now
    warning = msgspec.json.decode(world.requests("create events")[-1].request.body)
    assert (warning["reason"], warning["message"]) == ("Failed", 'Error: secret "sx" not found')
    world.create("secrets", "t", {"metadata": {"name": "sx"}})
    world.run_until(lambda: kubelet.pods.count(Stage.RUNNING) == 1)
    assert 10.0 <= world.now - failed < 15.0


def test_the_same_seed_gives_the_same_run() -> None:
    logs = []
    for _ in range(2):
        world, _ = settled(seed=7)
        for index in range(5):
            world.create("pods", "t", pod(f"p{index}", "n1", secrets=("s0",)))
        world.run(60.0)
        logs.append([(each.at, each.request) for each in world.log])
    assert logs[0] == logs[1]
