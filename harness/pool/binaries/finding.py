"""Where a program of Kubernetes' is on this machine: the places that Kubernetes' own test tools look at, in their order
(controller-runtime pkg/internal/testing/process/bin_path_finder.go, pkg/envtest/server.go)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from harness.wire.errors import ConfigError

APISERVER = "kube-apiserver"
SCHEDULER = "kube-scheduler"
CONTROLLER_MANAGER = "kube-controller-manager"
ASSETS = "KUBEBUILDER_ASSETS"

HOW_TO_GET_ONE = (
    "`setup-envtest use -p env` gets one and says where it is (KUBEBUILDER_ASSETS); or set TEST_ASSET_KUBE_APISERVER, "
    "give --binaries-dir FOLDER, or put kube-apiserver on PATH (docs/binaries.md)"
)
_VERSION_WITHIN_S = 20.0
_FOLDER_OPTION = "--binaries-dir"


class Program(msgspec.Struct, frozen=True):
    """`version` as it says itself, as ``v1.36.2``."""

    path: str
    version: str


class Programs(msgspec.Struct, frozen=True):
    """Paths; "" for those that are not there, which a kube-apiserver always is."""

    apiserver: str
    scheduler: str = ""
    controller_manager: str = ""


def find_programs(folder: str = "", environ: Mapping[str, str] = os.environ) -> Programs:
    """All in `folder`, where it is given; else each where test tools look. Raises ConfigError where there is no
    kube-apiserver, or one that was named cannot be run."""
    if folder:
        if not within(folder, APISERVER):
            raise ConfigError(
                f"{APISERVER}: {_FOLDER_OPTION} {folder} has none; `setup-envtest use` gets such a folder"
            )
        environ = {ASSETS: folder}
    return Programs(
        find_program(APISERVER, environ=environ, how=HOW_TO_GET_ONE),
        find_program(SCHEDULER, environ=environ),
        find_program(CONTROLLER_MANAGER, environ=environ),
    )


def find_program(
    name: str,
    explicit: str = "",
    environ: Mapping[str, str] = os.environ,
    *,
    how: str = "",
    otherwise: Callable[[], str | None] = lambda: None,
) -> str:
    """The path of a program: the one named, its TEST_ASSET_ variable's, the one in KUBEBUILDER_ASSETS, the first on
    PATH, or what `otherwise` knows. Raises ConfigError for a named one that cannot be run. One that is nowhere is "",
    or a ConfigError too where it is needed: then `how` says how to get it."""
    variable = f"TEST_ASSET_{name.upper().replace('-', '_')}"
    places = (
        ("the option", explicit),
        (variable, environ.get(variable, "")),
        (ASSETS, within(environ.get(ASSETS, ""), name)),
    )
    for source, path in places:
        if path and not (os.path.isfile(path) and os.access(path, os.X_OK)):
            raise ConfigError(f"{name}: {path}, of {source}, is no executable file{how and f'; {how}'}")
        if path:
            return path
    found = shutil.which(name, path=environ.get("PATH", "")) or otherwise() or ""
    if how and not found:
        raise ConfigError(f"{name}: there is no binary; {how}")
    return found


def within(folder: str, name: str) -> str:
    """The folder's program, "" where it has none: it may hold others alone."""
    path = Path(folder) / name
    return str(path) if folder and path.exists() else ""


def program(path: str) -> Program:
    """A program with the version that it tells. Raises ConfigError where it cannot be run on this machine."""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_VERSION_WITHIN_S, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"{path}: cannot be run: {getattr(error, 'strerror', None) or error}") from None
    said = (done.stdout + done.stderr).strip()
    if done.returncode:
        raise ConfigError(
            f"{path} --version: ended with exit code {done.returncode}: {said[-200:] or '(nothing)'}"
        )
    number = re.search(r"v?(\d+\.\d+\.\d+\S*)", said)
    return Program(path, f"v{number[1]}" if number else said[:60])
