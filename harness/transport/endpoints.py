"""Which member of a pool a new connection goes to, as a layer-4 balancer would decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import msgspec

from harness.wire.draws import Draws
from harness.wire.errors import ConfigError

Policy: TypeAlias = Literal["random", "pinned", "round-robin"]
"""``random`` draws a member for each connection. ``pinned`` draws one for all connections of a node, as long as it can
be reached: a connection that fails sends the next one to the member after it, one that succeeds turns back to the
first. ``round-robin`` goes round in order, from a place that is drawn."""

POLICIES: tuple[str, ...] = get_args(Policy)


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
    """The members that connections are spread over, by connection (never by request); `policy` is one of `POLICIES`.

    What is drawn is drawn from `rng`. One object may serve all nodes of a worker, except with ``pinned``: there each
    node has its own. Raises ConfigError where there is no address or the policy is unknown.
    """

    __slots__ = ("_next", "_policy", "_rng", "_unreachable", "addresses")

    def __init__(self, addresses: Sequence[Endpoint], rng: Draws, policy: str = "random") -> None:
        if not addresses:
            raise ConfigError("a transport needs at least one endpoint, none was given")
        if policy not in POLICIES:
            raise ConfigError(f"endpoint policy {policy!r} is not known; allowed are {', '.join(POLICIES)}")
        self.addresses = tuple(addresses)
        self._rng = rng
        self._policy = policy
        self._next = 0 if policy == "random" else self._draw()
        self._unreachable = 0

    def choose(self) -> Endpoint:
        """The endpoint for a new connection."""
        if self._policy == "random":
            return self.addresses[self._draw()]
        if self._policy == "pinned":
            return self._pinned()
        chosen = self.addresses[self._next]
        self._next = (self._next + 1) % len(self.addresses)
        return chosen

    def failed(self, endpoint: Endpoint) -> None:
        """No connection to `endpoint` came about. Of several such that were chosen together the first one counts."""
        if self._policy == "pinned" and endpoint is self._pinned():
            self._unreachable += 1

    def succeeded(self) -> None:
        """A connection was established."""
        self._unreachable = 0

    def _draw(self) -> int:
        return int(self._rng.random() * len(self.addresses))

    def _pinned(self) -> Endpoint:
        return self.addresses[(self._next + self._unreachable) % len(self.addresses)]
