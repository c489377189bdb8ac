"""Suites: several tests, one after the other (clusterloader2's --testsuite, api/types.go: TestSuite)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness.clusterloader.schema import SuiteEntry, decode
from harness.documents.files import Files
from harness.documents.yamltext import YamlError, first_document
from harness.wire.errors import ConfigError


class SuiteTest(NamedTuple):
    """One test of a suite: its name, its config, its override files."""

    identifier: str
    config: Path
    overrides: tuple[Path, ...]


def is_suite(path: Path | str, files: Files | None = None) -> bool:
    """Whether a file is a suite: a list, where a config is a mapping."""
    try:
        text = (files or Files()).read(Path(path))
        return isinstance(first_document(text), list)
    except (OSError, UnicodeDecodeError, YamlError):
        return False  # a template, most likely; whatever it is, reading it as a config says what is wrong


def load_suite(path: Path | str, files: Files | None = None) -> list[SuiteTest]:
    """The tests of a suite. Raises ConfigError.

    Upstream's paths are those of its own folder (``testing/density/config.yaml``); here a path is looked for from the
    working directory, and then from each folder above the suite's, with its first parts left off where they are not
    there.
    """
    path = Path(path)
    try:
        document = first_document((files or Files()).read(path))
    except YamlError as error:
        raise ConfigError(f"{path}:{error.line}: not YAML: {error.problem}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if not isinstance(document, list) or not document:
        raise ConfigError(f"{path}: a suite is a list of tests")
    found = []
    for index, entry in enumerate(document):
        key = f"[{index}]"
        scenario = decode(entry, SuiteEntry, lambda _: str(path))
        if not scenario.config_path:
            raise ConfigError(f"{path}: {key}.configPath: missing; it is required")
        config = _find(path, f"{key}.configPath", scenario.config_path)
        overrides = tuple(_find(path, f"{key}.overridePaths", item) for item in scenario.override_paths)
        found.append(SuiteTest(scenario.identifier, config, overrides))
    names = [item.identifier for item in found]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ConfigError(f"{path}: [{index}].identifier: {name!r}: is used twice")
    return found


def _find(suite: Path, key: str, name: str) -> Path:
    for candidate in _candidates(suite, name):
        if candidate.is_file():
            return candidate
    raise ConfigError(f"{suite}: {key}: {name!r}: no such file")


def _candidates(suite: Path, name: str) -> Iterator[Path]:
    yield Path(name)
    parts = Path(name).parts
    for folder in suite.parents:
        for first in range(len(parts)):
            yield folder.joinpath(*parts[first:])
