"""What is asked: a fleet, its control plane, and the machine that they are to run on."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from harness.transport.options import HttpMode
from harness.wire.errors import ConfigError

Servers = Literal["existing", "emulated", "binaries"]
MOST_NODES = 100_000
FEWEST_WATCHES, MOST_WATCHES = 5, 1000
"""A kubelet without pods has five: its pods, its node, services, drivers, runtime classes."""
MOST_MEMBERS = 99


class Fleet(msgspec.Struct, frozen=True):
    """`events_a_node_s`: watch events that each kubelet receives a second. `up_within_s`: in which every watch is to be
    open. `servers` says who runs the apiservers: somebody else, or this machine too. `one_address`: all connections go
    to a balancer. `workers` None: as many as are needed."""

    nodes: int
    watches: int = 35
    events_a_node_s: float = 0.2
    up_within_s: float = 600.0
    members: int = 3
    servers: Servers = "existing"
    http: HttpMode = "h2"
    one_address: bool = False
    workers: int | None = None

    def validate(self) -> None:
        """Raises ConfigError for the first that is out of bounds, by the name of its option."""
        _within("--nodes", self.nodes, 1, MOST_NODES)
        _within("--watches-per-node", self.watches, FEWEST_WATCHES, MOST_WATCHES)
        _within("--members", self.members, 1, MOST_MEMBERS)
        if self.workers is not None:
            _within("--workers", self.workers, 1, self.nodes)
        if not 0 <= self.events_a_node_s <= 1000:
            raise ConfigError(
                f"--events {self.events_a_node_s:g}: not within 0 to 1000 a second for each node"
            )
        if not 1 <= self.up_within_s <= 86_400:
            raise ConfigError(f"--up-within {self.up_within_s:g} s: not within 1 s to 24 h")
        if self.servers not in get_args(Servers):
            raise ConfigError(f"--servers {self.servers}: allowed are {', '.join(get_args(Servers))}")

    @property
    def open_watches(self) -> int:
        return self.nodes * self.watches

    @property
    def connections_each(self) -> int:
        """Of one kubelet: one over HTTP/2, over HTTP/1.1 one for each watch and some for requests."""
        return self.watches + 4 if self.http == "http/1.1" else 1

    @property
    def busiest_share(self) -> float:
        """Of all connections, those of the member (or the address) that has most, while one member is down."""
        return 1.0 if self.one_address else 1.0 / max(1, self.members - 1)


class Machine(msgspec.Struct, frozen=True):
    """`memory_bytes` is what is free; `files` what one process may open, None for no limit; `ports` how many
    connections can leave it for one address."""

    cores: float
    memory_bytes: int
    files: int | None
    ports: int

    def validate(self) -> None:
        """Raises ConfigError."""
        if not 0 < self.cores <= 4096:
            raise ConfigError(f"--cores {self.cores:g}: not within 0 to 4096")
        if self.memory_bytes < 1:
            raise ConfigError("--memory: must be above 0")


def _within(flag: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{flag} {value}: not within {low} to {high}")
