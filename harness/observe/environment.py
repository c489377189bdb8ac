"""Where the project's own files are, and what machine and versions a run had."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
import subprocess
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("swarmlet", "locust", "gevent", "jh2", "hpack", "msgspec", "uvloop", "pandas")


def share(folder: str) -> Path:
    """``locustfiles``, ``clusterloader_configs`` or ``experiments``: beside the package in a checkout, inside it where
    it was installed."""
    package = Path(__file__).resolve().parent.parent
    beside = package.parent / folder
    return beside if beside.is_dir() else package / "_share" / folder


def versions() -> dict[str, str]:
    """Versions of Python, of us and of what decides our speed, and the commit of a checkout."""
    found = {"python": platform.python_version(), "commit": _commit()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "missing"
    return found


def host() -> dict[str, Any]:
    """The machine that a run was made on; its name is left out."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "load_average": list(os.getloadavg()),
        "open_files": [soft, hard],
    }


def _commit() -> str:
    here = Path(__file__).resolve().parent
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
