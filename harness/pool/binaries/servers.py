"""A pool of real kube-apiservers over one etcd, each a process of this machine."""

from __future__ import annotations

import re
import shutil
import ssl
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from harness.pool.backend import MemberAddress, OnEvent, reached_at, wait_until_ready
from harness.pool.binaries.components import Components
from harness.pool.binaries.finding import (
    APISERVER,
    CONTROLLER_MANAGER,
    SCHEDULER,
    Program,
    find_programs,
    program,
)
from harness.pool.binaries.flags import OF_APISERVER, Apiserver, command_line, settings
from harness.pool.binaries.keys import Keys, make_keys
from harness.pool.control import NAME as CONTROL
from harness.pool.emulated import PoolOptions
from harness.pool.folders import make_folder
from harness.pool.guardian import Guarded
from harness.pool.http import call
from harness.pool.kubeconfig import check_kubeconfig_path, write_kubeconfig
from harness.pool.network.places import BALANCER
from harness.pool.objects import apply_objects
from harness.pool.ports import HOST, free_ports
from harness.pool.process import Process, stop_all
from harness.pool.restarts import Part
from harness.pool.stores import OwnEtcd, PoolStore, RunningEtcd
from harness.pool.surroundings import Surroundings
from harness.wire.errors import ConfigError

READY_WITHIN_S = 60.0
"""Three on two cores take 6 to 8 s."""
SERVICE_IP = "10.0.0.1"  # the first of flags.SERVICE_CIDR, where the service `kubernetes` is

_FIRST_OBJECTS = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}},
)
"""What kube-controller-manager would see to; without it no pod is admitted to the namespace `default`."""


