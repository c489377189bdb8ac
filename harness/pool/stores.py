"""What stands behind the members of an emulated pool: the store process, etcd of the pool's own, or one that runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec

from harness.apiserver.process.config import StoreConfig
from harness.apiserver.store.etcd import EtcdOptions
from harness.apiserver.store.etcd3.endpoints import EtcdServers
from harness.pool.etcd import MEMBERS, EtcdCluster, find_etcd
from harness.pool.process import READY_WITHIN_S, Process
from harness.pool.restarts import CrashLoopBackOff, Part
from harness.wire.errors import ConfigError, SwarmletError

OnEvent = Callable[[dict[str, Any]], None]


class StoreOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What members store objects in.

    `data_dir` is a folder that keeps them, "" for memory alone. `etcd_servers` is "" for the embedded store, addresses
    as --etcd-servers has them (``http://127.0.0.1:2379``, several with commas) for an etcd that runs, or ``binary``
    (``binary=3``) for 1 (3) members that are started with the pool; `etcd_binary` is their path, "" to look for it. The
    rest are paths of PEM files for addresses that say https.
    """

    data_dir: str = ""
    etcd_servers: str = ""
    etcd_binary: str = ""
    etcd_cafile: str = ""
    etcd_certfile: str = ""
    etcd_keyfile: str = ""

    def validate(self, model: dict[str, float]) -> None:
        """Raises ConfigError; `model` are the figures of the modelled etcd."""
        EtcdOptions.parse(model)
        if not self.etcd_servers:
            return
        if model:
            raise ConfigError(
                "etcd: a real one takes the time that it takes; no figures of the model can be given"
            )
        if self.own_members is not None:
            find_etcd(self.etcd_binary)
            return
        servers = self.servers()
        servers.addresses()
        servers.context()
        if self.data_dir:
            raise ConfigError("data-dir: an etcd that runs already keeps its data itself")

    def refuse_unused(self) -> None:
        """Raises ConfigError for what is said of an etcd that is not used."""
        own = self.own_members is not None
        if self.etcd_binary and not own:
            raise ConfigError("etcd-binary: there is no --etcd-servers binary that it would be for")
        for name in ("etcd_cafile", "etcd_certfile", "etcd_keyfile"):
            if getattr(self, name) and (own or not self.etcd_servers):
                word = name.replace("_", "-")
                raise ConfigError(f"{word}: there is no --etcd-servers https://... that it would be for")

    @property
    def own_members(self) -> int | None:
        """How many members of etcd the pool starts. Raises ConfigError."""
        word, _, count = self.etcd_servers.partition("=")
        if word != "binary":
            return None
        if count not in ("", *map(str, MEMBERS)):
            raise ConfigError(f"etcd: {self.etcd_servers!r}: 1 or 3 members can be started, as binary=3")
        return int(count or 1)

    def servers(self, urls: tuple[str, ...] = ()) -> EtcdServers:
        """The addresses given, or `urls`."""
        given = tuple(url.strip() for url in self.etcd_servers.split(","))
        return EtcdServers(urls or given, self.etcd_cafile, self.etcd_certfile, self.etcd_keyfile)


class PoolStore(Protocol):
    """`start` blocks until it can be used; `socket` or `etcd` is where members find it."""

    socket: str
    etcd: EtcdServers | None

    def start(self) -> None:
        """Raises ConfigError or ProcessFailed, with all stopped."""
        ...

    def stop(self) -> None:
        """Safe to call twice."""
        ...

    def describe(self) -> dict[str, Any]: ...

    @property
    def pid(self) -> int | None:
        """Of the one process that there is, if there is one."""
        ...

    @property
    def processes(self) -> dict[str, int]:
        """The pids of all that it runs, by name."""
        ...

    def part(self, name: str) -> Part:
        """One of its processes. Raises ConfigError where it is none of the pool's own."""
        ...


def make_store(
    options: StoreOptions, config: StoreConfig, folder: Path, logs: Path, on_event: OnEvent
) -> PoolStore:
    """`folder` is the pool's own. `config` is for the embedded store; its `data_dir` is set here."""
    if not options.etcd_servers:
        if options.data_dir:
            config = msgspec.structs.replace(config, data_dir=str(Path(options.data_dir) / "store"))
        return EmbeddedStore(config, logs, on_event)
    if options.own_members is None:
        return RunningEtcd(options.servers())
    data = Path(options.data_dir) if options.data_dir else folder
    return OwnEtcd(options, data / "etcd", logs, on_event)


