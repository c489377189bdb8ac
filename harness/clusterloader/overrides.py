"""The values that a config's placeholders take: override files, the cluster, the environment.

Mirrors clusterloader2/pkg/config/template_provider.go: GetMapping, LoadTestOverrides (a later file wins),
LoadCL2Envs, MergeMappings (an override and a CL2_ variable that differ are an error).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.documents.files import Files
from harness.documents.yamltext import YamlError, first_document
from harness.wire.errors import ConfigError

ENVIRONMENT_PREFIX = "CL2_"
IMAGE_REGISTRY = "registry.k8s.io"  # clusterloader2/cmd/clusterloader.go:141

_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def typed(text: str) -> int | float | bool | str:
    """An environment value: integer, else float, else boolean, else the text (unpackStringValue)."""
    if _INTEGER.match(text):
        return int(text)
    try:
        if "_" not in text and text == text.strip():
            return float(text)
    except ValueError:
        pass
    if text in _TRUE:
        return True
    return False if text in _FALSE else text


def load_overrides(path: Path, files: Files) -> dict[str, object]:
    """The keys of one override file. Raises ConfigError naming it."""
    try:
        document = first_document(files.read(path))
    except YamlError as error:
        at = f":{error.line}" if error.line else ""
        raise ConfigError(f"{path}{at}: overrides are not YAML: {error.problem}") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(f"{path}: overrides cannot be read: {reason}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(
            f"{path}: overrides must be a mapping of names to values, got {type(document).__name__}"
        )
    return {str(key): value for key, value in document.items()}


def build_mapping(
    nodes: int,
    overrides: Sequence[Path],
    environ: Mapping[str, str],
    image_registry: str = IMAGE_REGISTRY,
    files: Files | None = None,
) -> dict[str, object]:
    """What `.NAME` means in every template of a test.

    Raises ConfigError where an override and a CL2_ variable disagree, naming both values.
    """
    files = files or Files()
    mapping: dict[str, object] = {}
    origin: dict[str, Path] = {}
    for path in overrides:
        loaded = load_overrides(path, files)
        mapping.update(loaded)
        origin.update(dict.fromkeys(loaded, path))
    mapping["Nodes"] = nodes
    mapping["ImageRegistry"] = image_registry
    for key in sorted(environ):
        if not key.startswith(ENVIRONMENT_PREFIX):
            continue
        value = typed(environ[key])
        if key in mapping and mapping[key] != value:
            raise ConfigError(
                f"{key}: {origin[key]} says {mapping[key]!r} and the environment says {value!r}; "
                "give one of them, or the same value in both"
            )
        mapping[key] = value
    return mapping