class BinariesPool:
    """`on_event` hears what that of an emulated pool hears of processes and restarts, and what `Components` says."""

    def __init__(self, options: PoolOptions, on_event: OnEvent) -> None:
        options.validate()
        if options.kubeconfig:
            check_kubeconfig_path(Path(options.kubeconfig))
        self.options = options
        self.members: list[MemberAddress] = []
        self._on_event = on_event
        programs = find_programs(options.binaries.folder)
        beside = {SCHEDULER: programs.scheduler, CONTROLLER_MANAGER: programs.controller_manager}
        self._beside = {name: path for name, path in beside.items() if path}
        self._programs = {
            name: program(path) for name, path in {APISERVER: programs.apiserver, **self._beside}.items()
        }
        self._components = Components(
            self._beside, options.binaries, options.signing_duration_s, options.feature_gates, on_event
        )
        self._folder = make_folder()
        self._logs = Path(options.logs) if options.logs else self._folder / "logs"
        kept = options.store.data_dir
        self._kept = Path(kept) / "binaries" if kept else self._folder  # apart from an emulated pool's
        self._store: PoolStore | None = None
        self._keys: Keys | None = None
        self._told: dict[str, Apiserver] = {}
        self._processes: dict[str, Process] = {}
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
        self._components.stop()
        with self._launching:  # whoever is being restarted is among them, or never will be
            stop_all(list(self._processes.values()))
        self.around.stop()
        if self._store is not None:
            self._store.stop()
        if self._announced:
            self.kubeconfig.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def describe(self) -> dict[str, Any]:
        """What a run record keeps of a pool; no secrets. `flags` are those of every member that say something of more
        than this machine's ports and files, `command_lines` all; `signs` are the paths of the authority that signs
        clients; `notes` is what a reader of the run's figures should know."""
        assert self._keys is not None, "started"
        given = self.options.binaries.apiserver_flags
        serving = self._keys.serving
        return {
            "backend": "binaries",
            "kubeconfig": str(self.kubeconfig),
            "members": [msgspec.to_builtins(member) for member in self.members],
            "processes": {
                **(self._store.processes if self._store else {}),
                **self._components.pids,
                **self.around.processes,
            },
            "store": self._store.describe() if self._store else {},
            "binaries": msgspec.to_builtins(self._programs),
            "flags": settings(OF_APISERVER, next(iter(self._told.values())), given),
            "command_lines": {
                **{name: self._command_line(name) for name in self._told},
                **self._components.command_lines,
            },
            "has_scheduler": SCHEDULER in self._beside,
            "has_controllers": CONTROLLER_MANAGER in self._beside,
            "signs": {"cert": serving.ca, "key": serving.ca_key},
            "notes": self._notes(),
            **self.around.describe(),
            "options": msgspec.to_builtins(self.options),
        }

    def part(self, name: str) -> Part:
        """One of its processes, and how it is started again. Raises ConfigError where there is none."""
        if name == BALANCER:
            return self.around.balancer()
        if name in self._processes:
            return Part(self._processes[name], partial(self._start_again, name))
        if self._store is None:
            raise ConfigError(f"{name}: the pool has not been started")
        return self._store.part(name)

    # ---- start -----------------------------------------------------------------------------------------------------
    def _start(self) -> None:
        self._logs.mkdir(parents=True, exist_ok=True)
        host = reached_at(self.options.host)
        addresses = list(dict.fromkeys([HOST, SERVICE_IP, host]))
        keys = self._keys = make_keys(self._kept / "keys", self._folder, addresses)
        store = self._store = self._make_store()
        store.start()
        self.around.start_behind("", store.etcd)
        names = self.options.names
        ports = free_ports(len(names))
        ports = [self.around.member_port(name) or port for name, port in zip(names, ports, strict=True)]
        for index, (name, port) in enumerate(zip(names, ports, strict=True)):
            self._told[name] = self._member(index, name, port, keys, store)
            self._launch(name)
        deadline = time.monotonic() + READY_WITHIN_S
        for name, told in self._told.items():
            self._processes[name].wait_ready()
            member = MemberAddress(name, host, told.port, self._processes[name].program_pid)
            self.members.append(member)
            self._wait_until_ready(member, deadline)
        first = () if CONTROLLER_MANAGER in self._beside else _FIRST_OBJECTS
        apply_objects([*first, *self.options.objects], self._call)
        self._components.start(self.members, keys, self._folder, self._logs)
        self.around.start_front(self.members, keys.serving.ca)
        self._announced = True
        servers = {member.name: member.url for member in self.members}
        write_kubeconfig(
            self.kubeconfig,
            servers,
            Path(keys.serving.ca),
            keys.admin,
            front=self.around.contexts,
            control=str(self.control),
            others=self.parts.others,
        )

    def _make_store(self) -> PoolStore:
        options = self.options.binaries.etcd(self.options.store)
        if options.own_members is None:
            return RunningEtcd(options.servers())
        etcd = OwnEtcd(options, self._kept / "etcd", self._logs, self._on_event)
        self._programs["etcd"] = program(etcd.cluster.binary)
        return etcd

    def _member(self, index: int, name: str, port: int, keys: Keys, store: PoolStore) -> Apiserver:
        options, etcd = self.options, self.around.etcd_of(name, store.etcd)
        assert etcd is not None, "a real apiserver's store is an etcd"
        turn = index % len(etcd.urls)  # the n-th member begins with the n-th address
        seats = options.seats()
        reads = max(1, seats * 2 // 3)  # as kube-apiserver's defaults, 400 and 200
        own = self._folder / name
        own.mkdir(mode=0o700)
        return Apiserver(
            host=options.host,
            port=port,
            advertise=reached_at(options.host),
            cert_dir=str(own),
            files=keys.serving,
            account_key=keys.account_key,
            account_public_key=keys.account_public_key,
            etcd=msgspec.structs.replace(etcd, urls=etcd.urls[turn:] + etcd.urls[:turn]),
            reads=reads,
            writes=max(1, seats - reads),
            priority_and_fairness=options.priority_and_fairness,
            event_ttl_s=options.event_ttl_s,
            feature_gates=options.feature_gates,
            goaway_chance=options.goaway_chance,
            shutdown_delay_s=options.shutdown_delay_s,
        )

    def _command_line(self, name: str) -> list[str]:
        given = self.options.binaries.apiserver_flags
        return [self._programs[APISERVER].path, *command_line(OF_APISERVER, self._told[name], given)]

    def _launch(self, name: str) -> Process:
        process = self._processes[name] = Process(
            name,
            "harness.pool.guardian",
            Guarded(self._command_line(name)),
            self._logs / f"{name}.log",
            on_exit=self._exited,
        )
        return process

    def _start_again(self, name: str, within_s: float) -> Process | None:
        """A member's new process, ready; None where the pool has been stopped. Raises ProcessFailed."""
        deadline = time.monotonic() + within_s
        with self._launching:
            if self._over.is_set():
                return None
            process = self._launch(name)
        process.wait_ready(within_s)
        index = self.options.names.index(name)
        member = msgspec.structs.replace(self.members[index], pid=process.program_pid)
        self.members[index] = member
        self._wait_until_ready(member, deadline)
        return process

    def _wait_until_ready(self, member: MemberAddress, deadline: float) -> None:
        """As the administrator: without RBAC's own roles, which are made last, nobody else may ask."""
        assert self._keys is not None, "made before"
        wait_until_ready(
            member,
            self._keys.serving.ca,
            max(1.0, deadline - time.monotonic()),
            client=self._keys.admin,
            ended=self._processes[member.name].how_it_ended,
        )

    def _call(self, method: str, path: str, body: bytes, content_type: str) -> tuple[int, bytes]:
        """A request of the administrator's to the first member."""
        assert self._keys is not None, "made before"
        member = self.members[0]
        context = ssl.create_default_context(cafile=self._keys.serving.ca)
        context.load_cert_chain(self._keys.admin.cert, self._keys.admin.key)
        return call(member.host, member.port, context, "", method, path, body, content_type)

    def _exited(self, process: Process, code: int) -> None:
        self._on_event({"kind": "process-exited", "process": process.name, "code": code})

    def _notes(self) -> list[str]:
        etcd = self._programs.get("etcd")
        if etcd is None or tells_progress(etcd):
            return []
        note = (
            f"etcd {etcd.version} does not tell how far a watch has come (3.4.31, 3.5.13 and later do): consistent "
            "reads are etcd's, not the watch cache's"
        )
        return [note]


def tells_progress(etcd: Program) -> bool:
    """Whether a kube-apiserver asks this version for a watch's progress (as/pkg/storage/feature,
    feature_support_checker.go:204); one that says no version is taken to be new."""
    number = re.match(r"v(\d+)\.(\d+)\.(\d+)", etcd.version)
    if number is None:
        return True
    version = tuple(int(part) for part in number.groups())
    return not (version < (3, 4, 31) or (3, 5, 0) <= version < (3, 5, 13))
