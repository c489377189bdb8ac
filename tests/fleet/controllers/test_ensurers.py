"""The default ServiceAccount and kube-root-ca.crt of each namespace."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from harness.client.rest import Rest
from harness.fleet.controllers.ensurer import Ensurer, controller_limiters
from harness.fleet.controllers.rootca import root_ca_publisher
from harness.fleet.controllers.serviceaccounts import serviceaccount_controller
from tests.fleet.fakeapi import Logged, Refusal, World, status_body


def namespace(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def controllers() -> list[tuple[Ensurer, str, str]]:
    return [
        (serviceaccount_controller(Random(1)), "serviceaccounts", "default"),
        (root_ca_publisher("PEM", Random(1)), "configmaps", "kube-root-ca.crt"),
    ]


@pytest.fixture(params=[0, 1], ids=["serviceaccounts", "rootca"])
def setting(request: pytest.FixtureRequest) -> tuple[World, str, str]:
    """A world with namespace a and one controller; the resource and name that it sees to."""
    controller, resource, name = controllers()[request.param]
    world = World()
    world.create("namespaces", "", namespace("a"))
    world.add(controller)
    return world, resource, name


def test_every_namespace_gets_one_early_or_late(setting: tuple[World, str, str]) -> None:
    world, resource, name = setting
    world.run(1.0)
    assert world.get(resource, "a", name)
    world.create("namespaces", "", namespace("b"))
    world.run(1.01)
    assert world.get(resource, "b", name)
    assert len(world.requests(f"create {resource}")) == 2


def test_one_that_is_there_is_left_alone(setting: tuple[World, str, str]) -> None:
    world, resource, name = setting
    world.objects.clear()
    world.create("namespaces", "", namespace("a"))
    world.create(resource, "a", {"metadata": {"name": name}, "data": {"ca.crt": "PEM"}})
    world.run(2.0)
    assert world.requests(f"create {resource}") == []
    assert world.requests(f"update {resource}") == []


def test_one_that_is_deleted_comes_back(setting: tuple[World, str, str]) -> None:
    world, resource, name = setting
    world.run(1.0)
    world.delete(resource, "a", name)
    world.run(1.1)
    assert world.get(resource, "a", name)


@pytest.mark.parametrize(("setting", "tries"), [(0, 0), (1, 1)], indirect=["setting"])
def test_into_a_terminating_namespace_only_the_root_ca_is_sent_once_more(
    setting: tuple[World, str, str], tries: int
) -> None:
    """The publisher does not ask whether its namespace is terminating (recorded); the server does."""
    world, resource, name = setting
    body = status_body(403, "Forbidden", "x").replace(
        b'"code"', b'"details":{"causes":[{"reason":"NamespaceTerminating"}]},"code"'
    )
    world.run(1.0)
    world.refuse = lambda logged: (403, body) if logged.line == f"create {resource}" else None
    world.delete("namespaces", "", "a")
    world.run(1.1)
    world.delete(resource, "a", name)
    world.run(5.0)
    assert world.get(resource, "a", name) is None
    assert len(world.requests(f"create {resource}", since=1.05)) == tries


def test_a_refusal_because_the_namespace_is_terminating_is_final(setting: tuple[World, str, str]) -> None:
    world, resource, _ = setting
    body = status_body(403, "Forbidden", "x").replace(
        b'"code"', b'"details":{"causes":[{"reason":"NamespaceTerminating"}]},"code"'
    )
    world.refuse = lambda logged: (403, body) if logged.line == f"create {resource}" else None
    world.run(60.0)
    assert len(world.requests(f"create {resource}")) == 1


def test_other_failures_are_tried_again_with_doubling_waits(setting: tuple[World, str, str]) -> None:
    world, resource, name = setting

    def refuse(logged: Logged) -> Refusal:
        return (500, b"{}") if logged.line == f"create {resource}" and logged.at < 1 else None

    world.refuse = refuse
    world.run(10.0)
    times = [each.at for each in world.requests(f"create {resource}")]
    waits = [round(after - before - world.latency_s, 6) for before, after in pairwise(times)]
    assert waits == [0.005 * 2**power for power in range(len(waits))]
    assert world.get(resource, "a", name)


def test_one_namespace_at_a_time_at_twenty_a_second() -> None:
    world = World()
    for index in range(50):
        world.create("namespaces", "", namespace(f"n{index:02}"))
    world.add(Rest(serviceaccount_controller(Random(1)), controller_limiters()))
    world.run(10.0)
    times = [each.at for each in world.requests("create serviceaccounts")]
    assert len(times) == 50
    assert times[29] - times[0] == pytest.approx(29 * world.latency_s)
    assert round(times[-1] - times[40], 2) == 9 / 20


def test_a_root_ca_that_was_changed_is_put_right() -> None:
    world = World()
    world.create("namespaces", "", namespace("a"))
    world.add(root_ca_publisher("PEM", Random(1)))
    world.run(1.0)
    world.change("configmaps", "a", "kube-root-ca.crt", {"data": {"ca.crt": "other"}})
    world.run(1.1)
    assert world.get("configmaps", "a", "kube-root-ca.crt")["data"] == {"ca.crt": "PEM"}  # type: ignore[index]


def test_other_configmaps_are_nobodys_business() -> None:
    world = World()
    world.create("namespaces", "", namespace("a"))
    world.add(root_ca_publisher("PEM", Random(1)))
    world.create("configmaps", "a", {"metadata": {"name": "c"}, "data": {"k": "v"}})
    world.run(1.0)
    world.delete("configmaps", "a", "c")
    world.run(2.0)
    assert [each.line for each in world.log if each.info.verb != "watch"] == ["create configmaps"]
