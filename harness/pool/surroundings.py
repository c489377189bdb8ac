"""What stands around a pool's members: links between parts, and a balancer in front.

A pool asks where its members find their store (`etcd_of`, `store_socket_of`), and, when its members are ready, where
clients are to connect (`front`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from harness.apiserver.store.etcd3.endpoints import EtcdServers
from harness.pool.backend import MemberAddress, reached_at
from harness.pool.balancer.haproxy import Behind, Haproxy
from harness.pool.balancer.options import BalancerOptions
from harness.pool.network.config import Address, LinkState
from harness.pool.network.links import NetworkProcess
from harness.pool.network.places import BALANCER, CLIENTS, STORE, Parts, Place, parse_places
from harness.pool.ports import HOST, free_ports
from harness.pool.process import Process, stop_all
from harness.pool.restarts import Part
from harness.wire.errors import ConfigError
from harness.wire.pace import REAL, Pace

OnExit = Callable[[Process, int], None]


class Front(msgspec.Struct, frozen=True):
    """An address that clients connect to; `name` is the member's that is there, or the balancer's."""

    name: str
    host: str
    port: int

    @property
    def url(self) -> str:
        return f"https://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class Surroundings:
    """`links` as --link has them, already checked. `host` and `port` are where clients connect, `port` 0 for free ones;
    `folder` is the pool's own."""

    def __init__(
        self,
        parts: Parts,
        links: Sequence[str],
        balancer: BalancerOptions,
        *,
        host: str,
        port: int,
        seed: int,
        folder: Path,
        logs: Path,
        on_exit: OnExit,
        pace: Pace = REAL,
    ) -> None:
        self.parts = parts
        self.placed = parse_places(links, parts)
        self.front: tuple[Front, ...] = ()
        self._options = balancer
        self._host, self._port, self._seed = host, port, seed
        self._folder, self._logs, self._on_exit = folder, logs, on_exit
        self._pace = pace
        self._networks: list[NetworkProcess] = []
        self._haproxy: Haproxy | None = None

    def member_port(self, name: str) -> int:
        """Where a member is to listen: the port that was asked for belongs to whatever clients meet first."""
        if self._options.kind or Place(CLIENTS, name) in self.placed or not self._port:
            return 0
        return self._port + self.parts.members.index(name)

    # ---- behind the members ----------------------------------------------------------------------------------------
    def start_behind(self, store_socket: str, etcd: EtcdServers | None) -> None:
        """Links between members and what they keep objects in. Blocks."""
        links = []
        for number, place in enumerate(self.placed):
            if place.far == STORE:
                listen = Address(path=str(self._folder / f"link-{number}.sock"))
                links.append((place, listen, Address(path=store_socket)))
            elif place.far in self.parts.etcd:
                assert etcd is not None, "the pool's own"
                url = urlsplit(etcd.urls[self.parts.etcd.index(place.far)])
                links.append((place, Address(HOST), Address(url.hostname or HOST, url.port or 0)))
        self._place("network-store", links)

    def store_socket_of(self, member: str, socket: str) -> str:
        listening = self._listening(Place(member, STORE))
        return socket if listening is None else listening.path

    def etcd_of(self, member: str, servers: EtcdServers | None) -> EtcdServers | None:
        if servers is None or not self.parts.etcd:
            return servers
        urls = []
        for name, url in zip(self.parts.etcd, servers.urls, strict=True):
            listening = self._listening(Place(member, name))
            urls.append(url if listening is None else f"http://{HOST}:{listening.port}")
        return msgspec.structs.replace(servers, urls=tuple(urls))

    # ---- in front of the members -----------------------------------------------------------------------------------
    def start_front(self, members: Sequence[MemberAddress], ca_file: str) -> None:
        """What clients meet before a member. Blocks. Raises ConfigError or ProcessFailed."""
        host = reached_at(self._host)
        at = {member.name: Address(member.host, member.port) for member in members}
        if self._options.kind:
            linked = Place(CLIENTS, BALANCER) in self.placed
            listen = Address(host, free_ports(1)[0] if linked or not self._port else self._port)
            at[BALANCER] = listen if linked else Address(self._host, listen.port)
        links = [
            (place, self._where(place, members), at[place.far])
            for place in self.placed
            if place.near in (CLIENTS, BALANCER)
        ]
        self._place("network-front", links)
        if self._options.kind:
            self._start_balancer(at, ca_file)
        names = [BALANCER] if self._options.kind else [member.name for member in members]
        fronts = []
        for name in names:
            met = self._listening(Place(CLIENTS, name)) or at[name]
            fronts.append(Front(name, host, met.port))
        self.front = tuple(fronts)

    def _where(self, place: Place, members: Sequence[MemberAddress]) -> Address:
        """Where a link in front of members listens."""
        if place.near == BALANCER:
            return Address(HOST)
        offset = 0 if place.far == BALANCER else [member.name for member in members].index(place.far)
        return Address(self._host, self._port + offset if self._port else 0)

    def _start_balancer(self, at: dict[str, Address], ca_file: str) -> None:
        behind = []
        for name in self.parts.members:
            met = self._listening(Place(BALANCER, name)) or at[name]
            behind.append(Behind(name, met.host, met.port))
        self._haproxy = Haproxy(
            self._options, at[BALANCER], self._folder, self._logs / f"{BALANCER}.log", self._on_exit
        )
        self._haproxy.configure(behind, ca_file)
        self._haproxy.start()

    # ---- while it runs ---------------------------------------------------------------------------------------------
    def reshape(self, states: dict[str, LinkState]) -> None:
        """What links are like from now on, by their places' names."""
        for network in self._networks:
            network.become(states)

    def balancer(self) -> Part:
        """The balancer's process. Raises ConfigError where there is none."""
        haproxy = self._haproxy
        if haproxy is None or haproxy.process is None:
            raise ConfigError("there is no balancer")
        return Part(haproxy.process, haproxy.start)

    def balanced(self) -> dict[str, dict[str, Any]]:
        """What the balancer says of each member: `status`, `current` and `total` connections. Raises ConfigError where
        there is none or it does not answer."""
        if self._haproxy is None:
            raise ConfigError("there is no balancer")
        try:
            return {name: msgspec.to_builtins(stats) for name, stats in self._haproxy.members().items()}
        except (OSError, ValueError) as error:
            raise ConfigError(f"the balancer does not answer: {error}") from None

    @property
    def processes(self) -> dict[str, int]:
        """The pids of all that it runs, by name."""
        found = {network.process.name: network.process.pid for network in self._networks}
        if self._haproxy is not None and self._haproxy.process is not None:
            found[BALANCER] = self._haproxy.process.program_pid
        return found

    @property
    def contexts(self) -> dict[str, str]:
        """By their contexts' names, the addresses that clients meet before a member's own."""
        return {
            front.name if front.name == BALANCER else f"{front.name}-link": front.url
            for front in self.front
            if Place(CLIENTS, front.name) in self.placed or front.name == BALANCER
        }

    def describe(self) -> dict[str, Any]:
        """What a run record keeps of it."""
        return {
            "front": [msgspec.to_builtins(front) for front in self.front],
            "links": [place.name for place in self.placed],
            "balancer": None if self._haproxy is None else self._haproxy.describe(),
        }

    def stop(self) -> None:
        """Safe to call twice."""
        if self._haproxy is not None:
            self._haproxy.stop()
        stop_all([network.process for network in self._networks])
        self._networks.clear()

    def _place(self, name: str, links: Sequence[tuple[Place, Address, Address]]) -> None:
        if links:
            log = self._logs / f"{name}.log"
            self._networks.append(NetworkProcess(name, links, self._seed, log, self._on_exit, self._pace))

    def _listening(self, place: Place) -> Address | None:
        for network in self._networks:
            if place.name in network.listening:
                return network.listening[place.name]
        return None
