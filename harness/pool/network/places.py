"""Where in a pool a link may be: between which two parts, as they are written and as they are meant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import msgspec

from harness.apiserver.faults.poolkinds import NetworkFault
from harness.apiserver.faults.spec import FaultSpec
from harness.wire.errors import ConfigError

CLIENTS, BALANCER, STORE = "clients", "balancer", "store"
NETWORK = "network"
"""Whom events of links name where others name a member."""
MEMBERS, ETCD = "members", "etcd"
"""Words for all of a kind."""


class Place(msgspec.Struct, frozen=True, order=True):
    """`near` connects, `far` is connected to."""

    near: str
    far: str

    @property
    def name(self) -> str:
        return f"{self.near},{self.far}"


class Parts(msgspec.Struct, frozen=True):
    """The parts of a pool by name. `etcd` are members that the pool starts, and `store` says that there is the embedded
    store in their stead, `kept` that it has a data folder; with neither the store is somebody else's."""

    members: tuple[str, ...]
    etcd: tuple[str, ...] = ()
    store: bool = False
    balancer: bool = False
    kept: bool = False

    @property
    def processes(self) -> tuple[str, ...]:
        """Those that can be stopped, killed, paused."""
        return (
            *self.members,
            *self.etcd,
            *((STORE,) if self.store else ()),
            *((BALANCER,) if self.balancer else ()),
        )

    @property
    def others(self) -> tuple[str, ...]:
        """What beside members a fault can be of."""
        return (*self.processes[len(self.members) :], NETWORK)

    def places(self) -> list[Place]:
        """Every place that a link can be at."""
        front = [BALANCER] if self.balancer else []
        stores = [*self.etcd, *([STORE] if self.store else [])]
        return [
            *(Place(CLIENTS, part) for part in front or self.members),
            *(Place(part, member) for part, member in product(front, self.members)),
            *(Place(member, part) for member, part in product(self.members, stores)),
        ]

    def find(self, between: Sequence[str]) -> list[Place]:
        """The places that two words mean, in either order. Raises ConfigError where there is none."""
        one, other = (self._meant(word) for word in between)
        found = [
            place
            for place in self.places()
            if (place.near in one and place.far in other) or (place.near in other and place.far in one)
        ]
        if not found:
            known = ", ".join(f"{place.near},{place.far}" for place in self.places())
            raise ConfigError(f"link between {','.join(between)}: there is no such link (known: {known})")
        return found

    def _meant(self, word: str) -> Sequence[str]:
        return {MEMBERS: self.members, ETCD: self.etcd}.get(word, (word,))


def places_of(faults: Iterable[FaultSpec]) -> list[str]:
    """The places that faults of the network need, as --link has them."""
    return [",".join(spec.fault.between) for spec in faults if isinstance(spec.fault, NetworkFault)]


def parse_places(texts: Iterable[str], parts: Parts) -> list[Place]:
    """As --link has them, without duplicates, in order. Raises ConfigError."""
    found: dict[Place, None] = {}
    for text in texts:
        words = [word.strip() for word in text.split(",")]
        if len(words) != 2:
            raise ConfigError(f"--link {text!r}: expected two parts, as clients,member-0 or members,etcd")
        found.update(dict.fromkeys(parts.find(words)))
    return list(found)
