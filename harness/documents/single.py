"""A file that holds one YAML document with keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.documents.places import line_of
from harness.documents.yamltext import YamlError, first_document
from harness.wire.errors import ConfigError


def read_keys(path: Path, *, given_as: str = "", empty: str) -> tuple[dict[str, Any], Callable[[str], str]]:
    """The document, and what says where a key of it stands. `given_as` goes before the name of a file that cannot be
    read, `empty` says what a document without keys lacks. Raises ConfigError."""
    named = f"{given_as} {path}".lstrip()
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"{named}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigError(f"{named}: is not UTF-8 text") from None

    def where(key: str) -> str:
        line = line_of(text, key)
        return f"{path}:{line}" if line else str(path)

    try:
        document = first_document(text)
    except YamlError as error:
        raise ConfigError(f"{path}:{error.line}: is not YAML: {error.problem}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: {empty}")
    return document, where
