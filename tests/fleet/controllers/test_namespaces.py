"""What happens to a namespace that is deleted, beside what a real controller manager was recorded to do."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from harness.client.requests import CONFIGMAPS, SECRETS
from harness.fleet.controllers.namespaces import NamespaceController, NamespaceOptions
from tests.fleet.builders import add_kubelet, pod
from tests.fleet.fakeapi import EPOCH_S, World

TRACE = Path(__file__).parents[2] / "data" / "traces" / "control-plane.jsonl"


def namespace(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def world_with(*names: str, **options: Any) -> tuple[World, int]:
    world = World()
    for name in names:
        world.create("namespaces", "", namespace(name))
    options.setdefault("resources", (SECRETS, CONFIGMAPS))
    who = world.add(NamespaceController(NamespaceOptions(**options), Random(1), EPOCH_S))
    world.run(1.0)
    return world, who


def sent(world: World, who: int) -> list[str]:
    return [each.line for each in world.log if each.who == who and each.info.verb != "watch"]


def test_an_active_namespace_costs_nothing() -> None:
    world, who = world_with("m")
    world.run(100.0)
    assert sent(world, who) == []


def test_five_seconds_after_the_deletion_everything_goes_pods_first() -> None:
    world, who = world_with("m")
    world.create("configmaps", "m", {"metadata": {"name": "c"}})
    world.delete("namespaces", "", "m")
    world.run(7.0)
    assert world.requests("get namespaces")[0].at == pytest.approx(6.001)
    assert sent(world, who) == [
        "get namespaces",
        "list pods",
        "deletecollection pods",
        "list pods",
        "deletecollection secrets",
        "list secrets",
        "deletecollection configmaps",
        "list configmaps",
        "update namespaces/finalize",
    ]
    assert world.get("namespaces", "", "m") is None
    assert world.get("configmaps", "m", "c") is None
    sample = next(each for each in world.samples if each.name == "namespace_deletion_ms")
    assert sample.value == pytest.approx(5000.0 + 9 * world.latency_s * 1000.0)


def test_the_recorded_controller_did_the_same_in_the_same_order() -> None:
    """Once pods were left, then once they were gone; the second round is compared up to its other resources."""
    rows = [msgspec.json.decode(line) for line in TRACE.read_bytes().splitlines()]
    theirs = [(row["verb"], row["uri"]) for row in rows if row["who"] == "namespace-controller"]
    world, who = world_with("m")
    world.create("nodes", "", {"metadata": {"name": "n1"}, "spec": {}, "status": {}})
    world.create("pods", "m", pod("p", "n1", grace_s=8))
    world.delete("namespaces", "", "m")
    world.at(8.0, lambda: world.delete("pods", "m", "p", grace_s=0))
    world.run(30.0)
    mine = [
        (each.info.verb, each.request.path)
        for each in world.log
        if each.who == who and each.info.verb != "watch"
    ]
    assert mine[:9] == theirs[:9]
    assert mine[-1] == theirs[-1]
    others = theirs[9:-1]
    assert {verb for verb, _ in others} == {"deletecollection", "list"}


def test_pods_that_take_their_time_are_waited_for_and_the_status_says_so() -> None:
    world, _ = world_with("m")
    kubelet = add_kubelet(world, events=False, stop_delay_s=(9.0, 9.0))
    world.create("configmaps", "m", {"metadata": {"name": "kube-root-ca.crt"}})
    world.run(3.0)
    world.create("pods", "m", pod("p", "n1"))
    world.run(9.0)
    world.delete("namespaces", "", "m")
    world.run(14.5)
    conditions = world.get("namespaces", "", "m")["status"]["conditions"]  # type: ignore[index]
    assert conditions[0]["type"] == "NamespaceContentRemaining"
    assert conditions[0]["message"] == "Some resources are remaining: pods has 1 resource instances"
    assert world.requests("deletecollection configmaps") == []
    world.run(60.0)
    assert world.get("namespaces", "", "m") is None
    assert len(kubelet.pods) == 0


def test_no_more_namespaces_at_once_than_workers() -> None:
    names = [f"m{index}" for index in range(7)]
    world, who = world_with(*names, workers=2)
    for name in names:
        world.delete("namespaces", "", name)
    at_once = []

    def watch() -> None:
        at_once.append(sum(flying[0] == who and flying[1][0] == "work" for flying in world._flying))

    world.checks.append(watch)
    world.run(20.0)
    assert max(at_once) == 2
    assert all(world.get("namespaces", "", name) is None for name in names)


def test_a_resource_that_the_server_does_not_have_is_passed_over() -> None:
    world, _ = world_with("m")
    world.refuse = lambda logged: (404, b"{}") if logged.info.resource == "secrets" else None
    world.delete("namespaces", "", "m")
    world.run(10.0)
    assert world.get("namespaces", "", "m") is None
    assert world.requests("list secrets") == []


def test_a_failure_begins_again_after_five_seconds_then_ten() -> None:
    world, _ = world_with("m")
    world.refuse = lambda logged: (500, b"{}") if logged.line == "list pods" and logged.at < 20 else None
    world.delete("namespaces", "", "m")
    world.run(60.0)
    assert [round(each.at) for each in world.requests("get namespaces")] == [6, 11, 21]
    assert world.get("namespaces", "", "m") is None


def test_a_namespace_created_again_under_the_same_name_is_left_alone() -> None:
    world, _ = world_with("m")
    world.delete("namespaces", "", "m")
    world.run(10.0)
    world.create("namespaces", "", namespace("m"))
    count = len(world.log)
    world.run(100.0)
    assert len(world.log) == count


def discovery(*resources: tuple[str, str, str, str]) -> bytes:
    """An aggregated discovery document of (group, version, resource, scope)."""
    groups: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for group, version, resource, scope in resources:
        entry = {"resource": resource, "scope": scope, "verbs": ["delete", "deletecollection", "list"]}
        groups.setdefault(group, {}).setdefault(version, []).append(entry)
    items = [
        {
            "metadata": {"name": group},
            "versions": [{"version": version, "resources": each} for version, each in versions.items()],
        }
        for group, versions in groups.items()
    ]
    return msgspec.json.encode({"kind": "APIGroupDiscoveryList", "items": items})


DOCUMENTS = {
    "/api": discovery(
        ("", "v1", "pods", "Namespaced"), ("", "v1", "secrets", "Namespaced"), ("", "v1", "nodes", "Cluster")
    ),
    "/apis": discovery(
        ("e.io", "v2", "things", "Namespaced"),
        ("e.io", "v1", "things", "Namespaced"),
        ("e.io", "v1", "olds", "Namespaced"),
    ),
}


def test_what_is_deleted_is_what_the_server_says_that_it_has() -> None:
    world, who = world_with("m", resources=None)
    world.refuse = lambda logged: (
        (200, DOCUMENTS.get(logged.request.path) or b'{"items":[]}')
        if (logged.request.path in DOCUMENTS or "e.io" in logged.request.path)
        else None
    )
    world.delete("namespaces", "", "m")
    world.run(10.0)
    mine = [each.request.path for each in world.log if each.who == who and each.info.verb != "watch"]
    assert mine[1:3] == ["/api", "/apis"]
    assert mine[6:-1] == [
        *["/api/v1/namespaces/m/secrets"] * 2,
        *["/apis/e.io/v2/namespaces/m/things"] * 2,
        *["/apis/e.io/v1/namespaces/m/olds"] * 2,
    ]
    assert world.get("namespaces", "", "m") is None


@pytest.mark.parametrize("answer", [(500, b"{}"), (200, b"<html>"), (404, b"")])
def test_without_discovery_a_deletion_begins_again_later(answer: tuple[int, bytes]) -> None:
    world, _ = world_with("m", resources=None)
    world.refuse = lambda logged: (
        answer
        if logged.request.path in DOCUMENTS and logged.at < 8.0
        else ((200, DOCUMENTS["/api"]) if logged.request.path in DOCUMENTS else None)
    )
    world.delete("namespaces", "", "m")
    world.run(7.5)
    assert world.get("namespaces", "", "m") is not None
    world.run(30.0)
    assert world.get("namespaces", "", "m") is None
