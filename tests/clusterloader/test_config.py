"""Loading configs: upstream's own, and those that have a mistake."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from harness.clusterloader import Files, describe, load_config
from harness.clusterloader.durations import Seconds
from harness.wire.errors import ConfigError
from tests.clusterloader.conftest import Write
from tests.conftest import DATA

UPSTREAM = DATA / "clusterloader2"

BASE = """\
name: small
tuningSets:
- name: steady
  qpsLoad: {qps: 10}
steps:
- name: make
  phases:
  - namespaceRange: {min: 1, max: 2}
    replicasPerNamespace: 3
    tuningSet: steady
    objectBundle:
    - {basename: map, objectTemplatePath: configmap.yaml}
"""


@pytest.mark.parametrize("nodes", [5, 5000])
@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("access-tokens", 10),
        ("batch", 3),
        ("density", 14),
        ("huge-service", 11),
        ("list", 12),
        ("load", None),
        ("node-throughput", 8),
        ("pod-startup-latency", 8),
        ("request-benchmark", 16),
        ("scheduler-throughput", 5),
        ("watch-list", 7),
        ("write-throughput", 19),
    ],
)
def test_upstreams_configs_load_as_they_are(name: str, steps: int | None, nodes: int) -> None:
    config = load_config(UPSTREAM / name / "config.yaml", nodes, check=False)
    expected = steps if steps is not None else 29 if nodes >= 100 else 17
    assert len(config.steps) == expected
    assert len(describe(config)) > expected


def test_upstreams_high_density_config_and_overrides_load() -> None:
    overrides = [UPSTREAM / "overrides" / "600_nodes_high_density.yaml"]
    config = load_config(UPSTREAM / "density" / "high-density-config.yaml", 600, overrides)
    creation = next(step for step in config.steps if step.name == "Creating saturation pods")
    assert creation.phases[0].object_bundle[0].template_fill_map["Replicas"] == 95 * 100


def test_the_load_test_computes_what_upstreams_comments_say() -> None:
    config = load_config(UPSTREAM / "load" / "config.yaml", 5000)
    names = [step.name for step in config.steps]
    assert "create objects configmaps and secrets" in names
    assert "Waiting for 'scale and update objects' to be completed" in names
    assert config.namespace.number == 51
    assert config.tuning_sets["RandomizedSaturationTimeLimited"].load.time_limit == Seconds(15_000)  # type: ignore[union-attr]


def test_scheduler_throughput_takes_its_pods_from_the_environment() -> None:
    path = UPSTREAM / "scheduler-throughput" / "config.yaml"
    config = load_config(path, 100, [], {"CL2_SCHEDULER_THROUGHPUT_PODS": "500"})
    assert [step.phases[0].replicas_per_namespace for step in config.steps if step.phases] == [500, 0]
    assert "direct-scheduler-throughput-pod: 500 by UniformQPS" in "\n".join(describe(config))
    assert load_config(path, 100).steps[1].phases[0].replicas_per_namespace == 5000


def test_keys_match_in_any_case_and_unknown_ones_are_passed_over(write: Write) -> None:
    config = write(
        BASE.replace("qpsLoad", "QPSLOAD").replace("replicasPer", "ReplicasPer") + "future: {x: 1}\n"
    )
    assert config.steps[0].phases[0].replicas_per_namespace == 3
    assert config.tuning_sets["steady"].loads().keys() == {"qpsLoad"}


def test_namespaces_have_upstreams_defaults(write: Write) -> None:
    assert write(BASE).namespace.number == 1
    assert write(BASE + "automanagedNamespaces: 3\n").namespace.number == 3
    assert write(BASE + "namespace: {number: 2}\nautomanagedNamespaces: 3\n").namespace.number == 2
    assert write(BASE + "namespace: {deleteNamespaceTimeout: 3m}\n").namespace.delete_namespace_timeout == 180
    assert write(BASE + "namespace:\n").namespace.delete_namespace_timeout == 600


def test_modules_become_the_steps_of_their_files(write: Write) -> None:
    step = BASE[BASE.index("- name: make") :]
    module = "steps:\n" + step.replace("make", "{{.what}} for {{.Nodes}}")
    nested = "steps:\n- module: {path: /inner/m.yaml, params: {what: '{{.word}}'}}\n"
    files = {"inner/m.yaml": module, "outer.yaml": nested}
    text = (
        BASE
        + "- module: {path: outer.yaml, params: {word: more}}\n- module: {path: inner/m.yaml, params: {what: last}}\n"
    )
    assert [item.name for item in write(text, files=files).steps] == ["make", "more for 100", "last for 100"]


def test_dependencies_are_named_as_skipped(write: Write) -> None:
    config = write(BASE + "dependencies: [{name: driver, method: DRATestDriver}]\n")
    assert config.skipped == ("dependency driver (DRATestDriver)",)
    assert "skipped: dependency driver" in "\n".join(describe(config))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("qps: 10", "qps: 0", "tuningSets[0].qpsLoad.qps: 0.0: must have positive value"),
        ("qps: 10", "qps: ten", "tuningSets[0].qpsLoad.qps: expected `float`, got `str` ('ten')"),
        ("{qps: 10}", "", "tuningSets[0]: 'steady': needs exactly 1 load, has 0"),
        ("tuningSet: steady", "tuningSet: stedy", "'stedy': no such tuning set; declared are: steady"),
        ("min: 1, max: 2", "min: 3, max: 2", "namespaceRange.max: 2: min is 3"),
        ("min: 1, max: 2", "min: -1, max: 2", "namespaceRange.min: -1: must be non-negative"),
        ("PerNamespace: 3", "PerNamespace: -3", "replicasPerNamespace: -3: must be non-negative"),
        ("PerNamespace: 3", "PerNamespace: '3'", "replicasPerNamespace: expected `int`, got `str` ('3')"),
        ("basename: map", "basename: Map_1", "basename: 'Map_1': must be a DNS-1123 subdomain"),
        ("configmap.yaml", "gone.yaml", "objectTemplatePath: 'gone.yaml': file must exist"),
        ("  phases:", "  things:", "steps[0]: 'make': needs either phases or measurements, has []"),
        ("steps:", "things:", "steps: 0: cannot be empty"),
        (
            "    replicas",
            "    namespaceList: [a]\n    replicas",
            "at most 1 of namespaceList and namespaceRange",
        ),
        ("name: small", "namespace: {number: -1}", "namespace.number: -1: must be positive"),
        (
            "name: small",
            "namespace: {deleteNamespaceTimeout: 5}",
            "deleteNamespaceTimeout: expected a duration such as 5m, got 5",
        ),
        ("name: small", "namespace: {deleteNamespaceTimeout: 5x}", "invalid duration '5x'"),
    ],
)
def test_a_mistake_is_one_line_with_file_key_value_and_rule(
    write: Write, old: str, new: str, message: str
) -> None:
    assert old in BASE
    with pytest.raises(ConfigError) as caught:
        write(BASE.replace(old, new))
    text = str(caught.value)
    assert message in text
    assert re.search(r"config\.yaml(:\d+)?: ", text)
    assert "\n" not in text
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("measurement", "message"),
    [
        ("{identifier: a}", "method is required"),
        ("{method: Sleep}", "needs either identifier or instances"),
        (
            "{method: Sleep, identifier: a, instances: [{identifier: b}]}",
            "needs either identifier or instances",
        ),
    ],
)
def test_a_measurement_needs_a_method_and_one_way_to_name_it(
    write: Write, measurement: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        write(f"steps: [{{name: m, measurements: [{measurement}]}}]\n")


def test_a_module_that_includes_itself_is_refused(write: Write) -> None:
    loop = "steps: [{module: {path: loop.yaml}}]\n"
    with pytest.raises(
        ConfigError, match=r"loop\.yaml:1: .*include each other without end: loop\.yaml -> loop\.yaml"
    ):
        write(loop, files={"loop.yaml": loop})


def test_a_missing_module_names_its_file(write: Write) -> None:
    with pytest.raises(
        ConfigError, match=r"config\.yaml:1: steps\[0\]\.module\.path: 'gone\.yaml': file must exist"
    ):
        write("steps: [{module: {path: gone.yaml}}]\n")


@pytest.mark.parametrize("path", ["gone.yaml", "."])
def test_an_unknown_scenario_is_said_plainly(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigError, match="no such scenario"):
        load_config(tmp_path / path, 100)


def test_a_test_without_nodes_is_refused(write: Write) -> None:
    with pytest.raises(ConfigError, match="nodes: 0 is not allowed"):
        write(BASE, nodes=0)


def test_a_test_can_be_read_where_its_files_are_not(tmp_path: Path) -> None:
    """As on a worker of another machine, which is sent what the master read."""
    here = tmp_path / "here"
    shutil.copytree(UPSTREAM / "scheduler-throughput", here)
    (here / "overrides.yaml").write_text("CL2_SCHEDULER_THROUGHPUT_PODS: 7")
    files = Files()
    load_config(here / "config.yaml", 100, [here / "overrides.yaml"], files=files)
    shutil.rmtree(here)
    config = load_config(here / "config.yaml", 100, [here / "overrides.yaml"], files=Files(files.seen))
    phase = config.steps[1].phases[0]
    assert phase.replicas_per_namespace == 7
    template = phase.object_bundle[0].object_template_path
    mapping = {**config.mapping, "Group": "g", "Name": "pod-1"}
    assert [body.kind.kind for body in config.templates.objects(template, mapping, "pod-1")] == ["Pod"]
