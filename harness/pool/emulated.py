"""An emulated control plane: one store process and n member processes on this machine."""

from __future__ import annotations

import ipaddress
import shutil
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from harness.apiserver.auth.nodeauthorizer import NodeAuthorizerOptions
from harness.apiserver.faults.spec import parse_spec
from harness.apiserver.featuregates import FeatureGates
from harness.apiserver.model.costs import Costs
from harness.apiserver.options import SIGNING_DURATION_S
from harness.apiserver.process.config import ENVIRONMENT, MemberConfig, StoreConfig
from harness.pool.backend import Backend, MemberAddress, check_faults, reached_at, wait_until_ready
from harness.pool.balancer.options import BalancerOptions
from harness.pool.binaries.options import BinariesOptions
from harness.pool.certificates import ServingFiles, make_client_files
from harness.pool.control import NAME as CONTROL
from harness.pool.faults import check_parts, targets
from harness.pool.folders import make_folder
from harness.pool.http import call
from harness.pool.keys import kept_secret, kept_serving_files
from harness.pool.kubeconfig import check_kubeconfig_path, write_kubeconfig
from harness.pool.network.places import BALANCER, Parts, parse_places, places_of
from harness.pool.objects import apply_objects
from harness.pool.ports import HOST
from harness.pool.process import Process, stop_all
from harness.pool.restarts import Part
from harness.pool.stores import PoolStore, StoreOptions, make_store
from harness.pool.surroundings import Surroundings
from harness.wire.errors import ConfigError
from harness.wire.pace import REAL, Pace

MAX_MEMBERS = 9
CORES_PER_NODE = 8 / 5000
"""A member that serves 5,000 nodes does the work of 8 cores (docs/model.md); a smaller fleet gets as much less, so that
it saturates its master as 5,000 nodes saturate a real one."""
CORES_AT_LEAST = 0.02
DEFAULT_SEATS = 600
SEATS_PER_CORE = DEFAULT_SEATS / 8
"""What may be in flight is what may lie in wait on a modelled host: in seconds as much as at 5,000 nodes where seats
shrink with cores. With all 600, the heartbeats of 100 nodes wait seconds behind status patches, which flow control
would hold back at 5,000 (tests/apiserver/flowcontrol/test_small_fleets.py)."""
CREDENTIALS = ("token", "certificate")
MAX_GOAWAY_CHANCE = 0.02
"""As kube-apiserver allows (as/server/options/server_run_options.go, Validate); a fault may have more."""


class PoolOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to start. `cores` is for each member: a number, "auto" (by `nodes`) or "host" (no model: as fast as this
    machine); `port` is the first member's, the others follow, 0 takes free ones; `costs` and `etcd` override the
    model's figures; `kubeconfig` and `logs` are paths, "" keeps them in the pool's own folder. `host` is the address
    that members listen on. `goaway_chance` and `shutdown_delay_s` are a kube-apiserver's --goaway-chance and
    --shutdown-delay-duration. `faults`, as `faults.spec` reads them, begin with the members. `event_ttl_s` is how long
    events last; `feature_gates` are kube-apiserver's, by name, of those that `featuregates` knows. `sign_csrs`: members
    approve and sign certificate requests as a controller manager does, for `signing_duration_s` at most. `credentials`
    is what the kubeconfig's user has, "token" or "certificate". `store` is what members keep objects in; with a data
    folder the pool's keys and tokens are kept too. `max_requests_inflight` are reads and writes together, "auto" as
    many as the modelled cores have of those of a 5,000-node member; without `priority_and_fairness` two thirds of them
    are for reads. `protobuf_answers`: clients that prefer protobuf get it. `node_authorizer` holds ``lag`` and
    ``on-miss`` (NodeAuthorizerOptions.parse), of one member too. `objects` are applied once members are ready. With
    `backend` "binaries" members are real kube-apiservers, as `binaries` says; what is modelled is at its default then
    (`flags.pool_options` refuses it), and any feature gate may be given. `links` are as --link has them
    (`network.places`), `balancer` stands before the members. All that is modelled is at `pace`, which a run gives."""

    members: int = 1
    nodes: int = 100
    cores: float | str = "auto"
    seed: int = 0
    port: int = 0
    kubeconfig: str = ""
    logs: str = ""
    costs: dict[str, float] = {}
    etcd: dict[str, float] = {}
    max_requests_inflight: int | str = 600
    priority_and_fairness: bool = True
    node_authorizer: dict[str, str] = {}
    event_ttl_s: float = 3600.0
    feature_gates: dict[str, bool] = {}
    protobuf_answers: bool = False
    host: str = HOST
    goaway_chance: float = 0.0
    shutdown_delay_s: float = 0.0
    faults: tuple[str, ...] = ()
    sign_csrs: bool = True
    signing_duration_s: float = SIGNING_DURATION_S
    credentials: str = "token"
    store: StoreOptions = StoreOptions()
    objects: tuple[dict[str, Any], ...] = ()
    backend: Backend = "emulated"
    binaries: BinariesOptions = BinariesOptions()
    links: tuple[str, ...] = ()
    balancer: BalancerOptions = BalancerOptions()
    pace: Pace = REAL

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

    def seats(self) -> int:
        """Requests in flight at once, of each member. Raises ConfigError."""
        if self.max_requests_inflight == "auto":
            cores = self.modelled_cores()
            return DEFAULT_SEATS if cores is None else max(1, round(SEATS_PER_CORE * cores))
        try:
            seats = int(self.max_requests_inflight)
        except ValueError:
            seats = 0
        if seats < 1:
            why = f'{self.max_requests_inflight!r} is neither a number above 0, nor "auto"'
            raise ConfigError(f"max-requests-inflight: {why}")
        return seats

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
        self.store.validate(self.etcd)
        self.seats()
        self._check_node_authorizer()
        if self.credentials not in CREDENTIALS:
            raise ConfigError(f"credentials: {self.credentials!r} is none of {', '.join(CREDENTIALS)}")
        if not self.event_ttl_s > 0:
            raise ConfigError(f"event-ttl: {self.event_ttl_s} s is not above 0")
        if not self.signing_duration_s >= 1:
            raise ConfigError(f"cluster-signing-duration: {self.signing_duration_s:g} s is less than 1 s")
        if self.backend == "binaries":
            self.binaries.validate(self.store)
            if self.max_requests_inflight == "auto":
                raise ConfigError(
                    "max-requests-inflight: auto follows from modelled cores, which no real one has"
                )
        else:
            self.store.refuse_unused()
            FeatureGates.parse(self.feature_gates)
        check_address(self.host)
        if not 0 <= self.goaway_chance <= MAX_GOAWAY_CHANCE:
            raise ConfigError(
                f"goaway-chance: {self.goaway_chance:g} is not within 0 to {MAX_GOAWAY_CHANCE:g}"
            )
        if not 0 <= self.shutdown_delay_s <= 3600:
            raise ConfigError(f"shutdown-delay: {self.shutdown_delay_s:g} is not within 0 to 3600 seconds")
        faults = list(map(parse_spec, self.faults))
        check_faults(faults, self.backend)
        check_parts(faults, self.parts)
        self.balancer.validate()
        parse_places(self.links, self.parts)

    def _check_node_authorizer(self) -> None:
        NodeAuthorizerOptions.parse(self.node_authorizer)
        for key in self.node_authorizer:
            member = key.rpartition(".")[0]
            if member and member not in self.names:
                raise ConfigError(
                    f"node-authorizer: {key!r}: there is no {member}, but {', '.join(self.names)}"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The members' names."""
        return tuple(f"member-{index}" for index in range(self.members))

    @property
    def parts(self) -> Parts:
        """What the pool consists of."""
        store = self.binaries.etcd(self.store) if self.backend == "binaries" else self.store
        etcd = tuple(f"etcd-{index}" for index in range(store.own_members or 0))
        embedded = not store.etcd_servers
        return Parts(self.names, etcd, embedded, bool(self.balancer.kind), bool(store.data_dir))

    @property
    def wanted_links(self) -> tuple[str, ...]:
        """Those that were asked for, and those that faults need."""
        return (*self.links, *places_of(map(parse_spec, self.faults)))

    def faults_of(self, name: str) -> tuple[str, ...]:
        """What one member begins with."""
        specs = [parse_spec(text) for text in self.faults]
        texts = [spec.text for spec in specs if name in targets(spec, self.names)]
        return (*texts, f"goaway chance={self.goaway_chance:g}") if self.goaway_chance else tuple(texts)


