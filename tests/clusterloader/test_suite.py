"""Suites of tests, and the mistakes that they may have."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.clusterloader import is_suite, load_suite
from harness.wire.errors import ConfigError


def suite(folder: Path, text: str) -> Path:
    path = folder / "testing" / "suite.yaml"
    path.parent.mkdir(exist_ok=True)
    (path.parent / "config.yaml").write_text("name: x\n")
    (path.parent / "o.yaml").write_text("A: 1\n")
    path.write_text(text)
    return path


def test_paths_are_found_from_above_and_beside(tmp_path: Path) -> None:
    text = "- {identifier: a, configPath: testing/config.yaml, overridePaths: [o.yaml]}\n- {configPath: config.yaml}\n"
    path = suite(tmp_path, text)
    first, second = load_suite(path)
    assert (first.identifier, first.config, first.overrides) == (
        "a",
        path.parent / "config.yaml",
        (path.parent / "o.yaml",),
    )
    assert (second.config, second.overrides) == (path.parent / "config.yaml", ())


def test_a_suite_is_a_list_and_a_config_is_none(tmp_path: Path) -> None:
    path = suite(tmp_path, "- {configPath: config.yaml}\n")
    assert is_suite(path)
    assert not is_suite(path.parent / "config.yaml")
    assert not is_suite(path.parent / "gone.yaml")
    (path.parent / "template.yaml").write_text("{{if .X}}\n- a: b: c\n{{end}}\n")
    assert not is_suite(path.parent / "template.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\n", "suite.yaml: a suite is a list of tests"),
        ("[]\n", "suite.yaml: a suite is a list of tests"),
        ("- {identifier: a}\n", "suite.yaml: [0].configPath: missing; it is required"),
        ("- {configPath: gone.yaml}\n", "suite.yaml: [0].configPath: 'gone.yaml': no such file"),
        (
            "- {configPath: config.yaml, overridePaths: [gone.yaml]}\n",
            "suite.yaml: [0].overridePaths: 'gone.yaml': no such file",
        ),
        (
            "- {identifier: a, configPath: config.yaml}\n- {identifier: a, configPath: config.yaml}\n",
            "suite.yaml: [1].identifier: 'a': is used twice",
        ),
        ("- {configPth: config.yaml}\n", "suite.yaml: configPth: no such key; did you mean configPath?"),
        ("- a: b: c\n", "suite.yaml:1: not YAML"),
    ],
)
def test_a_mistake_in_a_suite_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_suite(suite(tmp_path, text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_suite_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.yaml: cannot be read"):
        load_suite(tmp_path / "gone.yaml")