class _Restarting:
    """Starts again what ended unasked; says so."""

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event
        self._ending = threading.Event()
        self._back_off = CrashLoopBackOff()
        self._lock = threading.Lock()  # between an end and a new beginning

    def _ended(self, process: Process, code: int, again: Callable[[], Process] | None) -> None:
        """From the process's own thread."""
        exited = {"kind": "process-exited", "process": process.name, "code": code}
        self._on_event({**exited, "restarts": again is not None})
        process.stop()  # what is left of it
        if again is None or self._ending.wait(self._back_off.ended(process.name, time.monotonic())):
            return
        started_s = time.monotonic()
        try:
            with self._lock:
                if self._ending.is_set():
                    return
                pid = again().program_pid
        except SwarmletError as error:
            self._on_event({"kind": "process-failed", "process": process.name, "message": str(error)})
            return
        took_s = round(time.monotonic() - started_s, 3)
        about = {"process": process.name, "pid": pid, "seconds": took_s}
        self._on_event({"kind": "process-restarted", **about})


class EmbeddedStore(_Restarting):
    """The store process. With a data folder it is started again when it ends; without one nothing would be left."""

    etcd: EtcdServers | None = None

    def __init__(self, config: StoreConfig, logs: Path, on_event: OnEvent) -> None:
        super().__init__(on_event)
        self.socket = config.socket
        self._config = config
        self._log = logs / "store.log"
        self._process: Process | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def processes(self) -> dict[str, int]:
        return {"store": self._process.pid} if self._process else {}

    def part(self, name: str) -> Part:
        if self._process is None or name != self._process.name:
            raise ConfigError(f"store: there is no process {name!r}")
        return Part(self._process, self._start_again if self._config.data_dir else None)

    def _start_again(self, within_s: float) -> Process | None:
        with self._lock:
            if self._ending.is_set():
                return None
            self.start(within_s)
            return self._process

    def start(self, within_s: float = READY_WITHIN_S) -> None:
        self._process = Process(
            "store", "harness.apiserver.process.store", self._config, self._log, on_exit=self._exited
        )
        self._process.wait_ready(within_s)

    def stop(self) -> None:
        self._ending.set()
        with self._lock:
            if self._process is not None:
                self._process.stop()

    def describe(self) -> dict[str, Any]:
        ready = self._process.ready if self._process else {}
        kept = {"data_dir": self._config.data_dir, "recovered": ready.get("recovered")}
        return {"kind": "embedded", **(kept if self._config.data_dir else {})}

    def _exited(self, process: Process, code: int) -> None:
        keeps = self._config.data_dir and process.ready.get("ready")
        self._ended(process, code, self._again if keeps else None)

    def _again(self) -> Process:
        self.start()
        assert self._process is not None
        return self._process


class OwnEtcd(_Restarting):
    """Members of etcd that live as long as the pool. Each is started again when it ends."""

    socket = ""

    def __init__(self, options: StoreOptions, folder: Path, logs: Path, on_event: OnEvent) -> None:
        super().__init__(on_event)
        self.cluster = EtcdCluster(
            find_etcd(options.etcd_binary),
            options.own_members or 1,
            folder,
            logs,
            durable=bool(options.data_dir),
            on_exit=self._exited,
        )
        self.etcd: EtcdServers | None = options.servers(self.cluster.urls)
        self._started = False

    @property
    def pid(self) -> int | None:
        return self.cluster.pid(self.cluster.members[0].name) if len(self.cluster.members) == 1 else None

    @property
    def processes(self) -> dict[str, int]:
        return self.cluster.pids

    def part(self, name: str) -> Part:
        return Part(self.cluster.process(name), partial(self._start_again, name))

    def _start_again(self, name: str, within_s: float) -> Process | None:
        with self._lock:
            if self._ending.is_set():
                return None
            self.cluster.start_member(name)
        self.cluster.wait_healthy(name, within_s)
        return self.cluster.process(name)

    def start(self) -> None:
        self.cluster.start()
        self._started = True

    def stop(self) -> None:
        self._ending.set()
        with self._lock:
            self.cluster.stop()

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "etcd",
            "model": "off: a real etcd takes the time that it takes",
            **self.cluster.describe(),
        }

    def _exited(self, process: Process, code: int) -> None:
        self._ended(
            process, code, (lambda: self.cluster.start_member(process.name)) if self._started else None
        )


class RunningEtcd:
    """An etcd that others run."""

    socket = ""
    pid = None

    def __init__(self, servers: EtcdServers) -> None:
        self.etcd: EtcdServers | None = servers
        self.processes: dict[str, int] = {}

    def part(self, name: str) -> Part:
        raise ConfigError(f"{name}: this etcd is not the pool's own")

    def start(self) -> None:
        """Members say it when they cannot reach it."""

    def stop(self) -> None:
        """It goes on."""

    def describe(self) -> dict[str, Any]:
        assert self.etcd is not None, "given"
        return {
            "kind": "etcd",
            "model": "off: a real etcd takes the time that it takes",
            "servers": list(self.etcd.urls),
        }
