"""A kubelet behind its client limits, as the load shell runs it."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from harness.client.rest import Rest
from harness.fleet.kubelet import Kubelet, kubelet_limiters
from harness.fleet.options import KubeletOptions
from tests.fleet.builders import pod, with_objects
from tests.fleet.fakeapi import EPOCH_S, World


def burst(qps: float, bucket: int, pods: int) -> World:
    options = KubeletOptions(qps=qps, burst=bucket, events=False)
    world = World()
    world.add(Rest(Kubelet("n1", options, Random(1), EPOCH_S), kubelet_limiters(options)))
    with_objects(world, "t", "s0", "s1", "c0")
    world.run(9.0)
    for index in range(pods):
        world.create("pods", "t", pod(f"p{index}", "n1", secrets=("s0", "s1"), configmaps=("c0",)))
    world.run(30.0)
    return world


def test_a_busy_kubelet_of_ten_a_second_spaces_its_requests_as_recorded() -> None:
    """The recorded kubelet (10 a second, burst 20) sent its status requests 100 ms apart once the burst was spent."""
    world = burst(10.0, 20, pods=9)
    times = [
        each.at for each in world.log if each.at > 9.5 and each.info.resource == "pods" and each.at < 11.5
    ]
    assert min(after - before for before, after in pairwise(times[2:])) > 0.099


def test_watches_and_heartbeats_pass_the_limit_by() -> None:
    world = burst(0.5, 12, pods=9)
    assert [each.at for each in world.requests("watch secrets")] == pytest.approx([9.002] * 2, abs=0.002)
    renewals = [each.at for each in world.requests("update leases")]
    assert renewals
    assert world.requests("create serviceaccounts/token")[-1].at > 12.0
