"""Secrets and configmaps: when they are watched, and when no longer."""

from __future__ import annotations

import pytest

from harness.fleet.kubelet import Kubelet
from harness.fleet.podworker import Stage
from tests.fleet.builders import add_kubelet, pod, with_objects
from tests.fleet.fakeapi import Logged, World, status_body


def settled(**options: object) -> tuple[World, Kubelet]:
    world = World()
    kubelet = add_kubelet(world, events=False, **options)
    with_objects(world, "t", "s0", "s1", "c0")
    world.run(5.0)
    return world, kubelet


def watched(world: World) -> list[str]:
    """What is watched now, as resource/name."""
    objects = [each.info for each in world.watches if each.info.resource in ("secrets", "configmaps")]
    return sorted(f"{each.resource}/{each.name}" for each in objects)


def test_pods_that_share_an_object_share_its_watch() -> None:
    world, kubelet = settled()
    for index in range(4):
        world.create("pods", "t", pod(f"p{index}", "n1", secrets=("s0",)))
    world.run(8.0)
    assert watched(world) == ["configmaps/kube-root-ca.crt", "secrets/s0"]
    assert kubelet.objects.references == {
        ("secrets", "t", "s0"): 4,
        ("configmaps", "t", "kube-root-ca.crt"): 4,
    }


def test_a_watch_ends_with_the_last_pod_that_needs_it() -> None:
    world, _ = settled()
    world.create("pods", "t", pod("p0", "n1", secrets=("s0",)))
    world.create("pods", "t", pod("p1", "n1", secrets=("s0", "s1")))
    world.run(8.0)
    world.delete("pods", "t", "p1")
    world.run(12.0)
    assert watched(world) == ["configmaps/kube-root-ca.crt", "secrets/s0"]
    world.delete("pods", "t", "p0")
    world.run(16.0)
    assert watched(world) == []


def test_watches_are_opened_when_the_pod_is_taken_up_long_before_anything_is_mounted() -> None:
    world, _ = settled()
    world.create("pods", "t", pod("p", "n1", secrets=("s0",), configmaps=("c0",)))
    world.run(6.0)
    heard = 5.0 + world.latency_s / 2
    opened = [each.at - heard for each in world.log if each.line in ("watch secrets", "watch configmaps")]
    assert len([each for each in opened if each > 0]) == 3
    assert all(0.001 <= each <= 0.002 for each in opened if each > 0)
    assert world.requests("create serviceaccounts/token")[0].at - heard > 0.1


def test_watches_end_when_the_volumes_are_unmounted_before_the_pod_is_gone() -> None:
    world, kubelet = settled()
    world.create("pods", "t", pod("p", "n1", secrets=("s0",)))
    world.run(8.0)
    world.delete("pods", "t", "p")
    world.run_until(lambda: kubelet.pods.count(Stage.FINISHED) == 1)
    assert watched(world) == []
    assert world.get("pods", "t", "p") is not None


