"""Our own configs, beside density: rendered and planned at 10 and 5,000 nodes, and run in virtual time."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.client.rest import Rest
from harness.clusterloader import Config, load_config
from harness.clusterloader.config import namespaces_of
from harness.clusterloader.plan import plan
from harness.clusterloader.schema import GlobalQPSLoad, RandomizedTimeLimitedLoad
from tests.clusterloader.conftest import loader
from tests.clusterloader.fake import FakeCluster

FOLDER = Path(harness.__file__).parents[1] / "clusterloader_configs"
NAMES = ("burst", "claims", "density", "hold", "list", "load-5k", "secrets-and-configmaps", "watch-list")
SIZES = (10, 5000)


def config_of(name: str, nodes: int, **environ: str) -> Config:
    return load_config(FOLDER / f"{name}.yaml", nodes, [], environ)


def objects_of(config: Config) -> list[dict[str, Any]]:
    """Every object template of a config, for the first and the last replica of each phase that makes some."""
    found = []
    for step in config.steps:
        for phase in step.phases:
            last = phase.replicas_per_namespace - 1
            for item in phase.object_bundle if last >= 0 else ():
                for index in {0, last}:
                    namespace = namespaces_of(phase, "test")[-1]
                    mapping = config.object_mapping(item, namespace, index)
                    bodies = config.templates.objects(
                        item.object_template_path, mapping, f"{item.basename}-{index}"
                    )
                    found += [json.loads(body.body) for body in bodies]
    return found


def test_these_are_all_of_them() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(NAMES)
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == set(NAMES)


@pytest.mark.parametrize("nodes", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_it_is_rendered_and_planned_and_nothing_in_it_is_unknown_or_skipped(name: str, nodes: int) -> None:
    config = config_of(name, nodes)
    assert config.name == name
    assert config.ignored == ()
    planned = plan(config)
    assert planned.operations["create"] == planned.operations["delete"] > 0
    assert not planned.skipped
    assert all(made["metadata"]["name"] and made["apiVersion"] for made in objects_of(config))


@pytest.mark.parametrize("name", NAMES)
def test_its_head_says_what_it_stresses_what_to_expect_and_every_override(name: str) -> None:
    text = (FOLDER / f"{name}.yaml").read_text()
    head = text.partition("\n\n{{")[0]
    assert "What it stresses:" in head or "What it is for:" in head
    assert "To expect" in head
    used = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    for path in (FOLDER / name).iterdir():
        used += path.read_text()
    assert set(re.findall(r"CL2_\w+", used)) == set(re.findall(r"CL2_\w+", head))


# ---- load-5k ---------------------------------------------------------------------------------------------------------
def sizes(config: Config) -> Counter[str]:
    """Pods by kind of workload, as "create objects" wants them."""
    found: Counter[str] = Counter()
    creation = next(step for step in config.steps if step.name == "create objects")
    for phase in creation.phases:
        pods = phase.object_bundle[-1].template_fill_map.get("ReplicasMax", 0)
        name = phase.object_bundle[-1].basename.rpartition("-")[2]
        found[name] += int(pods) * phase.replicas_per_namespace * len(namespaces_of(phase, "t"))
    return found


@pytest.mark.parametrize("nodes", [100, 5000])
def test_load_has_thirty_pods_a_node_in_the_kinds_of_upstream_s(nodes: int) -> None:
    found = sizes(config_of("load-5k", nodes))
    share = nodes / 5000
    assert found["deployment"] == 134_000 * share
    assert found["statefulset"] == 1_750 * share
    assert found["job"] == 14_250 * share
    assert found.total() == 30 * nodes


def test_load_s_pods_come_within_the_time_that_their_rate_gives() -> None:
    for environ, seconds in (({}, 1500.0), ({"CL2_POD_QPS": "50"}, 3000.0)):
        load = config_of("load-5k", 5000, **environ).tuning_sets["create"].load
        assert isinstance(load, RandomizedTimeLimitedLoad)
        assert load.time_limit == seconds


def test_load_has_the_steps_that_reports_compare() -> None:
    wanted = ["create objects configmaps and secrets"]
    for action in ("create", "scale and update", "delete"):
        wanted += [f"Starting measurement for '{action} objects'", f"{action} objects"]
        wanted += [f"Waiting for '{action} objects' to be completed"]
    names = [step.name for step in config_of("load-5k", 100).steps]
    assert [name for name in names if name in wanted] == wanted
    fewer = [step.name for step in config_of("load-5k", 100, CL2_SCALE="false").steps]
    assert "scale and update objects" not in fewer
    assert "delete objects" in fewer
    kept = config_of("load-5k", 100, CL2_DELETE_NAMESPACES="false")
    assert kept.namespace.delete_automanaged_namespaces is False


@pytest.mark.parametrize("name", ["density", "load-5k"])
def test_what_was_created_may_be_left_there(name: str) -> None:
    created = [step.name for step in config_of(name, 100, CL2_SCALE="false", CL2_DELETE="false").steps]
    assert not any("delet" in step.lower() for step in created)
    assert created[-1] == "Collecting measurements"
    assert "delete objects" in [step.name for step in config_of(name, 100).steps]


@pytest.mark.parametrize(("per_service", "services"), [("2", 162), ("20", 18)])
def test_load_has_services_over_one_deployment_of_so_many(per_service: str, services: int) -> None:
    config = config_of("load-5k", 100, CL2_DEPLOYMENTS_PER_SERVICE=per_service, CL2_SERVICE_QPS="7")
    creation = next(step for step in config.steps if step.name == "Creating k8s services")
    assert sum(phase.replicas_per_namespace for phase in creation.phases) == services
    assert isinstance(config.tuning_sets["services"].load, GlobalQPSLoad)
    assert config.tuning_sets["services"].load.qps == 7.0


def test_load_s_objects_fit_each_other() -> None:
    """Pods mount what their Deployment's bundle makes; half of the Deployments are behind a Service."""
    config = config_of("load-5k", 100)
    made = {(each["kind"], each["metadata"]["name"]): each for each in objects_of(config)}
    deployment = made["Deployment", "small-deployment-0"]["spec"]["template"]
    volumes = {each["name"]: each for each in deployment["spec"]["volumes"]}
    assert ("ConfigMap", volumes["configmap"]["configMap"]["name"]) in made
    assert ("Secret", volumes["secret"]["secret"]["secretName"]) in made
    service = made["Service", "small-service-0"]["spec"]["selector"]
    assert service.items() <= deployment["metadata"]["labels"].items()
    claims = made["StatefulSet", "small-statefulset-0"]["spec"]["volumeClaimTemplates"]
    assert [each["metadata"]["name"] for each in claims] == ["data"]
    assert made["Job", "big-job-0"]["spec"]["completions"] == 750


