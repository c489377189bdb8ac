"""Whatever the server answers for a while: no machine raises, and once it behaves all comes right."""

from __future__ import annotations

from random import Random

import pytest

from harness.client.requests import CONFIGMAPS, SECRETS
from harness.fleet.controllers.namespaces import NamespaceController, NamespaceOptions
from harness.fleet.controllers.rootca import root_ca_publisher
from harness.fleet.controllers.serviceaccounts import serviceaccount_controller
from harness.fleet.podworker import Stage
from harness.fleet.scheduler import Scheduler, SchedulerOptions
from harness.wire.request import Failure, TransportError
from tests.fleet.builders import add_kubelet, pod
from tests.fleet.fakeapi import EPOCH_S, Logged, Refusal, World, status_body

RUBBISH = (b"", b"[]", b"<html>", b'{"metadata":null,"status":3}')
BODIES = (*RUBBISH, b"{}", status_body(0, "x", "y"))
STATUSES = (403, 410, 429, 500, 503, 504, 404, 409)


@pytest.mark.parametrize("seed", range(4))
def test_a_server_gone_mad_for_two_minutes_is_survived(seed: int) -> None:
    rng = Random(seed)
    world = World()

    def refuse(logged: Logged) -> Refusal:
        if logged.at > 120.0 or rng.random() < 0.5:
            return None
        if rng.random() < 0.2:
            return TransportError(rng.choice(list(Failure)), "chaos")
        if logged.info.verb == "get" and rng.random() < 0.2:
            return 200, rng.choice(RUBBISH)  # but a write that is said to be done is done
        # "Exists already" and "no such namespace" are taken at their word by those who create, as upstream.
        lies = logged.line in ("create serviceaccounts", "create configmaps")
        return rng.choice(STATUSES[:-2] if lies else STATUSES), rng.choice(BODIES)

    world.refuse = refuse
    world.create("namespaces", "", {"metadata": {"name": "t"}, "spec": {"finalizers": ["kubernetes"]}})
    kubelets = [add_kubelet(world, f"n{index}", seed=seed * 10 + index) for index in range(3)]
    scheduler = Scheduler(SchedulerOptions(), Random(seed), EPOCH_S)
    world.checks.append(scheduler.validate)
    world.add(scheduler)
    world.add(serviceaccount_controller(Random(seed)))
    world.add(root_ca_publisher("PEM", Random(seed)))
    world.add(NamespaceController(NamespaceOptions(resources=(SECRETS, CONFIGMAPS)), Random(seed), EPOCH_S))
    for name in ("s0", "s1"):
        world.create("secrets", "t", {"metadata": {"name": name}})
    for index in range(12):
        obj = pod(f"p{index}", secrets=("s0",), env_secret="s1")
        world.at(index * 8.0, lambda obj=obj: world.create("pods", "t", obj))  # type: ignore[misc]
    for index in range(6):
        world.at(90.0 + index, lambda index=index: world.delete("pods", "t", f"p{index}"))  # type: ignore[misc]

    world.run(500.0)
    assert all(kubelet.ready for kubelet in kubelets)
    assert scheduler.pending == 0
    left = [obj for (resource, _, _), obj in world.objects.items() if resource == "pods"]
    assert len(left) == 6
    assert {obj["status"]["phase"] for obj in left} == {"Running"}
    assert sum(kubelet.pods.count(Stage.RUNNING) for kubelet in kubelets) == 6

    world.delete("namespaces", "", "t")
    world.run(600.0)
    assert world.get("namespaces", "", "t") is None
    assert all(len(kubelet.pods) == len(kubelet.objects) == 0 for kubelet in kubelets)