def test_a_pod_that_is_to_end_when_it_is_heard_of_opens_no_watch() -> None:
    world, kubelet = settled()
    obj = pod("p", "n1", secrets=("s0",))
    obj["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:05Z"
    world.create("pods", "t", obj)
    world.run(9.0)
    assert world.requests("watch secrets") == []
    assert world.get("pods", "t", "p") is None
    assert len(kubelet.pods) == len(kubelet.objects) == 0


def test_each_object_is_watched_with_its_own_name_and_a_timeout_of_half_an_hour_or_more() -> None:
    world, _ = settled()
    world.create("pods", "t", pod("p", "n1", secrets=("s0",)))
    world.run(8.0)
    request = world.requests("watch secrets")[0].info
    assert request.namespace == "t"
    assert request.query["fieldSelector"] == "metadata.name=s0"
    assert 1800 <= int(request.query["timeoutSeconds"]) < 3600


def test_an_object_that_volumes_use_is_touched_each_minute_and_keeps_its_watch() -> None:
    world, _ = settled()
    world.create("pods", "t", pod("p", "n1", secrets=("s0",)))
    world.run(1500.0)
    assert len(world.requests("watch secrets")) == 1
    assert watched(world) == ["configmaps/kube-root-ca.crt", "secrets/s0"]


def test_an_object_that_only_the_environment_uses_loses_its_watch_when_idle() -> None:
    world, kubelet = settled()
    world.create("pods", "t", pod("p", "n1", token=False, env_secret="s0"))
    world.run(359.9)  # last read at about 6 s; the tick at 300 s came too soon
    assert watched(world) == ["secrets/s0"]
    world.run(360.1)
    assert watched(world) == []
    assert kubelet.objects.open_watches == 0
    world.delete("pods", "t", "p")
    world.run(370.0)
    assert len(kubelet.objects) == 0


def test_the_next_read_starts_an_idle_watch_again_from_the_last_revision() -> None:
    world, _ = settled()
    world.create("pods", "t", pod("p0", "n1", token=False, env_secret="s0"))
    world.run(400.0)
    world.create("pods", "t", pod("p1", "n1", token=False, env_secret="s0"))
    world.run(405.0)
    first, again = world.requests("watch secrets")
    assert "resourceVersion" not in first.info.query
    assert again.info.query["sendInitialEvents"] == "true"
    assert int(again.info.query["resourceVersion"]) > 100
    assert watched(world) == ["secrets/s0"]


def test_an_immutable_object_is_read_once_and_never_watched_again() -> None:
    world, kubelet = settled()
    world.create("secrets", "t", {"metadata": {"name": "s9"}, "immutable": True})
    world.create("pods", "t", pod("p", "n1", token=False, secrets=("s9",)))
    world.run(8.0)
    assert watched(world) == []
    world.create("pods", "t", pod("q", "n1", token=False, secrets=("s9",)))
    world.run(500.0)
    assert len(world.requests("watch secrets")) == 1
    assert kubelet.objects.references == {("secrets", "t", "s9"): 2}
    assert world.get("pods", "t", "q")["status"]["phase"] == "Running"  # type: ignore[index]


def test_an_object_that_turns_immutable_is_let_go_at_the_next_read() -> None:
    world, _ = settled()
    world.create("pods", "t", pod("p", "n1", token=False, secrets=("s0",)))
    world.run(30.0)
    world.change("secrets", "t", "s0", {"immutable": True})
    world.run(59.9)
    assert watched(world) == ["secrets/s0"]
    world.run(60.1)
    assert watched(world) == []


@pytest.mark.parametrize("refused_s", [0.5, 3.0])
def test_a_refused_watch_falls_back_to_a_list_and_then_backs_off(refused_s: float) -> None:
    world, _ = settled()

    def refuse(logged: Logged) -> tuple[int, bytes] | None:
        if logged.info.resource == "secrets" and logged.at < 5.0 + refused_s:
            return 403, status_body(403, "Forbidden", 'secrets "s0" is forbidden: no relationship found')
        return None

    world.refuse = refuse
    world.create("pods", "t", pod("p", "n1", secrets=("s0",)))
    world.run(30.0)
    lines = [each.line for each in world.log if each.info.resource == "secrets"]
    refused = [each.line for each in world.log if each.info.resource == "secrets" and each.status == 403]
    assert refused == ["watch secrets", "list secrets"] * (len(refused) // 2)
    assert lines == [*refused, "watch secrets"]
    assert world.get("pods", "t", "p")["status"]["phase"] == "Running"  # type: ignore[index]


def test_an_object_not_yet_synced_is_not_idle_however_long_it_takes() -> None:
    world, _ = settled()
    world.refuse = lambda logged: (403, b"{}") if logged.info.resource == "secrets" else None
    world.create("pods", "t", pod("p", "n1", token=False, secrets=("s0",)))
    world.run(700.0)
    assert world.requests("watch secrets")[-1].at > 600.0
