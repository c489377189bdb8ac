"""Which member of a pool a new connection goes to, as a layer-4 balancer would decide."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from harness.wire.errors import ConfigError

POLICIES = ("random", "round-robin")


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """One apiserver; `member` is the name it has in reports."""

    host: str
    port: int
    member: str

    @property
    def authority(self) -> str:
        """``host:port``, an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Endpoints:
    """The members that connections are spread over, by connection (never by request).

    ``random`` draws each time from `rng`; ``round-robin`` goes round in order from a place drawn from `rng`. One object
    may serve all nodes of a worker or one node. Raises ConfigError where there is no address or the policy is unknown.
    """

    __slots__ = ("_next", "_policy", "_rng", "addresses")

    def __init__(self, addresses: Sequence[Endpoint], rng: random.Random, policy: str = "random") -> None:
        if not addresses:
            raise ConfigError("a transport needs at least one endpoint, none was given")
        if policy not in POLICIES:
            raise ConfigError(f"endpoint policy {policy!r} is not known; allowed are {', '.join(POLICIES)}")
        self.addresses = tuple(addresses)
        self._rng = rng
        self._policy = policy
        self._next = rng.randrange(len(self.addresses)) if policy == "round-robin" else 0

    def choose(self) -> Endpoint:
        """The endpoint for a new connection."""
        if self._policy == "random":
            return self._rng.choice(self.addresses)
        chosen = self.addresses[self._next]
        self._next = (self._next + 1) % len(self.addresses)
        return chosen
