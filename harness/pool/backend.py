"""What a supervisor, a command and a run know of a pool, whichever backend it has; and when a member is ready."""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from harness.apiserver.faults.spec import FaultSpec
from harness.pool.certificates import ClientFiles
from harness.pool.network.places import Parts
from harness.pool.ports import HOST
from harness.pool.process import ProcessFailed
from harness.pool.restarts import Part
from harness.wire.errors import ConfigError

if TYPE_CHECKING:
    from harness.pool.surroundings import Surroundings

Backend = Literal["emulated", "binaries", "existing"]
"""Ours, real kube-apiservers on this machine, or a control plane that is there, for which no pool is started."""

OnEvent = Callable[[dict[str, Any]], None]
READY_WITHIN_S = 30.0
_LOOK_EVERY_S = 0.05


class MemberAddress(msgspec.Struct, frozen=True):
    name: str
    host: str
    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"https://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class Pool(Protocol):
    """`kubeconfig` has a context for each of `members`, of which `pid` is the apiserver's own process. `control` is the
    path of the socket where its supervisor takes orders, in the pool's own folder; `logs` is a folder."""

    kubeconfig: Path
    members: list[MemberAddress]
    parts: Parts
    around: Surroundings
    logs: Path
    control: Path

    def start(self) -> None:
        """Blocks until every member answers /readyz. Raises ConfigError or ProcessFailed, with all stopped."""
        ...

    def stop(self) -> None:
        """End every process, remove folder and kubeconfig; safe to call twice."""
        ...

    def describe(self) -> dict[str, Any]:
        """What a run record keeps, without secrets: `backend`, `kubeconfig`, `members`, `processes` (pids of what is no
        member, by name), `has_scheduler`, `has_controllers`, `options`, and what else the backend has to say."""
        ...

    def part(self, name: str) -> Part:
        """One of its processes (`parts.processes`), and how it is started again. Raises ConfigError where there is
        none."""
        ...


def check_faults(specs: Iterable[FaultSpec], backend: Backend) -> None:
    """Raises ConfigError for a fault that only an emulated member can be given, or, of a cluster that is there, any."""
    for spec in specs:
        if backend == "existing":
            why = "only a pool of the run's own (emulated, binaries) can be given faults"
        elif backend == "binaries" and not spec.of_pool:
            why = "only an emulated member can do it, a real kube-apiserver (--backend binaries) cannot"
        else:
            continue
        raise ConfigError(f"--fault {spec.fault.kind}: {why}")


def reached_at(host: str) -> str:
    """Where clients on this machine find members that listen on every address."""
    return {"0.0.0.0": HOST, "::": "::1"}.get(host, host)  # noqa: S104


def wait_until_ready(
    member: MemberAddress,
    ca_file: str,
    within_s: float = READY_WITHIN_S,
    *,
    path: str = "/readyz",
    client: ClientFiles | None = None,
    ended: Callable[[], str] = lambda: "",
) -> None:
    """Ask `path` until it answers 200, as `client` where one is given. `ended` says why there is nothing to wait for
    any more, "" while there is. Raises ProcessFailed with that, or with the last answer."""
    context = ssl.create_default_context(cafile=ca_file)
    if client is not None:
        context.load_cert_chain(client.cert, client.key)
    deadline = time.monotonic() + within_s
    last = "no answer"
    while time.monotonic() < deadline:
        connection = http.client.HTTPSConnection(member.host, member.port, timeout=5, context=context)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            last = answer.read().decode("utf-8", "replace")[:200]
            if answer.status == 200:
                return
        except (OSError, http.client.HTTPException) as error:
            last = str(error)
        finally:
            connection.close()
        if why := ended():
            raise ProcessFailed(f"{member.name}: {why}")
        time.sleep(_LOOK_EVERY_S)
    raise ProcessFailed(f"{member.name} at {member.url} did not become ready within {within_s:g} s: {last}")
