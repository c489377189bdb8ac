"""Mounting: its ticks, its waits, its backoff."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import msgspec
import pytest

from harness.client.rest import Rest
from harness.fleet.kubelet import Kubelet, kubelet_limiters
from harness.fleet.options import KubeletOptions
from harness.fleet.podworker import Stage
from tests.fleet.builders import add_kubelet, pod, with_objects
from tests.fleet.fakeapi import EPOCH_S, Logged, Refusal, World, status_body

FORBIDDEN = status_body(403, "Forbidden", 'serviceaccounts "default" is forbidden: no relationship found')


def settled(seed: int = 1, **options: object) -> tuple[World, Kubelet]:
    world = World(latency_s=0.0)
    kubelet = add_kubelet(world, seed=seed, **options)
    with_objects(world, "t", "s0", "s1", "c0")
    world.run(5.0)
    return world, kubelet


def warnings(world: World) -> list[str]:
    bodies = [msgspec.json.decode(each.request.body) for each in world.requests("create events")]
    return [each["message"] for each in bodies if each["type"] == "Warning"]


@pytest.mark.parametrize("seed", range(8))
def test_a_mount_begins_one_to_three_hundred_milliseconds_after_the_pod_is_known(seed: int) -> None:
    world, _ = settled(seed, events=False)
    world.create("pods", "t", pod("p", "n1"))
    world.run(6.0)
    known = world.requests("get pods")[0].at
    token = world.requests("create serviceaccounts/token")[0].at
    assert 0.1 <= token - known <= 0.3


def test_pods_of_one_kubelet_mount_at_the_same_ticks() -> None:
    world, _ = settled(events=False)
    for index in range(5):
        world.create("pods", "t", pod(f"p{index}", "n1"))
    world.run(6.0)
    times = [each.at for each in world.requests("create serviceaccounts/token")]
    assert len(times) == 5
    ticks = {round((at - times[0]) / 0.1, 6) for at in times}
    assert ticks <= {-1.0, 0.0, 1.0}


def test_a_refused_token_is_asked_for_again_with_doubling_waits_up_to_two_minutes() -> None:
    world, kubelet = settled()

    def refuse(logged: Logged) -> Refusal:
        return (403, FORBIDDEN) if logged.line == "create serviceaccounts/token" and logged.at < 400 else None

    world.refuse = refuse
    world.create("pods", "t", pod("p", "n1"))
    world.run(700.0)
    times = [each.at for each in world.requests("create serviceaccounts/token")]
    waits = [after - before for before, after in pairwise(times)]
    expected = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 122.0, 122.0, 122.0]
    assert len(waits) == len(expected)
    for wait_s, least_s in zip(waits, expected, strict=True):
        assert least_s - 1e-6 <= wait_s <= least_s + 0.1 + 1e-6  # the first reconciler tick after it
    assert kubelet.pods.count(Stage.RUNNING) == 1
    startup = next(each for each in world.samples if each.name == "pod_startup_ms")
    assert startup.labels == (("mount", "retried"),)


def test_a_failed_mount_is_an_event_and_a_repeated_one_a_patch_of_its_count() -> None:
    world, _ = settled()
    world.refuse = lambda logged: (403, FORBIDDEN) if logged.line == "create serviceaccounts/token" else None
    world.create("pods", "t", pod("p", "n1"))
    world.run(8.0)
    error = 'failed to fetch token: serviceaccounts "default" is forbidden: no relationship found'
    assert warnings(world) == [f'MountVolume.SetUp failed for volume "kube-api-access-x" : {error}']
    counts = [msgspec.json.decode(each.request.body)["count"] for each in world.requests("patch events")]
    assert counts == [2, 3]


def test_reading_an_object_waits_a_second_for_its_first_sync() -> None:
    world, _ = settled()
    world.refuse = lambda logged: (403, b"{}") if logged.info.resource == "secrets" else None
    world.create("pods", "t", pod("p", "n1", token=False, secrets=("s0",)))
    world.run(6.0)
    assert warnings(world) == []
    world.run(6.5)
    error = "failed to sync secret cache: timed out waiting for the condition"
    assert warnings(world) == [f'MountVolume.SetUp failed for volume "v-s0" : {error}']


def test_a_sync_ends_the_wait_at_once() -> None:
    world, kubelet = settled(events=False)
    world.refuse = lambda logged: (
        (403, b"{}") if logged.info.resource == "secrets" and logged.at < 5.5 else None
    )
    world.create("pods", "t", pod("p", "n1", token=False, secrets=("s0",)))
    synced = world.run_until(lambda: any(each.info.resource == "secrets" for each in world.watches))
    world.run_until(lambda: kubelet.pods.count(Stage.STARTING) == 1)
    assert world.now - synced <= 0.3 + 1e-6  # the worker's next poll, no backoff in between


def test_a_missing_object_fails_the_mount_and_an_optional_one_does_not() -> None:
    world, kubelet = settled()
    world.create("pods", "t", pod("p", "n1", token=False, secrets=("sx",)))
    optional = pod("q", "n1", token=False, secrets=("sy",))
    optional["spec"]["volumes"][0]["secret"]["optional"] = True
    world.create("pods", "t", optional)
    world.run(8.0)
    assert warnings(world) == ['MountVolume.SetUp failed for volume "v-sx" : secret "sx" not found']
    assert kubelet.pods.count(Stage.RUNNING) == 1


def test_all_sources_of_a_projected_volume_are_tried_and_their_errors_told_together() -> None:
    world, _ = settled()
    world.delete("configmaps", "t", "kube-root-ca.crt")
    world.refuse = lambda logged: (403, FORBIDDEN) if logged.line == "create serviceaccounts/token" else None
    world.create("pods", "t", pod("p", "n1"))
    world.run(5.5)
    errors = [
        'failed to fetch token: serviceaccounts "default" is forbidden: no relationship found',
        'configmap "kube-root-ca.crt" not found',
    ]
    assert warnings(world) == [
        f'MountVolume.SetUp failed for volume "kube-api-access-x" : [{", ".join(errors)}]'
    ]


def test_a_token_request_is_bound_to_the_pod() -> None:
    world, _ = settled(events=False)
    created = world.create("pods", "t", pod("p", "n1"))
    world.run(6.0)
    request = world.requests("create serviceaccounts/token")[0]
    assert request.request.path == "/api/v1/namespaces/t/serviceaccounts/default/token"
    spec = msgspec.json.decode(request.request.body)["spec"]
    assert spec["expirationSeconds"] == 3607
    assert spec["boundObjectRef"] == {
        "kind": "Pod",
        "apiVersion": "v1",
        "name": "p",
        "uid": created["metadata"]["uid"],
    }


def test_tokens_are_refreshed_at_eighty_percent_of_their_life() -> None:
    world, _ = settled(events=False)
    world.create("pods", "t", pod("p", "n1"))
    world.run(9000.0)
    times = [each.at for each in world.requests("create serviceaccounts/token")]
    waits = [after - before for before, after in pairwise(times)]
    assert len(waits) == 3
    assert all(0.8 * 3607 - 10 <= wait_s <= 0.8 * 3607 + 60 for wait_s in waits)


def test_a_refresh_that_fails_is_tried_each_minute_and_hurts_no_one() -> None:
    world, kubelet = settled(events=False)
    world.create("pods", "t", pod("p", "n1"))
    world.run(10.0)
    world.refuse = lambda logged: (500, b"{}") if logged.line == "create serviceaccounts/token" else None
    world.run(3300.0)
    times = [each.at for each in world.requests("create serviceaccounts/token", since=10.0)]
    assert [round(after - before) for before, after in pairwise(times)] == [60] * (len(times) - 1)
    assert kubelet.pods.count(Stage.RUNNING) == 1


@pytest.mark.parametrize(("mounted_s", "gap"), [(122.0, False), (124.0, True)])
def test_a_worker_that_waited_two_minutes_for_its_volumes_comes_back_after_its_backoff(
    mounted_s: float, gap: bool
) -> None:
    """Nothing but the mounts posts events about it (kubelet.go, SyncPod: wait.Interrupted)."""
    world, kubelet = settled(mount_backoff_cap_s=0.5, worker_retry_s=(12.0, 12.0))
    since = world.now
    world.refuse = lambda logged: (
        (403, FORBIDDEN)
        if logged.line == "create serviceaccounts/token" and logged.at < since + mounted_s
        else None
    )
    world.create("pods", "t", pod("p", "n1"))
    world.run_until(lambda: kubelet.pods.count(Stage.STARTING) == 1)
    assert (world.now - since > 135.0) is gap
    assert (world.now - since < mounted_s + 2.0) is not gap
    assert len(set(warnings(world))) == 1
    assert warnings(world)[0].startswith('MountVolume.SetUp failed for volume "kube-api-access-x" : ')


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (
            429,
            b"Too many requests, please try again later.\n",
            "the server has received too many requests and has asked us to try again later",
        ),
        (503, b"", "the server is currently unable to handle the request"),
        (502, b"oops", 'an error on the server ("oops") has prevented the request from succeeding'),
        (418, b"", "the server responded with the status code 418 but did not return more information"),
    ],
)
def test_an_answer_that_is_no_status_is_told_as_client_go_does(status: int, body: bytes, error: str) -> None:
    world, _ = settled()
    world.refuse = lambda logged: (status, body) if logged.line == "create serviceaccounts/token" else None
    world.create("pods", "t", pod("p", "n1"))
    world.run(5.5)
    text = f"failed to fetch token: {error} (post serviceaccounts default)"
    assert warnings(world) == [f'MountVolume.SetUp failed for volume "kube-api-access-x" : {text}']


def test_one_refresh_of_a_token_is_under_way_however_long_it_takes() -> None:
    """The volume's operation is pending, also while the client waits as Retry-After says."""
    world, options = World(), KubeletOptions(events=False, sync_frequency_s=5.0)
    world.add(Rest(Kubelet("n1", options, Random(1), EPOCH_S), kubelet_limiters(options)))
    with_objects(world, "t")
    world.run(5.0)
    world.create("pods", "t", pod("p", "n1"))
    world.run(10.0)
    world.refuse = lambda logged: (429, b"") if logged.info.subresource == "token" else None
    world.run(2950.0)
    times = [each.at for each in world.requests("create serviceaccounts/token", since=10.0)]
    assert len(times) > 12
    assert min(after - before for before, after in pairwise(times)) >= 1.0


def test_a_warning_storm_is_held_back_after_twenty_five() -> None:
    world, _ = settled(mount_backoff_cap_s=0.5)
    world.refuse = lambda logged: (403, FORBIDDEN) if logged.line == "create serviceaccounts/token" else None
    world.create("pods", "t", pod("p", "n1"))
    world.run(60.0)
    assert len(world.requests("create serviceaccounts/token")) > 80
    assert len(warnings(world)) + len(world.requests("patch events")) == 25
