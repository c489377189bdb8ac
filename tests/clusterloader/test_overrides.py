"""Where the values of placeholders come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.clusterloader.overrides import build_mapping, typed
from harness.wire.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("+5", 5),
        ("2.5", 2.5),
        ("1e3", 1000.0),
        ("true", True),
        ("T", True),
        ("False", False),
        ("f", False),
        ("yes", "yes"),
        ("5s", "5s"),
        ("1_000", "1_000"),
        (" 5", " 5"),
        ("", ""),
    ],
)
def test_an_environment_value_has_the_type_that_go_finds(text: str, value: object) -> None:
    found = typed(text)
    assert found == value
    assert type(found) is type(value)


def test_later_files_win_and_the_cluster_is_always_there(tmp_path: Path) -> None:
    first, second = tmp_path / "1.yaml", tmp_path / "2.yaml"
    first.write_text("A: 1\nB: 1\nNodes: 7\n")
    second.write_text("B: 2\n")
    mapping = build_mapping(100, [first, second], {"CL2_C": "3", "HOME": "/root", "cl2_d": "4"})
    assert mapping == {"A": 1, "B": 2, "Nodes": 100, "ImageRegistry": "registry.k8s.io", "CL2_C": 3}


def test_an_override_and_the_environment_must_agree(tmp_path: Path) -> None:
    path = tmp_path / "o.yaml"
    path.write_text("CL2_PODS: 5\n")
    assert build_mapping(1, [path], {"CL2_PODS": "5"})["CL2_PODS"] == 5
    with pytest.raises(ConfigError, match=r"CL2_PODS: .*o\.yaml says 5 and the environment says 6"):
        build_mapping(1, [path], {"CL2_PODS": "6"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", "must be a mapping"),
        ("a: [1\n", r"o\.yaml:2: overrides are not YAML"),
        (None, "cannot be read"),
    ],
)
def test_a_bad_override_file_is_one_line(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "o.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        build_mapping(1, [path], {})


def test_an_empty_override_file_overrides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "o.yaml"
    path.write_text("# nothing yet\n")
    assert "Nodes" in build_mapping(1, [path], {})
