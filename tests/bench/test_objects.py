"""A benchmark's pods give a kubelet exactly the watches that were asked for."""

from __future__ import annotations

import msgspec
import pytest

from harness.bench.objects import (
    NAMESPACE,
    OWN_WATCHES,
    SHARE,
    bound_pods,
    check_watches,
    mounted_object,
    mounted_objects,
    node_name,
)
from harness.wire.errors import ConfigError
from tests.fleet.builders import TOKEN_VOLUME, add_kubelet
from tests.fleet.fakeapi import World


def started(watches: int) -> World:
    """A node of that many watches, as the API server would have it: admission adds the token's volume."""
    world = World(latency_s=0.0)
    for path, body in [
        *mounted_objects(1, watches),
        ("configmaps", b'{"metadata":{"name":"kube-root-ca.crt"}}'),
    ]:
        world.create(path.rpartition("/")[2], NAMESPACE, msgspec.json.decode(body))
    for _, body in bound_pods(1, watches):
        pod = msgspec.json.decode(body)
        pod["spec"]["volumes"].append(TOKEN_VOLUME)
        world.create("pods", NAMESPACE, {**pod, "status": {"phase": "Pending"}})
    add_kubelet(world, node_name(0))
    world.run(20.0)
    return world


@pytest.mark.parametrize("watches", [OWN_WATCHES, OWN_WATCHES + 1, 35, OWN_WATCHES + 41])
def test_a_node_has_the_watches_that_were_asked_for(watches: int) -> None:
    world = started(watches)
    assert len(world.watches) == watches
    assert len([note for note in world.notes if note.kind == "kubelet-ready"]) == 1
    assert len([sample for sample in world.samples if sample.name == "pod_startup_ms"]) == len(
        list(bound_pods(1, watches))
    )


def test_nodes_of_a_group_share_their_objects_and_groups_do_not() -> None:
    one, two = list(mounted_objects(SHARE, 35)), list(mounted_objects(SHARE + 1, 35))
    assert len(one) == 35 - OWN_WATCHES
    assert len(two) == 2 * len(one)
    assert len({(path, msgspec.json.decode(body)["metadata"]["name"]) for path, body in two}) == len(two)


def test_each_generation_of_an_object_is_a_change() -> None:
    assert mounted_object("o", 1) != mounted_object("o", 2)


@pytest.mark.parametrize("watches", [OWN_WATCHES - 1, 0, 201])
def test_watches_that_no_node_has_are_refused(watches: int) -> None:
    with pytest.raises(ConfigError, match=f"--watches {watches}: not within"):
        check_watches(watches)
