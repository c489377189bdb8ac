"""Small configs written by a test, loaded and run in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.clusterloader import ClusterLoader, ClusterLoaderOptions, Config, load_config
from tests.clusterloader.fake import EPOCH_S

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: {{.Name}}
  labels:
    group: {{.Group}}
spec:
  containers:
  - name: pause
    image: {{.ImageRegistry}}/pause:3.10
"""
CONFIGMAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{.Name}}
data:
  color: {{DefaultParam .Color "none"}}
"""

Write = Callable[..., Config]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a config beside pod.yaml and configmap.yaml (and further files), and load it for 100 nodes."""

    def _write(
        text: str, *, files: Mapping[str, str] | None = None, nodes: int = 100, **environ: str
    ) -> Config:
        for name, content in {"pod.yaml": POD, "configmap.yaml": CONFIGMAP, **(files or {})}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        (tmp_path / "config.yaml").write_text(text)
        return load_config(tmp_path / "config.yaml", nodes, [], environ)

    return _write


def loader(config: Config, **options: float) -> ClusterLoader:
    """The machine of a config, with a fixed seed."""
    return ClusterLoader(config, ClusterLoaderOptions(**options), random.Random(1), EPOCH_S)  # type: ignore[arg-type]
