"""The text files that a test is made of, read once and remembered, so that they can travel to another machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_LINK_BYTES = 255  # longer texts are no link's target


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
            text = self.seen[str(path)] = _followed(path, path.read_text(encoding="utf-8"))
        return text


def _followed(path: Path, text: str) -> str:
    """The text itself, or that of the file it is a link to: upstream's huge-service has symbolic links, which are files
    with nothing but their target where git does not make links (core.symlinks off, archives, downloads of single
    files)."""
    if len(text) > _LINK_BYTES or len(text.split()) != 1 or text.endswith("\n") or ":" in text:
        return text
    target = path.parent / text
    return target.read_text(encoding="utf-8") if target.is_file() else text
