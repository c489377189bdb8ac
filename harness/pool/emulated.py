"""An emulated control plane: one store process and n member processes on this machine."""

from __future__ import annotations

import http.client
import secrets
import shutil
import ssl
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from harness.apiserver.model.costs import Costs
from harness.apiserver.process.config import MemberConfig, StoreConfig
from harness.apiserver.store.etcd import EtcdOptions
from harness.pool.certificates import ServingFiles, make_serving_files
from harness.pool.kubeconfig import check_kubeconfig_path, write_kubeconfig
from harness.pool.process import Process, ProcessFailed, stop_all
from harness.wire.errors import ConfigError

HOST = "127.0.0.1"
MAX_MEMBERS = 9
CORES_PER_NODE = 8 / 5000
"""A member that serves 5,000 nodes does the work of 8 cores (docs/model.md); a smaller fleet gets as much less, so that
it saturates its master as 5,000 nodes saturate a real one."""
CORES_AT_LEAST = 0.02


class PoolOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to start. `cores` is for each member: a number, "auto" (by `nodes`) or "host" (no model: as fast as this
    machine); `port` is the first member's, the others follow, 0 takes free ones; `costs` and `etcd` override the
    model's figures; `kubeconfig` and `logs` are paths, "" keeps them in the pool's own folder."""

    members: int = 1
    nodes: int = 100
    cores: float | str = "auto"
    seed: int = 0
    port: int = 0
    kubeconfig: str = ""
    logs: str = ""
    costs: dict[str, float] = {}
    etcd: dict[str, float] = {}
    max_requests_inflight: int = 600

    def modelled_cores(self) -> float | None:
        """Cores of each member's modelled host; None is no model. Raises ConfigError."""
        if self.cores == "host":
            return None
        if self.cores == "auto":
            return max(CORES_AT_LEAST, self.nodes * CORES_PER_NODE)
        try:
            cores = float(self.cores)
        except ValueError:
            cores = 0.0
        if not 0 < cores < float("inf"):
            raise ConfigError(f'cores: {self.cores!r} is neither a number above 0, nor "auto", nor "host"')
        return cores

    def validate(self) -> None:
        """Raises ConfigError for what cannot be started."""
        if not 1 <= self.members <= MAX_MEMBERS:
            raise ConfigError(f"members: {self.members} is not within 1 to {MAX_MEMBERS}")
        if self.port and not 1024 <= self.port <= 65535 - MAX_MEMBERS:
            raise ConfigError(
                f"port: {self.port} is not within 1024 to {65535 - MAX_MEMBERS}, nor 0 for free ones"
            )
        self.modelled_cores()
        Costs.parse(self.costs)
        EtcdOptions.parse(self.etcd)
        if self.max_requests_inflight < 1:
            raise ConfigError(f"max-requests-inflight: {self.max_requests_inflight} is less than 1")


class MemberAddress(msgspec.Struct, frozen=True):
    name: str
    host: str
    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"


class EmulatedPool:
    """Started by `start`, ended by `stop`; `on_event` hears of each process that ends unasked:
    ``{"kind": "process-exited", "process": name, "code": n}``."""

    def __init__(self, options: PoolOptions, on_event: Callable[[dict[str, Any]], None]) -> None:
        options.validate()
        if options.kubeconfig:
            check_kubeconfig_path(Path(options.kubeconfig))
        self.options = options
        self.members: list[MemberAddress] = []
        self._on_event = on_event
        self._folder = Path(tempfile.mkdtemp(prefix="swarmlet-"))  # 0700: sockets, keys and tokens
        self._logs = Path(options.logs) if options.logs else self._folder / "logs"
        self._token = secrets.token_urlsafe(32)
        self._processes: list[Process] = []
        self._announced = False
        self.kubeconfig = Path(options.kubeconfig) if options.kubeconfig else self._folder / "kubeconfig"

    def start(self) -> None:
        """Blocks until every member answers /readyz. Raises ConfigError or ProcessFailed, with all stopped."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process, remove folder and kubeconfig; safe to call twice. Members go before their store."""
        store, members = self._processes[:1], self._processes[1:]
        stop_all(members)
        stop_all(store)
        self._processes.clear()
        if self._announced:
            self.kubeconfig.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def describe(self) -> dict[str, Any]:
        """What a run record keeps of a pool; no secrets."""
        return {
            "backend": "emulated",
            "kubeconfig": str(self.kubeconfig),
            "members": [msgspec.to_builtins(member) for member in self.members],
            "store_pid": self._processes[0].pid,
            "cores": self.options.modelled_cores(),
            "options": msgspec.to_builtins(self.options),
        }

    def _start(self) -> None:
        self._logs.mkdir(parents=True, exist_ok=True)
        names = tuple(f"member-{index}" for index in range(self.options.members))
        files = make_serving_files(self._folder, ["localhost", "kubernetes.default.svc"], [HOST, "10.0.0.1"])
        socket = str(self._folder / "store.sock")
        store = StoreConfig(socket=socket, members=names, seed=self.options.seed, etcd=self.options.etcd)
        self._launch("store", "harness.apiserver.process.store", store).wait_ready()
        token_key = secrets.token_urlsafe(32)
        started = [
            self._launch(
                name, "harness.apiserver.process.member", self._member(index, names, socket, files, token_key)
            )
            for index, name in enumerate(names)
        ]
        for process in started:
            ready = process.wait_ready()
            self.members.append(MemberAddress(process.name, HOST, int(ready["port"]), process.pid))
        for member in self.members:
            wait_until_ready(member, files.ca)
        servers = {member.name: member.url for member in self.members}
        self._announced = True
        write_kubeconfig(self.kubeconfig, servers, Path(files.ca), self._token)

    def _member(
        self, index: int, names: tuple[str, ...], socket: str, files: ServingFiles, token_key: str
    ) -> MemberConfig:
        return MemberConfig(
            name=names[index],
            index=index,
            members=names,
            store_socket=socket,
            cert=files.cert,
            key=files.key,
            admin_token=self._token,
            token_key=token_key,
            host=HOST,
            port=self.options.port + index if self.options.port else 0,
            cores=self.options.modelled_cores(),
            seed=self.options.seed,
            costs=self.options.costs,
            server_concurrency=self.options.max_requests_inflight,
        )

    def _launch(self, name: str, module: str, config: Any) -> Process:
        process = Process(name, module, config, self._logs / f"{name}.log", on_exit=self._exited)
        self._processes.append(process)
        return process

    def _exited(self, process: Process, code: int) -> None:
        self._on_event({"kind": "process-exited", "process": process.name, "code": code})


def wait_until_ready(member: MemberAddress, ca_file: str, within_s: float = 30.0) -> None:
    """Ask /readyz until it answers 200. Raises ProcessFailed with the last answer."""
    context = ssl.create_default_context(cafile=ca_file)
    deadline = time.monotonic() + within_s
    last = "no answer"
    while time.monotonic() < deadline:
        connection = http.client.HTTPSConnection(member.host, member.port, timeout=5, context=context)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            last = answer.read().decode("utf-8", "replace")[:200]
            if answer.status == 200:
                return
        except OSError as error:
            last = str(error)
        finally:
            connection.close()
        time.sleep(0.05)
    raise ProcessFailed(f"{member.name} at {member.url} did not become ready within {within_s:g} s: {last}")