@pytest.mark.parametrize("nodes", [1, 7, 20, 99])
def test_load_is_for_small_clusters_too(nodes: int) -> None:
    found = sizes(config_of("load-5k", nodes))
    assert 0 < found.total() <= 30 * nodes


# ---- run in virtual time ---------------------------------------------------------------------------------------------
SMALL = {
    "list": {"CL2_CONFIGMAPS": "20", "CL2_PODS": "20", "CL2_NAMESPACES": "2", "CL2_DURATION": "5s"},
    "secrets-and-configmaps": {"CL2_OBJECTS": "7"},
    "watch-list": {"CL2_BULK": "10", "CL2_HOLD": "2s"},
}


@pytest.mark.parametrize("name", sorted(SMALL))
def test_it_runs_to_its_end_and_leaves_nothing(name: str) -> None:
    machine = loader(config_of(name, 10, **SMALL[name]))
    cluster = FakeCluster(start_s=2.0)
    finished = cluster.run(Rest(machine, machine.limiters()))
    assert finished is not None
    assert finished.failures == ()
    assert cluster.idle
    assert cluster.objects == {}


def test_every_secret_and_configmap_is_changed_once_a_round() -> None:
    machine = loader(config_of("secrets-and-configmaps", 10, CL2_OBJECTS="7", CL2_ROUNDS="2"))
    cluster = FakeCluster()
    assert cluster.run(Rest(machine, machine.limiters())) is not None
    assert len(cluster.made("secrets", "patch")) == len(cluster.made("configmaps", "patch")) == 14
    bodies = [request.body for _, request, _ in cluster.requests if request.verb == "patch"]
    assert sum(b'"round":"2"' in body for body in bodies) == 14


