"""Our kubelet against a recorded one: the same requests, in the same order where the order is the kubelet's."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from tests.fleet.builders import add_kubelet, pod, with_objects
from tests.fleet.fakeapi import World

TRACE = Path(__file__).parents[1] / "data" / "traces" / "hollow-kubelet.jsonl"


def normal(verb: str, uri: str) -> str:
    """Verb and URI without what differs from run to run: pods' names, revisions, drawn timeouts."""
    uri = re.sub(r"/pods/[^/?]+", "/pods/POD", uri)
    uri = re.sub(r"resourceVersion=[1-9]\d*", "resourceVersion=N", uri)
    uri = re.sub(r"timeout=\d+m\d+s", "timeout=DRAWN", uri)
    uri = re.sub(r"timeoutSeconds=\d+", "timeoutSeconds=DRAWN", uri)
    return f"{verb} {uri}"


def recorded() -> list[tuple[float, str]]:
    """(seconds, request), each once: a watch counts when it starts."""
    found = []
    for line in TRACE.read_bytes().splitlines():
        row = msgspec.json.decode(line)
        if row["verb"] != "watch" or row["stage"] == "ResponseStarted":
            found.append((row["t"], normal(row["verb"], row["uri"])))
    return found


def ours(world: World) -> list[tuple[float, str]]:
    return [(each.at, normal(each.request.verb, each.request.path)) for each in world.log]


def test_registration_sends_what_was_recorded_in_that_order() -> None:
    world = World()
    add_kubelet(world, "hollow-0", events=False)
    world.run(2.0)
    assert [line for _, line in ours(world)] == [line for at, line in recorded() if at < 2.0]


def test_registration_keeps_the_recorded_times() -> None:
    world = World()
    add_kubelet(world, "hollow-0", events=False)
    world.run(2.0)
    theirs = [at for at, _ in recorded() if at < 2.0]
    assert max(abs(at - other) for (at, _), other in zip(ours(world), theirs, strict=True)) < 0.05


def test_ten_minutes_with_nine_pods_send_every_kind_of_request_recorded_and_no_other() -> None:
    world = World()
    add_kubelet(world, "hollow-0", events=False)
    with_objects(world, "t", "s0", "s1", "c0")

    def create() -> None:
        for index in range(9):
            name = f"d-7ddd9988fc-{index}"
            world.create("pods", "t", pod(name, "hollow-0", secrets=("s0", "s1"), configmaps=("c0",)))

    world.at(175.71, create)
    for index in range(6):
        world.at(308.06, lambda index=index: world.delete("pods", "t", f"d-7ddd9988fc-{index}"))
    world.run(620.0)
    mine = {line for _, line in ours(world)}
    theirs = {line for _, line in recorded()}
    assert theirs - mine == set()
    resumed = {line for line in mine - theirs if "watch=true" in line and "resourceVersion=N" in line}
    assert mine - theirs == resumed


def test_each_pod_costs_what_the_recorded_ones_cost() -> None:
    """For nine pods: 4 watches, 9 tokens, and for each pod two status reports on the way up."""
    world = World()
    add_kubelet(world, "hollow-0", events=False)
    with_objects(world, "t", "s0", "s1", "c0")
    world.run(175.0)
    for index in range(9):
        world.create("pods", "t", pod(f"d-{index}", "hollow-0", secrets=("s0", "s1"), configmaps=("c0",)))
    world.run(182.0)
    mine = [line for at, line in ours(world) if at > 175.0]
    theirs = [line for at, line in recorded() if 175.0 < at < 182.0]
    for request in ("create /api/v1/namespaces/t/serviceaccounts/default/token", "watch"):
        count = sum(line.startswith(request) for line in theirs)
        assert sum(line.startswith(request) for line in mine) == count
    reports = "patch /api/v1/namespaces/t/pods/POD/status"
    assert mine.count(reports) == 18
    assert theirs.count(reports) == 19  # one of theirs was caught between sandbox and container
