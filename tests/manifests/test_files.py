"""Which files go into ConfigMaps, and that they lie in the pod as they lay here."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from harness.clusterloader import load_config
from harness.manifests import files as under_test
from harness.manifests.files import RunFiles, collect
from harness.wire.errors import ConfigError
from tests.conftest import DATA

CONFIG = """\
name: mine
namespace: {number: 1}
tuningSets: [{name: q, qpsLoad: {qps: 1}}]
steps:
- name: one
  phases:
  - namespaceRange: {min: 1, max: 1}
    replicasPerNamespace: {{DefaultParam .CL2_COUNT 1}}
    tuningSet: q
    objectBundle: [{basename: c, objectTemplatePath: ../shared/objects/configmap.yaml}]
"""
CONFIGMAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{.Name}}\n"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    for name, text in (("tests/mine.yaml", CONFIG), ("shared/objects/configmap.yaml", CONFIGMAP)):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path / "tests/mine.yaml"


def laid_out(found: RunFiles, folder: Path) -> Path:
    """As the kubelet mounts it; the path of the scenario there."""
    for file in found.scenario_files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
    return folder / PurePosixPath(found.scenario).relative_to("/etc/swarmlet/scenario")


def test_a_scenario_of_ours_stays_in_the_image() -> None:
    found = collect("density", 10, [], {})
    assert found.scenario == "density"
    assert not found.scenario_files
    assert found.config is not None
    assert found.locustfile.key == "kubelets.py"


def test_without_a_scenario_there_is_only_the_locustfile() -> None:
    found = collect("none", 10, [], {})
    assert (found.scenario, found.config, found.scenario_files) == ("none", None, ())


def test_a_scenario_of_ones_own_comes_with_all_its_files(scenario: Path, tmp_path: Path) -> None:
    found = collect(str(scenario), 10, [], {"CL2_COUNT": "3"})
    assert [file.path for file in found.scenario_files] == [
        "shared/objects/configmap.yaml",
        "tests/mine.yaml",
    ]
    assert [file.key for file in found.scenario_files] == [
        "shared__objects__configmap.yaml",
        "tests__mine.yaml",
    ]
    mounted = laid_out(found, tmp_path / "pod")
    assert load_config(mounted, 10, [], {"CL2_COUNT": "3"}).steps[0].phases[0].replicas_per_namespace == 3


def test_a_link_is_the_file_that_it_leads_to(scenario: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(scenario)
    found = collect(str(link), 10, [], {})
    assert found.scenario.endswith("tests/mine.yaml")


def test_one_of_upstreams_configs_is_mounted_whole(tmp_path: Path) -> None:
    path = DATA / "clusterloader2" / "density" / "high-density-config.yaml"
    found = collect(str(path), 100, [], {})
    mounted = laid_out(found, tmp_path)
    assert len(load_config(mounted, 100, [], {}).steps) == len(load_config(path, 100, [], {}).steps)


def test_overrides_are_in_their_order_and_not_among_the_scenarios_files(
    scenario: Path, tmp_path: Path
) -> None:
    names = []
    for number in (1, 2):
        path = tmp_path / f"o{number}" / "over ride.yaml"
        path.parent.mkdir()
        path.write_text(f"CL2_COUNT: {number}\n")
        names.append(str(path))
    found = collect(str(scenario), 10, names, {})
    assert found.overrides == (
        "/etc/swarmlet/overrides/0-over_ride.yaml",
        "/etc/swarmlet/overrides/1-over_ride.yaml",
    )
    assert len(found.scenario_files) == 2
    assert found.config is not None
    assert found.config.steps[0].phases[0].replicas_per_namespace == 2


def test_a_locustfile_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "fleet.py"
    path.write_text("from harness.load import hooks\n")
    assert collect("none", 1, [], {}, str(path)).locustfile.key == "fleet.py"
    with pytest.raises(ConfigError, match=r"must end in \.py"):
        collect("none", 1, [], {}, str(tmp_path / "fleet.txt"))
    with pytest.raises(ConfigError, match=r"--locustfile .*cannot be read"):
        collect("none", 1, [], {}, str(tmp_path / "none.py"))


def test_a_suite_is_not_one_run(tmp_path: Path) -> None:
    suite = tmp_path / "suite.yaml"
    suite.write_text("- identifier: a\n  configPath: x.yaml\n")
    with pytest.raises(ConfigError, match="a suite is several runs"):
        collect(str(suite), 1, [], {})


def test_what_is_no_text_or_too_large_is_refused(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = tmp_path / "b.py"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        collect("none", 1, [], {}, str(binary))
    monkeypatch.setattr(under_test, "MOST_BYTES", 400)
    with pytest.raises(ConfigError, match=r"--scenario: .* a ConfigMap holds 400; build them into the image"):
        collect(str(scenario), 1, [], {})


def test_the_operator_mounts_no_folders(scenario: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--operator: .*shared/objects/configmap\.yaml"):
        collect(str(scenario), 1, [], {}).check_flat()
    flat = tmp_path / "flat.yaml"
    flat.write_text(CONFIG.replace("../shared/objects/", ""))
    (tmp_path / "configmap.yaml").write_text(CONFIGMAP)
    collect(str(flat), 1, [], {}).check_flat()