def test_pods_of_one_node_mount_different_configmaps_of_watch_list() -> None:
    """Bound in turn over 10 nodes, each ends with as many to watch as its pods mount."""
    config = config_of("watch-list", 10)
    step = next(step for step in config.steps if step.name == "create objects, round 1")
    (item,) = step.phases[0].object_bundle
    used: list[set[str]] = [set() for _ in range(10)]
    for index in range(40):
        mapping = config.object_mapping(item, "n", index)
        (body,) = config.templates.objects(item.object_template_path, mapping, f"p-{index}")
        (volume,) = json.loads(body.body)["spec"]["volumes"]
        used[index % 10] |= {source["configMap"]["name"] for source in volume["projected"]["sources"]}
    assert {len(names) for names in used} == {32}


# ---- claims ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("nodes", "pods"), [(10, 500), (20, 1000), (5000, 1000)])
def test_claims_are_as_many_on_any_cluster_and_pods_as_many_as_fit(nodes: int, pods: int) -> None:
    config = config_of("claims", nodes)
    made = Counter(
        {step.name: sum(each.replicas_per_namespace for each in step.phases) for step in config.steps}
    )
    assert made["create claims"] * config.namespace.number == 1000
    assert made["create objects"] * config.namespace.number == pods


def test_claims_of_a_class_that_is_there_make_none() -> None:
    config = config_of("claims", 10, CL2_STORAGE_CLASS="fast")
    made = objects_of(config)
    assert {each["kind"] for each in made} == {"PersistentVolumeClaim", "Pod"}
    assert {each["spec"].get("storageClassName", "fast") for each in made} >= {"fast"}


# ---- burst -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("nodes", "deployments"), [(1, 1), (10, 6), (30, 20), (300, 200)])
def test_a_burst_is_as_dense_on_any_fleet_and_on_thirty_nodes_the_measured_one(
    nodes: int, deployments: int
) -> None:
    config = config_of("burst", nodes)
    (phase,) = next(step for step in config.steps if step.name == "create objects").phases
    assert len(namespaces_of(phase, "t")) * phase.replicas_per_namespace == deployments
    assert phase.object_bundle[-1].template_fill_map["Replicas"] == 40


def test_a_burst_s_pods_mount_what_their_own_deployment_s_bundle_makes() -> None:
    made = {(each["kind"], each["metadata"]["name"]): each for each in objects_of(config_of("burst", 30))}
    volumes = made["Deployment", "burst-19"]["spec"]["template"]["spec"]["volumes"]
    assert ("ConfigMap", volumes[0]["configMap"]["name"]) == ("ConfigMap", "burst-19")
    assert ("Secret", volumes[1]["secret"]["secretName"]) == ("Secret", "burst-19")
    assert {("ConfigMap", "burst-19"), ("Secret", "burst-19")} <= made.keys()


# ---- hold ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("watches", [7, 35, 100])
def test_hold_s_pods_bring_every_kubelet_to_its_number_of_watches(watches: int) -> None:
    """Six it has anyway, one of them for the CA bundle of the pod's token; the rest is mounted, and made before."""
    config = config_of("hold", 5000, CL2_WATCHES=str(watches))
    made = objects_of(config)
    pod = next(each for each in made if each["kind"] == "Pod")
    mounted = [
        volume.get("secret", {}).get("secretName") or volume["configMap"]["name"]
        for volume in pod["spec"]["volumes"]
    ]
    assert len(set(mounted)) == watches - 6
    phases = config.steps[0].phases
    assert sum(phase.replicas_per_namespace for phase in phases) == watches - 6


@pytest.mark.parametrize(
    ("nodes", "pods"), [(1, 1), (50, 50), (99, 99), (120, 120), (125, 124), (5000, 5000)]
)
def test_hold_has_a_pod_for_each_node_and_never_one_too_many(nodes: int, pods: int) -> None:
    (phase,) = next(step for step in config_of("hold", nodes).steps if step.name == "create objects").phases
    assert len(namespaces_of(phase, "t")) * phase.replicas_per_namespace == pods
