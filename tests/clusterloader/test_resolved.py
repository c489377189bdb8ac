"""The resolved config is a config of its own, and means the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from harness.clusterloader import load_config
from harness.clusterloader.resolved import resolved_text
from tests.clusterloader.conftest import Write
from tests.conftest import DATA

UPSTREAM = DATA / "clusterloader2"
NAMES = [path.parent.name for path in sorted(UPSTREAM.glob("*/config.yaml"))]


@pytest.mark.parametrize("name", NAMES)
def test_upstreams_resolved_configs_mean_what_they_did(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "testing" / name
    for part in (name, "load"):
        shutil.copytree(UPSTREAM / part, tmp_path / "testing" / part, dirs_exist_ok=True)
    config = load_config(folder / "config.yaml", 100)
    text = resolved_text(config)
    assert "module:" not in text
    (folder / "resolved.yaml").write_text(text)
    again = load_config(folder / "resolved.yaml", 100, check=False)
    assert again.steps == config.steps
    assert again.tuning_sets == config.tuning_sets
    assert again.namespace == config.namespace


def test_durations_are_gos_and_empty_things_are_left_out(write: Write) -> None:
    text = resolved_text(
        write(
            "name: a\n"
            "namespace: {deleteNamespaceTimeout: 90s}\n"
            "tuningSets: [{name: t, steppedLoad: {burstSize: 2, stepDelay: 500ms}}]\n"
            "steps: [{name: s, measurements: [{method: Sleep, identifier: x, params: {duration: 1m}}]}]\n"
        )
    )
    found = yaml.safe_load(text)
    assert found["namespace"]["deleteNamespaceTimeout"] == "1m30s"
    assert found["tuningSets"] == [{"name": "t", "steppedLoad": {"burstSize": 2, "stepDelay": "500ms"}}]
    assert found["steps"] == [
        {"name": "s", "measurements": [{"method": "Sleep", "params": {"duration": "1m"}, "identifier": "x"}]}
    ]
    assert list(found) == ["name", "namespace", "tuningSets", "steps"]
