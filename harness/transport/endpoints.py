"""Which member of a pool a new connection goes to, as a layer-4 balancer would decide."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Literal, TypeAlias, get_args

import msgspec

from harness.wire.draws import Draws
from harness.wire.errors import ConfigError

Policy: TypeAlias = Literal["random", "round-robin", "least-connections", "source-hash", "pinned"]
"""``random`` draws a member for each connection. ``round-robin`` goes round in order, from a place that is drawn.
``least-connections`` takes the one with the fewest connections, those that are being dialled included; of several it
draws one. ``source-hash`` has a client always at the same member, by its name alone; ``pinned`` too, but it draws
which. With both, as long as that member can be reached: a connection that fails sends the next one to another member,
one that succeeds turns back to the first."""

POLICIES: tuple[str, ...] = get_args(Policy)


class Endpoint(msgspec.Struct, frozen=True, gc=False):
    """One apiserver; `member` is the name it has in reports. `source` is the address of this machine that connections
    come from, "" whichever it has."""

    host: str
    port: int
    member: str
    source: str = ""

    @property
    def authority(self) -> str:
        """``host:port``, an IPv6 address in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Balance:
    """What one balancer knows, which all clients of a process share: where round-robin is, None before its first
    choice, and how many connections each member has or is to have."""

    __slots__ = ("connections", "turn")

    def __init__(self) -> None:
        self.turn: int | None = None
        self.connections: dict[str, int] = {}


class Endpoints:
    """The members that connections are spread over, by connection (never by request); `policy` is one of `POLICIES`.

    What is drawn is drawn from `rng`. `balance` is shared by those who are to be balanced together, None: nobody
    else; `source` is the client's name. With ``pinned`` and ``source-hash`` each node has an object of its own. Raises
    ConfigError where there is no address or the policy is unknown.
    """

    __slots__ = ("_balance", "_order", "_policy", "_rng", "_unreachable", "addresses")

    def __init__(
        self,
        addresses: Sequence[Endpoint],
        rng: Draws,
        policy: str = "random",
        *,
        balance: Balance | None = None,
        source: str = "",
    ) -> None:
        if not addresses:
            raise ConfigError("a transport needs at least one endpoint, none was given")
        if policy not in POLICIES:
            raise ConfigError(f"endpoint policy {policy!r} is not known; allowed are {', '.join(POLICIES)}")
        self.addresses = tuple(addresses)
        self._rng = rng
        self._policy = policy
        self._balance = balance
        self._unreachable = 0
        self._order: tuple[int, ...] = ()
        if policy == "pinned":
            self._order = _round(len(self.addresses), self._draw())
        elif policy == "source-hash":
            self._order = _by_hash(source, tuple(address.member for address in self.addresses))
        elif policy != "random" and balance is None:
            self._balance = Balance()

    def choose(self) -> Endpoint:
        """The endpoint for a new connection. `failed` or `closed` follows, once."""
        if self._policy == "random":
            return self.addresses[self._draw()]
        if self._order:
            return self._at_home()
        if self._policy == "round-robin":
            return self._in_turn()
        return self._least()

    def failed(self, endpoint: Endpoint) -> None:
        """No connection to `endpoint` came about. Of several such that were chosen together the first one counts."""
        if self._order and endpoint is self._at_home():
            self._unreachable += 1
        self.closed(endpoint.member)

    def succeeded(self) -> None:
        """A connection was established."""
        self._unreachable = 0

    def closed(self, member: str) -> None:
        """A connection to `member` is no more, or was given up before it came about."""
        if self._policy == "least-connections":
            assert self._balance is not None
            self._balance.connections[member] -= 1

    def _draw(self) -> int:
        return int(self._rng.random() * len(self.addresses))

    def _at_home(self) -> Endpoint:
        return self.addresses[self._order[self._unreachable % len(self._order)]]

    def _in_turn(self) -> Endpoint:
        balance = self._balance
        assert balance is not None
        turn = self._draw() if balance.turn is None else balance.turn
        balance.turn = (turn + 1) % len(self.addresses)
        return self.addresses[turn]

    def _least(self) -> Endpoint:
        assert self._balance is not None
        connections = self._balance.connections
        fewest = min(connections.get(address.member, 0) for address in self.addresses)
        equal = [address for address in self.addresses if connections.get(address.member, 0) == fewest]
        chosen = equal[int(self._rng.random() * len(equal))]
        connections[chosen.member] = fewest + 1
        return chosen


@lru_cache(maxsize=128)
def _round(count: int, first: int) -> tuple[int, ...]:
    """One tuple for all nodes that begin at the same place."""
    return tuple((first + step) % count for step in range(count))


def _by_hash(source: str, members: tuple[str, ...]) -> tuple[int, ...]:
    """Members in a source's own order (rendezvous hashing): those who lose their first one are spread over the rest."""
    weights = [
        blake2b(f"{source}\0{member}".encode(), digest_size=8, usedforsecurity=False).digest()
        for member in members
    ]
    return tuple(sorted(range(len(members)), key=weights.__getitem__, reverse=True))
