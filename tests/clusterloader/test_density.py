"""Our own density config."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import harness
from harness.client.rest import Rest
from harness.clusterloader import load_config
from tests.clusterloader.conftest import loader
from tests.clusterloader.fake import FakeCluster

PATH = Path(harness.__file__).parents[1] / "clusterloader_configs" / "density.yaml"
BARRIER = "Waiting for 'create objects' to be completed"


@pytest.mark.parametrize(
    ("nodes", "namespaces", "pods"),
    [(1, 1, 5), (49, 1, 245), (50, 1, 250), (100, 2, 500), (101, 2, 506), (5000, 100, 25_000)],
)
def test_it_grows_with_the_nodes(nodes: int, namespaces: int, pods: int) -> None:
    config = load_config(PATH, nodes)
    assert config.namespace.number == namespaces
    creation = next(step for step in config.steps if step.name == "create objects")
    assert creation.phases[0].replicas_per_namespace * namespaces == pods


def test_it_has_the_steps_that_reports_compare() -> None:
    names = [step.name for step in load_config(PATH, 100).steps]
    wanted = [
        "create objects configmaps and secrets",
        "Starting measurement for 'create objects'",
        "create objects",
        BARRIER,
        "delete objects",
        "Waiting for 'delete objects' to be completed",
    ]
    assert [name for name in names if name in wanted] == wanted


def test_it_runs_to_its_end_and_leaves_nothing() -> None:
    machine = loader(
        load_config(PATH, 100, [], {"CL2_PODS_PER_NODE": "2", "CL2_SECRETS": "7", "CL2_CONFIGMAPS": "7"})
    )
    cluster = FakeCluster(start_s=5.0)
    finished = cluster.run(Rest(machine, machine.limiters()))
    assert finished is not None
    assert finished.failures == ()
    assert cluster.idle
    assert cluster.objects == {}
    barrier = next(note for note in cluster.of("barrier") if note["step"] == BARRIER)
    assert barrier["seconds"] == pytest.approx(5.1, abs=0.1)
    assert barrier["controllers"] == 200


def test_the_pods_of_a_node_use_different_secrets_and_configmaps() -> None:
    """Pods bound in turn over 100 nodes: each node ends with tens of objects to watch."""
    config = load_config(PATH, 100)
    creation = next(step for step in config.steps if step.name == "create objects")
    (item,) = creation.phases[0].object_bundle
    used: dict[int, set[tuple[int, str]]] = {node: set() for node in range(100)}
    for number in range(500):
        namespace, index = divmod(number, 250)
        mapping = {**config.mapping, **item.template_fill_map, "Name": f"density-pod-{index}", "Index": index}
        (body,) = config.templates.objects(item.object_template_path, mapping, f"density-pod-{index}")
        for volume in msgspec.json.decode(body.body)["spec"]["volumes"]:
            name = volume["secret"]["secretName"] if "secret" in volume else volume["configMap"]["name"]
            used[number % 100].add((namespace, name))
    assert {len(objects) for objects in used.values()} == {30}


@pytest.mark.parametrize(
    "environ", [{"CL2_SECRETS": "2"}, {"CL2_CONFIGMAPS": "0"}, {"CL2_SECRETS": "0", "CL2_CONFIGMAPS": "0"}]
)
def test_few_or_no_secrets_and_configmaps_are_allowed(environ: dict[str, str]) -> None:
    machine = loader(load_config(PATH, 1, [], environ))
    cluster = FakeCluster()
    finished = cluster.run(machine)
    assert finished is not None
    assert finished.failures == ()
