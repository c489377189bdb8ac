"""What this machine lacks for a load test, and what it can hold."""

from __future__ import annotations

import importlib.util
import os
import resource
import shutil
import socket
import sys
import sysconfig
from dataclasses import dataclass

import psutil

from harness.pool.binaries.finding import APISERVER, find_programs
from harness.pool.folders import left_folders
from harness.pool.ports import ephemeral_ports
from harness.wire.errors import ConfigError

FILES_PER_KUBELET = 3  # its connection at both ends, and the store's or a second connection's
BYTES_PER_KUBELET = 1_200_000  # client and emulated server together, measured at 500 kubelets (docs/model.md)
KUBELETS_PER_CORE = 500  # with an emulated pool on the same cores
DISTRIBUTIONS_PREFIX = "/usr"
_NAMED = 3
"""Left folders that are named, of more the number."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `required`: without it nothing runs."""

    ok: bool
    what: str
    here: str
    meaning: str
    required: bool = False


def examine() -> list[Finding]:
    """All findings, the required ones first."""
    return [
        _python(),
        _loopback(),
        _build(),
        _hpack(),
        _files(),
        _ports(),
        _cores(),
        _memory(),
        *_tools(),
        _left(),
    ]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding(sys.version_info >= (3, 11), "Python", version, "3.11 or later", required=True)


def _loopback() -> Finding:
    try:
        with socket.create_server(("127.0.0.1", 0)):
            pass
    except OSError as error:
        return Finding(False, "127.0.0.1", str(error), "emulated pools listen there", required=True)
    return Finding(True, "127.0.0.1", "can listen", "emulated pools listen there", required=True)


def _build() -> Finding:
    """Python is told at its build to optimize itself, which compiling it by hand (pyenv too) leaves out. Distributions
    do it, and some without that option (Debian calls make's target)."""
    arguments = sysconfig.get_config_var("CONFIG_ARGS")
    if arguments is None:
        return Finding(True, "Python's build", "unknown", "Python code may run slower than it could")
    optimized = "--enable-optimizations" in arguments or sys.base_prefix == DISTRIBUTIONS_PREFIX
    text = "optimized" if optimized else "not optimized: choose another by make PYTHON=..."
    return Finding(
        optimized, "Python's build", text, "without --enable-optimizations its code takes a third longer"
    )


def _hpack() -> Finding:
    fast = importlib.util.find_spec("jh2") is not None
    return Finding(
        fast, "HPACK coder", "jh2 (Rust)" if fast else "hpack (Python)", "9 times less CPU a header block"
    )


def _files() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    text = "no limit" if limit == sys.maxsize else f"{limit:,} at most"
    holds = "any number of" if limit == sys.maxsize else f"about {limit // FILES_PER_KUBELET:,}"
    return Finding(limit >= 4096, "open files", text, f"{holds} kubelets on this machine")


def _ports() -> Finding:
    given = ephemeral_ports()
    if given is None:
        return Finding(True, "ephemeral ports", "unknown", "a connection each")
    ports = len(given)
    return Finding(
        ports >= 10000, "ephemeral ports", f"{ports:,}", f"{ports:,} connections to one member at most"
    )


def _cores() -> Finding:
    cores = os.cpu_count() or 1
    text = f"about {cores * KUBELETS_PER_CORE:,} kubelets against an emulated pool on the same cores"
    return Finding(cores >= 2, "cores", str(cores), text)


def _memory() -> Finding:
    free = psutil.virtual_memory().available
    return Finding(
        free >= 2 << 30,
        "free memory",
        f"{free / 2**30:.1f} GiB",
        f"about {free // BYTES_PER_KUBELET:,} kubelets",
    )


def _tools() -> list[Finding]:
    found = []
    for tool, meaning in (("kubectl", "looking at a pool by hand"), ("git", "the commit in a run's record")):
        path = shutil.which(tool)
        found.append(Finding(path is not None, tool, path or "not on PATH", meaning))
    return [*found, _apiserver()]


def _apiserver() -> Finding:
    try:
        path = find_programs().apiserver
    except ConfigError:
        path = ""
    return Finding(bool(path), APISERVER, path or "not found", "pools of real apiservers (docs/binaries.md)")


def _left() -> Finding:
    left = left_folders()
    named = ", ".join(map(str, left[:_NAMED])) + (
        f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
    )
    return Finding(
        not left, "left folders", named or "none", "keys and sockets of pools that were killed; remove them"
    )
