"""Folders for what only this process and its children may read, and those that a process left behind.

A name holds the number of the process that made it: one that was killed with -9 could remove nothing, and what it left
has keys and tokens of a control plane that is gone.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import psutil

_NAME = re.compile(r"swarmlet-(?P<pid>\d+)-.*")


def prefix() -> str:
    """Of the name of such a folder, for `tempfile.TemporaryDirectory`."""
    return f"swarmlet-{os.getpid()}-"


def make_folder() -> Path:
    """For sockets, keys, tokens and a store's data; mode 0700."""
    return Path(tempfile.mkdtemp(prefix=prefix()))


def is_ours(folder: Path) -> bool:
    """Whether its name and place are those of such a folder."""
    return folder.parent == Path(tempfile.gettempdir()) and _NAME.fullmatch(folder.name) is not None


def left_folders() -> list[Path]:
    """Those of this user whose process is gone. A number that was given to another process since hides one."""
    found = []
    for folder in sorted(Path(tempfile.gettempdir()).glob("swarmlet-*")):
        named = _NAME.fullmatch(folder.name)
        if named is None or psutil.pid_exists(int(named["pid"])):
            continue
        try:
            mine = folder.is_dir() and folder.stat().st_uid == os.getuid()
        except OSError:
            continue  # gone in between
        if mine:
            found.append(folder)
    return found
