"""The text files that a test is made of, read once and remembered, so that they can travel to another machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


class Files:
    """`seen` holds every file read so far, by its path as text; `given` are files that need not be on this machine."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self.seen: dict[str, str] = dict(given or {})

    def __contains__(self, path: Path) -> bool:
        return str(path) in self.seen or path.is_file()

    def read(self, path: Path) -> str:
        """The text of a file. Raises OSError, or UnicodeDecodeError for what is not UTF-8."""
        text = self.seen.get(str(path))
        if text is None:
            text = self.seen[str(path)] = path.read_text(encoding="utf-8")
        return text