class EmulatedPool:
    """Started by `start`, ended by `stop`; `on_event` hears, on threads of its own, of each process that ends unasked:
    ``{"kind": "process-exited", "process": name, "code": n}``, of each restart (`restarts`), and of each fault:
    ``fault-started``, ``fault-ended`` and ``fault-failed`` with `member`, `id`, `fault` (as text), `fault_kind`,
    `seconds` and `hits`."""

    def __init__(self, options: PoolOptions, on_event: Callable[[dict[str, Any]], None]) -> None:
        options.validate()
        if options.kubeconfig:
            check_kubeconfig_path(Path(options.kubeconfig))
        self.options = options
        self.members: list[MemberAddress] = []
        self._on_event = on_event
        self._folder = make_folder()
        self._logs = Path(options.logs) if options.logs else self._folder / "logs"
        kept = options.store.data_dir
        self._keys = Path(kept) / "keys" if kept else self._folder
        self._token = kept_secret(self._keys, "admin.token")
        self._store: PoolStore | None = None
        self._processes: list[Process] = []
        self._configs: dict[str, MemberConfig] = {}
        self._ca = ""
        self.parts = options.parts
        self.logs = self._logs
        self.control = self._folder / CONTROL
        self.around = Surroundings(
            self.parts,
            options.wanted_links,
            options.balancer,
            host=options.host,
            port=options.port,
            seed=options.seed,
            folder=self._folder,
            logs=self._logs,
            on_exit=self._exited,
            pace=options.pace,
        )
        self._over = threading.Event()
        self._launching = threading.Lock()
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
        self._over.set()
        with self._launching:  # whoever is being restarted is among them, or never will be
            stop_all(self._processes)
        self._processes.clear()
        self.around.stop()
        if self._store is not None:
            self._store.stop()
        if self._announced:
            self.kubeconfig.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def describe(self) -> dict[str, Any]:
        """What a run record keeps of a pool; no secrets."""
        return {
            "backend": "emulated",
            "kubeconfig": str(self.kubeconfig),
            "members": [msgspec.to_builtins(member) for member in self.members],
            "store_pid": self._store.pid if self._store else None,
            "processes": {**(self._store.processes if self._store else {}), **self.around.processes},
            "store": self._store.describe() if self._store else {},
            "has_scheduler": False,
            "has_controllers": False,
            "cores": self.options.modelled_cores(),
            **self.around.describe(),
            "options": msgspec.to_builtins(self.options),
        }

    def _start(self) -> None:
        self._logs.mkdir(parents=True, exist_ok=True)
        names = self.options.names
        addresses = list(dict.fromkeys([HOST, "10.0.0.1", reached_at(self.options.host)]))
        files = kept_serving_files(self._keys, ["localhost", "kubernetes.default.svc"], addresses)
        self._ca = files.ca
        socket = str(self._folder / "store.sock")
        config = StoreConfig(
            socket=socket,
            members=names,
            seed=self.options.seed,
            etcd=self.options.etcd,
            pace=self.options.pace,
        )
        store = make_store(self.options.store, config, self._folder, self._logs, self._on_event)
        self._store = store
        store.start()
        self.around.start_behind(store.socket, store.etcd)
        token_key = kept_secret(self._keys, "token.key")
        self._configs = {
            name: self._member(index, names, store, files, token_key) for index, name in enumerate(names)
        }
        started = [self._launch(name, config) for name, config in self._configs.items()]
        for process in started:
            ready = process.wait_ready()
            self.members.append(
                MemberAddress(process.name, reached_at(self.options.host), int(ready["port"]), process.pid)
            )
        for process, member in zip(started, self.members, strict=True):
            wait_until_ready(member, files.ca, ended=process.how_it_ended)
        apply_objects(self.options.objects, self._call)
        self.around.start_front(self.members, files.ca)
        servers = {member.name: member.url for member in self.members}
        self._announced = True
        client = None
        if self.options.credentials == "certificate":
            client = make_client_files(files, self._folder, "kubernetes-admin", ["system:masters"])
        write_kubeconfig(
            self.kubeconfig,
            servers,
            Path(files.ca),
            client or self._token,
            front=self.around.contexts,
            control=str(self.control),
            others=self.parts.others,
        )

    def _call(self, method: str, path: str, body: bytes, content_type: str) -> tuple[int, bytes]:
        """A request of the administrator's to the first member."""
        member = self.members[0]
        context = ssl.create_default_context(cafile=self._ca)
        return call(member.host, member.port, context, self._token, method, path, body, content_type)

    def _member(
        self, index: int, names: tuple[str, ...], store: PoolStore, files: ServingFiles, token_key: str
    ) -> MemberConfig:
        return MemberConfig(
            name=names[index],
            index=index,
            members=names,
            store_socket=self.around.store_socket_of(names[index], store.socket),
            etcd=self.around.etcd_of(names[index], store.etcd),
            cert=files.cert,
            key=files.key,
            client_ca=files.ca,
            signing_key=files.ca_key if self.options.sign_csrs else "",
            signing_duration_s=self.options.signing_duration_s,
            admin_token=self._token,
            token_key=token_key,
            host=self.options.host,
            port=self.around.member_port(names[index]),
            cores=self.options.modelled_cores(),
            seed=self.options.seed,
            costs=self.options.costs,
            server_concurrency=self.options.seats(),
            priority_and_fairness=self.options.priority_and_fairness,
            node_authorizer=self.options.node_authorizer,
            faults=self.options.faults_of(names[index]),
            shutdown_delay_s=self.options.shutdown_delay_s,
            event_ttl_s=self.options.event_ttl_s,
            feature_gates=self.options.feature_gates,
            protobuf_answers=self.options.protobuf_answers,
            pace=self.options.pace,
        )

    def part(self, name: str) -> Part:
        """One of its processes, and how it is started again. Raises ConfigError where there is none."""
        if name == BALANCER:
            return self.around.balancer()
        if name not in self.options.names:
            if self._store is None:
                raise ConfigError(f"{name}: the pool has not been started")
            return self._store.part(name)
        process = next(process for process in self._processes if process.name == name)

        def start(within_s: float) -> Process | None:
            return self._start_again(process, within_s)

        return Part(process, start)

    def _start_again(self, old: Process, within_s: float) -> Process | None:
        """A member's new process, ready; None where the pool has been stopped. Raises ProcessFailed."""
        index = [member.name for member in self.members].index(old.name)
        address = self.members[index]
        config = msgspec.structs.replace(self._configs[old.name], port=address.port)
        deadline = time.monotonic() + within_s
        with self._launching:
            if self._over.is_set():
                return None
            self._processes.remove(old)
            process = self._launch(old.name, config)
        process.wait_ready(within_s)
        self.members[index] = msgspec.structs.replace(address, pid=process.pid)
        wait_until_ready(address, self._ca, max(1.0, deadline - time.monotonic()), ended=process.how_it_ended)
        return process

    def _launch(self, name: str, config: MemberConfig) -> Process:
        process = Process(
            name,
            "harness.apiserver.process.member",
            config,
            self._logs / f"{name}.log",
            on_exit=self._exited,
            on_message=lambda message: self._on_event({"member": name, **message}),
            environ=ENVIRONMENT,
        )
        self._processes.append(process)
        return process

    def _exited(self, process: Process, code: int) -> None:
        self._on_event({"kind": "process-exited", "process": process.name, "code": code})


def check_address(host: str) -> None:
    """Raises ConfigError for what is no IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise ConfigError(f"host: {host!r} is no IP address to listen on") from None
