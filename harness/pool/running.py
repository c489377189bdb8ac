"""A pool that somebody else started: found by its kubeconfig, or by the record of the run that owns it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from harness.observe.record import read_manifest
from harness.pool.control import tell_pool
from harness.pool.disturbances import PoolOrder
from harness.pool.http import call
from harness.pool.kubeconfig import EXTENSION, USER
from harness.transport.kubeconfig import ClusterAccess, load_kubeconfig
from harness.wire.errors import ConfigError


class RunningPool:
    """Its members by name; `call` sends one request to one of them, `tell` an order to their supervisor. `others` are
    the names of what else can be disturbed."""

    def __init__(self, members: dict[str, ClusterAccess], control: str, others: Sequence[str] = ()) -> None:
        self._members = members
        self._control = control
        self.others = others

    @property
    def names(self) -> Sequence[str]:
        return list(self._members)

    def check(self, name: str) -> str:
        """The name of a member, or of another part. Raises ConfigError where there is none of it."""
        if name not in self._members and name not in self.others:
            raise ConfigError(f"no member {name!r} (known: {', '.join([*self._members, *self.others])})")
        return name

    def tell(self, order: PoolOrder) -> Any:
        """The supervisor's answer; a text where there is none or it refused."""
        return tell_pool(self._control, order)

    def url(self, name: str) -> str:
        return self._members[name].server

    def call(self, name: str, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """(status, body). Raises OSError."""
        access = self._members[name]
        return call(
            access.host, access.port, access.ssl_context("http/1.1"), access.token, method, path, body
        )


def find_pool(kubeconfig: Path, run: Path | None = None) -> RunningPool:
    """The pool of a kubeconfig that a pool wrote, or of a run. Raises ConfigError."""
    if run is not None:
        target = read_manifest(run).target
        if target.get("backend") not in ("emulated", "binaries"):
            raise ConfigError(f"--run {run}: it has no pool of its own")
        kubeconfig = Path(target["kubeconfig"])
    try:
        document = yaml.safe_load(kubeconfig.read_bytes())
        (extension,) = (each["extension"] for each in document["extensions"] if each["name"] == EXTENSION)
        names, others = list(map(str, extension["members"])), list(map(str, extension["others"]))
        control = str(extension["control"])
        ours = any(user["name"] == USER for user in document["users"])
    except FileNotFoundError:
        raise ConfigError(
            f"kubeconfig {kubeconfig}: not there; no pool is running, or it wrote another"
        ) from None
    except (OSError, ValueError, yaml.YAMLError, TypeError, KeyError):
        ours, names, others, control = False, [], [], ""
    if not ours:
        raise ConfigError(f"kubeconfig {kubeconfig}: no pool wrote it")
    return RunningPool({name: load_kubeconfig(kubeconfig, name) for name in names}, control, others)
