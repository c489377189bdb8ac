"""Every file of upstream's test configs, with the defaults and with 5,000 nodes.

A file of tests/data/clusterloader2 is a config, a module that a config includes, an object template that a config or
module names, an override file or a suite; what nothing names is listed here, so that no file is forgotten.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from harness.clusterloader import Config, Files, load_config, load_suite
from harness.clusterloader.config import namespaces_of
from harness.clusterloader.overrides import load_overrides
from harness.wire.errors import ConfigError
from tests.conftest import DATA

UPSTREAM = DATA / "clusterloader2"
SAMPLE = "density/scheduler/custom-scheduler-metrics/config-custom-schd-sample.yaml"


@cache
def loaded(path: Path, nodes: int) -> Config:
    """A config, read and checked once for all tests here."""
    return load_config(path, nodes)


def _files() -> list[Path]:
    return sorted(path for path in UPSTREAM.rglob("*.yaml"))


def _name(path: Path) -> str:
    return str(path.relative_to(UPSTREAM))


CONFIGS = [path for path in _files() if re.search(r"^tuningSets:", path.read_text(), re.MULTILINE)]

SWITCHES = {
    "CL2_ENABLE_PVS": "true",
    "CL2_ENABLE_NETWORKPOLICIES": "true",
    "CL2_ENABLE_NETWORK_POLICY_ENFORCEMENT_LATENCY_TEST": "true",
    "CL2_ENABLE_INFORMER_LATENCY_TEST": "true",
    "CL2_ENABLE_API_AVAILABILITY_MEASUREMENT": "true",
    "CL2_RESTART_APISERVER": "true",
    "CL2_LIST_POD_NUMBER": "10",
}
"""What switches on the parts of configs that are off by default."""

NAMED_BY_NOTHING = {
    "huge-service/modules/statefulset.yaml",
    "huge-service/statefulset.yaml",
    "huge-service/statefulset_service.yaml",
    "list/kind.yaml",
    "load/golang/custom_api_call_thresholds.yaml",
    "write-throughput/kind.yaml",
    "write-throughput/modules/watch/clusterrole.yaml",
    "write-throughput/modules/watch/clusterrolebinding.yaml",
    "write-throughput/modules/watch/namespace.yaml",
    "write-throughput/modules/writer/clusterrole.yaml",
    "write-throughput/modules/writer/clusterrolebinding.yaml",
    "write-throughput/modules/writer/namespace.yaml",
    "density/scheduler/custom-scheduler-metrics/deployment-custom-schd-sample.yaml",
    SAMPLE,
    "density/scheduler-suite.yaml",
}
"""Files that no config reads: leftovers, and what tests here read by themselves."""


def test_every_file_is_read_by_some_config_or_named_here() -> None:
    files = Files()
    for path in CONFIGS:
        if _name(path) != SAMPLE:
            load_config(path, 5000, [], SWITCHES, files=files)
    for item in load_suite(UPSTREAM / "density" / "scheduler-suite.yaml"):
        load_config(item.config, 100, item.overrides, files=files)
    read = {Path(path).resolve() for path in files.seen}
    left = {_name(path) for path in _files() if path.resolve() not in read}
    assert {name for name in left if not name.startswith("overrides/")} == NAMED_BY_NOTHING


def test_the_configs_are_all_of_them() -> None:
    assert len(CONFIGS) == 14


@pytest.mark.parametrize("nodes", [100, 5000])
@pytest.mark.parametrize("path", CONFIGS, ids=_name)
def test_a_config_is_rendered_and_holds(path: Path, nodes: int) -> None:
    sample = _name(path) == SAMPLE
    config = load_config(path, nodes, check=False) if sample else loaded(path, nodes)
    assert config.steps
    assert config.ignored == ()
    if sample:  # upstream's own mistake: the template beside it is called deployment-custom-schd-sample.yaml
        with pytest.raises(
            ConfigError, match=r"sample\.yaml:37: .*'deployment-sample\.yaml': file must exist"
        ):
            load_config(path, nodes)


def _rendered(config: Config) -> Iterator[tuple[str, str]]:
    """Each object template of a config: its path and its objects' kinds, for the first and the last replica."""
    for step in config.steps:
        for phase in step.phases:
            namespaces = namespaces_of(phase, "test")
            last = max(0, phase.replicas_per_namespace - 1)
            for item in phase.object_bundle:
                for index in {0, last}:
                    mapping = config.object_mapping(item, namespaces[-1], index)
                    name = f"{item.basename}-{index}"
                    bodies = config.templates.objects(item.object_template_path, mapping, name)
                    for body in bodies:
                        made = json.loads(body.body)
                        assert made["metadata"]["name"] == name
                        assert made["apiVersion"]
                        yield item.object_template_path, made["kind"]


@pytest.mark.parametrize("nodes", [100, 5000])
@pytest.mark.parametrize("path", [path for path in CONFIGS if _name(path) != SAMPLE], ids=_name)
def test_every_object_template_that_a_config_names_is_rendered(path: Path, nodes: int) -> None:
    found = set(_rendered(loaded(path, nodes)))
    assert found


def test_every_template_of_the_load_test_is_among_them() -> None:
    """With everything switched on that the config can have."""
    config = load_config(UPSTREAM / "load" / "config.yaml", 5000, [], SWITCHES)
    kinds = {kind for _, kind in _rendered(config)}
    assert {"Deployment", "StatefulSet", "DaemonSet", "Job", "Service", "Secret", "ConfigMap"} <= kinds
    assert {"NetworkPolicy", "PersistentVolumeClaim"} <= kinds


def test_override_files_are_read_and_taken() -> None:
    paths = sorted((UPSTREAM / "overrides").glob("*.yaml"))
    assert len(paths) == 11
    assert all(load_overrides(path, Files()) for path in paths)
    config = loaded(UPSTREAM / "load" / "config.yaml", 5000)
    slower = UPSTREAM / "overrides" / "kubemark_load_throughput.yaml"
    taken = load_config(config.path, 5000, [slower], check=False)
    assert taken.tuning_sets != config.tuning_sets


def test_a_suite_names_its_tests_and_their_overrides() -> None:
    suite = load_suite(UPSTREAM / "density" / "scheduler-suite.yaml")
    assert [item.identifier for item in suite] == [
        "vanilla",
        "pod-affinity",
        "pod-anti-affinity",
        "pod-topology-spread",
    ]
    assert {item.config for item in suite} == {UPSTREAM / "density" / "config.yaml"}
    for item in suite:
        config = load_config(item.config, 100, item.overrides)
        assert list(_rendered(config))
    assert [_name(path) for path in suite[1].overrides] == ["density/scheduler/pod-affinity/overrides.yaml"]


def test_a_file_that_holds_only_a_links_target_is_the_file_it_links_to() -> None:
    link = UPSTREAM / "huge-service" / "service.yaml"
    assert link.read_text() == "../load/modules/services/service.yaml"
    assert "kind: Service" in Files().read(link)


def test_load_that_would_come_from_inside_pods_is_said_to_be_missing() -> None:
    found = {
        _name(path).partition("/")[0]: loaded(path, 100).skipped for path in CONFIGS if _name(path) != SAMPLE
    }
    assert found["list"] == ("requests of request-benchmark, which deployment.yaml runs in pods",)
    assert found["access-tokens"] == ("requests of access-tokens, which deployment.yaml runs in pods",)
    assert found["load"] == found["batch"] == found["density"] == ()
    assert {name for name, items in found.items() if items} == {
        "access-tokens",
        "list",
        "request-benchmark",
        "watch-list",
        "write-throughput",
    }
